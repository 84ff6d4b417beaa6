"""Where batches come from: one that stays on its device, or JPEGs decoded as it goes.

What an example costs to decode is real work of the processor's cores. Its pixels are
cut to the numbers that the model takes, whatever it sees in them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

    from perfkit.experiments.scaling.job import Job
    from perfkit.experiments.scaling.steps import Pair

# Different pictures in memory; a training goes through them again and again.
_PICTURES = 64
_BRIGHTEST = 255.0


def resident(job: Job, place: str) -> Pair:
    """The batch of one device, which stays on it."""
    return _on(place, *job.examples())


def resident_on_each(
    job: Job, strategy: tf.distribute.Strategy, places: tuple[str, ...]
) -> Pair:
    """Each device's share of the batch, which stays on it."""
    features, labels = job.examples()
    parts = [
        _on(place, features[first : first + job.share], labels[first:][: job.share])
        for place, first in zip(places, range(0, job.batch, job.share), strict=True)
    ]

    def values(which: int) -> Any:
        return strategy.experimental_distribute_values_from_function(
            lambda context: parts[context.replica_id_in_sync_group][which]
        )

    return values(0), values(1)


def decoded(job: Job, side: int) -> tf.data.Dataset:
    """Batches for all devices together, without an end, each example from a JPEG.

    Args:
        job: What takes them.
        side: Pixels of a picture's side.
    """
    import tensorflow as tf

    wanted = math.prod(job.what.shape)

    def example(picture: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pixels = tf.reshape(tf.io.decode_jpeg(picture, channels=3), [-1])[:wanted]
        numbers = tf.cast(pixels, tf.float32) / _BRIGHTEST
        return tf.reshape(numbers, job.what.shape), label

    graph = tf.autograph.experimental.do_not_convert(example)
    pictures, labels = _pictures(side), job.what.batch(_PICTURES)[1]
    dataset = tf.data.Dataset.from_tensor_slices((pictures, labels)).repeat()
    dataset = dataset.map(graph, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(job.batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def _pictures(side: int) -> list[bytes]:
    """JPEGs of smooth noise, about as dear to decode as photographs."""
    import io

    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    found = list[bytes]()
    for _ in range(_PICTURES):
        few = random.integers(256, size=(side // 8, side // 8, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(few).resize((side, side)).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found


def _on(place: str, features: Any, labels: Any) -> Pair:
    import tensorflow as tf

    with tf.device(place):
        return tf.identity(tf.constant(features)), tf.identity(tf.constant(labels))
