"""Do several devices together learn what one learns from the whole batch?

Each number of devices is tried in a process of its own, as its trials are: a process
can have one strategy. Both make one step from the same weights, and on every device
the weights must have moved to the same place.
"""

import functools
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.experiments.scaling import work
from perfkit.experiments.scaling.work import Job

if TYPE_CHECKING:
    import keras

Moved = NDArray[np.float64]

Answer = TypeVar("Answer")


def call_or_none(function: Callable[[], Answer], longest_s: float) -> Answer | None:
    """Call a function in a process of its own, which is gone afterwards.

    This process must not have used TensorFlow where processes are forked.

    Args:
        function: Its answer is numbers and text.
        longest_s: Seconds after which the process counts as hung.

    Returns:
        Its answer; None where the process ended without one.

    Raises:
        TimeoutError: It hung.
    """
    context = multiprocessing.get_context()
    told, telling = context.Pipe(duplex=False)
    child = context.Process(target=_tell, args=(function, telling), daemon=True)
    child.start()
    telling.close()
    try:
        if not told.poll(longest_s):
            raise TimeoutError(f"no answer within {longest_s:.0f} s")
        answer: Answer = told.recv()
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()
    return answer


def _tell(function: Callable[[], Any], telling: Connection) -> None:
    telling.send(function())


# Two ways to add the same numbers were seen to differ by a ten-thousandth of the step
# on a processor; TF32, which GPUs use, keeps only ten bits. A gradient that is missing
# is a good part of the step.
TOLERANCE = 0.02
LEARNS_OTHERWISE = "does not learn what one device learns from the whole batch"
# Devices that cannot reach each other wait for each other without an end.
LONGEST_S = 90.0


def difference(job: Job, longest_s: float = LONGEST_S) -> str:
    """Say how a step on several devices differs from one on one; "" where it does not.

    Devices that take longer than ``longest_s`` count as hung.
    """
    try:
        found = call_or_none(functools.partial(apart, job), longest_s)
    except TimeoutError:
        return (
            f"gave no answer within {units.seconds(longest_s)}: GPUs that do not reach "
            "each other may work with NCCL_P2P_DISABLE=1, and new ones may need a "
            "second run, because TensorFlow compiles for them first"
        )
    # What cannot run at all says so in its trial, and only there for sure.
    if found is None or found[0] <= TOLERANCE:
        return ""
    share, normalises = found
    why = (
        ", because its BatchNormalization sees one device's share of a batch at a time"
    )
    return (
        f"{LEARNS_OTHERWISE}: after one step its weights are {units.percent(share)} of "
        f"the way from where they should be{why * normalises}"
    )


def apart(job: Job, *, summed: bool = True) -> tuple[float, bool]:
    """Make the step both ways, on devices that this process takes.

    Returns:
        How far the worst device is from the right place, as a share of the way there,
        and whether a layer of the model normalises over the batch.
    """
    import keras
    import tensorflow as tf

    places = work.taken(job.kind, job.count)
    strategy = work.mirrored(places)
    with strategy.scope():
        network = job.network()
    start = _weights(network)
    step = work.traced(work.step_of_all(job, network, strategy, summed=summed))
    step(*work.resident_on_each(job, strategy, places))
    with tf.device(places[0]):
        alone = job.network()
    work.plain(job, alone)(*work.resident(job, places[0]))
    wanted = _weights(alone) - start
    moved = [_weights(network, number) - start for number in range(job.count)]
    worst = max(float(np.linalg.norm(one - wanted)) for one in moved)
    normal = keras.layers.BatchNormalization
    normalises = any(isinstance(layer, normal) for layer in network.layers)
    return worst / float(np.linalg.norm(wanted)), normalises


def _weights(network: "keras.Model", device: int = 0) -> Moved:
    """All weights that learn, as they are on one of the devices."""
    on_each = (getattr(one, "values", (one,)) for one in work.variables(network))
    parts = [np.ravel(values[device].numpy()) for values in on_each]
    return np.concatenate(parts).astype(np.float64)
