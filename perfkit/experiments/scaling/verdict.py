"""What a run on several devices shows in numbers, and what to do about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfkit import units
from perfkit.experiments.scaling.work import GPU, LOGICAL, DeviceKind
from perfkit.experiments.shared.words import between, failures, instead
from perfkit.findings.reading import note_as
from perfkit.findings.record import Edit, Verdict
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison, Estimate, Timing

# How a variant differs from the plain one of so many devices, which has "".
STRATEGY, OWN, FED = "strategy", "own gradients", "fed"
# The note of how many examples a step has, by the number of devices.
NOTE = "scaling"
SHARED = (
    "Logical devices share this processor: this does not show what more GPUs bring."
)
LARGEST_BATCH = 65_536
# Of the ideal rate, and of the rate without a pipeline: no change is worth a try above.
_NEARLY_ALL = 0.9
# No machine is as fast, but a file may hold anything.
_MAX_RATE = 1e15
_MOST_LIKELY = ("faster", "too noisy to say", "no difference shown", "slower")


def name_of(kind: DeviceKind, count: int, how: str = "") -> str:
    """The name of a variant, such as ``"4 GPUs, fed"``."""
    devices = f"{count} {kind}" if count == 1 else f"{count} {kind}s"
    return f"{devices}, {how}" if how else devices


@dataclass(frozen=True)
class Point:
    """What ``count`` devices reach, each with its batch at hand.

    The speed-up is against one device without a strategy; ``with_sum`` against the same
    devices without the sum of gradients, if that was timed. A step takes ``step_s``.
    """

    count: int
    timing: Timing
    step_s: float
    speed_up: Comparison
    with_sum: Comparison | None

    @property
    def efficiency(self) -> Estimate:
        """The share of the ideal: of ``count`` times one device's rate."""
        ends = self.speed_up.ratio, self.speed_up.low, self.speed_up.high
        value, low, high = (end / self.count for end in ends)
        return Estimate(value=value, low=low, high=high)


@dataclass(frozen=True)
class Result:
    """One device without a strategy, and each larger number that was timed with it."""

    kind: DeviceKind
    one: Timing | None
    several: tuple[Point, ...]


def result(measured: Measurement) -> Result:
    """What was reached; the devices are logical ones where nothing says otherwise."""
    names = [variant.name for variant in measured.variants]
    kind = GPU if name_of(GPU, 1) in names else LOGICAL
    points = (_point(measured, kind, *each) for each in _batches(measured))
    one = measured.timing(name_of(kind, 1))
    return Result(kind, one, tuple(filter(None, points)))


def _batches(measured: Measurement) -> list[tuple[int, int]]:
    """Numbers of devices, the fewest first, and how many examples their step has."""
    note = note_as(dict[str, Any], measured.notes.get(NOTE)) or {}
    noted = note_as(dict[str, int], note.get("batches")) or {}
    counts = {int(k): v for k, v in noted.items() if k.isdecimal() and len(k) < 4}
    return sorted((n, batch) for n, batch in counts.items() if 0 < batch < _MAX_RATE)


def _point(
    measured: Measurement, kind: DeviceKind, count: int, batch: int
) -> Point | None:
    base, name = name_of(kind, 1), name_of(kind, count)
    one, timing = measured.timing(base), measured.timing(name)
    speed_up = measured.compare(name, base)
    if count < 2 or not one or not timing or not speed_up:
        return None
    if max(one.rate, timing.rate) >= _MAX_RATE:
        return None
    with_sum = measured.compare(name, name_of(kind, count, OWN))
    return Point(count, timing, batch / timing.rate, speed_up, with_sum)


def judge(measured: Measurement, scaling: str, batch: int) -> Verdict:
    """Say what more devices bring, what keeps them from more, what to change."""
    reached, because = result(measured), failures(measured)
    kind = reached.kind
    warnings = () if kind == GPU else (SHARED,)
    if not reached.several:
        return Verdict(
            headline=f"Whether several {kind}s are faster than one is not known yet.",
            much="Fewer than two numbers of them were timed.",
            sure="not known yet",
            warnings=warnings,
            because=because,
            next="Look at how the trials ended, or give the run more seconds.",
        )
    best = _best(measured, reached)
    compared, rates = best.speed_up, instead(best.timing, reached.one)
    wins = kind == GPU and compared.verdict == "faster"
    if wins and scaling == "weak":
        warnings = (
            "Here each had a whole batch: `fit` shares one out, so give it "
            f"{best.count} times as many examples, and watch the validation loss.",
        )
    return Verdict(
        headline=_headline(compared, kind, name_of(kind, best.count)),
        much=f"They train {compared.as_fast_as} one{rates}." if compared.ends else "",
        sure=compared.sure,
        interval=compared.ends,
        edits=(_strategy_over(best.count),) if wins else (),
        warnings=warnings,
        because=(*facts(kind, reached.several), *because),
        next=_next_step(measured, kind, best, batch),
        winner=best.timing.variant if wins else "",
    )


def _best(measured: Measurement, reached: Result) -> Point:
    """The fewest devices that are as fast as any; of those that are not one."""
    several = {point.timing.variant: point for point in reached.several}
    fastest = [several[one.variant] for one in measured.fastest(tuple(several))]
    return min(
        fastest, key=lambda p: (_MOST_LIKELY.index(p.speed_up.verdict), p.count)
    )


def _headline(compared: Comparison, kind: DeviceKind, devices: str) -> str:
    if compared.sure == "not known yet":
        return f"Whether {devices} are faster than one is not known yet."
    if compared.verdict == "faster":
        idle = "One device left cores idle: try a larger batch without a strategy."
        return f"Train on {devices}." if kind == GPU else idle
    where = "on one GPU" if kind == GPU else "without a strategy on this processor"
    judged = "slower" if compared.verdict == "slower" else "not shown to be faster"
    return f"Train {where}: {devices} are {judged}."


def _strategy_over(count: int) -> Edit:
    """The lines that train on the first so many GPUs, of however many there are."""
    places = ", ".join(f'"GPU:{number}"' for number in range(count))
    strategy = f"strategy = tf.distribute.MirroredStrategy([{places}])"
    scope = "with strategy.scope():\n    model = build()"
    return Edit(old="model = build()", new=f"{strategy}\n{scope}")


def _next_step(measured: Measurement, kind: DeviceKind, best: Point, batch: int) -> str:
    if kind != GPU:
        return "Run this on a machine with several GPUs before you pay for them."
    fed = measured.compare(name_of(kind, best.count, FED), best.timing.variant)
    least = min(_NEARLY_ALL, best.with_sum.ratio if best.with_sum else 1.0)
    if fed and fed.verdict == "slower" and fed.ratio < least:
        return (
            "If yours is fed from JPEGs too, make the input faster before you add "
            "GPUs: `perfkit run data-pipeline` says how."
        )
    if 4 * batch > LARGEST_BATCH or best.efficiency.low >= _NEARLY_ALL:
        return ""
    return (
        "Give each GPU more work between two sums: `perfkit run scaling --batch "
        f"{4 * batch}` tries a larger batch."
    )


def facts(kind: DeviceKind, several: tuple[Point, ...]) -> Iterator[str]:
    """How near the ideal rate they come, and what summing gradients takes."""
    shares = [
        f"{name_of(kind, point.count)} {between(point.efficiency, units.percent)}"
        for point in several
    ]
    yield f"Efficiency, the share of so many times one's rate: {'; '.join(shares)}."
    most = several[-1]
    devices, own = name_of(kind, most.count), most.with_sum
    if kind != GPU:
        yield (
            f"They share the same cores: {devices} reach 1/{most.count}, "
            f"{units.percent(1 / most.count)}, where sharing costs nothing and one of "
            "them keeps all cores busy."
        )
    if own:
        # A step with the sum, less one without, as a share of the former.
        share = units.between(1 - own.ratio, 1 - own.high, 1 - own.low, units.percent)
        takes = f"takes {share} of" if own.high < 1 else "is not shown to take any of"
        step = units.seconds(most.step_s)
        yield f"Summing the gradients of {devices} {takes} a step of {step}."
