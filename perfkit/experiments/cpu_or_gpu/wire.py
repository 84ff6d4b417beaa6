"""Ways to bring each step's batch from the computer's memory to the device."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perfkit.experiments.cpu_or_gpu.training import built, compiled
from perfkit.experiments.shared.loops import wait
from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.cpu_or_gpu.devices import Device
    from perfkit.experiments.shared.models import Model
    from perfkit.measure.tick import Yielded

    Pair = tuple[Any, Any]
    Feed = Callable[[Device, list[Pair]], Iterable[Pair]]

# Different batches in memory, so that none is at hand from the step before.
_BATCHES = 4
_LARGEST_BYTE = 255


def fed(device: Device, model: Model, batch: int, feed: Feed) -> Iterator[Yielded]:
    """Train a fresh network, each step on a batch that comes from memory.

    Args:
        device: Where the network is.
        model: What is trained, with data that fit it.
        batch: Examples of a step.
        feed: How batches come to the device.
    """
    device.take()
    step = compiled(built(device, model))
    pairs = [_in_memory(model, batch, seed) for seed in range(_BATCHES)]
    batches = feed(device, pairs)
    yield READY

    def steps() -> Iterator[int]:
        for features, labels in batches:
            step(features, labels)
            yield batch

    yield from every(steps(), sync=wait)


def as_floats(device: Device, pairs: list[Pair]) -> Iterator[Pair]:
    """Four bytes of each number cross, when the step wants them."""
    import tensorflow as tf

    there = [_held(_scaled(pixels), labels) for pixels, labels in pairs]
    for features, labels in itertools.cycle(there):
        with tf.device(device.place):
            here = tf.identity(features), tf.identity(labels)
        yield here


def as_bytes(device: Device, pairs: list[Pair]) -> Iterator[Pair]:
    """One byte of each number crosses; the device makes floats of them."""
    import tensorflow as tf

    there = [_held(pixels, labels) for pixels, labels in pairs]
    for pixels, labels in itertools.cycle(there):
        with tf.device(device.place):
            features = tf.cast(tf.identity(pixels), tf.float32) / _LARGEST_BYTE
            here = features, tf.identity(labels)
        yield here


def ahead(device: Device, pairs: list[Pair]) -> Iterable[Pair]:
    """Four bytes of each number cross while the device works on the step before."""
    import numpy as np
    import tensorflow as tf

    features = np.stack([_scaled(pixels) for pixels, _ in pairs])
    labels = np.stack([labels for _, labels in pairs])
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).repeat()
    prefetched: Iterable[Pair] = dataset.apply(
        tf.data.experimental.prefetch_to_device(f"/{device.place}", buffer_size=2)
    )
    return prefetched


def _in_memory(model: Model, batch: int, seed: int) -> Pair:
    """A batch whose numbers are bytes, as pixels are."""
    import numpy as np

    _, labels = model.batch(batch, seed)
    random = np.random.default_rng(seed)
    shape = (batch, *model.shape)
    return random.integers(_LARGEST_BYTE + 1, size=shape, dtype=np.uint8), labels


def _scaled(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    import numpy as np

    return np.divide(pixels, _LARGEST_BYTE, dtype=np.float32)


def _held(features: Any, labels: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Tensors in the computer's own memory."""
    import tensorflow as tf

    with tf.device("CPU:0"):
        return tf.constant(features), tf.constant(labels)
