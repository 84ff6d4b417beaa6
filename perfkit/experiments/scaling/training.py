"""One trial of a training on however many devices, from its first step on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from perfkit.experiments.scaling import devices, feeding, steps
from perfkit.experiments.shared.loops import wait
from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.experiments.scaling.job import Job
    from perfkit.measure.tick import Yielded


def alone(job: Job) -> Iterator[Yielded]:
    """Train on one device without a strategy, on a batch that stays there."""
    (place,) = devices.taken(job.kind, job.count)
    step, batch = _alone(job, place), feeding.resident(job, place)
    yield READY
    yield from _ticks(lambda: step(*batch), job.batch)


def alone_and_fed(job: Job, side: int) -> Iterator[Yielded]:
    """The same; each step's batch comes from a pipeline."""
    (place,) = devices.taken(job.kind, job.count)
    step, batches = _alone(job, place), iter(feeding.decoded(job, side))
    call = steps.traced(lambda: step(*next(batches)))
    yield READY
    yield from _ticks(call, job.batch)


def together(job: Job, *, summed: bool = True) -> Iterator[Yielded]:
    """Train on several devices, each on a batch that stays on it.

    Args:
        job: What is trained, and on how many.
        summed: Whether each learns from the gradients of all, or from its own alone.
    """
    places = devices.taken(job.kind, job.count)
    strategy = devices.mirrored(places)
    with strategy.scope():
        network = job.network()
    step = steps.traced(steps.together(job, network, strategy, summed=summed))
    batch = feeding.resident_on_each(job, strategy, places)
    yield READY
    yield from _ticks(lambda: step(*batch), job.batch)


def together_and_fed(job: Job, side: int) -> Iterator[Yielded]:
    """Train on several devices; one pipeline makes the batches of all."""
    strategy = devices.mirrored(devices.taken(job.kind, job.count))
    with strategy.scope():
        network = job.network()
    step = steps.together(job, network, strategy, summed=True)
    shared = strategy.experimental_distribute_dataset(feeding.decoded(job, side))
    batches = iter(shared)
    call = steps.traced(lambda: step(*next(batches)))
    yield READY
    yield from _ticks(call, job.batch)


def _alone(job: Job, place: str) -> Callable[..., None]:
    import tensorflow as tf

    with tf.device(place):
        network = job.network()
    return steps.traced(steps.plain(job, network))


def _ticks(step: Callable[[], Any], batch: int) -> Iterator[Yielded]:
    def done() -> Iterator[int]:
        for _ in itertools.count():
            step()
            yield batch

    return every(done(), sync=wait)
