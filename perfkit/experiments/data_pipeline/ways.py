"""The input pipelines that are compared."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from perfkit.experiments.data_pipeline import feeding
from perfkit.experiments.data_pipeline.feeding import (
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
from perfkit.experiments.shared import decoding, probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.data_pipeline.feeding import Task

Build = TypeVar("Build", bound="Callable[[Task], Iterable[Any]]")

BASELINE = "naive map"
SYNTHETIC = "synthetic"
DECODE_LIMIT = "decode limit"
_FILES = "prefetch"
_AS_WRITTEN = "TensorFlow's own rewrites are switched off in it"


def _chain(*calls: str, of: str = "dataset") -> str:
    """The lines of a pipeline, as a reader types them."""
    rest = "".join(f"\n    .{call}" for call in calls[1:])
    return f"dataset = (\n    {of}.{calls[0]}{rest}\n)"


# What most ways are made of.
_PARALLEL = "map(example, num_parallel_calls=tf.data.AUTOTUNE)"
_END = ("batch(batch)", "prefetch(tf.data.AUTOTUNE)")
_CHAIN = _chain(_PARALLEL, *_END)
_RECORDS = _chain("TFRecordDataset(file)", _PARALLEL, *_END, of="tf.data")
_ON_CORES = _chain(
    "map(example, num_parallel_calls=os.cpu_count())",
    "batch(batch)",
    "prefetch(2)",
    "with_options(options)",
)
_WITHOUT_AUTOTUNE = "options = tf.data.Options()\noptions.autotune.enabled = False\n"
_CROP = """
# in example:
image = tf.io.decode_and_crop_jpeg(
    file, [top, left, side, side], channels=3
)"""
_SCALE = "\n# in the model, not in example:\nimages = tf.cast(images, tf.float32) / 255"


@dataclass(frozen=True)
class Way:
    """One way to feed images.

    Attributes:
        name: In charts, files and on the command line.
        build: Makes the pipeline, which never ends.
        against: The way that it changes one thing of.
        do: What choosing it means, as a sentence; "" where it is never advised.
        advice: The code that was measured, as a reader types it; likewise.
        in_model: What it leaves to the model: nothing, bytes that are to be scaled and
            brightened, or mirroring and brightening as layers.
        form: The TFRecord form it reads; "" for the files themselves.
        decodes: How much of each image is decoded in every step.
        keeps: What it keeps in memory: nothing, every decoded image, or every
            augmented one.
        excluded: Why it is never advised, however fast it is; "" where it may be.
        ordered: Whether it gives the images in the order of the list.
        own_random: Whether it draws its own random numbers, so that its images cannot
            be compared with the others'.
    """

    name: str
    build: Callable[[Task], Iterable[Any]]
    against: str = BASELINE
    do: str = ""
    advice: str = ""
    in_model: Literal["", "bytes", "layers"] = ""
    form: str = ""
    decodes: Literal["whole", "square", "nothing"] = "whole"
    keeps: Literal["", "decoded", "augmented"] = ""
    excluded: str = ""
    ordered: bool = True
    own_random: bool = False

    @property
    def changes(self) -> str:
        """The one thing it changes, in a sentence."""
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    def step(self, task: Task) -> Callable[[Any, Any], float]:
        """Make the training step that this way feeds."""
        model = decoding.small_cnn(task.side, len(task.images.classes))
        if self.in_model == "layers":
            return decoding.step_of(decoding.augmenting(model))
        if self.in_model == "bytes":
            return decoding.step_of(model, decoding.from_bytes)
        return decoding.step_of(model)


WAYS = dict[str, Way]()


def _way(name: str, against: str = BASELINE, **more: Any) -> Callable[[Build], Build]:
    """Make a way of what builds its pipeline; see ``Way`` for the rest."""

    def add(build: Build) -> Build:
        WAYS[name] = Way(name, build, against, **more)
        return build

    return add


@_way(
    "python generator",
    do="Feed it with a Python generator.",
    advice="for images, labels in batches():  # decode and augment in Python",
)
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
        return decoding.with_numpy(image, drawn, self.task.side)


@_way(
    BASELINE,
    do="Keep the plain map.",
    advice="dataset = dataset.map(example).batch(batch)",
)
def naive(task: Task) -> tf.data.Dataset:
    """The obvious code: a map that decodes and augments, then batches."""
    return files(task).map(example_of(task)).batch(task.batch)


@_way("naive as written", excluded=_AS_WRITTEN)
def naive_as_written(task: Task) -> tf.data.Dataset:
    """The same code with TensorFlow's rewrites off: one image after another."""
    return as_written(naive(task))


@_way("parallel as written", "naive as written", excluded=_AS_WRITTEN)
def parallel_as_written(task: Task) -> tf.data.Dataset:
    """Several images at a time, with TensorFlow's rewrites off."""
    return as_written(parallel(task))


@_way("prefetch as written", "parallel as written", excluded=_AS_WRITTEN)
def prefetch_as_written(task: Task) -> tf.data.Dataset:
    """Batches made ready while the model works, with TensorFlow's rewrites off."""
    return as_written(prefetch(task))


@_way(
    "random in map",
    do="Draw random numbers with `tf.random` inside the map.",
    advice="dataset = dataset.map(example).batch(batch)\n"
    "# in example:\ndrawn = tf.random.uniform([4])",
    own_random=True,
)
def stateful(task: Task) -> tf.data.Dataset:
    """The same with ``tf.random`` in the map, which TensorFlow then leaves serial."""
    import tensorflow as tf

    def example(path: tf.Tensor, label: tf.Tensor, _: tf.Tensor) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return decoding.augment(image, tf.random.uniform([4]), task.side), label

    return files(task).map(graph(example)).batch(task.batch)


@_way(
    "parallel map",
    do="Decode several images at a time.",
    advice=_chain(_PARALLEL, "batch(batch)"),
)
def parallel(task: Task) -> tf.data.Dataset:
    """Ask for several images at a time, as many as AUTOTUNE chooses."""
    return files(task).map(example_of(task), AUTOTUNE).batch(task.batch)


@_way(
    _FILES,
    "parallel map",
    do="Decode in parallel, and prefetch batches.",
    advice=_CHAIN,
)
def prefetch(task: Task) -> tf.data.Dataset:
    """Batches made ready while the model works on the one before."""
    return parallel(task).prefetch(AUTOTUNE)


@_way(
    "cache",
    _FILES,
    do="Cache the decoded images.",
    advice=_chain(
        "map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
        "cache()",
        "map(augment, num_parallel_calls=tf.data.AUTOTUNE)",
        *_END,
    ),
    decodes="nothing",
    keeps="decoded",
)
def cached(task: Task) -> tf.data.Dataset:
    """Decoded images kept in memory, and augmented anew each time."""

    def example(source: tuple[tf.Tensor, tf.Tensor], drawn: tf.Tensor) -> Any:
        return decoding.augment(source[0], drawn, task.side), source[1]

    decoded = one_pass(task).map(graph(decode), AUTOTUNE).cache().repeat()
    return _batches(task, _with_draws(task, decoded), example)


@_way(
    "frozen cache",
    "cache",
    decodes="nothing",
    keeps="augmented",
    excluded="each image is augmented once, and every epoch sees the same",
)
def frozen(task: Task) -> tf.data.Dataset:
    """A trap: augmented images kept in memory, so that every epoch is the same."""
    import tensorflow as tf

    once = tf.data.Dataset.zip(one_pass(task), draws(task))
    flat = graph(lambda source, drawn: (*source, drawn))
    kept = once.map(flat).map(example_of(task), AUTOTUNE).cache().repeat()
    return kept.batch(task.batch).prefetch(AUTOTUNE)


@_way(
    "tfrecord jpeg",
    _FILES,
    do="Read the JPEG bytes from one TFRecord file.",
    advice=_RECORDS,
    form="jpeg",
)
def record_jpeg(task: Task) -> tf.data.Dataset:
    """JPEG bytes read from one TFRecord file instead of a file for each image."""
    return _from_records(task, _records(task, "jpeg"), _jpeg)


@_way(
    "tfrecord raw",
    _FILES,
    do="Read decoded pixels from one TFRecord file.",
    advice=_RECORDS + "\n# in example:\npixels = tf.io.decode_raw(record, tf.uint8)",
    decodes="nothing",
    form="raw",
)
def record_raw(task: Task) -> tf.data.Dataset:
    """Pixels read from one TFRecord file: nothing to decode, more to read."""
    return _from_records(task, _records(task, "raw"), _pixels)


@_way(
    "tfrecord shards",
    "tfrecord jpeg",
    do="Read several TFRecord files in turns.",
    advice="reading = {'cycle_length': 8, 'num_parallel_calls': "
    "tf.data.AUTOTUNE}\n"
    + _chain(
        "interleave(tf.data.TFRecordDataset, **reading)",
        _PARALLEL,
        *_END,
        of="files",
    ),
    form="shards",
)
def record_shards(task: Task) -> tf.data.Dataset:
    """JPEG bytes read from several TFRecord files in turns."""
    import tensorflow as tf

    names = feeding.made_files(task.images, "shards")
    shards = tf.data.Dataset.from_tensor_slices(names)
    read = graph(lambda name: tf.data.TFRecordDataset(name))
    turns = shards.interleave(read, len(names), 1, num_parallel_calls=AUTOTUNE)
    return _from_records(task, turns, _jpeg)


@_way(
    "batch first",
    _FILES,
    do="Batch first, then augment whole batches.",
    advice=_chain(
        "map(decode_and_cut, num_parallel_calls=tf.data.AUTOTUNE)",
        "batch(batch)",
        "map(augment_batch, num_parallel_calls=tf.data.AUTOTUNE)",
        "prefetch(tf.data.AUTOTUNE)",
    ),
)
def batch_first(task: Task) -> tf.data.Dataset:
    """Mirror, scale and brighten whole batches instead of single images."""
    import tensorflow as tf

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        return decoding.cut(image, drawn, task.side), label, drawn

    def batchwise(images: tf.Tensor, labels: tf.Tensor, drawn: tf.Tensor) -> Any:
        flip = drawn[:, 2, None, None, None] < 0.5
        images = tf.where(flip, tf.reverse(images, [2]), images)
        brighter = decoding.brightness(drawn)[:, None, None, None]
        return decoding.scale(images) + brighter, labels

    batches = files(task).map(graph(example), AUTOTUNE).batch(task.batch)
    return batches.map(graph(batchwise), AUTOTUNE).prefetch(AUTOTUNE)


@_way(
    "augment in model",
    _FILES,
    do="Augment in the model, as layers.",
    advice=f"{_CHAIN}\n# in the model, not in example:\n"
    'keras.layers.RandomFlip("horizontal"),\n'
    "keras.layers.RandomBrightness(0.1, value_range=(0, 1)),",
    in_model="layers",
)
def cut_only(task: Task) -> tf.data.Dataset:
    """Mirror and brighten in the model, as layers; the pipeline decodes and cuts."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        return decoding.scale(decoding.cut(image, drawn, task.side)), label

    return _batches(task, files(task), example)


@_way(
    "uint8",
    _FILES,
    do="Send bytes to the model, and scale them there.",
    advice=_CHAIN + _SCALE,
    in_model="bytes",
)
def as_bytes(task: Task) -> tf.data.Dataset:
    """Send bytes to the model, which scales and brightens them: a quarter the size."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        square = decoding.mirror(decoding.cut(image, drawn, task.side), drawn)
        return (square, decoding.brightness(drawn)), label

    return _batches(task, files(task), example)


@_way(
    "crop while decoding",
    _FILES,
    do="Decode only the square that is cut out.",
    advice=_CHAIN + _CROP,
    decodes="square",
)
def cropped(task: Task) -> tf.data.Dataset:
    """Decode only the square that is cut out, with ``tf.io.decode_and_crop_jpeg``."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        square = decoding.mirror(square_of(task, path, drawn), drawn)
        return decoding.scale(square) + decoding.brightness(drawn), label

    return _batches(task, files(task), example)


@_way(
    "fixed threads",
    _FILES,
    do="Ask for as many calls as there are cores, without AUTOTUNE.",
    advice=_WITHOUT_AUTOTUNE + _ON_CORES,
)
def fixed(task: Task) -> tf.data.Dataset:
    """As many calls at a time as there are cores, instead of AUTOTUNE."""
    batches = files(task).map(example_of(task), probe.granted()).batch(task.batch)
    return without_autotune(batches.prefetch(2))


@_way(
    "out of order",
    _FILES,
    do="Let images come in the order in which they are done.",
    advice="options = tf.data.Options()\noptions.deterministic = False\n"
    + _chain(_PARALLEL, *_END, "with_options(options)"),
    ordered=False,
)
def unordered(task: Task) -> tf.data.Dataset:
    """Images in the order they are done, with ``deterministic=False``."""
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = False
    return prefetch(task).with_options(options)


@_way(
    "everything",
    _FILES,
    do="Decode only the square, send bytes, and fix the threads.",
    advice=_WITHOUT_AUTOTUNE + _ON_CORES + _CROP + _SCALE,
    in_model="bytes",
    decodes="square",
)
def together(task: Task) -> tf.data.Dataset:
    """Three changes: decode only the square, send bytes, as many calls as cores."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        square = decoding.mirror(square_of(task, path, drawn), drawn)
        return (square, decoding.brightness(drawn)), label

    batches = files(task).map(graph(example), probe.granted()).batch(task.batch)
    return without_autotune(batches.prefetch(2))


@_way(
    "numpy",
    _FILES,
    do="Augment with NumPy.",
    advice=f"{_CHAIN}\n# in example:\n"
    "image = tf.numpy_function(augment, [image], tf.float32)",
)
def with_numpy(task: Task) -> tf.data.Dataset:
    """Augment with NumPy, called from the pipeline by ``tf.numpy_function``."""
    return _numpy_function(task, decoding.with_numpy)


@_way(
    "numpy by element",
    "numpy",
    do="Augment with NumPy, element by element.",
    advice=f"{_CHAIN}\n# in example:\n"
    "image = tf.numpy_function(augment_by_element, [image], tf.float32)",
)
def by_element(task: Task) -> tf.data.Dataset:
    """Augment with NumPy, one number after another in a Python loop."""
    return _numpy_function(task, decoding.by_element)


def example_of(task: Task) -> Callable[..., Any]:
    """Read, decode and augment one image: what most ways have in common."""

    def example(path: tf.Tensor, label: tf.Tensor, drawn: tf.Tensor) -> Any:
        image, label = decode(path, label)
        return decoding.augment(image, drawn, task.side), label

    return graph(example)


def _batches(
    task: Task, examples: tf.data.Dataset, example: Callable[..., Any]
) -> tf.data.Dataset:
    """Do something with each example, several at a time, and prefetch batches."""
    mapped = examples.map(graph(example), AUTOTUNE)
    return mapped.batch(task.batch).prefetch(AUTOTUNE)


def _with_draws(task: Task, examples: tf.data.Dataset) -> tf.data.Dataset:
    """Examples with the random numbers of each."""
    import tensorflow as tf

    return tf.data.Dataset.zip(examples, draws(task).repeat())


def _from_records(
    task: Task, read: tf.data.Dataset, image: Callable[..., tf.Tensor]
) -> tf.data.Dataset:
    def example(record: tf.Tensor, drawn: tf.Tensor) -> Any:
        parsed = feeding.parse(record)
        return decoding.augment(image(parsed), drawn, task.side), parsed["label"]

    return _batches(task, _with_draws(task, read.repeat()), example)


def _records(task: Task, form: str) -> tf.data.Dataset:
    import tensorflow as tf

    return tf.data.TFRecordDataset(feeding.made_files(task.images, form))


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

    return _batches(task, files(task), example)


_CEILINGS = (SYNTHETIC, DECODE_LIMIT)
# What is asked together, by the question that it answers. The first takes a minute.
GROUPS = {
    "essential": (
        *(BASELINE, "parallel map", _FILES, "cache", "crop while decoding"),
        *_CEILINGS,
    ),
    "formats": (
        *(BASELINE, _FILES, "tfrecord jpeg", "tfrecord raw", "tfrecord shards"),
        *_CEILINGS,
    ),
    "augmentation": (
        *(BASELINE, _FILES, "cache", "frozen cache", "batch first"),
        *("augment in model", "uint8", "crop while decoding"),
        *_CEILINGS,
    ),
    "python": (
        *(BASELINE, "python generator", _FILES, "numpy", "numpy by element"),
        *_CEILINGS,
    ),
    "threads": (
        *(BASELINE, "random in map", "parallel map", _FILES),
        *("fixed threads", "out of order", "everything"),
        *_CEILINGS,
    ),
    # What TensorFlow does by itself, seen by switching it off.
    "rewrites": (
        *(BASELINE, "naive as written", "parallel as written", "prefetch as written"),
        *_CEILINGS,
    ),
    "all": (*WAYS, *_CEILINGS),
}
