"""The trainings that are the same on every machine, and what a trial of one does.

Network, batch, data, seed and the way of feeding are fixed here. Nothing of them is
chosen by the machine: what differs between two machines is then the machine.

In full, the batches come from a pipeline and each step is a call. The resident training
trains on one batch that lies where the step computes instead. Between its ticks it
changes other things for a moment and goes back: several steps in one call, a batch of
one example, a batch that has to be copied to the GPU. Each is timed as a pause, so that
none of it is in the rate.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from perfkit.engine.tick import READY, Note, Pause, Yielded, every
from perfkit.errors import PerfkitError
from perfkit.questions.shared import benchmark, cache, images
from perfkit.questions.shared.benchmark import calls_of_a_tick
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.loops import step_of, wait
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    PRECISIONS,
    Hardware,
    expected,
)

Feed = Literal["memory", "JPEG", "disk"]
# Changing anything that shapes the jobs has to change this: only jobs of the same
# recipe are the same job.
RECIPE = 1
SEED = 0
# Photographs that are read again and again; microbenchmarks decode the same.
PHOTOGRAPHS = 32
# Calls of the map at a time, on every machine: at most as many run as there are cores.
CALLS = 32
# An image that is read from the disk as it is: its side in px, and the bytes of each,
# so that a file of theirs holds a whole number of images.
SIDE_ON_DISK, DEPTH_ON_DISK = 256, 4
BYTES_ON_DISK = SIDE_ON_DISK**2 * DEPTH_ON_DISK
_RESIDENT = ", resident"
# Steps on one example in a call, at most, and as a multiple of those on a batch: they
# have to end within a turn.
_MOST_AT_ONCE, _AT_ONCE = 64, 8


@dataclass(frozen=True)
class Reference:
    """One fixed training.

    Its name stands in passports. A call that makes several steps makes ``together``.
    """

    name: str
    model: str
    batch: int
    together: int
    feed: Feed = "memory"
    dtype: str = FLOAT32

    @property
    def variant(self) -> str:
        """The variant that trains it in full."""
        return self.name if self.dtype == FLOAT32 else f"{self.name}, {self.dtype}"

    @property
    def resident(self) -> str:
        """The variant that trains the same network on one batch that is there."""
        precision = "" if self.dtype == FLOAT32 else f", {self.dtype}"
        return f"{self.model}{precision}{_RESIDENT}"

    @property
    def many(self) -> int:
        """Steps on one example in a call that makes several of them."""
        return min(_MOST_AT_ONCE, _AT_ONCE * self.together)

    @property
    def description(self) -> str:
        """It in a line."""
        fed = {
            "memory": "arrays in memory",
            "JPEG": f"{PHOTOGRAPHS} JPEG files of {images.WIDTH} by {images.HEIGHT} px",
            "disk": f"images of {BYTES_ON_DISK:,} bytes in a file that memory forgot",
        }
        return f"{MODELS[self.model].description}, fed from {fed[self.feed]}"

    @property
    def job(self) -> dict[str, str | int]:
        """What has to be equal for two machines to have done the same."""
        quality = f", quality {images.QUALITY}" if self.feed == "JPEG" else ""
        return {
            "recipe": RECIPE,
            "model": self.model,
            "data": f"{self.description}{quality}",
            "feeding": f"{CALLS} calls at a time, 2 batches ahead",
            "optimizer": "Adam",
            "seed": SEED,
        }


_FLOAT32 = (
    Reference("tiny dense", "tiny-dense", 32, 64),
    Reference("small CNN from memory", "small-cnn", 32, 4),
    Reference("small CNN from JPEG", "small-cnn", 32, 4, feed="JPEG"),
    Reference("small CNN from disk", "small-cnn", 32, 4, feed="disk"),
    Reference("wide dense", "wide-dense", 128, 2),
)
_MIXED = tuple(
    Reference("wide dense", "wide-dense", 128, 2, dtype=dtype)
    for dtype in (BFLOAT16, FLOAT16)
)
REFERENCES = (*_FLOAT32, *_MIXED)
# One for each network and precision, however it is fed.
RESIDENTS = {job.resident: job for job in REFERENCES if job.feed == "memory"}


def not_eligible(reference: Reference, hardware: Hardware) -> str:
    """Why a precision is not tried on this machine, as a clause; "" where it is."""
    if reference.dtype == FLOAT32:
        return ""
    expectation = expected(PRECISIONS[reference.dtype], hardware)
    return expectation.because if expectation.expect == "slower" else ""


Step = Callable[[Any, Any], "tf.Tensor"]
Steps = Callable[[Any, Any, Any], "tf.Tensor"]

# What is swapped for a moment, by the label of its pauses.
TOGETHER = "several steps in a call"
ONE, ONE_TOGETHER = "one example", "one example, several steps in a call"
COPIED = "a batch copied to the GPU"
# Notes: the steps of one pause by its label, and what was trained.
STEPS, TRAINED = "steps", "trained"
# Examples that are fed from memory, in batches.
_BATCHES = 8
# Ticks of the training itself between two rounds of changes.
_TICKS = 2
_SIDE = 32
# Bytes that are asked of the disk at a time, and labels to learn.
_AT_A_TIME, _LABELS = 1 << 20, 10


def make() -> Generator[Note, None, str]:
    """Draw the photographs and write the file for the disk, on first use.

    Returns:
        Why the disk cannot be tried, as a clause; "" where it can.
    """
    folder = yield from images.image_folder(PHOTOGRAPHS)
    yield from images.look_at(folder, count=PHOTOGRAPHS, side=_SIDE)
    try:
        paths = yield from benchmark.make("")
    except PerfkitError as error:
        # The other trainings need no disk.
        return str(error).rstrip(".")
    # What memory keeps would show nothing of the disk.
    return "" if benchmark.forgets(paths) else "files stay in memory here"


def fed(reference: Reference) -> Iterator[Yielded]:
    """Train on batches from a pipeline, a call for each step."""
    step, _, trained = build(reference)
    batches = _ahead(_examples(reference), reference.batch)
    yield trained
    paths = benchmark.files("") if reference.feed == "disk" else ()
    benchmark.forget(paths)
    yield READY

    def steps() -> Iterator[int | Pause]:
        # All but the disk's feed have no end.
        while True:
            for examples, labels in batches:
                step(examples, labels)
                yield reference.batch
            yield benchmark.forget(paths)

    yield from every(steps(), sync=wait)


def resident(reference: Reference) -> Iterator[Yielded]:
    """Train on one batch that is in memory, and change other things in between."""
    step, several_steps, trained = build(reference)
    batch = placed(*MODELS[reference.model].batch(reference.batch, SEED))
    changes = {
        label: (call, calls_of_a_tick(call, wait), steps)
        for label, call, steps in _changes(reference, step, several_steps, batch)
    }
    count = calls_of_a_tick(lambda: step(*batch), wait)
    yield trained
    yield Note(STEPS, {n: calls * steps for n, (_, calls, steps) in changes.items()})
    # What a first call takes is known of the full training.
    yield READY
    while True:
        for _ in range(_TICKS):
            for _ in range(count):
                step(*batch)
            wait()
            yield count * reference.batch
        for label, (call, calls, _) in changes.items():
            for _ in range(calls):
                call()
            wait()
            yield Pause(label)


def build(reference: Reference) -> tuple[Step, Steps, Note]:
    """A step on a batch, several of them in one call, and the note on the training."""
    model = MODELS[reference.model]
    network, optimizer = PRECISIONS[reference.dtype].build(model, SEED)
    plain = step_of(network, optimizer)
    batch = (
        tf.TensorSpec([None, *model.shape], tf.float32),
        tf.TensorSpec([None], tf.int32),
    )
    specs = (tf.TensorSpec([], tf.int32), *batch)

    def steps(count: tf.Tensor, examples: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        def once(number: tf.Tensor) -> tf.Tensor:
            with tf.control_dependencies([plain(examples, labels)]):
                return number + 1

        # Side by side, steps would not wait for each other's weights.
        return tf.while_loop(
            lambda number: number < count, once, [0], parallel_iterations=1
        )[0]

    device = "GPU:0" if _gpus() else "CPU:0"
    trained = {"weights": int(network.count_params()), "device": device}
    return (
        tf.function(plain, input_signature=batch, autograph=False),
        tf.function(steps, input_signature=specs, autograph=False),
        Note(TRAINED, trained),
    )


def _changes(
    reference: Reference, step: Step, steps: Steps, batch: tuple[Any, Any]
) -> Iterator[tuple[str, Callable[[], object], int]]:
    """Each change: its label, what makes it, and the steps in that."""
    together, many = reference.together, reference.many
    example = tuple(part[:1] for part in batch)
    yield TOGETHER, lambda: steps(together, *batch), together
    yield ONE, lambda: step(*example), 1
    yield ONE_TOGETHER, lambda: steps(many, *example), many
    if _gpus():
        with tf.device("CPU:0"):
            there = tuple(tf.constant(part.numpy()) for part in batch)
        yield COPIED, lambda: step(*there), 1


def placed(examples: Any, answers: Any) -> "tuple[tf.Tensor, tf.Tensor]":
    """A batch where the step computes."""
    return tf.constant(examples), tf.constant(answers)


def _examples(reference: Reference) -> "tf.data.Dataset":
    """The examples of a training, one by one, as its feed brings them."""
    if reference.feed == "memory":
        arrays = MODELS[reference.model].batch(_BATCHES * reference.batch, SEED)
        return tf.data.Dataset.from_tensor_slices(arrays).repeat()
    as_it_is = tf.autograph.experimental.do_not_convert
    if reference.feed == "disk":
        sizes = {"record_bytes": BYTES_ON_DISK, "buffer_size": _AT_A_TIME}
        records = tf.data.FixedLengthRecordDataset(list(benchmark.files("")), **sizes)
        return records.map(as_it_is(_image_of))
    folder = cache.folder() / images.folder_name(PHOTOGRAPHS)
    photos = images.recall(folder, count=PHOTOGRAPHS, side=_SIDE)
    pairs = list(photos.paths), list(photos.labels)
    files = tf.data.Dataset.from_tensor_slices(pairs).repeat()
    return files.map(as_it_is(_decode), num_parallel_calls=CALLS)


def _decode(path: Any, label: Any) -> Any:
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    small = tf.image.resize(image, [_SIDE, _SIDE]) / 255.0
    return tf.ensure_shape(small, [_SIDE, _SIDE, 3]), tf.cast(label, tf.int32)


def _image_of(record: Any) -> Any:
    """An image as it is, and its label; every eighth pixel is enough to train."""
    each = SIDE_ON_DISK // _SIDE
    shape = [SIDE_ON_DISK, SIDE_ON_DISK, DEPTH_ON_DISK]
    pixels = tf.reshape(tf.io.decode_raw(record, tf.uint8), shape)
    image = pixels[::each, ::each, :3]
    label = tf.cast(image[0, 0, 0], tf.int32) % _LABELS
    return tf.cast(image, tf.float32) / 255.0, label


def _ahead(examples: Any, batch: int) -> Any:
    """Two batches ahead, and nothing tuned to the machine."""
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = examples.batch(batch, drop_remainder=True)
    return batches.prefetch(2).with_options(options)


def _gpus() -> bool:
    return bool(tf.config.list_logical_devices("GPU"))
