"""What feeds the model, and whether all ways give the same images."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import psutil

from perfkit import units
from perfkit.experiments.data_pipeline.reading import decode, schedule
from perfkit.experiments.shared import anatomy, decoding
from perfkit.measure.tick import READY, Note, Pause, Tick, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.data_pipeline.reading import Task
    from perfkit.experiments.data_pipeline.ways import Way
    from perfkit.measure.tick import Yielded

    Step = Callable[[Any, Any], object]
    Pair = tuple[NDArray[np.float32], NDArray[np.float32]]

# The two halves of what the end of an epoch costs.
DROPPED = "end of epoch: dropping the iterator"
RESTARTED = "end of epoch: first batch of the next"
# One epoch is ended early in a trial, so that its end falls on no tick that counts;
# late enough for AUTOTUNE to have made its first choices.
EPOCH_S = 0.3


def alone(way: Way, task: Task) -> Iterator[Yielded]:
    """Take one batch after another from the pipeline and do nothing with them."""
    pipeline = way.build(task)
    yield from _fill_cache(way, task, pipeline)
    yield READY
    yield from every(_steps(pipeline, task, lambda images, labels: None, timed=False))


def with_training(way: Way, task: Task) -> Iterator[Yielded]:
    """Train on the batches; what a step waits for its batch is the part ``input``."""
    pipeline = way.build(task)
    step = way.step(task)
    yield from _fill_cache(way, task, pipeline)
    yield READY
    yield from every(_steps(pipeline, task, step, timed=True))


def synthetic(task: Task) -> Iterator[Yielded]:
    """Train on one batch that is in memory already, over and over: the ceiling."""
    import tensorflow as tf

    images = tf.random.uniform([task.batch, task.side, task.side, 3])
    labels = tf.zeros([task.batch], tf.int64)
    step = decoding.step_of(decoding.small_cnn(task.side, len(task.images.classes)))
    yield READY

    def steps() -> Iterator[Tick]:
        while True:
            step(images, labels)
            yield Tick(task.batch, {"input": 0.0})

    yield from every(steps())


def _steps(
    pipeline: Iterable[Any], task: Task, step: Step, *, timed: bool
) -> Iterator[Tick | Pause | Note]:
    def one_step() -> Tick:
        began = time.perf_counter()
        images, labels = next(batches)
        waited = time.perf_counter() - began
        step(images, labels)
        return Tick(task.batch, {"input": waited} if timed else {})

    batches = iter(pipeline)
    first, where = _feeding_first_batch(batches)
    step(*first)
    yield Tick(task.batch, {"input": 0.0} if timed else {})
    began = time.perf_counter()
    while time.perf_counter() - began < EPOCH_S:
        yield one_step()
    # A note ends the tick that is open, so that what follows is not in it.
    yield Note("where", where)
    yield Note("plan", anatomy.plan(batches))
    yield Pause("reading the plan")
    del batches
    yield Pause(DROPPED)
    batches = iter(pipeline)
    one_step()
    yield Pause(RESTARTED)
    while True:
        yield one_step()


def _fill_cache(way: Way, task: Task, pipeline: Iterable[Any]) -> Iterator[Note]:
    """Let a cache fill before the first step, and tell how long that took."""
    if not way.keeps:
        return
    available = psutil.virtual_memory().available
    if task.images.decoded > available:
        raise MemoryError(
            f"all images decoded take {units.size(task.images.decoded)}, and "
            f"{units.size(available)} are free"
        )
    began = time.perf_counter()
    # One more image than there are: only then does the cache know that it is full.
    batches = iter(pipeline)
    for _ in range(len(task.images.paths) // task.batch + 1):
        next(batches)
    yield Note("filling the cache", round(time.perf_counter() - began, 3))


def _feeding_first_batch(batches: Iterator[Any]) -> tuple[Any, dict[str, Any]]:
    """Take a batch; tell where it lies and what making it took of the GPUs' memory."""
    import tensorflow as tf

    gpus = [gpu.name.partition("device:")[2] for gpu in _gpus()]
    for gpu in gpus:
        tf.config.experimental.reset_memory_stats(gpu)
    before = sum(_memory(gpu)["current"] for gpu in gpus)
    batch = next(batches)
    images = tf.nest.flatten(batch[0])[0]
    device = images.device if isinstance(images, tf.Tensor) else "CPU:0"
    return batch, {
        "batch": device.rpartition("device:")[2],
        "gpus": len(gpus),
        "gpu_bytes": sum(_memory(gpu)["peak"] for gpu in gpus) - before,
    }


def _gpus() -> list[Any]:
    import tensorflow as tf

    return list(tf.config.list_logical_devices("GPU"))


def _memory(gpu: str) -> dict[str, int]:
    import tensorflow as tf

    return dict(tf.config.experimental.get_memory_info(gpu))


# Decoding a part of a JPEG leaves the colours of its outermost pixels to guesses, since
# colours are stored at half the resolution; everything else is equal to rounding.
_MEAN = 0.5 / 255
_WORST = 0.25
# A way that gives images as they get done may give any of the first ones.
_AHEAD = 16


def expected(task: Task, count: int) -> NDArray[np.float32]:
    """The first ``count`` images as every way has to give them, computed in NumPy."""
    import numpy as np

    paths, _, drawn = schedule(task)
    first = itertools.islice(zip(paths, drawn, strict=True), count)
    return np.stack(
        [
            decoding.with_numpy(decode(path, None)[0].numpy(), numbers, task.side)
            for path, numbers in first
        ]
    )


def comparable(way: Way) -> bool:
    """Whether a way uses the random numbers it is given, so that it can be compared."""
    return way.in_model != "layers" and not way.own_random


def differences(ways: Iterable[Way], task: Task) -> dict[str, str]:
    """Say of each way whose first batch is not as expected how it differs, by name."""
    wanted = expected(task, task.batch + _AHEAD)
    given = {
        way.name: _difference(way, task, wanted) for way in ways if comparable(way)
    }
    return {name: difference for name, difference in given.items() if difference}


def _difference(way: Way, task: Task, wanted: NDArray[np.float32]) -> str:
    images = _agreement_first_batch(way, task)
    if images.shape[1:] != wanted.shape[1:]:
        return f"its images have shape {images.shape[1:]} instead of {wanted.shape[1:]}"
    if way.ordered:
        pairs = list(zip(images, wanted, strict=False))
    else:
        pairs = [(image, _nearest(image, wanted)) for image in images]
    mean, worst = (float(gap) for gap in _gap(pairs))
    if mean <= _MEAN and worst <= _WORST:
        return ""
    return f"its pixels differ by {mean:.3f} on average and {worst:.3f} at most, of 1"


def _agreement_first_batch(way: Way, task: Task) -> NDArray[np.float32]:
    import numpy as np

    images = next(iter(way.build(task)))[0]
    return np.asarray(
        decoding.from_bytes(images) if way.in_model == "bytes" else images
    )


def _nearest(
    image: NDArray[np.float32], wanted: NDArray[np.float32]
) -> NDArray[np.float32]:
    nearest: NDArray[np.float32] = min(
        wanted, key=lambda other: abs(image - other).mean()
    )
    return nearest


def _gap(pairs: list[Pair]) -> tuple[np.floating, np.floating]:
    import numpy as np

    gaps = np.abs([image - other for image, other in pairs])
    return gaps.mean(), gaps.max()
