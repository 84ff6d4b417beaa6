"""Which difference of the machines stands behind a part that takes longer?

A difference is plausible for a part if it can slow that part, on that machine, and if
the rungs that would show it do show it. Those that a rung shows count before those that
no rung can show, and those before what merely differs. One cause is named where exactly
one is left; else it is said that it is not known which.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.comparing.pieces import DECODE, MAP
from perfkit.comparing.pieces import DISK as DISK_RUNG
from perfkit.comparing.record import LOAD, THROTTLING
from perfkit.comparing.telling import (
    CORES,
    DISK,
    GPU,
    KERNELS,
    LINK,
    PYTHON,
    SPEED,
    THREADS,
)
from perfkit.findings.text import plain
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from perfkit.comparing.differing import MachineDiffers, Ratio, RungRatio, Side
    from perfkit.comparing.load import Lost
    from perfkit.comparing.record import Change
    from perfkit.comparing.works import Held

    Rungs = Mapping[str, RungRatio]
    # A logarithm and half of its interval.
    Log = tuple[float, float] | None

# Work of all cores over the same on one: what only the number of cores changes.
_PAIRS = (
    (DECODE, "JPEG decode, 1 core"),
    ("NumPy product, float32", "NumPy product, 1 core"),
    ("TensorFlow product, float32", "TensorFlow product, 1 core"),
)
# The same, where TensorFlow's own threads do it.
_THREADED = _PAIRS[2:]
# Work of one core in which no library of TensorFlow's has a part.
_ONE_CORE = ("Python loop", "NumPy product, 1 core", "JPEG decode, 1 core")
_KERNELS = (
    *("TensorFlow product, 1 core", "TensorFlow product, float32"),
    "convolution, float32",
)
_NUMPY = ("NumPy product, 1 core", "NumPy product, float32")
_GPUS = ("GPU product, float32", "GPU product, TF32", "GPU product, float16")
# What else the input may wait for, where the rungs that stand for it do not show it.
_BESIDE = {"input": (DISK_RUNG, MAP, DECODE)}
_MOST = 4
_WORTH = math.log(WORTH_KNOWING)
# A rung that is surely not this much slower stands behind nothing that is claimed.
_REFUTED = math.log(1.2)


def behind(
    change: Change,
    slower: Side,
    differences: Iterable[MachineDiffers],
    rungs: Rungs,
    losses: tuple[Lost, Lost],
    machines: tuple[Held, Held],
) -> str:
    """What stands behind a change, in a clause; "" where nothing is to be said."""
    place = 0 if slower == "A" else 1
    if change.name == LOAD:
        return _loaded(slower, losses[place], machines[place])
    if change.name == THROTTLING:
        return _throttled(slower, losses[place])
    shown = _slow_rungs(change, slower, rungs)
    found = _plausible(change.name, slower, differences, rungs)
    topics = dict.fromkeys(one.topic for one in found)
    rung = f" ({_rung(shown[0])})" if shown else ""
    if len(topics) == 1:
        return f"{_named(found[0])}{rung}"
    if not topics:
        no = "nothing in the records of the machines says why"
        return f"{_rung(shown[0])}; {no}" if shown else f"{no}, and no rung shows it"
    names = ", ".join(dict.fromkeys(one.what for one in found[:_MOST]))
    return f"it is not known which of these stands behind it: {names}{rung}"


def _plausible(
    part: str, slower: Side, differences: Iterable[MachineDiffers], rungs: Rungs
) -> list[MachineDiffers]:
    able = [d for d in differences if part in d.parts and d.slower in ("", slower)]
    told = [(d, _shown(d.sign, slower, rungs)) for d in able]
    return (
        [d for d, shown in told if shown]
        or [d for d, shown in told if shown is None and d.slower]
        or [d for d, shown in told if shown is None]
    )


def _shown(sign: str, slower: Side, rungs: Rungs) -> bool | None:
    """Whether the rungs show what a difference would do; None if they leave it open."""
    found = _SIGNS[sign](slower, rungs) if sign in _SIGNS else None
    if found is None:
        return None
    longer, half = found
    if longer > max(_WORTH, half):
        return True
    return False if longer + half < _REFUTED else None


def _lost_together(pairs: Iterable[tuple[str, str]], slower: Side, rungs: Rungs) -> Log:
    """How much more is lost on all cores than on one."""
    found = [
        _less(_mean(slower, rungs, (every,)), _mean(slower, rungs, (one,)))
        for every, one in pairs
    ]
    return _middle([pair for pair in found if pair])


def _kernels(slower: Side, rungs: Rungs) -> Log:
    """How much more TensorFlow's kernels lose than NumPy's."""
    return _less(_mean(slower, rungs, _KERNELS), _mean(slower, rungs, _NUMPY))


def _of(*names: str) -> Callable[[Side, Rungs], Log]:
    return lambda slower, rungs: _mean(slower, rungs, names)


_SIGNS: dict[str, Callable[[Side, Rungs], Log]] = {
    CORES: functools.partial(_lost_together, _PAIRS),
    THREADS: functools.partial(_lost_together, _THREADED),
    SPEED: _of(*_ONE_CORE),
    KERNELS: _kernels,
    PYTHON: _of("Python loop"),
    DISK: _of(DISK_RUNG),
    GPU: _of(*_GPUS),
    LINK: _of("to the GPU, pinned", "to the GPU"),
}


def _mean(slower: Side, rungs: Rungs, names: Iterable[str]) -> Log:
    """How much longer one machine takes, the mean over rungs; None if unknown."""
    found = (rungs[name].speed for name in names if name in rungs)
    return _middle([_log(speed, slower) for speed in found if speed])


def _middle(logs: Sequence[tuple[float, float]]) -> Log:
    if not logs:
        return None
    middle = math.fsum(log for log, _ in logs) / len(logs)
    return middle, math.hypot(*(half for _, half in logs)) / len(logs)


def _less(one: Log, other: Log) -> Log:
    if one is None or other is None:
        return None
    return one[0] - other[0], math.hypot(one[1], other[1])


def _log(speed: Ratio, slower: Side) -> tuple[float, float]:
    """Logarithm of how many times as long one machine takes, and half its interval."""
    longer = math.log(speed.ratio) * (1 if slower == "A" else -1)
    return longer, math.log(speed.high / speed.low) / 2


def _slow_rungs(change: Change, slower: Side, rungs: Rungs) -> list[RungRatio]:
    """Rungs that stand for a part, or bear on it, and are slower; the slowest first."""
    names = dict.fromkeys((*change.rungs, *_BESIDE.get(change.name, ())))
    found = [rungs[name] for name in names if name in rungs]
    said = "faster" if slower == "A" else "slower"
    slow = [
        (_log(rung.speed, slower)[0], rung)
        for rung in found
        if rung.speed is not None and rung.speed.verdict == said
    ]
    slow.sort(key=lambda told: -told[0])
    return [rung for longer, rung in slow if longer > _WORTH]


def _named(found: MachineDiffers) -> str:
    return f"{found.what}: {found.b} on B, {found.a} on A"


def _rung(rung: RungRatio) -> str:
    rates = (units.rate(value or 0.0, rung.unit) for value in (rung.b, rung.a))
    return "{}: {} on B, {} on A".format(rung.name, *rates)


def _loaded(slower: Side, lost: Lost, machine: Held) -> str:
    load, cores = machine.machine.load, units.significant(machine.machine.cores)
    top = ", ".join(plain(one.program, 40) for one in load.top[:3]) if load else ""
    busy = units.significant(lost.others, 2)
    named = f" ({top})" if top else ""
    return f"other programs kept {busy} of {cores} cores busy on {slower}{named}"


def _throttled(slower: Side, lost: Lost) -> str:
    if lost.reasons:
        return f"the GPU of {slower} was slowed: {', '.join(map(plain, lost.reasons))}"
    pulse = units.percent(lost.pulse or 0.0)
    return f"the cores of {slower} ran at {pulse} of their best"
