"""What the pipelines have in common: the task, its order, and single steps of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import augment

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.shared.images import Images

# tf.data.AUTOTUNE, which cannot be named before TensorFlow is imported.
AUTOTUNE = -1
# The random numbers repeat after so many images or more.
_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class Task:
    """What every pipeline has to deliver.

    Attributes:
        images: From these images.
        side: Pixels of the square that is cut out.
        batch: Images in a batch.
        seed: Decides the order of the images and their augmentation.
    """

    images: Images
    side: int
    batch: int
    seed: int = 0


def schedule(
    task: Task,
) -> tuple[NDArray[np.bytes_], NDArray[np.int64], NDArray[np.float32]]:
    """Path, label and random numbers of each image, in a new order each time round.

    The first time they come in the order of the list, so that all ways to feed them can
    be compared.
    """
    import numpy as np

    drawn, count = _table(task), len(task.images.paths)
    rng = np.random.default_rng(task.seed)
    again = [rng.permutation(count) for _ in range(len(drawn) // count - 1)]
    order = np.concatenate([np.arange(count), *again])
    paths, labels = _columns(task.images)
    return paths[order], labels[order], drawn


def files(task: Task) -> tf.data.Dataset:
    """The schedule as a data set that never ends."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(schedule(task)).repeat()


def one_pass(task: Task) -> tf.data.Dataset:
    """Path and label of each image, once."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(_columns(task.images))


def draws(task: Task) -> tf.data.Dataset:
    """The schedule's random numbers alone."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(_table(task))


def graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Spare a function without Python loops the rewriting that AutoGraph does."""
    import tensorflow as tf

    wrapped: Callable[..., Any] = tf.autograph.experimental.do_not_convert(function)
    return wrapped


def decode(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Read and decode one file; PNG as well, whatever the operation's name says."""
    import tensorflow as tf

    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3), label


def square_of(task: Task, path: tf.Tensor, drawn: tf.Tensor) -> tf.Tensor:
    """Read one file, and decode of it only the square that is cut out."""
    import tensorflow as tf

    file = tf.io.read_file(path)

    def only_the_square() -> tf.Tensor:
        begin = augment.corner(tf.io.extract_jpeg_shape(file), drawn, task.side)
        window = tf.concat([begin, [task.side, task.side]], axis=0)
        return tf.io.decode_and_crop_jpeg(file, window, channels=3)

    def all_of_it() -> tf.Tensor:
        return augment.cut(tf.io.decode_jpeg(file, channels=3), drawn, task.side)

    square = tf.cond(tf.io.is_jpeg(file), only_the_square, all_of_it)
    return tf.ensure_shape(square, [task.side, task.side, 3])


def as_written(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Switch TensorFlow's rewrites off: what is written is what runs."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def without_autotune(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Switch AUTOTUNE off: numbers of calls and buffers are what is written."""
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def _table(task: Task) -> NDArray[np.float32]:
    count = len(task.images.paths)
    return augment.draws(count * max(1, -(-_ROWS // count)), task.seed)


def _columns(images: Images) -> tuple[NDArray[np.bytes_], NDArray[np.int64]]:
    import numpy as np

    paths = np.array([os.fsencode(path) for path in images.paths])
    return paths, np.array(images.labels, np.int64)
