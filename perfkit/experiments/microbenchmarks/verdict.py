"""What a ladder says of a machine: what its arithmetic reaches, and what is weak.

Nothing is called weak but where a whole interval says so. Limits in theory are reached
by no real work, so only what stays below half of one counts as weak against it, and
only where sound machines reach more than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.microbenchmarks import probes
from perfkit.experiments.shared import probe
from perfkit.experiments.shared import probe_gpu as gpu
from perfkit.findings.record import Verdict
from perfkit.findings.standing import rungs, share_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing

# The note that tells how large the files are that are decoded.
IMAGE_BYTES = "image_bytes"
# The note of how many whole cores may be used.
CORES = "cores"
_WEAK = 0.5
# A library that does less than so much of what another does is not worth its use.
_WORSE = 0.7
# What a sound GPU does at more than half of its limit.
_REACHES_HALF = (*gpu.PRODUCTS, gpu.MEMORY, gpu.CLOCK, *probes.PINNED)
# Other programs that keep more of the cores busy than this make a part look weak.
_BUSY = 0.1
_QUIET = "Close what else keeps the cores busy, then measure again."
_QUIETER = "Close other programs or give a larger budget: some rates are hardly known."
_FURTHER = (
    "`perfkit run data-pipeline` says whether a training here waits for its images."
)


@dataclass(frozen=True)
class Weak:
    """A part that lags behind, and what to do.

    Attributes:
        share: Of what it should reach; what is lowest is named first.
        words: What it is, to stand in a sentence.
        remedy: What to do.
    """

    share: float
    words: str
    remedy: str


def judge(measured: Measurement) -> Verdict:
    """Say in words what the rungs show."""
    if not measured.timings:
        return Verdict(headline="Too little was measured to say anything.")
    if max(timing.trials for timing in measured.timings) < 2:
        return Verdict(
            headline="One round: shown, not claimed.",
            because=tuple([*_others(measured), *_missing(measured)]),
            next=f"Give a larger budget: two rounds say more.\n{_FURTHER}",
        )
    busy = tuple(_others(measured))
    weak = [] if busy else sorted(_weak(measured), key=lambda part: part.share)
    steps = [part.remedy for part in weak]
    if any(_is_noisy(timing) for timing in measured.timings):
        steps.insert(0, _QUIETER)
    worst = f"; weakest is {weak[0].words}" if weak else ""
    none = "; other programs were at work" if busy else _none_weak(measured)
    return Verdict(
        headline=f"{_arithmetic(measured)}{worst or none}.",
        because=(*busy, *_facts(measured, weak)),
        next="\n".join(dict.fromkeys([*steps, _FURTHER])),
    )


def _others(measured: Measurement) -> Iterator[str]:
    """What other programs took of the cores, where that is much of them."""
    known = [v for v in measured.samples.get("cpu_other", ()) if v is not None]
    taken = sum(known) / len(known) if known else 0.0
    cores = float(measured.notes.get(CORES, 1))
    if taken > _BUSY * cores:
        yield (
            f"Other programs kept {units.significant(taken, 2)} of {cores:g} cores "
            "busy: likely the reason for what is slow here."
        )


def _arithmetic(measured: Measurement) -> str:
    """What products reach on all cores, by the library that is faster at it."""
    timed = [_known(measured, n) for n in (probe.BASELINE, probe.TENSORFLOW)]
    best = max((t for t in timed if t), key=lambda t: t.rate, default=None)
    if best is None:
        return f"{len(measured.timings)} rungs were measured"
    rung = rungs(measured.notes).get(best.variant)
    if rung is None or rung.limit is None:
        said = units.rate_between(best.rate, best.low, best.high, "FLOP")
        return f"Matrix products in float32 reach {said}"
    possible = f"what {rung.limit_from.partition(' at ')[0]} can do in theory"
    if _is_noisy(best):
        return f"Too noisy to say what matrix products in float32 reach of {possible}"
    said = share_of(best, rung.limit, possible)
    return f"Matrix products in float32 reach {said}"


def _is_noisy(timing: Timing) -> bool:
    return timing.high > 2 * timing.rate


def _none_weak(measured: Measurement) -> str:
    limited = [r for r in rungs(measured.notes).values() if r.limit]
    return "; no part is shown to be weak" if limited else ""


def _weak(measured: Measurement) -> Iterator[Weak]:
    yield from _below_limit(measured)
    yield from _not_scaling(measured)
    yield from _slow_library(measured)
    yield from _slow_disk(measured)


def _below_limit(measured: Measurement) -> Iterator[Weak]:
    """Parts of the GPU and its link that stay below half of their limit.

    What a processor does in a tick is known as "at most" only, and so is no ground to
    call it weak.
    """
    for name, rung in rungs(measured.notes).items():
        found = _known(measured, name)
        if name not in _REACHES_HALF or rung.limit is None or found is None:
            continue
        if found.high < _WEAK * rung.limit:
            share = found.rate / rung.limit
            yield Weak(
                share,
                f'"{name}", {units.percent(share)} of its limit',
                "`perfkit doctor` says what holds the GPU or its link back.",
            )


def _not_scaling(measured: Measurement) -> Iterator[Weak]:
    """All cores together do less than half of what each does alone.

    Clocks that are lower when all cores work explain some of it, never that much.
    """
    cores = float(measured.notes.get(CORES, 1))
    pairs = (
        (probe.NUMPY_ONE, probe.BASELINE),
        (probe.TENSORFLOW_ONE, probe.TENSORFLOW),
        (probes.ONE_CORE, probes.ALL_CORES),
    )
    for one, every in pairs:
        found = _ratio(measured, every, one)
        if found and cores > 1 and found.high < _WEAK * cores:
            yield Weak(
                found.ratio / cores,
                f'"{every}", on {cores:g} cores only {_with_ends(found)} the rate of '
                "one",
                _QUIET,
            )


def _slow_library(measured: Measurement) -> Iterator[Weak]:
    found = _ratio(measured, probe.BASELINE, probe.TENSORFLOW)
    if found and found.high < _WORSE:
        yield Weak(
            found.ratio,
            f"NumPy's matrix product, {_with_ends(found)} TensorFlow's",
            "Leave large products to TensorFlow (`tf.matmul`): it makes better use of "
            "this processor than NumPy's library.",
        )


def _slow_disk(measured: Measurement) -> Iterator[Weak]:
    """The disk gives fewer photographs than the cores decode."""
    size = measured.notes.get(IMAGE_BYTES)
    disk_rate, decoded = (
        _known(measured, probe.NAME),
        _known(measured, probes.ALL_CORES),
    )
    if not size or disk_rate is None or decoded is None:
        return
    if disk_rate.high / size < decoded.low:
        share = disk_rate.rate / size / decoded.rate
        yield Weak(
            share,
            f"the disk, which gives {units.rate(disk_rate.rate / size, 'photographs')} "
            f"where the cores decode {units.rate(decoded.rate, 'photographs')}",
            "Keep the data on a faster disk, or in memory (`Dataset.cache`).",
        )


def _facts(measured: Measurement, weak: list[Weak]) -> Iterator[str]:
    yield from (f"Weak: {part.words}." for part in weak[1:])
    told = rungs(measured.notes)
    limited = (probe.TENSORFLOW, probe.BASELINE)
    where = next((told[n].limit_from for n in limited if n in told), "")
    if where:
        yield f"The limit in theory: {where}."
    yield from _compared(measured)
    call = _known(measured, probes.GRAPH_CALL)
    if call:
        times = 1 / call.rate, 1 / call.high, 1 / call.low
        yield (
            "A call of a tf.function costs "
            f"{units.between(*times, units.seconds)}: a "
            "step that takes not much longer is mostly that."
        )
    yield from _copies(measured)
    yield from _missing(measured)


def _copies(measured: Measurement) -> Iterator[str]:
    """What the smallest copy to the GPU takes, over the trials that looked."""
    for name in probes.TO_GPU:
        notes = (trial.notes.get(probes.BY_SIZE) for trial in measured.of(name))
        spent = [min(told.values()) for told in notes if told]
        if spent:
            yield (
                f'A small copy, "{name}", takes {units.seconds(min(spent))} to '
                f"{units.seconds(max(spent))}, whatever its size."
            )


def _compared(measured: Measurement) -> Iterator[str]:
    pairs = (
        (probe.BFLOAT16, probe.TENSORFLOW, "Products in bfloat16", "float32"),
        ("the same in NumPy", "loop over an array", "NumPy on whole arrays", "a loop"),
    )
    for name, base, what, other in pairs:
        found = _ratio(measured, name, base)
        if found and not found.is_noise:
            yield f"{what}: {_with_ends(found)} the rate of {other}."


def _missing(measured: Measurement) -> Iterator[str]:
    timed = {timing.variant for timing in measured.timings}
    missed = [
        arm.name
        for arm in measured.arms
        if arm.name not in timed and not arm.unavailable
    ]
    if missed:
        stopped = any(
            t.outcome == "stopped" and "run was stopped" in t.message
            for t in measured.trials
        )
        why = "The run was stopped" if stopped else "A larger budget may reach them"
        yield f"Not measured: {', '.join(missed)}. {why}."


def _ratio(measured: Measurement, one: str, other: str) -> Comparison | None:
    """A ratio that is judged; both rungs count the same."""
    found = measured.compare(one, other)
    return found if found and found.is_judged else None


def _with_ends(found: Comparison) -> str:
    return found.interval


def _known(measured: Measurement, name: str) -> Timing | None:
    """A rate that at least two rounds show."""
    found = measured.timing(name)
    return found if found and found.trials > 1 else None
