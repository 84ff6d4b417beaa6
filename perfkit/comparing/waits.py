"""How long does a pipeline wait, where nothing works: for its disk, for late elements?

What the rung of the pipeline takes longer on B than a core of B explains is a wait:
every element comes late by so much, and the pipeline with it. A batch that is read
takes as long as the disk needs for its bytes; the system reads ahead, so that the
pipeline works meanwhile. In both cases a training goes on with what was made ready
before: a wait shows in a step only where it is longer than the rest of the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit.comparing.drawing import COUNT, slowdown
from perfkit.comparing.pieces import DISK, MAP, small_things
from perfkit.experiments.shared.reference_jobs import BYTES_ON_DISK, FORGOTTEN

if TYPE_CHECKING:
    from perfkit.comparing.drawing import Draws
    from perfkit.comparing.works import Held, Work

# A rung that takes so many times as long as cores explain does not work, it waits.
_WAITS = 2.0


def by_core(a: Held, b: Held, draw: np.random.Generator) -> Draws:
    """How many times as long a core of B takes for small things."""
    rung = small_things(a, b)
    found = slowdown(a, b, (rung, rung), draw)
    return np.ones(COUNT) if found is None else found


def is_late(a: Held, b: Held, draw: np.random.Generator) -> bool:
    """Whether elements come late on B, which no speed of a core explains."""
    longer = slowdown(a, b, (MAP, MAP), draw)
    return longer is not None and bool(np.median(longer / by_core(a, b, draw)) > _WAITS)


def late(a: Held, b: Held, work: Work, draw: np.random.Generator) -> Draws:
    """Seconds by which a batch comes later on B, because each of its elements does.

    Args:
        a: Of which nothing is taken to be late.
        b: The machine in question.
        work: B's.
        draw: Where random numbers come from.
    """
    one, longer = a.rungs.get(MAP), slowdown(a, b, (MAP, MAP), draw)
    if longer is None or one is None or not one.rate or not is_late(a, b, draw):
        return np.zeros(COUNT)
    each = (longer - by_core(a, b, draw)) / one.rate
    return np.maximum(each * work.batch, 0.0)


def reading(held: Held, work: Work) -> float:
    """Seconds that the disk needs for a batch; 0 where none is read from it."""
    rung = held.rungs.get(DISK)
    if FORGOTTEN not in work.job.get("data", "") or rung is None or not rung.rate:
        return 0.0
    return work.batch * BYTES_ON_DISK / rung.rate
