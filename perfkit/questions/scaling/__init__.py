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

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.errors import BadParameterError
from perfkit.findings.record import Edit, Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.questions.base import Experiment
from perfkit.questions.parameters import Choice, Range
from perfkit.questions.scaling import work
from perfkit.questions.scaling.work import FED, GPU, OWN, STRATEGY, name_of
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.words import failures, rates_behind

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
_UNKNOWN = "Whether {} are faster than one is not known yet."
_LIKELIEST = ("faster", "too noisy to say", "no difference shown", "slower")


def kind_of(measured: Measurement) -> work.DeviceKind:
    """Which devices a run compares; logical ones where no variant has a GPU."""
    names = {variant.name for variant in measured.variants}
    return GPU if name_of(GPU, 1) in names else work.LOGICAL


def speed_ups(measured: Measurement) -> dict[int, Comparison]:
    """Compare several devices with one that has no strategy, by their number."""
    kind, gains = kind_of(measured), dict[int, Comparison]()
    names = {t.variant for t in measured.timings if t.rate < _MAX_RATE}
    for count in range(2, _MOST_DEVICES):
        name, single = name_of(kind, count), name_of(kind, 1)
        if {name, single} <= names and (speed_up := measured.compare(name, single)):
            gains[count] = speed_up
    return gains


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
    def baseline(self) -> str:
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

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what more devices bring, what keeps them from more, what to change."""
        kind, gains = kind_of(measured), speed_ups(measured)
        warnings, because = () if kind == GPU else (SHARED,), failures(measured)
        if not gains:
            return Verdict(
                headline=_UNKNOWN.format(f"several {kind}s"),
                much="Fewer than two numbers of them were timed.",
                sure="not known yet",
                warnings=warnings,
                because=because,
                next="Look at how the trials ended, or give the run more seconds.",
            )
        counts = {speed_up.variant: count for count, speed_up in gains.items()}
        fastest = [counts[t.variant] for t in measured.fastest(tuple(counts))]
        # The fewest devices that are as fast as any; of those that are not one.
        best = min(
            fastest, key=lambda count: (_LIKELIEST.index(gains[count].verdict), count)
        )
        gain, largest = gains[best], max(gains)
        is_advised = kind == GPU and gain.verdict == "faster"
        if is_advised and self.scaling == "weak":
            warnings = (
                "Here each had a whole batch: `fit` shares one out, so give it "
                f"{best} times as many examples, and watch the validation loss.",
            )
        sentence = f"They train {gain.as_fast_as} one{rates_behind(measured, gain)}."
        costs = _explain_sum(measured, gains[largest].variant, self._job(largest).batch)
        return Verdict(
            headline=_headline(gain, kind),
            much=sentence if gain.ends else "",
            sure=gain.sure,
            interval=gain.ends,
            edits=(_edit_for(best),) if is_advised else (),
            warnings=warnings,
            because=(*costs, *because),
            next=_next_step(measured, kind, gain.variant),
            winner=gain.variant if is_advised else "",
        )

    @property
    def _kind(self) -> work.DeviceKind:
        return GPU if self.on == "here" and len(gpus_here()[0]) > 1 else work.LOGICAL

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


def _headline(speed_up: Comparison, kind: work.DeviceKind) -> str:
    devices = speed_up.variant
    if speed_up.sure == "not known yet":
        return _UNKNOWN.format(devices)
    if speed_up.verdict == "faster":
        idle = "One device left cores idle: try a larger batch without a strategy."
        return f"Train on {devices}." if kind == GPU else idle
    where = "on one GPU" if kind == GPU else "without a strategy on this processor"
    judged = "slower" if speed_up.verdict == "slower" else "not shown to be faster"
    return f"Train {where}: {devices} are {judged}."


def _edit_for(count: int) -> Edit:
    """The lines that train on the first so many GPUs, of however many there are."""
    places = ", ".join(f'"GPU:{number}"' for number in range(count))
    strategy = f"strategy = tf.distribute.MirroredStrategy([{places}])"
    scope = "with strategy.scope():\n    model = build()"
    return Edit(old="model = build()", new=f"{strategy}\n{scope}")


def _next_step(measured: Measurement, kind: work.DeviceKind, devices: str) -> str:
    if kind != GPU:
        return "Run this on a machine with several GPUs before you pay for them."
    fed = measured.compare(f"{devices}, {FED}", devices)
    advice = (
        "If yours is fed from JPEGs too, make the input faster before you add GPUs: "
        "`perfkit run data-pipeline` says how."
    )
    return advice if fed and fed.verdict == "slower" else ""


def _explain_sum(measured: Measurement, devices: str, examples: int) -> Iterator[str]:
    """The difference of a step with and without it, as a share of that with it."""
    c = measured.compare(devices, f"{devices}, {OWN}")
    timing = measured.timing(devices)
    if c and timing:
        share = units.between(1 - c.ratio, 1 - c.high, 1 - c.low, units.percent)
        takes = f"takes {share} of" if c.high < 1 else "is not shown to take any of"
        step = units.seconds(timing.seconds(examples).value)
        yield f"Summing the gradients of {devices} {takes} a step of {step}."
