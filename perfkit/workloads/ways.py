"""The ways to feed images that are compared, by name, and what each stands against."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.workloads import pipelines, training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perfkit.workloads.reading import Task

BASELINE = "naive map"
REWRITTEN = "rewritten"
SYNTHETIC = "synthetic"
DECODE_LIMIT = "decode limit"
_FILES = "prefetch"


@dataclass(frozen=True)
class Way:
    """One way to feed images.

    Attributes:
        name: In charts, files and on the command line.
        build: Makes the pipeline, which never ends.
        against: The way that it changes one thing of.
        advice: What to write to have it, for a reader who has the way it stands
            against.
        in_model: What it leaves to the model: nothing, bytes that are to be scaled and
            brightened, or mirroring and brightening as layers.
        form: The TFRecord form it reads; "" for the files themselves.
        decodes: How much of each image is decoded in every step.
        keeps: What it keeps in memory: nothing, every decoded image, or every
            augmented one.
        trap: Why it is wrong though it is fast; "" where it is right.
        ordered: Whether it gives the images in the order of the list.
        own_random: Whether it draws its own random numbers, so that its images cannot
            be compared with the others'.
    """

    name: str
    build: Callable[[Task], Iterable[Any]]
    against: str = BASELINE
    advice: str = ""
    in_model: Literal["", "bytes", "layers"] = ""
    form: str = ""
    decodes: Literal["whole", "square", "nothing"] = "whole"
    keeps: Literal["", "decoded", "augmented"] = ""
    trap: str = ""
    ordered: bool = True
    own_random: bool = False

    @property
    def changes(self) -> str:
        """The one thing it changes, in a sentence."""
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    def step(self, task: Task) -> Callable[[Any, Any], float]:
        """Make the training step that this way feeds."""
        model = training.small_cnn(task.side, len(task.images.classes))
        if self.in_model == "layers":
            return training.step_of(training.augmenting(model))
        if self.in_model == "bytes":
            return training.step_of(model, training.from_bytes)
        return training.step_of(model)


WAYS = {
    way.name: way
    for way in (
        Way(
            "python generator",
            pipelines.PythonGenerator,
            advice="for images, labels in batches():  # decode and augment in Python",
        ),
        Way(
            BASELINE,
            pipelines.naive,
            advice="dataset.map(example).batch(batch)",
        ),
        Way(
            REWRITTEN,
            pipelines.rewritten,
            advice="dataset.map(example).batch(batch)  # with the options as they are",
        ),
        Way(
            "random in map",
            pipelines.stateful,
            REWRITTEN,
            advice="tf.random.uniform([4])  # inside the function given to map",
            own_random=True,
        ),
        Way(
            "parallel map",
            pipelines.parallel,
            advice="dataset.map(example, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
        Way(
            _FILES,
            pipelines.prefetch,
            "parallel map",
            advice="dataset.map(example, num_parallel_calls=tf.data.AUTOTUNE)"
            ".batch(batch).prefetch(tf.data.AUTOTUNE)",
        ),
        Way(
            "cache",
            pipelines.cached,
            _FILES,
            advice="dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()"
            ".map(augment, num_parallel_calls=tf.data.AUTOTUNE)",
            decodes="nothing",
            keeps="decoded",
        ),
        Way(
            "frozen cache",
            pipelines.frozen,
            "cache",
            advice="dataset.map(augment).cache()",
            decodes="nothing",
            keeps="augmented",
            trap="each image is augmented once, and every epoch sees the same",
        ),
        Way(
            "tfrecord jpeg",
            pipelines.record_jpeg,
            _FILES,
            advice="tf.data.TFRecordDataset(file)  # of JPEG bytes",
            form="jpeg",
        ),
        Way(
            "tfrecord raw",
            pipelines.record_raw,
            _FILES,
            advice="tf.data.TFRecordDataset(file)  # of pixels, for tf.io.decode_raw",
            decodes="nothing",
            form="raw",
        ),
        Way(
            "tfrecord shards",
            pipelines.record_shards,
            "tfrecord jpeg",
            advice="files.interleave(tf.data.TFRecordDataset, cycle_length=8, "
            "num_parallel_calls=tf.data.AUTOTUNE)",
            form="shards",
        ),
        Way(
            "batch first",
            pipelines.batch_first,
            _FILES,
            advice="dataset.map(decode_and_cut).batch(batch).map(augment_batch)",
        ),
        Way(
            "augment in model",
            pipelines.cut_only,
            _FILES,
            advice='keras.Sequential([keras.layers.RandomFlip("horizontal"), '
            "keras.layers.RandomBrightness(0.1, value_range=(0, 1)), model])",
            in_model="layers",
        ),
        Way(
            "uint8",
            pipelines.as_bytes,
            _FILES,
            advice="tf.cast(images, tf.float32) / 255  # in the model, not in map",
            in_model="bytes",
        ),
        Way(
            "crop while decoding",
            pipelines.cropped,
            _FILES,
            advice="tf.io.decode_and_crop_jpeg(file, [top, left, side, side], "
            "channels=3)",
            decodes="square",
        ),
        Way(
            "fixed threads",
            pipelines.fixed,
            _FILES,
            advice="dataset.map(example, num_parallel_calls=os.cpu_count())"
            ".batch(batch).prefetch(2); options.autotune.enabled = False",
        ),
        Way(
            "out of order",
            pipelines.unordered,
            _FILES,
            advice="options.deterministic = False",
            ordered=False,
        ),
        Way(
            "everything",
            pipelines.together,
            _FILES,
            advice="tf.io.decode_and_crop_jpeg(...) with num_parallel_calls="
            "os.cpu_count(), uint8 batches, options.autotune.enabled = False",
            in_model="bytes",
            decodes="square",
        ),
        Way(
            "numpy",
            pipelines.with_numpy,
            _FILES,
            advice="tf.numpy_function(augment, [image], tf.float32)",
        ),
        Way(
            "numpy by element",
            pipelines.by_element,
            "numpy",
            advice="for row in range(height): ...",
        ),
    )
}

_CEILINGS = (SYNTHETIC, DECODE_LIMIT)
# What is asked together, by the question that it answers. The first takes a minute.
GROUPS = {
    "essential": (
        *(BASELINE, REWRITTEN, _FILES, "cache", "crop while decoding"),
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
        *(BASELINE, REWRITTEN, "random in map", "parallel map", _FILES),
        *("fixed threads", "out of order", "everything"),
        *_CEILINGS,
    ),
    "all": (*WAYS, *_CEILINGS),
}
