"""The input pipelines that are compared, and whether all give the same images.

Each is a function of plain TensorFlow: what it is made of is handed over by the names
of its arguments (``PARTS``), and its lines are what a reader is shown and advised.
Where a variant changes what is done with one image, that function is its ``example``.
"""

import functools
import inspect
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.measurement import OWN
from perfkit.questions.base import UNWRITTEN, mistake_of
from perfkit.questions.data_pipeline.work import (
    BASELINE,
    PARTS,
    Method,
    Task,
    dataset_of,
    schedule,
    table,
)
from perfkit.questions.shared import decoding, tf
from perfkit.questions.shared.verdicts import Choice

SYNTHETIC = "synthetic"
DECODE_LIMIT = "decode limit"
_FILES = "prefetch"
VARIANTS = dict[str, Method]()
Function = Callable[..., Any]


def _method(
    name: str, against: str = BASELINE, feed: Function | None = None, **options: Any
) -> Callable[[Function], Function]:
    """Make a variant of a function of parts, whose docstring says what to do.

    With ``feed`` that function makes what is done with one image, and ``feed`` is the
    pipeline around it. See ``Method`` for the rest.
    """

    def add(function: Function) -> Function:
        do = (inspect.getdoc(function) or "").partition("\n")[0]
        more = options | ({"example": function} if feed else {})
        VARIANTS[name] = Method(name, do, feed or function, against, **more)
        return function

    return add


@_method("python generator")
def python_generator(rows: Any, augment_array: Any, batch: Any) -> Any:
    """Feed it with a Python generator."""
    # In its loop looking names up in what stands for the module would count.
    import tensorflow as tf

    def batches() -> Iterator[Any]:
        endless = iter(rows)
        while True:
            images, labels = [], []
            for path, label, drawn in itertools.islice(endless, batch):
                image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
                images.append(augment_array(image.numpy(), drawn))
                labels.append(label)
            yield np.stack(images), np.stack(labels)

    return batches


@_method(BASELINE)
def naive(files: Any, example: Any, batch: Any) -> Any:
    """Map, then batch: the obvious code."""
    dataset = files.map(example).batch(batch)
    return dataset


@_method(
    "naive as written", excluded="TensorFlow's own rewrites are switched off in it"
)
def naive_as_written(files: Any, example: Any, batch: Any) -> Any:
    """The same code with TensorFlow's rewrites off: one image after another."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    dataset = files.map(example).batch(batch)
    dataset = dataset.with_options(options)
    return dataset


@_method("random in map", feed=naive, own_random=True)
def stateful(augment: Any) -> Any:
    """Draw random numbers with `tf.random` inside the map."""

    def example(path: Any, label: Any, _: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return augment(image, tf.random.uniform([4])), label

    return example


@_method("parallel map")
def parallel(files: Any, example: Any, batch: Any) -> Any:
    """Decode several images at a time."""
    dataset = files.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(batch)
    return dataset


@_method(_FILES, "parallel map")
def prefetch(files: Any, example: Any, batch: Any) -> Any:
    """Decode in parallel, and prefetch batches."""
    dataset = files.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(batch).prefetch(tf.data.AUTOTUNE)
    return dataset


@_method("cache", _FILES, keeps=True)
def cached(images: Any, decode: Any, draws: Any, augment: Any, batch: Any) -> Any:
    """Cache the decoded images."""

    def augmented(decoded: Any, drawn: Any) -> Any:
        return augment(decoded[0], drawn), decoded[1]

    kept = images.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache().repeat()
    dataset = tf.data.Dataset.zip(kept, draws)
    dataset = dataset.map(augmented, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(batch).prefetch(tf.data.AUTOTUNE)
    return dataset


def one_file(record_file: Any, draws: Any, example: Any, batch: Any) -> Any:
    """Read one TFRecord file."""
    dataset = tf.data.TFRecordDataset(record_file).repeat()
    dataset = tf.data.Dataset.zip(dataset, draws)
    dataset = dataset.map(example, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(batch).prefetch(tf.data.AUTOTUNE)
    return dataset


@_method("tfrecord jpeg", _FILES, one_file, form="jpeg")
def from_jpeg(parse: Any, augment: Any) -> Any:
    """Read the JPEG bytes from one TFRecord file."""

    def example(record: Any, drawn: Any) -> Any:
        parsed = parse(record)
        image = tf.io.decode_jpeg(parsed["image"], channels=3)
        return augment(image, drawn), parsed["label"]

    return example


@_method("tfrecord raw", _FILES, one_file, form="raw")
def from_pixels(parse: Any, augment: Any) -> Any:
    """Read decoded pixels from one TFRecord file."""

    def example(record: Any, drawn: Any) -> Any:
        parsed = parse(record)
        pixels = tf.io.decode_raw(parsed["image"], tf.uint8)
        image = tf.reshape(pixels, [parsed["height"], parsed["width"], 3])
        return augment(image, drawn), parsed["label"]

    return example


@_method("batch first", _FILES)
def batch_first(files: Any, crop: Any, brightness: Any, batch: Any) -> Any:
    """Batch first, then augment whole batches."""

    def cut(path: Any, label: Any, drawn: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return crop(image, drawn), label, drawn

    def augment(images: Any, labels: Any, drawn: Any) -> Any:
        wide, mirrored = [-1, 1, 1, 1], tf.reverse(images, [2])
        images = tf.where(tf.reshape(drawn[:, 2] < 0.5, wide), mirrored, images)
        brighter = tf.reshape(brightness(drawn), wide)
        return tf.cast(images, tf.float32) / 255 + brighter, labels

    dataset = files.map(cut, num_parallel_calls=tf.data.AUTOTUNE).batch(batch)
    dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    return dataset


@_method("augment in model", _FILES, prefetch, in_model=True)
def cut_only(crop: Any) -> Any:
    """Augment in the model, as layers."""

    def example(path: Any, label: Any, drawn: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.cast(crop(image, drawn), tf.float32) / 255, label

    return example


@_method("crop while decoding", _FILES, prefetch)
def cropped(square_of: Any, mirror: Any, brightness: Any) -> Any:
    """Decode only the square that is cut out."""

    def example(path: Any, label: Any, drawn: Any) -> Any:
        square = mirror(square_of(tf.io.read_file(path), drawn), drawn)
        return tf.cast(square, tf.float32) / 255 + brightness(drawn), label

    return example


@_method("fixed threads", _FILES)
def fixed(files: Any, example: Any, cores: Any, batch: Any) -> Any:
    """Ask for as many calls as there are cores, without AUTOTUNE."""
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = files.map(example, num_parallel_calls=cores).batch(batch)
    dataset = dataset.prefetch(2).with_options(options)
    return dataset


@_method("numpy", _FILES, prefetch)
def with_numpy(decode: Any, augment_array: Any, side: Any) -> Any:
    """Augment with NumPy."""

    def example(path: Any, label: Any, drawn: Any) -> Any:
        given = [decode(path, label)[0], drawn]
        image = tf.numpy_function(augment_array, given, tf.float32, stateful=False)
        return tf.ensure_shape(image, [side, side, 3]), label

    return example


@_method("numpy by element", "numpy", prefetch)
def by_element(decode: Any, augment_pixels: Any, side: Any) -> Any:
    """Augment with NumPy, element by element."""

    def example(path: Any, label: Any, drawn: Any) -> Any:
        given = [decode(path, label)[0], drawn]
        image = tf.numpy_function(augment_pixels, given, tf.float32, stateful=False)
        return tf.ensure_shape(image, [side, side, 3]), label

    return example


CHOICES = {
    method.name: Choice(method.do, functools.partial(getattr, method, "advice"))
    for method in VARIANTS.values()
}
CHOICES[OWN] = Choice("Use your own pipeline.", "dataset = yours(...)")
# Groups of variants, by the question that they answer; each gets the baseline and the
# two limits besides. The first takes a minute.
_TOGETHER = {
    "essential": ("parallel map", _FILES, "cache", "crop while decoding"),
    "formats": (_FILES, "tfrecord jpeg", "tfrecord raw"),
    "augmentation": (
        *(_FILES, "cache", "batch first"),
        *("augment in model", "crop while decoding"),
    ),
    "python": ("python generator", _FILES, "numpy", "numpy by element"),
    "threads": (*("random in map", "parallel map", _FILES, "fixed threads"),),
    # What TensorFlow does by itself, seen by switching it off.
    "rewrites": ("naive as written",),
    "all": VARIANTS,
}
GROUPS = {
    name: (BASELINE, *members, SYNTHETIC, DECODE_LIMIT)
    for name, members in _TOGETHER.items()
}


# What is found out before they are timed.

# So many images, and so many passes over them: the first fills what is kept.
_TIMED_IMAGES, _PASSES = 16, 5


def stage_seconds(task: Task) -> dict[str, float]:
    """Seconds of one core for an image, in each stage, where nothing else runs.

    The stages are ``decode``, ``decode_square`` (only the square that is cut out) and
    ``augment`` (with its copy into a batch). They take turns; the shortest pass counts.
    """
    augment, square = (PARTS[name](task, "") for name in ("augment", "square_of"))
    paths, _, draws = schedule(task)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1

    def read(path: Any, drawn: Any) -> Any:
        return tf.io.read_file(path), drawn

    def decode(file: Any, drawn: Any) -> Any:
        return tf.io.decode_jpeg(file, channels=3), drawn

    count = min(_TIMED_IMAGES, len(paths))
    files = dataset_of((paths, draws)).take(count).map(read).cache()
    stages = {
        "decode": files.map(lambda *file: tf.shape(decode(*file)[0])),
        "decode_square": files.map(square),
        "augment": files.map(decode).cache().map(augment),
    }
    batches = {
        name: iter(stage.repeat().batch(count).with_options(options))
        for name, stage in stages.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in batches}
    for _, (name, stage) in itertools.product(range(_PASSES), batches.items()):
        began = time.perf_counter()
        next(stage)
        seconds[name].append((time.perf_counter() - began) / count)
    return {name: min(passes) for name, passes in seconds.items()}


# Decoding a part of a JPEG leaves the colours of its outermost pixels to guesses, since
# colours are stored at half the resolution; everything else is equal to rounding.
_MEAN = 0.5 / 255
_WORST = 0.25
# A pipeline of one's own is tried on so many images, for so many epochs: a cache in the
# wrong place shows in the second. It may give them a little earlier or later.
_SEEN, _EPOCHS, _AHEAD = 8, 3, 16
_OTHERS = (
    "gives other images than the rest, or in a very different order: each must be one "
    "of the files, augmented with its own random numbers"
)
_UNEVEN = "gives some images more often than others"
_FROZEN = (
    "repeats its augmented images in every epoch: cache before the augmentation, not "
    "after it"
)


def comparable(method: Method) -> bool:
    """Whether a variant uses the random numbers given, so that it can be compared."""
    return not (method.in_model or method.own_random)


def differences(methods: Iterable[Method], task: Task) -> dict[str, str]:
    """Say of each whose first batch is not as expected how it differs, by name."""
    paths, _, draws = schedule(task)
    first = zip(map(_pixels, paths[: task.batch]), draws, strict=False)
    # The first images as each has to give them, computed in NumPy.
    expected = np.stack([decoding.with_numpy(*pair, task.side) for pair in first])
    gaps = {m.name: _difference(m, task, expected) for m in methods if comparable(m)}
    return {name: gap for name, gap in gaps.items() if gap}


def why_not(method: Method, task: Task) -> str:
    """Say why a pipeline of one's own is not timed; "" where it gives what all give."""
    part = slice(_SEEN)
    images = replace(
        task.images, paths=task.images.paths[part], labels=task.images.labels[part]
    )
    task = replace(task, images=images)
    return mistake_of(lambda: _mistake(method, task))


def _mistake(method: Method, task: Task) -> str:
    """What is wrong with some epochs of a pipeline; its order is its own affair."""
    pipeline = method.build(task)
    if pipeline is None:
        return UNWRITTEN
    needed = -(-_EPOCHS * len(task.images.paths) // task.batch)
    batches = list(itertools.islice(iter(pipeline), needed))
    sizes = {int(np.size(labels)) for _, labels in batches}
    if sizes and sizes != {task.batch}:
        listing = ", ".join(map(str, sorted(sizes)))
        return f"gives batches of {listing} images instead of {task.batch}"
    if len(batches) < needed:
        return "ends, but the others never do: repeat it"
    images = np.concatenate([np.asarray(images) for images, _ in batches])
    labels = np.concatenate([np.asarray(labels) for _, labels in batches])
    shape = (task.side, task.side, 3)
    if images.shape[1:] != shape:
        return f"gives images of shape {images.shape[1:]} instead of {shape}"
    return _mixed_up(list(zip(images, labels, strict=True)), task)


def _mixed_up(examples: Sequence[tuple[Any, Any]], task: Task) -> str:
    """What is wrong with examples: each is one of the images, augmented once so."""
    draws, files = table(task), list(map(_pixels, task.images.paths))
    used_rows, counts = set[int](), [0] * len(files)
    for place, (image, label) in enumerate(examples):
        # One drawn a little earlier or later will do: which image it is for, too.
        near = range(max(0, place - _AHEAD), place + _AHEAD + 1)
        rows = sorted(near, key=lambda row: abs(row - place))
        for row, index in itertools.product(rows, range(len(files))):
            expected = decoding.with_numpy(files[index], draws[row], task.side)
            if not _apart(np.abs(image - expected)):
                break
        else:
            return _OTHERS
        if row in used_rows:
            return _FROZEN
        if label != task.images.labels[index]:
            return "gives its images wrong labels"
        used_rows.add(row)
        counts[index] += 1
    return "" if min(counts) >= _EPOCHS - 1 else _UNEVEN


def _pixels(path: str) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = tf.io.decode_jpeg(tf.io.read_file(path), 3).numpy()
    return pixels


def _difference(method: Method, task: Task, expected: NDArray[np.float32]) -> str:
    batch = next(iter(method.build(task)))[0]
    shape = np.shape(batch)
    if shape[1:] != expected.shape[1:]:
        return f"its images have shape {shape[1:]} instead of {expected.shape[1:]}"
    return _apart(np.abs(np.asarray(batch) - expected))


def _apart(gaps: Any) -> str:
    """Say how far pixels are off; "" for no further than rounding and decoding go."""
    mean, worst = float(np.mean(gaps)), float(np.max(gaps))
    if mean <= _MEAN and worst <= _WORST:
        return ""
    return f"its pixels differ by {mean:.3f} on average and {worst:.3f} at most, of 1"
