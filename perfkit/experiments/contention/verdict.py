"""What a run beside known loads means, in words.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perfkit.experiments.contention import signs
from perfkit.experiments.contention.loads import CPU, DISK, GPU, MEMORY
from perfkit.experiments.contention.mystery import (
    DECODING,
    MYSTERY,
    PIPELINES,
    QUIET,
    SLEEPING,
)
from perfkit.experiments.contention.suspects import suspects
from perfkit.experiments.shared.words import (
    failures,
    listed,
    longer,
    noise,
    quoted,
    rounds,
)
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison

_SLOW = (
    "Where a training waits for input like this, and no other program takes the cores, "
    "its pipeline is slow: ask `perfkit run data-pipeline`."
)
_REMEDIES = {
    CPU: "Where a training shows these signs, see in `top` who takes the cores and end "
    f"it: that is what {quoted(QUIET)} measured. `nice -n 19 COMMAND`, or a core of "
    "its own with `taskset -c 0 COMMAND`, may help too and was not measured.",
    MEMORY: "Where a training shows these signs, see in `top` who computes, and run it "
    "afterwards. `nice` frees cores, but not the way to memory that they share.",
    DISK: "Where a training shows these signs, see in `iotop` who reads, and run it "
    "afterwards. If your training reads from that disk, `dataset.cache()` may help too "
    "and was not measured.",
    GPU: "Where a training shows these signs, see in `nvidia-smi` who uses the GPU, "
    "and end it or take another one with `CUDA_VISIBLE_DEVICES`.",
    SLEEPING: f"{_SLOW} It leaves the cores alone, so it waits for something: a disk, "
    "a network, a lock.",
    DECODING: f"{_SLOW} The CPU time of a step grew with it, so it computes, as "
    "decoding does.",
}
_WHO = {
    SLEEPING: "neither the training nor others use more cores than before",
    DECODING: "the training itself uses the cores",
}
_OF_LOADS = (signs.READ, signs.BUSY, signs.OTHERS)
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
            f"{_tied(measured, worst, compared)}: a step takes {_longer(worst)}{shown}."
        ),
        because=because,
        next=_REMEDIES[worst.variant],
    )


def _tied(measured: Measurement, worst: Comparison, compared: list[Comparison]) -> str:
    """Name those that are not shown to cost less than the dearest."""
    ties = [
        other.variant
        for other in compared
        if other is not worst
        and (
            (against := measured.compare(worst.variant, other.variant)) is None
            or against.verdict != "slower"
        )
    ]
    return f", and {listed(ties)} may cost as much" if ties else ""


def _of_none(compared: list[Comparison], because: tuple[str, ...]) -> Verdict:
    if not compared:
        return Verdict(
            headline="Too little was measured to say anything.",
            because=because,
            next=_QUIETER,
        )
    noisy = [c.variant for c in compared if c.verdict == "too noisy to say"]
    doubt = f"; of {listed(noisy)} it is too noisy to say" if noisy else ""
    return Verdict(
        headline=f"Nothing is shown to slow this training down{doubt}.",
        because=because,
        next=_QUIETER
        if noisy
        else "Leave them as they are: each costs this training less than 10 %.",
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
        headline = (
            f"The mystery: {compared.judgement}; a step takes {_longer(compared)}."
        )
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
            f"With {quoted(one.variant)} a step takes {_longer(one)}: {one.judgement}. "
            f"Its signs: {said}."
        )
    yield from _apart(measured, compared)


def _apart(measured: Measurement, compared: list[Comparison]) -> Iterator[str]:
    """How a slow pipeline is told from a busy machine, where this run shows it."""
    slower = {c.variant for c in compared if c.verdict == "slower"}
    for name in PIPELINES:
        fits = suspects(measured.trials, measured.samples, name)
        if name in slower and fits == (name,):
            yield (
                f"{quoted(name)} is told from a busy machine: a step waits for input, "
                f"and in the time that is added to it {_WHO[name]}."
            )


def _moved(measured: Measurement, variant: str) -> list[signs.Change]:
    """The signs of a variant, the one that points to something first."""
    shown = signs.moved(measured.trials, measured.samples, variant)
    # Others' cores may grow beside a training that waits, and waiting beside others.
    first = (signs.WAITING, signs.CPU_TIME) if variant in PIPELINES else _OF_LOADS
    order = [sign for sign in (*first, *signs.SIGNS) if sign in shown]
    return [shown[sign] for sign in dict.fromkeys(order)]


def _longer(compared: Comparison) -> str:
    """The time of a step as a multiple of the quiet one, with its interval."""
    times, sure = longer(compared)
    return f"{times} times as long as when quiet ({sure}, {rounds(compared)})"
