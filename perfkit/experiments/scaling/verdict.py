"""What a run on several devices shows in numbers, and what to do about it."""

from collections.abc import Iterator
from dataclasses import dataclass

from perfkit import units
from perfkit.experiments.scaling.work import GPU, LOGICAL, DeviceKind
from perfkit.experiments.shared.words import failures, instead
from perfkit.findings.record import Edit, Verdict
from perfkit.measure.measurement import Measurement
from perfkit.measure.statistics import Comparison, Estimate, Timing

# How a variant differs from the plain one of so many devices, which has "".
STRATEGY, OWN, FED = "strategy", "own gradients", "fed"
SHARED = (
    "Logical devices share this processor: this does not show what more GPUs bring."
)
LARGEST_BATCH = 65_536
# Of the ideal rate, and of the rate without a pipeline: no change is worth a try above.
_NEARLY_ALL = 0.9
# No machine is as fast or has as many, but a file may hold anything.
_MAX_RATE, _MOST_DEVICES = 1e15, 1000
_LIKELIEST = ("faster", "too noisy to say", "no difference shown", "slower")


def name_of(kind: DeviceKind, count: int, how: str = "") -> str:
    """The name of a variant, such as ``"4 GPUs, fed"``."""
    devices = f"{count} {kind}" if count == 1 else f"{count} {kind}s"
    return f"{devices}, {how}" if how else devices


@dataclass(frozen=True)
class Point:
    """What ``count`` devices reach, each with its batch at hand.

    The speed-up is against one device without a strategy; ``with_sum`` against the same
    devices without the sum of gradients, if that was timed.
    """

    count: int
    timing: Timing
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
    timed = {t.variant: t for t in measured.timings if t.rate < _MAX_RATE}
    base, several = name_of(kind, 1), list[Point]()
    counts = range(2, _MOST_DEVICES) if base in timed else ()
    for count in counts:
        name = name_of(kind, count)
        if name in timed and (speed_up := measured.compare(name, base)):
            with_sum = measured.compare(name, name_of(kind, count, OWN))
            several.append(Point(count, timed[name], speed_up, with_sum))
    return Result(kind, timed.get(base), tuple(several))


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
    points = {point.timing.variant: point for point in reached.several}
    fastest = [points[timing.variant] for timing in measured.fastest(tuple(points))]
    # The fewest devices that are as fast as any; of those that are not one.
    best = min(fastest, key=lambda p: (_LIKELIEST.index(p.speed_up.verdict), p.count))
    most = reached.several[-1]
    examples = batch if scaling == "strong" else most.count * batch
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
        because=(*_sum(most, name_of(kind, most.count), examples), *because),
        next=_next_step(measured, kind, best, batch),
        winner=best.timing.variant if wins else "",
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


def _sum(most: Point, devices: str, examples: int) -> Iterator[str]:
    """A step with the sum of gradients, less one without, as a share of the former."""
    if own := most.with_sum:
        share = units.between(1 - own.ratio, 1 - own.high, 1 - own.low, units.percent)
        takes = f"takes {share} of" if own.high < 1 else "is not shown to take any of"
        step = units.seconds(most.timing.seconds(examples).value)
        yield f"Summing the gradients of {devices} {takes} a step of {step}."
