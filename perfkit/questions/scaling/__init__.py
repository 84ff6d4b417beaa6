"""What do several devices bring to one training, and what keeps them from more?

The suspect: n devices sum their gradients in every step, and need n times the input.
The test: train on one device without a strategy, on one with it and on more of them,
on a batch that is there, on one from a pipeline, and without the sum of gradients.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison, Estimate, Timing
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Fact, Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.questions.base import Experiment
from perfkit.questions.parameters import Choice as Words
from perfkit.questions.parameters import Range
from perfkit.questions.scaling import work
from perfkit.questions.scaling.work import (
    FED,
    GPU,
    LOGICAL,
    OWN,
    STRATEGY,
    DeviceKind,
    name_of,
)
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import fact, ratio_fact

_CHANGES = {
    "": "The number of devices; several are joined by MirroredStrategy.",
    STRATEGY: "MirroredStrategy.",
    OWN: "Gradients are not summed.",
    FED: "Examples are decoded from JPEGs.",
}
SHARED = (
    "Logical devices share this processor: this does not show what more GPUs bring."
)
# No machine is as fast or has as many, but a file may hold anything.
_MAX_RATE, _MOST_DEVICES = 1e15, 1000
_RENT = "Run this on a machine with several GPUs before you pay for them."
_SLOW_INPUT = (
    "If yours is fed from JPEGs too, make the input faster before you add GPUs: "
    "`perfkit run data-pipeline` says how."
)
_IDLE = "One device left cores idle: try a larger batch without a strategy."
_STRATEGY = """strategy = tf.distribute.MirroredStrategy([{}])
with strategy.scope():
    model = build()"""
_SUMMING = "Of it, summing the gradients"
_LIKELIEST = ("faster", "too noisy to say", "no difference shown", "slower")


@dataclass(frozen=True, kw_only=True)
class SpeedUps:
    """What several devices bring.

    Attributes:
        kind: Which devices; logical ones where no variant has a GPU.
        timings: By number of devices, one without a strategy first; empty where fewer
            than two numbers were timed.
        gains: Of several against that one, by their number.
    """

    kind: DeviceKind
    timings: dict[str, Timing]
    gains: dict[str, Comparison]


@dataclass(frozen=True, kw_only=True)
class Scaling(Experiment):
    """What do several devices bring to one training, and what keeps them from more?"""

    on: Annotated[
        str, Words(("here", "logical"), help="here: the GPUs, where there are several")
    ] = "here"
    devices: Annotated[int, Range(0, 16, help="At most; 0 for all that are here")] = 0
    batch: Annotated[
        int, Range(1, 65_536, unit="examples", help="Of each device, or of all")
    ] = 32
    scaling: Annotated[
        str, Words(("weak", "strong"), help="strong: all devices share one batch")
    ] = "weak"
    model: Annotated[str, Words(tuple(MODELS), help="What is trained")] = "wide-dense"
    image_side: Annotated[
        int, Range(32, 512, unit="px", help="Of the JPEG decoded for each example")
    ] = 96

    name = "scaling"

    def __post_init__(self) -> None:
        """Refuse what cannot be shared out."""
        super().__post_init__()
        if self.devices == 1:
            raise BadParameterError("devices is 1; give 2 or more, or 0 for all.")
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
        variants = dict[str, Variant]()
        for count in self._counts:
            job, plain = self._job(count), name_of(self._kind, count)
            for mode in ("", STRATEGY if count == 1 else OWN, FED):
                name = name_of(self._kind, count, mode)
                variants[name] = Variant(
                    name,
                    functools.partial(work.train, job, mode, self.image_side),
                    _CHANGES[mode],
                    plain if mode else self.baseline,
                    code=work.code_of_training(job, mode),
                )
        return variants

    def prepare(self) -> Iterator[Yielded]:
        """Refuse numbers of devices that learn something else than one does."""
        refused = dict[str, str]()
        for count in self._counts[1:]:
            yield Note("progress", f"Checking what {self._kind}s learn: {count}")
            if reason := work.why_not_equal(self._job(count)):
                names = (name_of(self._kind, count, mode) for mode in ("", OWN, FED))
                refused |= dict.fromkeys(names, reason)
        yield Note(REFUSED, refused)

    def result(self, measured: Measurement) -> SpeedUps:
        """Compare each number of devices with one that has no strategy."""
        timings = {t.variant: t for t in measured.timings if t.rate < _MAX_RATE}
        names = {variant.name for variant in measured.variants}
        kind = GPU if name_of(GPU, 1) in names else LOGICAL
        gains, single = dict[str, Comparison](), name_of(kind, 1)
        for count in range(2, _MOST_DEVICES):
            name = name_of(kind, count)
            if not {name, single} <= timings.keys():
                continue
            if compared := measured.compare(name, single):
                gains[str(count)] = compared
        counts = ["1", *gains] if gains else []
        by_count = {count: timings[name_of(kind, int(count))] for count in counts}
        return SpeedUps(kind=kind, timings=by_count, gains=gains)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what more devices bring, what keeps them from more, what to change."""
        result = self.result(measured)
        kind, single = result.kind, name_of(result.kind, 1)
        choices = {single: Choice(f"Train on {single}.", "model = build()")}
        facts = [ratio_fact(c.variant, c) for c in result.gains.values()]
        warning, next_step = "", "" if kind == GPU else _RENT
        if result.gains:
            facts += self._sum_of_gradients(measured, result)
            count, best = _best(measured, result.gains)
            places = ", ".join(f'"GPU:{number}"' for number in range(count))
            do = f"Train on {best.variant}." if kind == GPU else _IDLE
            choices[best.variant] = Choice(do, _STRATEGY.format(places))
            if self.scaling == "weak":
                warning = (
                    "Here each had a whole batch: `fit` shares one out, so give it "
                    f"{count} times as many examples, and watch the validation loss."
                )
            fed = measured.compare(name_of(kind, count, FED), best.variant)
            if kind == GPU and fed and fed.verdict == "slower":
                next_step = _SLOW_INPUT
        verdict = Race(measured, choices, "examples", against=single).verdict(
            warnings=(warning,) if warning else (), facts=tuple(facts), next=next_step
        )
        if kind == GPU:
            return verdict
        return replace(verdict, warnings=(SHARED,), edits=(), winner="")

    def _sum_of_gradients(
        self, measured: Measurement, result: SpeedUps
    ) -> Iterator[Fact]:
        """A step of the most devices, with the sum and without it."""
        count = max(map(int, result.gains))
        name, unsummed = (name_of(result.kind, count, mode) for mode in ("", OWN))
        step = result.timings[str(count)].seconds(self._job(count).batch)
        yield fact(f"A step of {name}", step, units.seconds)
        if c := measured.compare(name, unsummed):
            share = Estimate(value=1 - c.ratio, low=1 - c.high, high=1 - c.low)
            row = fact(_SUMMING, share, units.percent)
            yield row if c.high < 1 else Fact(_SUMMING, "none shown")

    @property
    def _kind(self) -> DeviceKind:
        return GPU if self.on == "here" and len(gpus_here()[0]) > 1 else LOGICAL

    @property
    def _counts(self) -> tuple[int, ...]:
        """How many devices to try: 1, 2, 4, 8 and so on, and the most."""
        # Two logical devices show the method; more than four show nothing more of it.
        parts = min(max(benchmark.granted(), 2), 4)
        largest = self.devices or (len(gpus_here()[0]) if self._kind == GPU else parts)
        return tuple(sorted({largest, *(1 << n for n in range(largest.bit_length()))}))

    def _job(self, count: int) -> work.Job:
        batch = self.batch if self.scaling == "strong" else count * self.batch
        return work.Job(model=self.model, kind=self._kind, count=count, batch=batch)


def _best(
    measured: Measurement, gains: Mapping[str, Comparison]
) -> tuple[int, Comparison]:
    """The fewest devices that are as fast as any, and what they bring."""
    names = tuple(gain.variant for gain in gains.values())
    fastest = {timing.variant for timing in measured.fastest(names)}
    leaders = [(int(n), gain) for n, gain in gains.items() if gain.variant in fastest]
    return min(leaders, key=lambda pair: _LIKELIEST.index(pair[1].verdict))
