"""Ways to feed the same images to the same model, each changing one thing.

Every function builds one: it takes a ``Task`` and returns batches that never end. Each
is what a reader types, with TensorFlow's options as they are; those called "as written"
switch off what TensorFlow rewrites by itself: serial maps become parallel, and a
prefetch is added.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.experiments.data_pipeline import records
from perfkit.experiments.data_pipeline.reading import (
    AUTOTUNE,
    as_written,
    decode,
    draws,
    files,
    graph,
    one_pass,
    schedule,
    square_of,
    without_autotune,
)
from perfkit.experiments.shared import augment, cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.data_pipeline.reading import Task


@dataclass(frozen=True)
class PythonGenerator:
    """A Python generator that decodes and augments one image after another."""

    task: Task

    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Yield batches without end."""
        import numpy as np

        paths, labels, drawn = schedule(self.task)
        for start in itertools.count(step=self.task.batch):
            rows = np.arange(start, start + self.task.batch) % len(paths)
            images = [self._example(paths[row], drawn[row]) for row in rows]
            yield np.stack(images), labels[rows]

    def _example(
        self, path: np.bytes_, drawn: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        import tensorflow as tf

        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3).numpy()
        return augment.with_numpy(image, drawn, self.task.side)


def naive(task: Task) -> tf.data.Dataset:
    """The obvious code: a map that decodes and augments, then batches."""
    return files(task).map(example_of(task)).batch(task.batch)


def naive_as_written(task: Task) -> tf.data.Dataset:
    """The same code with TensorFlow's rewrites off: one image after another."""
    return as_written(naive(task))


def parallel_as_written(task: Task) -> tf.data.Dataset:
    """Several images at a time, with TensorFlow's rewrites off."""
    return as_written(parallel(task))


def prefetch_as_written(task: Task) -> tf.data.Dataset:
    """Batches made ready while the model works, with TensorFlow's rewrites off."""
    return as_written(prefetch(task))


def stateful(task: Task) -> tf.data.Dataset:
    """The same with ``tf.random`` in the map, which TensorFlow then leaves serial."""
    import tensorflow as tf

    def example(path: tf.Tensor, label: tf.Tensor, _: tf.Tensor) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return augment.augment(image, tf.random.uniform([4]), task.side), label

    return files(task).map(graph(example)).batch(task.batch)


def parallel(task: Task) -> tf.data.Dataset:
    """Ask for several images at a time, as many as AUTOTUNE chooses."""
    return files(task).map(example_of(task), AUTOTUNE).batch(task.batch)


def prefetch(task: Task) -> tf.data.Dataset:
    """Batches made ready while the model works on the one before."""
    return parallel(task).prefetch(AUTOTUNE)


def cached(task: Task) -> tf.data.Dataset:
    """Decoded images kept in memory, and augmented anew each time."""
    decoded = one_pass(task).map(graph(decode), AUTOTUNE).cache().repeat()
    return _augmented(task, decoded)


def frozen(task: Task) -> tf.data.Dataset:
    """A trap: augmented images kept in memory, so that every epoch is the same."""
    import tensorflow as tf

    once = tf.data.Dataset.zip(one_pass(task), draws(task))
    flat = graph(lambda source, drawn: (*source, drawn))
    kept = once.map(flat).map(example_of(task), AUTOTUNE).cache().repeat()
    return kept.batch(task.batch).prefetch(AUTOTUNE)


def record_jpeg(task: Task) -> tf.data.Dataset:
    """JPEG bytes read from one TFRecord file instead of a file for each image."""
    return _from_records(task, _records(task, "jpeg"), _jpeg)


def record_raw(task: Task) -> tf.data.Dataset:
    """Pixels read from one TFRecord file: nothing to decode, more to read."""
    return _from_records(task, _records(task, "raw"), _pixels)


def record_shards(task: Task) -> tf.data.Dataset:
    """JPEG bytes read from several TFRecord files in turns."""
    import tensorflow as tf

    names = records.files(task.images, "shards")
    shards = tf.data.Dataset.from_tensor_slices(names)
    read = graph(lambda name: tf.data.TFRecordDataset(name))
    turns = shards.interleave(read, len(names), 1, num_parallel_calls=AUTOTUNE)
    return _from_records(task, turns, _jpeg)


def batch_first(task: Task) -> tf.data.Dataset:
    """Mirror, scale and brighten whole batches instead of single images."""
    import tensorflow as tf

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        return augment.cut(image, drawn, task.side), label, drawn

    def batchwise(images: tf.Tensor, labels: tf.Tensor, drawn: tf.Tensor) -> Any:
        flip = drawn[:, 2, None, None, None] < 0.5
        images = tf.where(flip, tf.reverse(images, [2]), images)
        brighter = augment.brightness(drawn)[:, None, None, None]
        return augment.scale(images) + brighter, labels

    batches = files(task).map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.map(graph(batchwise), AUTOTUNE).prefetch(AUTOTUNE)


def cut_only(task: Task) -> tf.data.Dataset:
    """Mirror and brighten in the model, as layers; the pipeline decodes and cuts."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        return augment.scale(augment.cut(image, drawn, task.side)), label

    batches = files(task).map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.prefetch(AUTOTUNE)


def as_bytes(task: Task) -> tf.data.Dataset:
    """Send bytes to the model, which scales and brightens them: a quarter the size."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        square = augment.mirror(augment.cut(image, drawn, task.side), drawn)
        return (square, augment.brightness(drawn)), label

    batches = files(task).map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.prefetch(AUTOTUNE)


def cropped(task: Task) -> tf.data.Dataset:
    """Decode only the square that is cut out, with ``tf.io.decode_and_crop_jpeg``."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        square = augment.mirror(square_of(task, path, drawn), drawn)
        return augment.scale(square) + augment.brightness(drawn), label

    batches = files(task).map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.prefetch(AUTOTUNE)


def fixed(task: Task) -> tf.data.Dataset:
    """As many calls at a time as there are cores, instead of AUTOTUNE."""
    batches = files(task).map(example_of(task), cores.granted()).batch(task.batch)
    return without_autotune(batches.prefetch(2))


def unordered(task: Task) -> tf.data.Dataset:
    """Images in the order they are done, with ``deterministic=False``."""
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = False
    return prefetch(task).with_options(options)


def together(task: Task) -> tf.data.Dataset:
    """Three changes: decode only the square, send bytes, as many calls as cores."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        square = augment.mirror(square_of(task, path, drawn), drawn)
        return (square, augment.brightness(drawn)), label

    batches = files(task).map(graph(example), cores.granted()).batch(task.batch)
    return without_autotune(batches.prefetch(2))


def with_numpy(task: Task) -> tf.data.Dataset:
    """Augment with NumPy, called from the pipeline by ``tf.numpy_function``."""
    return _numpy_function(task, augment.with_numpy)


def by_element(task: Task) -> tf.data.Dataset:
    """Augment with NumPy, one number after another in a Python loop."""
    return _numpy_function(task, augment.by_element)


def example_of(task: Task) -> Callable[..., Any]:
    """Read, decode and augment one image: what most ways have in common."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        return augment.augment(image, drawn, task.side), label

    return graph(example)


def _augmented(task: Task, decoded: tf.data.Dataset) -> tf.data.Dataset:
    """Augment what is decoded already, several at a time."""
    import tensorflow as tf

    def example(source: tuple[tf.Tensor, tf.Tensor], drawn: tf.Tensor) -> Any:
        return augment.augment(source[0], drawn, task.side), source[1]

    both = tf.data.Dataset.zip(decoded, draws(task).repeat())
    batches = both.map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.prefetch(AUTOTUNE)


def _records(task: Task, form: str) -> tf.data.Dataset:
    import tensorflow as tf

    return tf.data.TFRecordDataset(records.files(task.images, form))


def _from_records(
    task: Task, read: tf.data.Dataset, image: Callable[..., tf.Tensor]
) -> tf.data.Dataset:
    import tensorflow as tf

    def example(record: tf.Tensor, drawn: tf.Tensor) -> Any:
        parsed = records.parse(record)
        return augment.augment(image(parsed), drawn, task.side), parsed["label"]

    both = tf.data.Dataset.zip(read.repeat(), draws(task).repeat())
    batches = both.map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.prefetch(AUTOTUNE)


def _jpeg(parsed: dict[str, tf.Tensor]) -> tf.Tensor:
    import tensorflow as tf

    return tf.io.decode_jpeg(parsed["image"], channels=3)


def _pixels(parsed: dict[str, tf.Tensor]) -> tf.Tensor:
    import tensorflow as tf

    shape = tf.stack([parsed["height"], parsed["width"], 3])
    return tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), shape)


def _numpy_function(
    task: Task, function: Callable[..., NDArray[np.float32]]
) -> tf.data.Dataset:
    import tensorflow as tf

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        square = tf.numpy_function(
            lambda image, drawn: function(image, drawn, task.side),
            [image, drawn],
            tf.float32,
            stateful=False,
        )
        return tf.ensure_shape(square, [task.side, task.side, 3]), label

    batches = files(task).map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.prefetch(AUTOTUNE)
