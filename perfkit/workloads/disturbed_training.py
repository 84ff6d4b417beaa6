"""The training that is disturbed: the same in every arm, and what it is fed from."""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.measure.tick import READY, Note, Pause, Tick, every
from perfkit.workloads import cache, loads
from perfkit.workloads.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    import tensorflow as tf

    from perfkit.measure.tick import Yielded
    from perfkit.workloads.loads import Load

MODEL = "small-cnn"
# A slow pipeline needs so many times what a step takes to make the next batch.
SLOWER = 2.0
FORGETTING = "making the system forget the file"
_BATCHES = 8
# Pictures of this side lie on the disk; every seventh pixel is trained on.
_SIDE, _STRIDE = 224, 7
_RECORD = _SIDE * _SIDE * 3
_RECORDS = 900
_FOLDER, _FILE = f"to-train-on-{_RECORDS}", "pictures.bin"
# Steps that tell how long one takes.
_SEEN = 5


@dataclass(frozen=True)
class Job:
    """One training.

    Attributes:
        batch: Examples in a batch.
        fed: Where its batches come from: ``"memory"`` or ``"disk"``.
        load: What works beside it; None for nothing.
        processes: Of a load that runs in several; 0 for one per core.
        slow: Whether its pipeline is slow.
    """

    batch: int
    fed: str
    load: Load | None = None
    processes: int = 0
    slow: bool = False


@dataclass(frozen=True)
class Pace:
    """How long a step takes by itself, told by the training and heard by a pipeline.

    Attributes:
        seen: Seconds of the last few steps; the median passes over the one that traces.
    """

    seen: deque[float] = field(default_factory=lambda: deque(maxlen=_SEEN))

    def delay(self) -> float:
        """Seconds that making a batch has to take; none before the pace is known."""
        enough = len(self.seen) == _SEEN
        return SLOWER * statistics.median(self.seen) if enough else 0.0


def train(job: Job) -> Iterator[Yielded]:
    """Train without an end; what a step waits for its batch is the part ``input``.

    Raises:
        RunError: The load ended before the training did.
    """
    if job.load is None:
        yield from _trained(job, lambda: None)
        return
    with loads.at_work(job.load, job.processes) as working:
        yield from _trained(job, working.check)


def made() -> Generator[Note, None, Path]:
    """Write the file that a training is fed from, once.

    Raises:
        MissingPartError: There is no room for it.
    """
    size = _RECORD * _RECORDS
    return (yield from cache.made(_FOLDER, _write, size=size, what="pictures to read"))


def _trained(job: Job, check: Callable[[], None]) -> Iterator[Yielded]:
    from perfkit.workloads.training import step_of

    pace = Pace()
    batches = _fed(job)
    if job.slow:
        batches = batches.map(_delayed(pace))
    batches = batches.prefetch(2)
    step = step_of(MODELS[MODEL].build())
    yield READY
    # Every step is a tick of its own, so that the slowest of them can be seen.
    yield from every(_steps(job, batches, step, pace), seconds=0.0, sync=check)


def _steps(
    job: Job, batches: tf.data.Dataset, step: Callable[[Any, Any], float], pace: Pace
) -> Iterator[Tick | Pause]:
    made = iter(batches)
    while True:
        for _ in range(_RECORDS // job.batch or 1):
            began = time.perf_counter()
            images, labels = next(made)
            ready = time.perf_counter()
            step(images, labels)
            pace.seen.append(time.perf_counter() - ready)
            yield Tick(job.batch, {"input": ready - began})
        if job.fed == "disk":
            _forget(cache.folder() / _FOLDER / _FILE)
            yield Pause(FORGETTING)


def _fed(job: Job) -> tf.data.Dataset:
    """Batches without an end: from memory, or read and cut out of a file."""
    import tensorflow as tf

    if job.fed == "disk":
        path = str(cache.folder() / _FOLDER / _FILE)
        read = tf.data.FixedLengthRecordDataset(path, _RECORD).repeat()
        return read.map(_decoded, num_parallel_calls=2).batch(job.batch)
    examples, labels = MODELS[MODEL].batch(_BATCHES * job.batch)
    whole = tf.data.Dataset.from_tensor_slices((examples, labels))
    return whole.batch(job.batch).cache().repeat()


def _decoded(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    import tensorflow as tf

    pixels = tf.io.decode_raw(record, tf.uint8)
    picture = tf.reshape(pixels, [_SIDE, _SIDE, 3])[::_STRIDE, ::_STRIDE]
    return tf.cast(picture, tf.float32) / 255, tf.cast(pixels[0] % 10, tf.int32)


def _delayed(pace: Pace) -> Callable[[Any, Any], Any]:
    """A stage of a pipeline that takes its time and leaves the batch as it is."""
    import tensorflow as tf

    def sleep(labels: Any) -> Any:
        time.sleep(pace.delay())
        return labels

    def stage(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        late = tf.numpy_function(sleep, [labels], tf.int32)
        return images, tf.ensure_shape(late, labels.shape)

    return stage


def _forget(path: Path) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _write(folder: Path) -> Iterator[Note]:
    yield Note("progress", f"Writing {units.size(_RECORD * _RECORDS)} of pictures")
    with open(folder / _FILE, "wb") as file:
        for _ in range(_RECORDS):
            file.write(os.urandom(_RECORD))
        file.flush()
        os.fsync(file.fileno())
