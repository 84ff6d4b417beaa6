"""The loop over batch sizes that is in circulation, run as it stands.

One network is trained on through the whole loop, whatever is measured first pays for
tracing, nothing is warmed up or repeated, and the order never changes.
"""

import time
from collections.abc import Callable, Iterator, Sequence

from perfkit.experiments.shared.models import MODELS
from perfkit.measure.tick import READY, Note, Yielded

UPWARDS, DOWNWARDS = "the usual loop", "the usual loop, backwards"


def loop(
    sizes: Sequence[int],
    fit: Callable[[int], object],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[int, float]]:
    """Fit for an epoch of ``count`` examples at each size, one after the other.

    Yields:
        Each size with the examples per second that this loop makes of it.
    """
    for size in sizes:
        began = clock()
        fit(size)
        yield size, count / (clock() - began)


def as_circulated(name: str, sizes: Sequence[int]) -> Iterator[Yielded]:
    """Run it with a network from ``MODELS``, and tell what it would have told."""
    import keras

    model, count = MODELS[name], max(sizes)
    network = model.build()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile("adam", loss)
    examples, labels = model.batch(count)

    def fit(size: int) -> None:
        network.fit(examples, labels, batch_size=size, epochs=1, verbose=0)

    yield READY
    told = []
    for size, rate in loop(sizes, fit, count):
        told.append([size, rate])
        yield Note("told", list(told))
        yield count
