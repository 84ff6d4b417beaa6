"""What do several devices bring to one training, and what keeps them from more?

The suspect: n devices do not train n times as fast, because their gradients have to be
summed in every step and their input has to come n times as fast.
The test: train on one device without a strategy, on one with it, and on more of them,
each time on a batch that is there already, on one from a pipeline, and without summing
the gradients. Before that, several devices have to learn what one learns.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from perfkit.errors import BadParameterError, RunError
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Choice, Range
from perfkit.experiments.scaling import agreement, numbers
from perfkit.experiments.scaling import work as scaling_work
from perfkit.experiments.scaling.agreement import call_or_none
from perfkit.experiments.scaling.numbers import FED, LINK, OWN, STRATEGY, Setup
from perfkit.experiments.scaling.verdict import ONE_GPU, judge
from perfkit.experiments.scaling.work import (
    GPU,
    LOGICAL,
    DeviceKind,
    Job,
    counts,
    weights,
)
from perfkit.experiments.shared import benchmark
from perfkit.experiments.shared.benchmark import without_gpus
from perfkit.experiments.shared.models import MODELS
from perfkit.findings.record import Verdict
from perfkit.machine import cards
from perfkit.machine.cards import gpus_here
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded

# Two show the method; more than four show nothing more of it.
_FEWEST_LOGICAL, _MOST_LOGICAL = 2, 4


@dataclass(frozen=True, kw_only=True)
class Scaling(Experiment):
    """What do several devices bring to one training, and what keeps them from more?"""

    on: Annotated[
        str,
        Choice(
            ("here", "logical"),
            help="here: the GPUs, or logical devices of the processor where none is",
        ),
    ] = "here"
    devices: Annotated[
        int, Range(0, 16, help="At most; 0 for all GPUs, or a few logical ones")
    ] = 0
    batch: Annotated[
        int, Range(1, 65_536, unit="examples", help="Of each device, or of all")
    ] = 32
    scaling: Annotated[
        str,
        Choice(
            ("weak", "strong"),
            help="weak: each device has a batch; strong: all share one",
        ),
    ] = "weak"
    model: Annotated[str, Choice(tuple(MODELS), help="What is trained")] = "wide-dense"
    image_side: Annotated[
        int, Range(32, 512, unit="px", help="Of the JPEG decoded for each example")
    ] = 96

    name = "scaling"
    notebooks = ("12_many_gpus",)

    def __post_init__(self) -> None:
        """Refuse what cannot be shared out."""
        super().__post_init__()
        if self.devices == 1:
            raise BadParameterError(
                "devices is 1; give 2 or more, or 0 for all that are here."
            )
        uneven = [count for count in self._counts if self.batch % count]
        if self.scaling == "strong" and uneven:
            raise BadParameterError(
                f"batch is {self.batch} and {uneven[0]} devices are to share it "
                "evenly; give a multiple of each number of devices."
            )

    @property
    def baseline(self) -> str:  # type: ignore[override]
        """One device without a strategy."""
        return Setup(self._kind, 1).name

    @property
    def guessed(self) -> str:
        """The most devices, each with a batch at hand."""
        return Setup(self._kind, max(self._present)).name

    def make_variants(self) -> Mapping[str, Variant]:
        """Each number of devices as it is, fed, and without the sum of gradients."""
        variants = [one for count in self._counts for one in self._with(count)]
        if len(self._counts) > 1:
            variants.append(self._link())
        elif not self.devices:
            # What a machine with one GPU cannot show.
            variants.append(self._variant(2, "", self._train(2), "A second GPU."))
        return {one.name: one for one in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Refuse numbers of devices that learn something else than one does.

        Raises:
            RunError: TensorFlow cannot use the GPUs that are here.
        """
        self._refuse_missing()
        refused = dict[str, str]()
        for count in self._present:
            yield Note("progress", f"Checking what {self._kind}s learn: {count}")
            why = agreement.difference(self._job(count))
            # What rests on what these devices learn.
            every = (STRATEGY,) if count == 1 else ("", OWN, FED)
            names = (Setup(self._kind, count, how).name for how in every)
            refused |= dict.fromkeys(names if why else (), why)
        yield Note(REFUSED, refused)
        # The processes that checked had the GPUs; this one has no use for them.
        without_gpus()
        driver, _, _ = cards.gpus()
        yield Note(
            numbers.NOTE,
            {
                "weights": weights(self.model),
                "batches": {str(n): self._job(n).batch for n in self._counts},
                "link": scaling_work.bytes_of_an_example(self._job(max(self._present))),
                # How the GPUs are joined, a sentence for each pair.
                "joined": list(driver.topology) if driver and self._kind == GPU else [],
            },
        )

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what more devices bring, what keeps them from more, what to change."""
        return judge(measured, self.scaling, self.batch)

    def _refuse_missing(self) -> None:
        if self._kind == LOGICAL:
            return
        seen = call_or_none(scaling_work.usable, agreement.LONGEST_S) or 0
        if seen < self._here:
            raise RunError(
                f"TensorFlow can use {seen} of {self._here} GPUs here; `perfkit "
                "doctor` says why, and `on=logical` shows the method without them"
            )

    @property
    def _kind(self) -> DeviceKind:
        return GPU if self.on == "here" and gpus_here()[0] else LOGICAL

    @property
    def _here(self) -> int:
        """How many devices of the kind there are; as many logical ones as asked for."""
        if self._kind == GPU:
            return len(gpus_here()[0])
        usual = min(max(benchmark.granted(), _FEWEST_LOGICAL), _MOST_LOGICAL)
        return self.devices or usual

    @property
    def _counts(self) -> tuple[int, ...]:
        return counts(self.devices or self._here)

    @property
    def _present(self) -> list[int]:
        return [count for count in self._counts if count <= self._here]

    def _job(self, count: int) -> Job:
        batch = self.batch if self.scaling == "strong" else count * self.batch
        return Job(model=self.model, kind=self._kind, count=count, batch=batch)

    def _with(self, count: int) -> Iterator[Variant]:
        """The variants of a number of devices, the one the others change first."""
        itself, train = Setup(self._kind, count).name, self._train(count)
        fed = functools.partial(train, side=self.image_side)
        if count > 1:
            own = functools.partial(train, summed=False)
            what = "MirroredStrategy over several devices."
            yield self._variant(count, "", train, what, self.baseline)
            yield self._variant(count, OWN, own, "Gradients are not summed.", itself)
        else:
            together = functools.partial(train, with_strategy=True)
            yield self._variant(count, "", train, "One device, no strategy.")
            yield self._variant(count, STRATEGY, together, "MirroredStrategy.", itself)
        yield self._variant(count, FED, fed, "Examples are decoded from JPEGs.", itself)

    def _train(self, count: int) -> functools.partial[Iterator[Yielded]]:
        several = count > 1
        return functools.partial(
            scaling_work.train, self._job(count), with_strategy=several
        )

    def _variant(
        self,
        count: int,
        how: str,
        work: functools.partial[Iterator[Yielded]],
        changes: str,
        against: str = "",
    ) -> Variant:
        name, why_not = Setup(self._kind, count, how).name, self._why_not(count)
        code = scaling_work.code_of_training(
            with_strategy=count > 1 or how == STRATEGY,
            is_fed=how == FED,
            summed=how != OWN,
        )
        against = "" if why_not else against
        return Variant(name, work, changes, against, why_not, code=code)

    def _why_not(self, count: int) -> str:
        if count <= self._here:
            return ""
        return ONE_GPU if self._here == 1 else f"{self._here} GPUs are all there is"

    def _link(self) -> Variant:
        job = self._job(max(self._present))
        what = "one GPU to another" if self._kind == GPU else "memory to memory"
        return Variant(
            LINK,
            functools.partial(scaling_work.copying, job),
            f"Copying from {what} what {job.count} devices sum in a step.",
            unavailable=self._why_not(2),
            code=scaling_work.code_of_link(self._kind),
        )
