"""How long does a pipeline wait, where nothing works: for its disk, for late elements?

What the rung of the pipeline takes longer on B than a core of B explains is a wait:
every element comes late by so much. A batch that is read takes as long as the disk
needs for its bytes. Meanwhile a training goes on with what was made ready before, so
that a wait shows in a step only where it is longer than the rest of the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit.comparing.drawing import COUNT, slowdown
from perfkit.comparing.pieces import DISK, MAP
from perfkit.workloads.references.jobs import BYTES_ON_DISK, FORGOTTEN

if TYPE_CHECKING:
    from perfkit.comparing.drawing import Draws
    from perfkit.comparing.works import Held, Work

# Work of one core that is like a pipeline's: small things, one after another.
_ONE_CORE = ("eager operation", "Python loop")
# A rung that takes so many times as long as cores explain does not work, it waits.
_WAITS = 2.0


def by_core(a: Held, b: Held, draw: np.random.Generator) -> Draws:
    """How many times as long a core of B takes for small things."""
    found = (slowdown(a, b, (name, name), draw) for name in _ONE_CORE)
    return next((one for one in found if one is not None), np.ones(COUNT))


def waited(a: Held, b: Held, work: Work, draw: np.random.Generator) -> Draws:
    """Seconds that the pipeline of a batch waits on B and does not on A.

    Args:
        a: Of which nothing is taken to be late.
        b: The machine in question.
        work: B's.
        draw: Where random numbers come from.
    """
    return _late(a, b, draw) * work.batch + _reading(b, work)


def is_late(a: Held, b: Held, draw: np.random.Generator) -> bool:
    """Whether elements come late on B, which no speed of a core explains."""
    longer = slowdown(a, b, (MAP, MAP), draw)
    return longer is not None and bool(np.median(longer / by_core(a, b, draw)) > _WAITS)


def _late(a: Held, b: Held, draw: np.random.Generator) -> Draws:
    """Seconds by which each element comes later on B."""
    one, longer = a.rungs.get(MAP), slowdown(a, b, (MAP, MAP), draw)
    if longer is None or one is None or not one.rate or not is_late(a, b, draw):
        return np.zeros(COUNT)
    return np.maximum((longer - by_core(a, b, draw)) / one.rate, 0.0)


def _reading(held: Held, work: Work) -> Draws:
    """Seconds that the disk needs for a batch; 0 where none is read from it."""
    rung = held.rungs.get(DISK)
    if FORGOTTEN not in work.job.get("data", "") or rung is None or not rung.rate:
        return np.zeros(COUNT)
    return np.full(COUNT, work.batch * BYTES_ON_DISK / rung.rate)
