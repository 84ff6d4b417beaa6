"""How fast do gradients go from device to device? A copy between two, and no more.

It counts examples, so that it stands beside the trainings: as many as a step has, each
time the bytes that its gradients are worth have been copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.scaling import devices
from perfkit.experiments.scaling.devices import GPU
from perfkit.experiments.scaling.job import weights
from perfkit.experiments.shared import probe_memory as memory
from perfkit.experiments.shared.probe import repeated
from perfkit.experiments.shared.probe_gpu import syncing
from perfkit.measure.tick import Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.experiments.scaling.devices import Kind
    from perfkit.experiments.scaling.job import Job
    from perfkit.measure.tick import Yielded

_FLOAT = 4
# Large enough that starting a copy does not show.
_BLOCK = 1 << 28


def traffic(weights: float, kind: Kind, count: int) -> float:
    """Bytes that pass the link in a step, at least, to sum the gradients of a step.

    In a ring every device sends 2 (n - 1) / n times its gradient. GPUs do so at the
    same time, each over its own link. Logical devices all share one memory, where each
    byte that is sent is read and written.

    Args:
        weights: Numbers of a gradient.
        kind: Of the devices.
        count: How many devices.
    """
    of_each = 2 * (count - 1) / count * _FLOAT * weights
    return of_each if kind == GPU else 2 * count * of_each


def bytes_of_an_example(job: Job) -> float:
    """What a step sends over the link, for each of its examples; builds the model."""
    return traffic(weights(job.model), job.kind, job.count) / job.batch


def copying(job: Job) -> Iterator[Yielded]:
    """Copy from the first GPU to the second, or within memory."""
    places = devices.taken(job.kind, 2)
    each = bytes_of_an_example(job)
    if job.kind == GPU:
        return counted(_between_gpus(*places), each)
    return counted(memory.copy(one_core=False), each)


def counted(moved: Iterable[Yielded], each: float) -> Iterator[Yielded]:
    """Count examples instead of bytes.

    Args:
        moved: Yields bytes.
        each: Bytes of an example.
    """
    whole, examples = 0.0, 0
    for item in moved:
        if not isinstance(item, int):
            yield item
            continue
        whole += item / each
        # Examples are counted whole; what is left over counts next time.
        yield Tick(int(whole) - examples)
        examples = int(whole)


def _between_gpus(first: str, second: str) -> Iterator[Yielded]:
    import tensorflow as tf

    with tf.device(first):
        block = tf.Variable(tf.zeros([_BLOCK // _FLOAT]))

    # In a graph nothing is kept from one call to the next, so each call copies.
    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def copy() -> tf.Tensor:
        with tf.device(first):
            read = block.read_value()
        with tf.device(second):
            return tf.identity(read)

    yield from repeated(copy, _BLOCK, syncing())
