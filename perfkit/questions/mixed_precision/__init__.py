"""Which precision trains fastest on this machine, and does it learn the same?

The suspect: float32 carries more bits than a network needs, and moves them all.
The test: train fresh networks of one kind in several precisions and compare examples
per second. The hardware says before what to expect. Then each precision learns for
real, from the same weights and examples.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries, Try
from perfkit.engine.tick import Yielded
from perfkit.findings.record import Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.mixed_precision import work
from perfkit.questions.mixed_precision.verdict import (
    CHOICES,
    PrecisionResult,
    judge,
    read_result,
)
from perfkit.questions.parameters import Choice, Range, select
from perfkit.questions.shared import precision as formats
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import (
    FLOAT16,
    FLOAT32,
    GROUPS,
    PRECISIONS,
    Precision,
    unavailable,
)

# A training that learns is ended after so long, with the losses it has reached.
_LEARNING_S = 5.0
# Where the network that was asked about cannot train in float16, this one shows how
# the loss is scaled.
_SHOWS_SCALE = "dense"


@dataclass(frozen=True, kw_only=True)
class MixedPrecision(Experiment):
    """Which precision trains fastest on this machine, and does it learn the same?"""

    model: Annotated[str, Choice(tuple(MODELS), help="The network to train")] = (
        "small-cnn"
    )
    batch: Annotated[int, Range(8, 1024, unit="examples", help="In a batch")] = 64
    variants: Annotated[
        str,
        Choice((*GROUPS, *PRECISIONS), many=True, help="Groups, or single precisions"),
    ] = "precisions"
    seeds: Annotated[
        int, Range(0, 8, help="How often each precision learns, to compare losses")
    ] = 3

    name = "mixed-precision"
    baseline = FLOAT32
    choices = CHOICES

    def make_variants(self) -> Mapping[str, Variant]:
        """The precisions that ``variants`` asks for, float32 always first."""
        precisions, hardware = self._precisions, formats.read_hardware()
        return {
            name: Variant(
                name,
                functools.partial(work.training, self.model, name, self.batch),
                precision.changes,
                precision.against if precision.against in precisions else FLOAT32,
                # Whether TensorFlow can use a GPU, only preparing finds out.
                "" if hardware.gpu else unavailable(precision, hardware),
                code=work.code_of_training(precision),
            )
            for name, precision in precisions.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Say what to expect, and refuse what would take the whole run for itself."""
        return work.foreseen(self.model, self.batch, tuple(self._precisions.values()))

    def tries(self, measured: Measurement) -> Tries:
        """Let each precision that was timed learn; then show how float16 scales."""
        names = {timing.variant for timing in measured.timings}
        precisions = self._precisions.values()
        able = [p.name for p in precisions if p.name in names and not p.leaves_out]
        for seed in range(1, self.seeds + 1):
            for name in able:
                learning = functools.partial(work.learning, self.model, name, seed)
                title = f"learning in {name}, seed {seed}"
                yield Try(name=title, work=learning, seconds=_LEARNING_S)
            if seed == 1 and FLOAT16 in self._precisions:
                model = self.model if FLOAT16 in names else _SHOWS_SCALE
                scaled = functools.partial(work.scaling, model, seed)
                yield Try(name="the loss scale", work=scaled, seconds=_LEARNING_S)

    def result(self, measured: Measurement) -> PrecisionResult:
        """The losses in pairs, the loss scale, the memory and the layers."""
        return read_result(measured)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which precision is fastest, whether it learns the same, what to write."""
        return judge(measured, self.result(measured))

    @property
    def _precisions(self) -> dict[str, Precision]:
        return select(self.variants, GROUPS, PRECISIONS, FLOAT32)
