"""Which way of feeding images keeps this machine busy?

The suspect: every step waits for its batch, because images are read, decoded and
augmented one after another, on a part of the machine.
The test: feed the same images to the same training step in several ways, each changing
one thing, and compare images per second. A batch that is in memory already is the
ceiling; cores that decode and do nothing else are the limit.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import psutil

from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.standing import LIMITS
from perfkit.machine import limits
from perfkit.questions import unknown
from perfkit.questions.base import Experiment
from perfkit.questions.data_pipeline import work as consumers
from perfkit.questions.data_pipeline.variants import (
    DECODE_LIMIT,
    GROUPS,
    SYNTHETIC,
    VARIANTS,
)
from perfkit.questions.data_pipeline.verdict import (
    CHOICES,
    Claim,
    Result,
    choices_in,
    claims,
    judge,
    waits_of,
)
from perfkit.questions.data_pipeline.work import BASELINE, PARTS, Method, Task, takes
from perfkit.questions.parameters import Choice, Folder, Range
from perfkit.questions.shared import benchmark, cache, decoding
from perfkit.questions.shared import images as shared_images
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.images import look_at, recall
from perfkit.questions.shared.race import Race

__all__ = ["Claim", "DataPipeline", "claims"]

_VARIANTS = (*GROUPS, *VARIANTS, SYNTHETIC, DECODE_LIMIT)
# Of parts, by the names of its arguments.
Function = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class DataPipeline(Experiment):
    """Which way of feeding images keeps this machine busy?"""

    images: Annotated[
        str, Folder(help="Your own images, sub-folders as classes; empty for source")
    ] = ""
    source: Annotated[
        str, Choice(("photographs",), help="Pictures that are made here")
    ] = "photographs"
    count: Annotated[
        int, Range(16, 100_000, unit="images", help="How many images at most")
    ] = 256
    image_side: Annotated[
        int, Range(16, 1024, unit="px", help="Side of the square cut from each image")
    ] = 224
    batch: Annotated[int, Range(1, 1024, unit="images", help="Images in a batch")] = 32
    variants: Annotated[
        str, Choice(_VARIANTS, many=True, help="Groups or single variants")
    ] = "essential"
    feeding: Annotated[
        str, Choice(("training", "alone"), help="A training step, or just batches")
    ] = "training"

    name = "data-pipeline"
    baseline = BASELINE
    choices = CHOICES
    # Returns a data set without an end, of batches of images and labels. It is handed
    # what its arguments are named after: ``files`` (path, label and random numbers of
    # each image, without an end), ``example`` (reads, decodes and augments one),
    # ``batch``, and all else that the code of the other variants uses.
    function: ClassVar[Function | None] = None

    def __post_init__(self) -> None:
        """Refuse what cannot be asked, before anything is made."""
        super().__post_init__()
        height = shared_images.HEIGHT
        if not self.images and self.image_side > height:
            raise BadParameterError(
                f"image_side is {self.image_side}, but the images of {self.source} are "
                f"{height} px high; choose {height} or less, or give a folder of "
                "larger images."
            )
        function = type(self).function
        for name in takes(function) if function else ():
            if name not in PARTS:
                raise BadParameterError(unknown("part of a pipeline", name, PARTS))

    def make_variants(self) -> Mapping[str, Variant]:
        """What ``variants`` and ``feeding`` ask for, the baseline always first."""
        variants = {name: self._variant(name) for name in self._methods}
        bare = functools.partial(self._run, SYNTHETIC)
        if SYNTHETIC in self._names and self.feeding != "alone":
            does = "One batch that stays in memory, without a pipeline."
            code = code_of(consumers.one_batch)
            variants[SYNTHETIC] = Variant(SYNTHETIC, bare, does, BASELINE, code=code)
        decode = functools.partial(self._run, DECODE_LIMIT)
        if DECODE_LIMIT in self._names:
            does = "All cores only decode whole images."
            code = code_of(decoding.with_tensorflow)
            variants[DECODE_LIMIT] = Variant(DECODE_LIMIT, decode, does, code=code)
        return variants

    def prepare(self) -> Iterator[Yielded]:
        """Make or check the images, write record files, compare what the variants give.

        Raises:
            RunError: A variant gives other images than the rest.
        """
        benchmark.without_gpus()
        if not self.images:
            yield from shared_images.image_folder(self.source, self.count)
        images = yield from look_at(self.folder, count=self.count, side=self.image_side)
        yield Note("images", images.describe())
        yield Note(LIMITS, [SYNTHETIC, DECODE_LIMIT])
        present = psutil.virtual_memory().total
        yield Note("memory", limits.memory_granted(Path("/"), present))
        for form in dict.fromkeys(method.form for method in self._methods.values()):
            if form:
                yield from shared_images.make_records(images, form)
        yield Note("progress", "Checking that all variants give the same images")
        task = Task(images=images, side=self.image_side, batch=4)
        methods = self._methods
        if OWN in methods:
            wrong = consumers.why_not(methods.pop(OWN), task)
            yield Note(REFUSED, {OWN: wrong} if wrong else {})
        differ = consumers.differences(methods.values(), task)
        for name, difference in differ.items():
            raise RunError(
                f"{name!r} gives other images than the rest: {difference}. Its speed "
                "would mean nothing, so perfkit times nothing."
            )

    def result(self, measured: Measurement) -> Result:
        """Which share of a step each variant waits for its batch."""
        return Result(waits=waits_of(measured))

    @staticmethod
    def reveal(finding: Finding) -> str:
        """Answer the claims in circulation that this finding can answer."""
        return "\n".join(
            "\n    ".join(
                (f"{claim.says} {claim.answer.capitalize()}.", *claim.because)
            )
            for claim in claims(finding)
            if claim.answer != "not measured"
        )

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which way is fastest, by how much, what the model waits, what next."""
        return judge(measured, self.race(measured), self.result(measured))

    def race(self, measured: Measurement) -> Race:
        """Which of the pipelines that may be advised is fastest."""
        subject = "The pipeline" if self.feeding == "alone" else "This training"
        return Race(measured, choices_in(measured), "images", subject, BASELINE)

    @property
    def _names(self) -> tuple[str, ...]:
        words = self.variants.split(",")
        return tuple(name for word in words for name in GROUPS.get(word, (word,)))

    @property
    def _methods(self) -> dict[str, Method]:
        function = type(self).function
        mine = {OWN: Method(OWN, "Your own pipeline.", function)} if function else {}
        methods = {name: VARIANTS[name] for name in self._names if name in VARIANTS}
        return {BASELINE: VARIANTS[BASELINE], **mine, **methods}

    def _variant(self, name: str) -> Variant:
        method = self._methods[name]
        against = method.against if method.against in self._methods else BASELINE
        # Without the variant that it changes one thing of, it changes more than that.
        note = "" if against == method.against else f' On top of "{method.against}".'
        return Variant(
            name,
            functools.partial(self._run, name),
            method.do + note,
            against,
            code="" if name == OWN else method.code,
        )

    # A variant can be pickled, which no function made on the spot can.
    def _run(self, name: str) -> Iterator[Yielded]:
        task = self._task()
        if name == SYNTHETIC:
            return consumers.synthetic(task)
        if name == DECODE_LIMIT:
            return decoding.limit(task.images)
        training = self.feeding == "training"
        return consumers.feed(self._methods[name], task, training=training)

    def _task(self) -> Task:
        images = recall(self.folder, count=self.count, side=self.image_side)
        # The trial has seeded NumPy, with the same number for all variants of a round.
        seed = int(np.random.randint(2**31))
        return Task(images=images, side=self.image_side, batch=self.batch, seed=seed)

    @property
    def folder(self) -> Path:
        """Where the images lie: the reader's own, or those that ``prepare`` makes."""
        if self.images:
            return Path(self.images).expanduser().absolute()
        return cache.folder() / shared_images.folder_name(self.source, self.count)
