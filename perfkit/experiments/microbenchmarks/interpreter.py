"""How fast does Python itself work, and what does it save to leave a loop to NumPy?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.shared.probe import Probe, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.tick import Yielded

_STEPS = 10_000
_ELEMENTS = 100_000


def loop() -> Iterator[Yielded]:
    """Add numbers up in a loop of Python."""
    yield from repeated(_add_up, _STEPS)


def element_loop() -> Iterator[Yielded]:
    """Square and add the elements of an array in a loop of Python."""
    import numpy as np

    array = np.linspace(0, 1, _ELEMENTS // 10, dtype="float32")

    def call() -> float:
        total = 0.0
        for value in array:
            total += value * value
        return total

    yield from repeated(call, len(array))


def vectorised() -> Iterator[Yielded]:
    """Square and add the same elements in one call."""
    import numpy as np

    array = np.linspace(0, 1, _ELEMENTS, dtype="float32")
    squares = np.empty_like(array)

    def call() -> object:
        return np.multiply(array, array, out=squares).sum()

    yield from repeated(call, len(array))


def _add_up() -> int:
    total = 0
    for number in range(_STEPS):
        total += number
    return total


PROBES = (
    Probe(
        name="Python loop",
        group="interpreter",
        unit="steps",
        what="adding up integers, one step at a time",
        work=loop,
    ),
)
ARRAYS = (
    Probe(
        name="loop over an array",
        group="arrays",
        unit="elements",
        what="squaring and adding float32 in Python",
        work=element_loop,
    ),
    Probe(
        name="the same in NumPy",
        group="arrays",
        unit="elements",
        what="squaring and adding float32 in two calls",
        work=vectorised,
    ),
)
