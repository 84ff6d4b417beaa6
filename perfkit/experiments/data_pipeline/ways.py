"""The ways to feed images that are compared, by name, and what each stands against."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.experiments.data_pipeline import pipelines
from perfkit.experiments.shared import training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perfkit.experiments.data_pipeline.reading import Task

BASELINE = "naive map"
SYNTHETIC = "synthetic"
DECODE_LIMIT = "decode limit"
_FILES = "prefetch"
# What most ways end with, as a reader types it.
_PARALLEL = "map(example, num_parallel_calls=tf.data.AUTOTUNE)"
_END = ".batch(batch).prefetch(tf.data.AUTOTUNE)"
_CHAIN = f"dataset.{_PARALLEL}{_END}"
_AS_WRITTEN = "TensorFlow's own rewrites are switched off in it"


@dataclass(frozen=True)
class Way:
    """One way to feed images.

    Attributes:
        name: In charts, files and on the command line.
        build: Makes the pipeline, which never ends.
        against: The way that it changes one thing of.
        advice: The code that was measured, as a reader types it.
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
            "naive as written",
            pipelines.naive_as_written,
            advice="dataset.map(example).batch(batch).with_options(as_written)",
            excluded=_AS_WRITTEN,
        ),
        Way(
            "parallel as written",
            pipelines.parallel_as_written,
            "naive as written",
            advice=f"dataset.{_PARALLEL}.batch(batch).with_options(as_written)",
            excluded=_AS_WRITTEN,
        ),
        Way(
            "prefetch as written",
            pipelines.prefetch_as_written,
            "parallel as written",
            advice=f"{_CHAIN}.with_options(as_written)",
            excluded=_AS_WRITTEN,
        ),
        Way(
            "random in map",
            pipelines.stateful,
            advice="dataset.map(example).batch(batch)  # and in example: "
            "tf.random.uniform([4])",
            own_random=True,
        ),
        Way(
            "parallel map",
            pipelines.parallel,
            advice=f"dataset.{_PARALLEL}.batch(batch)",
        ),
        Way(
            _FILES,
            pipelines.prefetch,
            "parallel map",
            advice=_CHAIN,
        ),
        Way(
            "cache",
            pipelines.cached,
            _FILES,
            advice="dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()"
            f".map(augment, num_parallel_calls=tf.data.AUTOTUNE){_END}",
            decodes="nothing",
            keeps="decoded",
        ),
        Way(
            "frozen cache",
            pipelines.frozen,
            "cache",
            advice=f"dataset.{_PARALLEL}.cache(){_END}",
            decodes="nothing",
            keeps="augmented",
            excluded="each image is augmented once, and every epoch sees the same",
        ),
        Way(
            "tfrecord jpeg",
            pipelines.record_jpeg,
            _FILES,
            advice=f"tf.data.TFRecordDataset(file).{_PARALLEL}{_END}  # of JPEG bytes",
            form="jpeg",
        ),
        Way(
            "tfrecord raw",
            pipelines.record_raw,
            _FILES,
            advice=f"tf.data.TFRecordDataset(file).{_PARALLEL}{_END}  "
            "# of pixels, for tf.io.decode_raw",
            decodes="nothing",
            form="raw",
        ),
        Way(
            "tfrecord shards",
            pipelines.record_shards,
            "tfrecord jpeg",
            advice="files.interleave(tf.data.TFRecordDataset, cycle_length=8, "
            f"num_parallel_calls=tf.data.AUTOTUNE).{_PARALLEL}{_END}",
            form="shards",
        ),
        Way(
            "batch first",
            pipelines.batch_first,
            _FILES,
            advice="dataset.map(decode_and_cut, num_parallel_calls=tf.data.AUTOTUNE)"
            ".batch(batch).map(augment_batch, num_parallel_calls=tf.data.AUTOTUNE)"
            ".prefetch(tf.data.AUTOTUNE)",
        ),
        Way(
            "augment in model",
            pipelines.cut_only,
            _FILES,
            advice=f"{_CHAIN}  # and in the model: "
            'keras.Sequential([keras.layers.RandomFlip("horizontal"), '
            "keras.layers.RandomBrightness(0.1, value_range=(0, 1)), model])",
            in_model="layers",
        ),
        Way(
            "uint8",
            pipelines.as_bytes,
            _FILES,
            advice=f"{_CHAIN}  # and in the model, not in example: "
            "tf.cast(images, tf.float32) / 255",
            in_model="bytes",
        ),
        Way(
            "crop while decoding",
            pipelines.cropped,
            _FILES,
            advice=f"{_CHAIN}  # and in example: "
            "tf.io.decode_and_crop_jpeg(file, [top, left, side, side], channels=3)",
            decodes="square",
        ),
        Way(
            "fixed threads",
            pipelines.fixed,
            _FILES,
            advice="dataset.map(example, num_parallel_calls=os.cpu_count())"
            ".batch(batch).prefetch(2).with_options(options)  "
            "# options.autotune.enabled = False",
        ),
        Way(
            "out of order",
            pipelines.unordered,
            _FILES,
            advice=f"{_CHAIN}.with_options(options)  # options.deterministic = False",
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
            advice=f"{_CHAIN}  # and in example: "
            "tf.numpy_function(augment, [image], tf.float32)",
        ),
        Way(
            "numpy by element",
            pipelines.by_element,
            "numpy",
            advice=f"{_CHAIN}  # and in the function: for row in range(height): ...",
        ),
    )
}

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
