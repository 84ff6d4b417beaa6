"""Do the ways compute the same result?

The first images of each way are held against the same augmentation in NumPy. A way that
gives something else must not be timed: a difference in speed would say nothing.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from perfkit.experiments.data_pipeline.reading import decode, schedule
from perfkit.experiments.shared import augment, training

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.data_pipeline.reading import Task
    from perfkit.experiments.data_pipeline.ways import Way

    Pair = tuple[NDArray[np.float32], NDArray[np.float32]]

# Decoding a part of a JPEG leaves the colours of its outermost pixels to guesses, since
# colours are stored at half the resolution; everything else is equal to rounding.
_MEAN = 0.5 / 255
_WORST = 0.25
# A way that gives images as they get done may give any of the first ones.
_AHEAD = 16


def expected(task: Task, count: int) -> NDArray[np.float32]:
    """The first ``count`` images as every way has to give them, computed in NumPy."""
    import numpy as np

    paths, _, drawn = schedule(task)
    first = itertools.islice(zip(paths, drawn, strict=True), count)
    return np.stack(
        [
            augment.with_numpy(decode(path, None)[0].numpy(), numbers, task.side)
            for path, numbers in first
        ]
    )


def comparable(way: Way) -> bool:
    """Whether a way uses the random numbers it is given, so that it can be compared."""
    return way.in_model != "layers" and not way.own_random


def differences(ways: Iterable[Way], task: Task) -> dict[str, str]:
    """Say of each way whose first batch is not as expected how it differs, by name."""
    wanted = expected(task, task.batch + _AHEAD)
    given = {
        way.name: _difference(way, task, wanted) for way in ways if comparable(way)
    }
    return {name: difference for name, difference in given.items() if difference}


def _difference(way: Way, task: Task, wanted: NDArray[np.float32]) -> str:
    images = _first_batch(way, task)
    if images.shape[1:] != wanted.shape[1:]:
        return f"its images have shape {images.shape[1:]} instead of {wanted.shape[1:]}"
    if way.ordered:
        pairs = list(zip(images, wanted, strict=False))
    else:
        pairs = [(image, _nearest(image, wanted)) for image in images]
    mean, worst = (float(gap) for gap in _gap(pairs))
    if mean <= _MEAN and worst <= _WORST:
        return ""
    return f"its pixels differ by {mean:.3f} on average and {worst:.3f} at most, of 1"


def _first_batch(way: Way, task: Task) -> NDArray[np.float32]:
    import numpy as np

    images = next(iter(way.build(task)))[0]
    return np.asarray(
        training.from_bytes(images) if way.in_model == "bytes" else images
    )


def _nearest(
    image: NDArray[np.float32], wanted: NDArray[np.float32]
) -> NDArray[np.float32]:
    nearest: NDArray[np.float32] = min(
        wanted, key=lambda other: abs(image - other).mean()
    )
    return nearest


def _gap(pairs: list[Pair]) -> tuple[np.floating, np.floating]:
    import numpy as np

    gaps = np.abs([image - other for image, other in pairs])
    return gaps.mean(), gaps.max()
