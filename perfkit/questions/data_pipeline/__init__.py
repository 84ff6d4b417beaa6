"""Which way of feeding images keeps this machine busy?

The suspect: every step waits for its batch, because images are read, decoded and
augmented one after another, on a part of the machine.
The test: feed the same images to the same training step in several ways, each changing
one thing, and compare images per second. A batch that is in memory already is the
ceiling; cores that decode and do nothing else are the limit.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import psutil

from perfkit import units
from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.trial import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.findings.standing import LIMITS, time_shares
from perfkit.machine import limits
from perfkit.questions import unknown
from perfkit.questions.base import Choice, Experiment, Folder, Range
from perfkit.questions.data_pipeline import variants as ways
from perfkit.questions.data_pipeline import work
from perfkit.questions.data_pipeline.variants import DECODE_LIMIT, SYNTHETIC, VARIANTS
from perfkit.questions.data_pipeline.work import BASELINE, PARTS, Method, Task, takes
from perfkit.questions.shared import benchmark, cache, decoding
from perfkit.questions.shared import images as shared_images
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.images import look_at, recall
from perfkit.questions.shared.verdicts import Race, quoted

_VARIANTS = (*ways.GROUPS, *VARIANTS, SYNTHETIC, DECODE_LIMIT)
# Of parts, by the names of its arguments.
Function = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class DataPipeline(Experiment):
    """Which way of feeding images keeps this machine busy?"""

    images: Annotated[
        str, Folder(help="Your own images, a sub-folder a class; empty for drawn ones")
    ] = ""
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
    choices = ways.CHOICES
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
                f"image_side is {self.image_side}, but the photographs drawn here are "
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
            code = code_of(work.one_batch)
            variants[SYNTHETIC] = Variant(SYNTHETIC, bare, does, BASELINE, code=code)
        decode = functools.partial(self._run, DECODE_LIMIT)
        if DECODE_LIMIT in self._names:
            does = "All cores only decode whole images."
            code = code_of(decoding.only_decoded)
            variants[DECODE_LIMIT] = Variant(DECODE_LIMIT, decode, does, code=code)
        return variants

    def prepare(self) -> Iterator[Yielded]:
        """Make or check the images, write record files, compare what the variants give.

        Where one gives other images than the rest, nothing is timed.
        """
        benchmark.without_gpus()
        if not self.images:
            yield from shared_images.image_folder(self.count)
        images = yield from look_at(self.folder, count=self.count, side=self.image_side)
        yield Note("images", images.describe())
        yield Note(LIMITS, [SYNTHETIC, DECODE_LIMIT])
        present = psutil.virtual_memory().total
        yield Note("memory", limits.memory_granted(Path("/"), present))
        for form in dict.fromkeys(method.form for method in self._methods.values()):
            if form:
                yield from shared_images.make_records(images, form)
        yield Note("progress", "Checking that all variants give the same images")
        batch = min(4, len(images.paths))
        task = Task(images=images, side=self.image_side, batch=batch)
        yield Note("stages", ways.stage_seconds(task))
        methods = self._methods
        if OWN in methods:
            wrong = ways.why_not(methods.pop(OWN), task)
            yield Note(REFUSED, {OWN: wrong} if wrong else {})
        for name, difference in ways.differences(methods.values(), task).items():
            raise RunError(
                f"{name!r} gives other images than the rest: {difference}. Its speed "
                "would mean nothing, so perfkit times nothing."
            )

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which way is fastest, by how much, what the model waits, what next."""
        return _judge(measured, self.race(measured))

    def race(self, measured: Measurement) -> Race:
        """Which of the pipelines that may be advised is fastest."""
        subject = "The pipeline" if self.feeding == "alone" else "This training"
        barred = {
            n for n, m in VARIANTS.items() if m.excluded or _too_large(measured, m)
        }
        choices = {n: choice for n, choice in ways.CHOICES.items() if n not in barred}
        return Race(measured, choices, "images", subject)

    @property
    def _names(self) -> tuple[str, ...]:
        words = self.variants.split(",")
        return tuple(name for word in words for name in ways.GROUPS.get(word, (word,)))

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
        side, training = self.image_side, self.feeding == "training"
        images = recall(self.folder, count=self.count, side=side)
        if name == DECODE_LIMIT:
            return decoding.limit(images)
        # The trial has seeded NumPy, with the same number for all variants of a round.
        seed = int(np.random.randint(2**31))
        task = Task(images=images, side=side, batch=self.batch, seed=seed)
        if name == SYNTHETIC:
            return work.synthetic(task)
        return work.feed(self._methods[name], task, training=training)

    @property
    def folder(self) -> Path:
        """Where the images lie: the reader's own, or those that ``prepare`` makes."""
        if self.images:
            return Path(self.images).expanduser().absolute()
        return cache.folder() / shared_images.folder_name(self.count)


# A cache may fill this share of the machine's memory.
_MEMORY_SHARE = 0.5
_READ = (
    "Files that were read before came from the system's memory, not from the disk, if "
    "they fit there."
)
_SHARED_CORES = (
    "The model shares its cores with the pipeline, so a short wait does not mean that "
    f"the input is free. Compare with the rate of {quoted(SYNTHETIC)}."
)
# So many names of left-out images are told.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Fed:
    """The note on the images of a run; see ``Images.describe``."""

    count: int
    found: int
    bytes: int
    bytes_each: int
    width: int
    height: int
    decoded_bytes: int
    skipped: int
    skipped_because: dict[str, int]
    skipped_names: list[str]

    def of_all(self, amount: int) -> float:
        """What an amount of the images that are fed is of all in the folder."""
        return amount * self.found / self.count


@dataclass(frozen=True, kw_only=True)
class Place:
    """The note of a trial on where its first batch lay."""

    batch: str
    gpus: int


def _judge(measured: Measurement, race: Race) -> Verdict:
    """Say what to change in the pipeline, by how much, how sure that is."""
    best, images = race.ranked[0].variant if race.ranked else "", _images_fed(measured)
    because, facts = list[str](), list[Fact]()
    for name in dict.fromkeys((BASELINE, best)):
        if (wait := wait_of(measured, name)) is not None:
            label = f"Share of a step that waits for data, {quoted(name)}"
            facts.append(Fact(label, units.percent(wait)))
    notes = (note_as(Place, trial.notes.get("where")) for trial in measured.trials)
    places = [place for place in notes if place]
    # Where no trial saw a GPU, the processor computed the model.
    if facts and not any(place.gpus for place in places):
        because.append(_SHARED_CORES)
    timed = (VARIANTS[t.variant] for t in measured.timings if t.variant in VARIANTS)
    for method in timed:
        if reason := method.excluded or _too_large(measured, method):
            because.append(f"{quoted(method.name)} does not count: {reason}.")
    if images:
        because.append(_READ)
        facts += _fed(images)
    if places:
        devices = " and ".join(sorted({place.batch for place in places}))
        facts.append(Fact("Batches were made on", devices))
    verdict = race.verdict(
        warnings=tuple(_costs(measured, best)),
        because=tuple(because),
        next=_next(measured, race) if race.ranked else "",
    )
    return replace(verdict, facts=tuple(facts))


def _next(measured: Measurement, race: Race) -> str:
    """What the input still costs once the code is changed; "" where it is unknown."""
    # This, and not the wait, says what the input costs: where the processor computes
    # the model too, decoding takes its cores while hardly a step waits.
    bare = measured.compare(race.winner or BASELINE, SYNTHETIC)
    if bare is None:
        return ""
    if bare.verdict == "no difference shown":
        after = "After that the input" if race.won else "The input"
        return (
            f"{after} costs less than 10 %, if anything. Look at the step itself: its "
            "precision, its batch size, its compiler."
        )
    without = measured.timing(bare.baseline)
    if bare.verdict == "slower" and bare.ends and race.won and without:
        return (
            f"After that the input still costs {units.percent(1 - bare.ratio)}: "
            f"without input, this training reaches {without.in_words('images')}."
        )
    return ""


def _costs(measured: Measurement, best: str) -> Iterator[str]:
    """What the winner takes besides: memory, room on the disk, work of the model."""
    images, method = _images_fed(measured), VARIANTS.get(best)
    if not images or method is None:
        return
    if method.in_model and wait_of(measured, best) is None:
        yield (
            f"{quoted(best)} leaves mirroring and brightening to the model, which did "
            "not run here."
        )
    decoded = units.size(images.of_all(images.decoded_bytes))
    if method.keeps:
        yield f"{quoted(best)} keeps {decoded} in memory."
    if method.form == "raw":
        yield (
            f"{quoted(best)} reads {decoded} from its file, where the images "
            f"themselves take {units.size(images.of_all(images.bytes))}."
        )


def _images_fed(measured: Measurement) -> Fed | None:
    """What was fed; None where that is not known."""
    return note_as(Fed, measured.notes.get("images"))


def _fed(images: Fed) -> Iterator[Fact]:
    """What was fed, and what was left out."""
    size = f"about {images.width} by {images.height} px"
    each = units.size(images.bytes_each)
    yield Fact("Images fed", f"{images.count:,} of {size}, {each} each")
    if images.skipped:
        counts = (f"{number} {why}" for why, number in images.skipped_because.items())
        more = ["…"] if images.skipped > _NAMED else []
        names = ", ".join([*images.skipped_names[:_NAMED], *more])
        yield Fact("Images left out", f"{', '.join(counts)} ({names})")


def _too_large(measured: Measurement, method: Method) -> str:
    """Say why a cache cannot hold all images there are; "" where it can."""
    images, memory = _images_fed(measured), note_as(float, measured.notes.get("memory"))
    if not method.keeps or not images or not memory:
        return ""
    total = images.of_all(images.decoded_bytes)
    if total <= _MEMORY_SHARE * memory:
        return ""
    return (
        f"all {images.found:,} images decoded take {units.size(total)}, and this "
        f"machine has {units.size(memory)}"
    )


def wait_of(measured: Measurement, name: str) -> float | None:
    """The share of a variant's steps that waits for data; None where none was told."""
    return time_shares(measured.trials_of(name)).get("input")
