"""What had to wait when its turn began, for something that stood still before it.

TensorFlow drops no iterator before its tuning thread wakes, which sleeps the longer the
longer the iterator has lived. Such a wait is no work of the variant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The first of a turn this many times as slow as usual had to wait.
_AWAKENING = 2.5


def awakening(first: NDArray[np.bool_], cost: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which ones are the first of a turn, and far slower than those that are not.

    Args:
        first: Whether each is the first of a turn; none that does not count.
        cost: Seconds of each.

    Returns:
        The same shape; none of them where all are the first of their turns.
    """
    others = cost[~first]
    if not len(others):
        return np.zeros(len(cost), dtype=bool)
    slow: NDArray[np.bool_] = cost > _AWAKENING * np.median(others)
    return first & slow
