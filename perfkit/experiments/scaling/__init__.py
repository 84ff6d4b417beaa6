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

from perfkit.errors import BadParameterError
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import Choice, Range
from perfkit.experiments.scaling import verdict, work
from perfkit.experiments.scaling.verdict import FED, OWN, STRATEGY, name_of
from perfkit.experiments.scaling.work import GPU, LOGICAL, DeviceKind, Job
from perfkit.experiments.shared import benchmark
from perfkit.experiments.shared.models import MODELS
from perfkit.findings.record import Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded

_CHANGES = {
    "": "The number of devices; several are joined by MirroredStrategy.",
    STRATEGY: "MirroredStrategy.",
    OWN: "Gradients are not summed.",
    FED: "Examples are decoded from JPEGs.",
}


@dataclass(frozen=True, kw_only=True)
class Scaling(Experiment):
    """What do several devices bring to one training, and what keeps them from more?"""

    on: Annotated[
        str,
        Choice(
            ("here", "logical"),
            help="here: the GPUs, or logical devices where there are not several",
        ),
    ] = "here"
    devices: Annotated[
        int, Range(0, 16, help="At most; 0 for all GPUs, or a few logical ones")
    ] = 0
    batch: Annotated[
        int,
        Range(
            1, verdict.LARGEST_BATCH, unit="examples", help="Of each device, or of all"
        ),
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
        return name_of(self._kind, 1)

    def make_variants(self) -> Mapping[str, Variant]:
        """Each number of devices as it is, fed, and without the sum of gradients."""
        variants = [
            self._variant(count, how)
            for count in self._counts
            for how in ("", STRATEGY if count == 1 else OWN, FED)
        ]
        return {variant.name: variant for variant in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Refuse numbers of devices that learn something else than one does."""
        refused = dict[str, str]()
        for count in self._counts[1:]:
            yield Note("progress", f"Checking what {self._kind}s learn: {count}")
            if count <= self._available:
                reason = work.why_not_equal(self._job(count))
                names = [name_of(self._kind, count, how) for how in ("", OWN, FED)]
                refused |= dict.fromkeys(names if reason else (), reason)
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what more devices bring, what keeps them from more, what to change."""
        return verdict.judge(measured, self.scaling, self.batch)

    @property
    def _kind(self) -> DeviceKind:
        return GPU if self.on == "here" and len(gpus_here()[0]) > 1 else LOGICAL

    @property
    def _available(self) -> int:
        """How many devices of the kind there are; as many logical ones as asked for."""
        if self._kind == GPU:
            return len(gpus_here()[0])
        # Two logical devices show the method; more than four show nothing more of it.
        return self.devices or min(max(benchmark.granted(), 2), 4)

    @property
    def _counts(self) -> tuple[int, ...]:
        """How many devices to try: 1, 2, 4, 8 and so on, and the most."""
        most = self.devices or self._available
        return tuple(sorted({most, *(1 << n for n in range(most.bit_length()))}))

    def _job(self, count: int) -> Job:
        batch = self.batch if self.scaling == "strong" else count * self.batch
        return Job(model=self.model, kind=self._kind, count=count, batch=batch)

    def _variant(self, count: int, how: str) -> Variant:
        training = functools.partial(
            work.train,
            self._job(count),
            with_strategy=count > 1 or how == STRATEGY,
            side=self.image_side if how == FED else 0,
            summed=how != OWN,
        )
        against = name_of(self._kind, count) if how else self.baseline
        missing = f"{self._available} GPUs are all there is"
        return Variant(
            name_of(self._kind, count, how),
            training,
            _CHANGES[how],
            against,
            missing if count > self._available else "",
            code=work.code_of_training(**training.keywords),
        )
