"""Which difference of the machines stands behind a part that takes longer?

A difference is plausible for a part if it can slow that part, on that machine, and if
the rungs that would show it do show it. Those that a rung shows count before those that
no rung can show, and those before what merely differs. One cause is named where exactly
one is left; else it is said that it is not known which.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.comparing.machines import CORES, DISK, GPU, KERNELS, LINK, PYTHON, SPEED
from perfkit.comparing.pieces import DECODE, MAP
from perfkit.comparing.pieces import DISK as DISK_RUNG
from perfkit.comparing.record import LOAD, THROTTLING
from perfkit.findings.text import plain
from perfkit.measure.statistics import WORTH_KNOWING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from perfkit.comparing.load import Lost
    from perfkit.comparing.record import Change, MachineDiffers, RungRatio, Side
    from perfkit.comparing.works import Held

    Rungs = Mapping[str, RungRatio]

# Work of all cores over the same on one: what only the number of cores changes.
_PAIRS = (
    (DECODE, "JPEG decode, 1 core"),
    ("NumPy product, float32", "NumPy product, 1 core"),
    ("TensorFlow product, float32", "TensorFlow product, 1 core"),
)
# Work of one core in which no library of TensorFlow's has a part.
_ONE_CORE = ("Python loop", "NumPy product, 1 core", "JPEG decode, 1 core")
_KERNELS = (
    *("TensorFlow product, 1 core", "TensorFlow product, float32"),
    "convolution, float32",
)
_GPUS = ("GPU product, float32", "GPU product, TF32", "GPU product, float16")
# What else the input may wait for, where the rungs that stand for it do not show it.
_BESIDE = {"input": (DISK_RUNG, MAP, DECODE)}
_MOST = 4


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


def slower_rung(rung: RungRatio, side: Side) -> bool:
    """Whether a rung is shown to be slower on a machine, by more than a little."""
    return _factor(rung, side) > WORTH_KNOWING and rung.speed is not None


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
    """Whether the rungs show what a difference would do; None if none can."""
    factor = _SIGNS[sign](slower, rungs) if sign in _SIGNS else None
    return None if factor is None else factor > WORTH_KNOWING


def _cores(slower: Side, rungs: Rungs) -> float | None:
    """How much more is lost on all cores than on one."""
    both = [
        (_times(slower, rungs, (every,)), _times(slower, rungs, (one,)))
        for every, one in _PAIRS
    ]
    pairs = [every / one for every, one in both if every and one]
    return statistics.median(pairs) if pairs else None


def _speed(slower: Side, rungs: Rungs) -> float | None:
    return _times(slower, rungs, _ONE_CORE) or None


def _kernels(slower: Side, rungs: Rungs) -> float | None:
    """How much more TensorFlow's kernels lose than NumPy's."""
    mine = _times(slower, rungs, _KERNELS)
    others = _times(slower, rungs, ("NumPy product, 1 core", "NumPy product, float32"))
    return mine / others if mine and others else None


def _of(*names: str) -> Callable[[Side, Rungs], float | None]:
    return lambda slower, rungs: _times(slower, rungs, names) or None


_SIGNS: dict[str, Callable[[Side, Rungs], float | None]] = {
    CORES: _cores,
    SPEED: _speed,
    KERNELS: _kernels,
    PYTHON: _of("Python loop"),
    DISK: _of(DISK_RUNG),
    GPU: _of(*_GPUS),
    LINK: _of("to the GPU, pinned", "to the GPU"),
}


def _times(slower: Side, rungs: Rungs, names: Iterable[str]) -> float:
    """How many times as long one machine takes, the median over rungs; 0 if unknown."""
    found = (rungs[name] for name in names if name in rungs)
    factors = [factor for rung in found if (factor := _factor(rung, slower))]
    return statistics.median(factors) if factors else 0.0


def _factor(rung: RungRatio, slower: Side) -> float:
    if rung.speed is None:
        return 0.0
    return rung.speed.ratio if slower == "A" else 1 / rung.speed.ratio


def _slow_rungs(change: Change, slower: Side, rungs: Rungs) -> list[RungRatio]:
    """Rungs that stand for a part, or bear on it, and are slower; the slowest first."""
    names = dict.fromkeys((*change.rungs, *_BESIDE.get(change.name, ())))
    found = [rungs[name] for name in names if name in rungs]
    said = "faster" if slower == "A" else "slower"
    slow = [rung for rung in found if rung.speed and rung.speed.verdict == said]
    return sorted(
        (rung for rung in slow if slower_rung(rung, slower)),
        key=lambda rung: -_factor(rung, slower),
    )


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
