"""Both machines' seconds, drawn again and again as their intervals let them be.

What is worked out from the draws (a change, a share, a prediction) has the interval
that holds 95 % of them. The draws are the same for the same documents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfkit.comparing.ratios import HALF, logarithm
from perfkit.comparing.record import LOAD, THROTTLING, UNEXPLAINED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfkit.comparing.load import Lost
    from perfkit.comparing.works import Held, Work
    from perfkit.passports.record import Part

    Draws = NDArray[np.float64]

COUNT = 4000
# What is read from samples is known to about a quarter of itself.
_DOUBT = 0.25
_ON_PROCESSOR = ("input", "dispatch", "compute", UNEXPLAINED)
_OF_GPU = ("compute",)


@dataclass(frozen=True)
class Drawn:
    """One job on one machine, drawn ``COUNT`` times.

    Attributes:
        step: Seconds of the step, shape (COUNT,).
        parts: Of each part as it was measured, unexplained included.
    """

    step: Draws
    parts: dict[str, Draws]


def drawn(work: Work, names: tuple[str, ...], draw: np.random.Generator) -> Drawn:
    """Draw a step and its parts.

    Args:
        work: With ``seconds``.
        names: The parts that are known on both machines; the rest is unexplained.
        draw: Where random numbers come from.
    """
    seconds = work.seconds or 1.0
    step = seconds * np.exp(draw.normal(0, _spread(work), COUNT))
    # The interval of a part is that of its share, at the usual length of a step.
    parts = {
        name: step * draw.normal(*_share(work.parts[name], seconds), COUNT)
        for name in names
    }
    left = step - sum(parts.values(), np.zeros(COUNT))
    return Drawn(step, parts | {UNEXPLAINED: left})


def without_losses(
    of: Drawn, lost: Lost, work: Work, draw: np.random.Generator
) -> Drawn:
    """Take what other programs and slower clocks cost out of the parts that bore it."""
    parts = dict(of.parts)
    on_gpu = _OF_GPU if work.on_gpu else ()
    bearing = tuple(name for name in _ON_PROCESSOR if name not in on_gpu)
    slowed = {
        LOAD: (lost.load, bearing),
        THROTTLING: (lost.throttling, bearing),
    }
    for name, (share, where) in slowed.items():
        if share is not None:
            parts[name] = _taken(parts, share, where, draw)
    if lost.gpu and on_gpu:
        slower = _taken(parts, lost.gpu, on_gpu, draw)
        parts[THROTTLING] = parts.get(THROTTLING, 0.0) + slower
    return Drawn(of.step, parts)


def slowdown(
    a: Held, b: Held, rungs: tuple[str, str], draw: np.random.Generator
) -> Draws | None:
    """How many times as long the same work takes on B; None if a rung is missing."""
    one, other = a.rungs.get(rungs[0]), b.rungs.get(rungs[1])
    if one is None or other is None or one.unit != other.unit:
        return None
    logs = [logarithm((rung.low, rung.rate, rung.high)) for rung in (one, other)]
    if logs[0] is None or logs[1] is None:
        return None
    middle, spread = logs[0][0] - logs[1][0], math.hypot(logs[0][1], logs[1][1])
    return np.asarray(np.exp(draw.normal(middle, spread / HALF, COUNT)))


def ends(values: Draws) -> tuple[float, float]:
    """The ends of what holds 95 % of the draws."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _taken(
    parts: dict[str, Draws],
    share: float,
    where: tuple[str, ...],
    draw: np.random.Generator,
) -> Draws:
    """Take a share out of some parts, and give what was taken."""
    each = np.clip(draw.normal(share, _DOUBT * share, COUNT), 0.0, 0.99)
    gone = np.zeros(COUNT)
    for name in where:
        if name in parts and share:
            gone = gone + each * parts[name]
            parts[name] = parts[name] * (1 - each)
    return gone


def _spread(work: Work) -> float:
    if not work.low or not work.high:
        return 0.0
    return math.log(work.high / work.low) / 2 / HALF


def _share(part: Part, seconds: float) -> tuple[float, float]:
    value = part.seconds or 0.0
    if part.low is None or part.high is None:
        return value / seconds, 0.0
    return value / seconds, (part.high - part.low) / 2 / HALF / seconds
