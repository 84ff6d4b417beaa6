"""What a run beside known loads means, in words.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perfkit.findings.record import Verdict
from perfkit.verdicts.contention import signs
from perfkit.verdicts.contention.mystery import MYSTERY, QUIET, SLOW
from perfkit.verdicts.words import failures, listed, noise, quoted
from perfkit.workloads.loads import CPU, DISK, GPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison

_REMEDIES = {
    CPU: "Where a training shows these signs, see in `top` who takes the cores and end "
    "it, start it as `nice -n 19 COMMAND`, or keep it to a core of its own with "
    "`taskset -c 0 COMMAND`.",
    MEMORY: "Where a training shows these signs, see in `top` who computes, and run it "
    "afterwards: `nice` frees cores, but all cores share the way to memory.",
    DISK: "Where a training shows these signs, see in `iotop` who reads, start it as "
    "`ionice -c 3 COMMAND`, or keep the data in memory with `dataset.cache()`.",
    GPU: "Where a training shows these signs, see in `nvidia-smi` who uses the GPU, "
    "and end it or take another one with `CUDA_VISIBLE_DEVICES`.",
    SLOW: "Where a training waits for input like this, its pipeline is slow, not its "
    "machine: ask `perfkit run data-pipeline`.",
}
# Other programs that take this many cores are no quiet.
_BUSY_CORES = 0.3
_QUIETER = "End what else runs on this machine, or give the run more seconds."


def judge(measured: Measurement) -> Verdict:
    """Say which load costs most and by what it can be told, or that none is shown."""
    compared = [c for c in measured.comparisons if c.baseline == QUIET]
    if any(c.variant == MYSTERY for c in compared):
        return _of_mystery(measured, compared[0])
    because = (
        *noise(measured),
        *_not_quiet(measured),
        *_each(measured, compared),
        *failures(measured),
    )
    slower = [c for c in compared if c.verdict == "slower"]
    if not slower:
        return _of_none(compared, because)
    worst = min(slower, key=lambda c: c.ratio)
    shown = "".join(f"; {sign}" for sign in _moved(measured, worst.variant)[:1])
    return Verdict(
        headline=(
            f"{quoted(worst.variant)} costs this training most"
            f"{_tied(measured, worst, slower)}: a step takes {_longer(worst)}{shown}."
        ),
        because=because,
        next=_REMEDIES[worst.variant],
    )


def _tied(measured: Measurement, worst: Comparison, slower: list[Comparison]) -> str:
    """Name those of the slower ones that may cost as much as the dearest."""
    ties = [
        other.variant
        for other in slower
        if other is not worst
        and (against := measured.compare(worst.variant, other.variant))
        and against.verdict != "slower"
    ]
    return f", and no difference to {listed(ties)} is shown" if ties else ""


def _of_none(compared: list[Comparison], because: tuple[str, ...]) -> Verdict:
    noisy = [c.variant for c in compared if c.verdict == "too noisy to say"]
    doubt = f"; of {listed(noisy)} it is too noisy to say" if noisy else ""
    return Verdict(
        headline=f"Nothing is shown to slow this training down{doubt}.",
        because=because,
        next=_QUIETER
        if noisy
        else "Leave such programs running: this training does not need what they take.",
    )


def _of_mystery(measured: Measurement, compared: Comparison) -> Verdict:
    """The length of a step and nothing else: the rest is for the reader to see."""
    because = (*noise(measured), *_not_quiet(measured), *failures(measured))
    if compared.verdict == "slower":
        headline = f"Something slows this training: a step takes {_longer(compared)}."
        following = (
            "Name it from the charts, then open it: "
            "`perfkit.experiments.contention.opened(finding)`."
        )
    else:
        headline = f"The mystery: {compared.verdict}; a step takes {_longer(compared)}."
        following = _QUIETER
    return Verdict(headline=headline, because=because, next=following)


def _not_quiet(measured: Measurement) -> Iterator[str]:
    read = signs.values(measured.trials, measured.samples, QUIET)
    others = read.get(signs.OTHERS)
    if others and (mean := statistics.fmean(others.values())) >= _BUSY_CORES:
        yield (
            f"Beside {quoted(QUIET)}, too, other programs kept "
            f"{signs.OTHERS.write(mean)} busy: on a free machine a load would show "
            "more clearly."
        )


def _each(measured: Measurement, compared: list[Comparison]) -> Iterator[str]:
    """What each load costs and what it shows, dearest first."""
    for one in sorted(compared, key=lambda c: c.ratio):
        shown = _moved(measured, one.variant)
        said = "; ".join(map(str, shown)) or "no counter moved with it in every round"
        yield (
            f"With {quoted(one.variant)} a step takes {_longer(one)}: {one.verdict}. "
            f"Its signs: {said}."
        )
    yield from _apart(measured, compared)


def _apart(measured: Measurement, compared: list[Comparison]) -> Iterator[str]:
    """How a slow pipeline is told from a busy machine, where this run shows it."""
    slower = [c.variant for c in compared if c.verdict == "slower"]
    if SLOW not in slower or len(slower) < 2:
        return
    shown = signs.moved(measured.trials, measured.samples, SLOW)
    if signs.suspect(shown) == SLOW and signs.OTHERS not in shown:
        yield (
            f"{quoted(SLOW)} slows it too: its wait for input grew, and no other "
            "program was seen to take more of the machine. That tells it from the rest."
        )


def _moved(measured: Measurement, variant: str) -> list[signs.Moved]:
    """The signs of a variant, the one that points to something first."""
    shown = signs.moved(measured.trials, measured.samples, variant)
    first = (signs.READ, signs.BUSY, signs.WAITING, signs.OTHERS)
    order = [sign for sign in (*first, *signs.SIGNS) if sign in shown]
    return [shown[sign] for sign in dict.fromkeys(order)]


def _longer(compared: Comparison) -> str:
    """The time of a step as a multiple of the quiet one, with its interval."""
    low, high = 1 / compared.high, 1 / compared.low
    rounds = f"{compared.rounds} round{'s' if compared.rounds != 1 else ''}"
    return (
        f"{1 / compared.ratio:.2f} times as long as when quiet (95 % interval "
        f"{low:.2f} to {high:.2f}, {rounds})"
    )
