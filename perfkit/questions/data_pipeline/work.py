"""What pipelines are made of and feed."""

import functools
import inspect
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import OWN
from perfkit.engine.trial import READY, Note, Tick, Yielded, every
from perfkit.machine.limits import free_bytes
from perfkit.questions.shared import benchmark, decoding, tf
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.images import Images, parse_record, record_file

Step = Callable[[Any, Any], object]
Function = Callable[..., Any]

# The random numbers repeat after so many images or more.
_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class Task:
    """What every pipeline has to deliver: squares of ``side`` pixels, in batches.

    The seed decides the order of the images and their augmentation.
    """

    images: Images
    side: int
    batch: int
    seed: int = 0


def schedule(
    task: Task,
) -> tuple[NDArray[np.bytes_], NDArray[np.int64], NDArray[np.float32]]:
    """Path, label and random numbers of each image, in a new order each time round.

    The first time they come in the order of the list, so that all variants can
    be compared.
    """
    draws, count = table(task), len(task.images.paths)
    rng = np.random.default_rng(task.seed)
    again = [rng.permutation(count) for _ in range(len(draws) // count - 1)]
    order = np.concatenate([np.arange(count), *again])
    paths, labels = columns(task.images)
    return paths[order], labels[order], draws


def table(task: Task) -> NDArray[np.float32]:
    """The schedule's random numbers alone."""
    count = len(task.images.paths)
    return decoding.draws(count * max(1, -(-_ROWS // count)), task.seed)


def columns(images: Images) -> tuple[NDArray[np.bytes_], NDArray[np.int64]]:
    """Path and label of each image."""
    paths = np.array([os.fsencode(path) for path in images.paths])
    return paths, np.array(images.labels, np.int64)


@dataclass(frozen=True)
class Again:
    """What a generator function yields, anew each time it is asked for."""

    start: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        """Begin anew."""
        return self.start()


def decode_of() -> Function:
    """Make what reads and decodes; PNG as well, whatever the operation's name says."""

    def decode(path: Any, label: Any) -> Any:
        return tf.io.decode_jpeg(tf.io.read_file(path), channels=3), label

    return decode


def example_of(augment: Function) -> Function:
    """Make what reads, decodes and augments."""

    def example(path: Any, label: Any, drawn: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return augment(image, drawn), label

    return example


def square_of(side: int) -> Function:
    """Make what reads of a file only the square that is cut out."""
    crop = graph(functools.partial(decoding.cut, side=side))
    window = graph(functools.partial(decoding.window, side=side))

    def square_of(file: Any, drawn: Any) -> Any:
        if tf.io.is_jpeg(file):
            place = window(tf.io.extract_jpeg_shape(file), drawn)
            square = tf.io.decode_and_crop_jpeg(file, place, channels=3)
        else:
            square = crop(tf.io.decode_jpeg(file, channels=3), drawn)
        return tf.ensure_shape(square, [side, side, 3])

    return square_of


def graph(function: Function) -> Function:
    """Spare a function without Python loops the rewriting that AutoGraph does."""
    wrapped: Function = tf.autograph.experimental.do_not_convert(function)
    return wrapped


def dataset_of(columns: Any) -> Any:
    """A dataset of the rows of these columns."""
    return tf.data.Dataset.from_tensor_slices(columns)


# What pipelines are made of, by the names that their functions take: each is made for a
# task, and of the TFRecord form that is read.
PARTS: dict[str, Callable[[Task, str], Any]] = {
    "batch": lambda task, _: task.batch,
    "side": lambda task, _: task.side,
    "count": lambda task, _: len(task.images.paths),
    # As many as this process may use.
    "cores": lambda *_: benchmark.granted(),
    # Path, label and random numbers of each image, without an end.
    "files": lambda task, _: dataset_of(schedule(task)).repeat(),
    # Path and label of each image, once.
    "images": lambda task, _: dataset_of(columns(task.images)),
    # The random numbers alone, without an end.
    "draws": lambda task, _: dataset_of(table(task)).repeat(),
    # What ``files`` holds, for a loop in Python.
    "rows": lambda task, _: Again(
        functools.partial(itertools.cycle, [*zip(*schedule(task), strict=True)])
    ),
    "record_file": lambda task, form: record_file(task.images, form),
    "parse": lambda *_: parse_record,
    "crop": lambda task, _: graph(_sized(decoding.cut, task)),
    "square_of": lambda task, _: square_of(task.side),
    "mirror": lambda *_: graph(decoding.mirror),
    "brightness": lambda *_: graph(decoding.brightness),
    # Cuts, mirrors, scales and brightens a decoded image: in TensorFlow, in NumPy on
    # whole arrays, and in NumPy one number after another.
    "augment": lambda task, _: graph(_sized(decoding.augment, task)),
    "augment_array": lambda task, _: _sized(decoding.with_numpy, task),
    "augment_pixels": lambda task, _: _sized(decoding.by_element, task),
    "decode": lambda *_: graph(decode_of()),
    "example": lambda task, _: graph(example_of(PARTS["augment"](task, ""))),
}


def _sized(function: Function, task: Task) -> Function:
    return functools.partial(function, side=task.side)


def takes(function: Function) -> tuple[str, ...]:
    """The names of the arguments that a function has to be given."""
    arguments = inspect.signature(function).parameters.values()
    return tuple(arg.name for arg in arguments if arg.default is arg.empty)


BASELINE = "naive map"
# Parts that a reader is shown where a pipeline takes them.
_SHOWN: dict[str, Function] = {"decode": decode_of, "square_of": square_of}


@dataclass(frozen=True)
class Method:
    """How a variant feeds images: by a function of parts, which is measured and shown.

    Attributes:
        do: What choosing it means, as a sentence.
        function: Makes the pipeline of the parts that its arguments are named after.
        example: Makes of parts what is done with one image, in place of ``example``;
            None where that is as usual.
        in_model: Whether the model mirrors and brightens the images, as layers.
        form: The TFRecord form it reads; "" for the files themselves.
        keeps: Whether it keeps every image in memory.
        excluded: Why it is never advised, however fast it is; "" where it may be.
        own_random: Whether it draws its own random numbers, and no image is as others'.
    """

    name: str
    do: str
    function: Function
    against: str = BASELINE
    example: Function | None = None
    in_model: bool = False
    form: str = ""
    keeps: bool = False
    excluded: str = ""
    own_random: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts that it is made of."""
        return (*takes(self.function), *(takes(self.example) if self.example else ()))

    def build(self, task: Task) -> Any:
        """Make the pipeline, which never ends, of the parts that its function takes."""
        parts = {name: PARTS[name](task, self.form) for name in self.parts}
        if self.example:
            taken = {name: parts[name] for name in takes(self.example)}
            parts["example"] = self.example(**taken)
        pipeline = self.function(**{name: parts[name] for name in takes(self.function)})
        return Again(pipeline) if inspect.isgeneratorfunction(pipeline) else pipeline

    @functools.cached_property
    def advice(self) -> str:
        """The lines that make the pipeline, as a reader types them."""
        shown = [part for name, part in _SHOWN.items() if name in self.parts]
        if self.example:
            shown.append(self.example)
        in_model = [decoding.augmenting] if self.in_model else []
        return code_of(*shown, self.function, *in_model)

    @functools.cached_property
    def code(self) -> str:
        """The same with the function that reads, decodes and augments an image."""
        # A reader who is advised something has it already.
        usual = "example" in self.parts and not self.example
        example = code_of(example_of) if usual else ""
        return "\n".join(filter(None, (example, self.advice)))

    def step(self, task: Task) -> Callable[[Any, Any], float]:
        """Make the training step that it feeds."""
        model = decoding.small_cnn(task.side, len(task.images.classes))
        return decoding.step_of(decoding.augmenting(model) if self.in_model else model)


def feed(method: Method, task: Task, *, training: bool) -> Iterator[Yielded]:
    """Train on the batches of a pipeline, or take them and do nothing with them.

    What a step of a training waits for its batch is the part ``input``.
    """
    pipeline = method.build(task)
    step = method.step(task) if training else lambda images, labels: None
    _fill_cache(method, task, pipeline)
    yield READY
    yield from every(_steps(pipeline, task, step, is_timed=training))


def synthetic(task: Task) -> Iterator[Yielded]:
    """Train on one batch that is in memory already, over and over: the ceiling."""
    step = decoding.step_of(decoding.small_cnn(task.side, len(task.images.classes)))
    yield READY
    yield from every(one_batch(step, task.batch, task.side))


def one_batch(step: Step, batch: int, side: int) -> Iterator[Tick]:
    """Make one batch, and a step on it over and over."""
    images = tf.random.uniform([batch, side, side, 3])
    labels = tf.zeros([batch], tf.int64)
    while True:
        step(images, labels)
        yield Tick(batch, {"input": 0.0})


def _steps(
    pipeline: Iterable[Any], task: Task, step: Step, *, is_timed: bool
) -> Iterator[Tick | Note]:
    batches = iter(pipeline)
    images, labels = next(batches)
    device = images.device if isinstance(images, tf.Tensor) else "CPU:0"
    place = device.rpartition("device:")[2]
    where = {"batch": place, "gpus": len(tf.config.list_logical_devices("GPU"))}
    step(images, labels)
    yield Tick(task.batch, {"input": 0.0} if is_timed else {})
    yield Note("where", where)
    while True:
        began = time.perf_counter()
        images, labels = next(batches)
        waited = time.perf_counter() - began
        step(images, labels)
        yield Tick(task.batch, {"input": waited} if is_timed else {})


def _fill_cache(method: Method, task: Task, pipeline: Iterable[Any]) -> None:
    """Let a cache fill before the first step."""
    # A pipeline of one's own may keep images without saying so.
    if not method.keeps and method.name != OWN:
        return
    available = free_bytes()
    if method.keeps and task.images.decoded > available:
        raise MemoryError(
            f"all images decoded take {units.size(task.images.decoded)}, and "
            f"{units.size(available)} are free"
        )
    # One more image than there are: only then does the cache know that it is full.
    batches = iter(pipeline)
    for _ in range(len(task.images.paths) // task.batch + 1):
        next(batches)
