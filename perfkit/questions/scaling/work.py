"""The trainings on one device and on several, and whether they learn the same.

A process can have one strategy: a second one, over another number of devices, was seen
to fail in its first sum. So each training and each check has a process of its own.
"""

import functools
import itertools
import math
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from perfkit import units
from perfkit.engine.tick import READY, Yielded, every
from perfkit.errors import RunError
from perfkit.questions.shared import loops
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import keras, tf
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.putting_together import smooth_jpeg

DeviceKind = Literal["GPU", "logical device"]
GPU: DeviceKind = "GPU"
LOGICAL: DeviceKind = "logical device"
# How a training differs from the plain one on so many devices, which has "".
STRATEGY, OWN, FED = "strategy", "own gradients", "fed"
# Different pictures in memory; a training goes through them again and again.
_PICTURES = 64


def name_of(kind: DeviceKind, count: int, mode: str = "") -> str:
    """The name of a variant, such as ``"4 GPUs, fed"``."""
    devices = units.count(count, kind)
    return f"{devices}, {mode}" if mode else devices


@dataclass(frozen=True, kw_only=True)
class Job(loops.Job):
    """A training on ``count`` devices of a kind; ``batch`` is that of all together."""

    kind: DeviceKind
    count: int


def claim_devices(job: Job) -> tuple[str, ...]:
    """Make a fresh process use a job's devices alone, named as ``("GPU:0", "GPU:1")``.

    Raises:
        RunError: TensorFlow can use fewer GPUs.
    """
    if job.kind == GPU:
        gpus = tf.config.list_physical_devices("GPU")
        if len(gpus) < job.count:
            raise RunError(
                f"TensorFlow can use {len(gpus)} of {job.count} GPUs here; give fewer "
                "devices, or `on=logical`. If there are more, `perfkit doctor` says "
                "why."
            )
        tf.config.set_visible_devices(gpus[: job.count], "GPU")
    else:
        without_gpus()
        processor, *_ = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(job.count)]
        tf.config.set_logical_device_configuration(processor, parts)
    device = "GPU" if job.kind == GPU else "CPU"
    return tuple(f"{device}:{number}" for number in range(job.count))


def train(job: Job, mode: str, side: int) -> Iterator[Yielded]:
    """Train on a batch that stays on its devices, or ``FED`` JPEGs of ``side`` px."""
    places, is_mirrored = claim_devices(job), job.count > 1 or mode == STRATEGY
    strategy = mirrored(places) if is_mirrored else tf.distribute.get_strategy()
    with strategy.scope():
        network = job.network()
    step = plain(network)
    if is_mirrored:
        step = shared_out(network, strategy, summed=mode != OWN)
    if mode == FED:
        iterator = iter(strategy.experimental_distribute_dataset(decoded(job, side)))
        call = loops.compiled(lambda: step(*next(iterator)), autograph=False)
    else:
        batch = batch_at_hand(job, strategy)
        call = functools.partial(loops.compiled(step, autograph=False), *batch)
    yield READY
    # A call gives back nothing; its examples are done once the device is waited for.
    steps = (call() or job.batch for _ in itertools.count())
    yield from every(steps, sync=loops.wait)


def code_of_training(job: Job, mode: str) -> str:
    """The lines of a training, as a reader types them; see ``train``."""
    step: list[Callable[..., Any]] = [plain]
    if job.count > 1 or mode == STRATEGY:
        step = [mirrored, functools.partial(shared_out, summed=mode != OWN)]
    graph = functools.partial(loops.compiled, autograph=False)
    return code_of(*([fed] if mode == FED else []), *step, graph)


def mirrored(places: tuple[str, ...]) -> Any:
    """Give the strategy over these devices."""
    strategy = tf.distribute.MirroredStrategy(list(places))
    return strategy


def plain(network: Any) -> Callable[..., None]:
    """Give the step of one device, without a strategy."""

    def step(features: Any, labels: Any) -> None:
        slopes = gradients(network, features, labels)
        for weight, slope in zip(variables(network), slopes, strict=True):
            descend(weight, slope)

    return step


def shared_out(network: Any, strategy: Any, *, summed: bool) -> Callable[..., None]:
    """Give the step of all devices, which learn from all gradients or their own."""

    def learn(_: Any, slopes: list[Any]) -> None:
        for weight, slope in zip(variables(network), slopes, strict=True):
            strategy.extended.update(weight, descend, args=(slope,), group=False)

    def on_each(*part: Any) -> None:
        slopes, device = gradients(network, *part), tf.distribute.get_replica_context()
        if summed:
            slopes = device.all_reduce(tf.distribute.ReduceOp.SUM, slopes)
        device.merge_call(learn, args=(slopes,))

    return lambda *batch: strategy.run(on_each, args=batch)


def gradients(network: Any, features: Any, labels: Any) -> Any:
    """A device's part of the gradient of the mean loss over the whole batch."""
    # A mean of Keras's is divided by the devices already, in some of its versions.
    loss_of = keras.losses.SparseCategoricalCrossentropy(True, reduction="sum")
    batch = labels.shape[0] * tf.distribute.get_strategy().num_replicas_in_sync
    with tf.GradientTape() as tape:
        loss = loss_of(labels, network(features, training=True)) / batch
    return tape.gradient(loss, variables(network))


def variables(network: Any) -> list[Any]:
    """TensorFlow's own variables of the weights that learn."""
    return [weight.value for weight in network.trainable_variables]


def descend(weight: Any, slope: Any) -> None:
    """Change a weight by gradient descent."""
    weight.assign_sub(loops.LEARNING_RATE * slope)


def batch_at_hand(job: Job, strategy: Any) -> Any:
    """Features and labels of a step; each device of the strategy holds its share."""
    count = strategy.num_replicas_in_sync
    parts = [np.split(array, count) for array in job.examples(job.batch)]

    def share() -> tuple[Any, ...]:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tuple(tf.identity(part[number]) for part in parts)

    return strategy.run(share)


def decoded(job: Job, side: int) -> Any:
    """Batches for all devices together, without an end, each example from a JPEG."""
    shape = MODELS[job.model].shape

    def decode(picture: Any, label: Any) -> tuple[Any, Any]:
        pixels = tf.reshape(tf.io.decode_jpeg(picture, channels=3), [-1])
        numbers = tf.cast(pixels[: math.prod(shape)], tf.float32) / 255.0
        return tf.reshape(numbers, shape), label

    pictures = [smooth_jpeg(seed, side) for seed in range(_PICTURES)]
    return fed(pictures, job.examples(_PICTURES)[1], decode, job.batch)


def fed(pictures: Any, labels: Any, decode: Any, batch: int) -> Any:
    """Give batches of pictures that are decoded in parallel."""
    batches = tf.data.Dataset.from_tensor_slices((pictures, labels)).repeat()
    batches = batches.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


# Sums in another order differ by a ten-thousandth of a step, and TF32 keeps ten bits;
# a gradient that is missing is a good part of the step.
TOLERANCE = 0.02
# Devices that cannot reach each other wait for each other without an end.
LONGEST_S = 90.0
_SILENT = (
    f"gave no answer within {LONGEST_S:.0f} s: GPUs that do not reach each other may "
    "work with NCCL_P2P_DISABLE=1, and new ones may need a second run, because "
    "TensorFlow compiles for them first"
)
_APART = (
    "does not learn what one device learns from the whole batch: after one step its "
    "weights are {} of the way off. BatchNormalization sees one device's share of a "
    "batch: choose a model without it, such as `wide-dense`"
)


def why_not_equal(job: Job) -> str:
    """Say how a step on several devices differs from one on one; "" if it does not.

    This process must not have used TensorFlow, because it may be forked.

    Raises:
        RunError: TensorFlow can use fewer GPUs.
    """
    with multiprocessing.get_context().Pool(1) as pool:
        try:
            share = pool.apply_async(deviation, (job,)).get(LONGEST_S)
        except multiprocessing.TimeoutError:
            return _SILENT
        except RunError:
            raise
        except Exception:
            # Devices that cannot make a step at all say why in their trials.
            return ""
    return _APART.format(units.percent(share)) if share > TOLERANCE else ""


def deviation(job: Job, *, summed: bool = True) -> float:
    """How far a step on several devices ends from that of one with the whole batch.

    It is the worst device's way off, as a share of the way of the one.
    """
    strategy = mirrored(claim_devices(job))
    with strategy.scope():
        network = job.network()
    start = _weights(network)
    step = shared_out(network, strategy, summed=summed)
    loops.compiled(step, autograph=False)(*batch_at_hand(job, strategy))
    single = job.network()
    plain(single)(*batch_at_hand(job, tf.distribute.get_strategy()))
    end = _weights(single)
    ends = (_weights(network, number) for number in range(job.count))
    worst = max(float(np.linalg.norm(weights - end)) for weights in ends)
    return worst / float(np.linalg.norm(end - start))


def _weights(network: Any, device: int = 0) -> Any:
    """All weights that learn, as they are on one of the devices."""
    mirrors = (getattr(weight, "values", (weight,)) for weight in variables(network))
    return np.concatenate([np.ravel(values[device].numpy()) for values in mirrors])
