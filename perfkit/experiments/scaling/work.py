"""The trainings on several devices, fed or on batches that are there."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.errors import RunError
from perfkit.experiments.shared import benchmark
from perfkit.experiments.shared.benchmark import repeated, without_gpus
from perfkit.experiments.shared.benchmark_gpu import syncing
from perfkit.experiments.shared.code import code_of
from perfkit.experiments.shared.loops import wait
from perfkit.experiments.shared.models import MODELS
from perfkit.measure.tick import READY, Tick, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import keras
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.shared.models import Model
    from perfkit.measure.tick import Yielded

    Pair = tuple[Any, Any]
    Step = Callable[[Any, Any], None]

DeviceKind = Literal["GPU", "logical device"]
GPU: DeviceKind = "GPU"
LOGICAL: DeviceKind = "logical device"


def taken(kind: DeviceKind, count: int) -> tuple[str, ...]:
    """Make a fresh process use so many devices and nothing else.

    Returns:
        Their names as TensorFlow has them, such as ``("GPU:0", "GPU:1")``.

    Raises:
        RunError: TensorFlow can use fewer GPUs.
    """
    import tensorflow as tf

    if kind == GPU:
        found = tf.config.list_physical_devices("GPU")
        if len(found) < count:
            raise RunError(f"TensorFlow can use {len(found)} of {count} GPUs here.")
        tf.config.set_visible_devices(found[:count], "GPU")
        return tuple(f"GPU:{number}" for number in range(count))
    without_gpus()
    processor, *_ = tf.config.list_physical_devices("CPU")
    parts = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    tf.config.set_logical_device_configuration(processor, parts)
    return tuple(f"CPU:{number}" for number in range(count))


def usable() -> int:
    """How many GPUs TensorFlow can use in this process; starts none of them."""
    import tensorflow as tf

    return len(tf.config.list_physical_devices("GPU"))


def mirrored(places: tuple[str, ...]) -> tf.distribute.MirroredStrategy:
    """Give the strategy over these devices; a process can have one.

    A second one, over another number of devices, was seen to fail in its first sum.
    """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(list(places))
    return strategy


_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training on some devices that has not begun.

    Attributes:
        model: A name of ``perfkit.experiments.shared.models``.
        kind: Of the devices.
        count: How many devices there are.
        batch: Examples of a step, on all devices together.
    """

    model: str
    kind: DeviceKind
    count: int
    batch: int

    @property
    def share(self) -> int:
        """Examples of a step on one device."""
        return self.batch // self.count

    @property
    def what(self) -> Model:
        """The network and the examples it takes."""
        return MODELS[self.model]

    def network(self) -> keras.Model:
        """Make the network; its fresh weights are the same every time."""
        import keras

        keras.utils.set_random_seed(_SEED)
        return self.what.build()

    def examples(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The examples of one step, for all devices together."""
        return self.what.batch(self.batch, _SEED)


def weights(model: str) -> int:
    """How many numbers the gradient of a model has."""
    variables = MODELS[model].build().trainable_variables
    return sum(math.prod(variable.shape) for variable in variables)


def counts(most: int) -> tuple[int, ...]:
    """How many devices to try: 1, 2, 4, 8 and so on, and ``most``."""
    doubled = [1 << power for power in range(most.bit_length())]
    return tuple(sorted({*doubled, most}))


_FLOAT = 4
# Large enough that starting a copy does not show.
_BLOCK = 1 << 28


def traffic(weights: float, kind: DeviceKind, count: int) -> float:
    """Bytes that pass the link in a step, at least, to sum the gradients of a step.

    In a ring every device sends 2 (n - 1) / n times its gradient. GPUs do so at the
    same time, each over its own link. Logical devices all share one memory, where each
    byte that is sent is read and written.
    """
    of_each = 2 * (count - 1) / count * _FLOAT * weights
    return of_each if kind == GPU else 2 * count * of_each


def bytes_of_an_example(job: Job) -> float:
    """What a step sends over the link, for each of its examples; builds the model."""
    return traffic(weights(job.model), job.kind, job.count) / job.batch


def copying(job: Job) -> Iterator[Yielded]:
    """Copy from the first GPU to the second, or within memory."""
    places = taken(job.kind, 2)
    each = bytes_of_an_example(job)
    if job.kind == GPU:
        return counted(_between_gpus(*places), each)
    return counted(benchmark.copy(one_core=False), each)


def code_of_link(kind: DeviceKind) -> str:
    """The lines of that copying, as a reader types them."""
    return code_of(_between_gpus if kind == GPU else benchmark.copying_parts)


def counted(moved: Iterable[Yielded], each: float) -> Iterator[Yielded]:
    """Count examples, of ``each`` bytes, instead of the bytes that are moved."""
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


# Different pictures in memory; a training goes through them again and again.
_PICTURES = 64
_BRIGHTEST = 255.0


def resident(job: Job, place: str) -> Pair:
    """The batch of one device, which stays on it."""
    return _on(place, *job.examples())


def resident_on_each(
    job: Job, strategy: tf.distribute.Strategy, places: tuple[str, ...]
) -> Pair:
    """Each device's share of the batch, which stays on it."""
    features, labels = job.examples()
    parts = [
        _on(place, features[first : first + job.share], labels[first:][: job.share])
        for place, first in zip(places, range(0, job.batch, job.share), strict=True)
    ]

    def values(which: int) -> Any:
        return strategy.experimental_distribute_values_from_function(
            lambda context: parts[context.replica_id_in_sync_group][which]
        )

    return values(0), values(1)


def decoded(job: Job, side: int) -> tf.data.Dataset:
    """Batches for all devices together, without an end, each example from a JPEG."""
    import tensorflow as tf

    wanted = math.prod(job.what.shape)

    def example(picture: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pixels = tf.reshape(tf.io.decode_jpeg(picture, channels=3), [-1])[:wanted]
        numbers = tf.cast(pixels, tf.float32) / _BRIGHTEST
        return tf.reshape(numbers, job.what.shape), label

    graph = tf.autograph.experimental.do_not_convert(example)
    pictures, labels = _pictures(side), job.what.batch(_PICTURES)[1]
    return fed(pictures, labels, graph, job.batch)


def fed(pictures: Any, labels: Any, decode: Any, batch: int) -> Any:
    """Give batches of pictures that are decoded in parallel."""
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensor_slices((pictures, labels)).repeat()
    batches = batches.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    batches = batches.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    return batches


def code_of_training(*, with_strategy: bool, is_fed: bool, summed: bool) -> str:
    """The lines of a training, as a reader types them; see ``train``."""
    feeds = [fed] if is_fed else []
    if not with_strategy:
        return code_of(*feeds, plain, traced)
    on_each = with_all if summed else alone
    return code_of(*feeds, mirrored, on_each, shared_out, traced)


def _pictures(side: int) -> list[bytes]:
    """JPEGs of smooth noise, about as expensive to decode as photographs."""
    import io

    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    found = list[bytes]()
    for _ in range(_PICTURES):
        few = random.integers(256, size=(side // 8, side // 8, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(few).resize((side, side)).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found


def _on(place: str, features: Any, labels: Any) -> Pair:
    import tensorflow as tf

    with tf.device(place):
        return tf.identity(tf.constant(features)), tf.identity(tf.constant(labels))


LEARNING_RATE = 0.01


def plain(job: Job, network: keras.Model) -> Step:
    """Give the step of one device, without a strategy."""

    def step(features: tf.Tensor, labels: tf.Tensor) -> None:
        slopes = gradients(job, network, features, labels)
        for weight, slope in zip(variables(network), slopes, strict=True):
            _descend(weight, slope)

    return step


def step_of_all(
    job: Job, network: keras.Model, strategy: tf.distribute.Strategy, *, summed: bool
) -> Step:
    """Give the step of several devices; the network was made within their strategy.

    Unless gradients are ``summed``, each learns from its own alone.
    """
    return shared_out(strategy, (with_all if summed else alone)(job, network))


def with_all(job: Job, network: keras.Model) -> Step:
    """Give what a device does in a step that sums the gradients of all."""
    import tensorflow as tf

    def on_each(features: Any, labels: Any) -> None:
        slopes = gradients(job, network, features, labels)
        context = tf.distribute.get_replica_context()
        slopes = context.all_reduce(tf.distribute.ReduceOp.SUM, slopes)
        context.merge_call(_descend_on_each, args=(variables(network), slopes))

    return on_each


def alone(job: Job, network: keras.Model) -> Step:
    """Give what a device does in a step that learns from its own gradients."""
    import tensorflow as tf

    def on_each(features: Any, labels: Any) -> None:
        slopes = gradients(job, network, features, labels)
        context = tf.distribute.get_replica_context()
        context.merge_call(_descend_on_each, args=(variables(network), slopes))

    return on_each


def shared_out(strategy: Any, on_each: Any) -> Step:
    """Give the step that all devices do their part of."""

    def step(features: Any, labels: Any) -> None:
        strategy.run(on_each, args=(features, labels))

    return step


def traced(step: Callable[..., None]) -> Callable[..., None]:
    """Give the step as a graph; it does not wait for its devices."""
    import tensorflow as tf

    step = tf.function(step, autograph=False)
    return step


def gradients(
    job: Job, network: keras.Model, features: tf.Tensor, labels: tf.Tensor
) -> list[tf.Tensor]:
    """A device's part of the gradient of the mean loss over the whole batch."""
    import keras
    import tensorflow as tf

    loss_of = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="sum"
    )
    with tf.GradientTape() as tape:
        loss = loss_of(labels, network(features, training=True)) / job.batch
    slopes: list[tf.Tensor] = tape.gradient(loss, variables(network))
    return slopes


def variables(network: keras.Model) -> list[tf.Variable]:
    """TensorFlow's own variables of the weights that learn."""
    return [weight.value for weight in network.trainable_variables]


def _descend_on_each(
    strategy: tf.distribute.Strategy, weights: list[Any], slopes: list[Any]
) -> None:
    for weight, slope in zip(weights, slopes, strict=True):
        strategy.extended.update(weight, _descend, args=(slope,), group=False)


def _descend(weight: tf.Variable, slope: tf.Tensor) -> None:
    weight.assign_sub(LEARNING_RATE * slope)


def train(
    job: Job, *, with_strategy: bool, side: int = 0, summed: bool = True
) -> Iterator[Yielded]:
    """Train on batches that stay on their devices, or come from a pipeline.

    Args:
        job: What is trained, and on how many devices.
        with_strategy: Whether a strategy shares the work out; one device needs none.
        side: Of the pictures that are decoded for each example; 0 for batches at hand.
        summed: Whether each learns from the gradients of all, or from its own alone.
    """
    import tensorflow as tf

    places = taken(job.kind, job.count)
    if with_strategy:
        strategy = mirrored(places)
        with strategy.scope():
            network = job.network()
        step = step_of_all(job, network, strategy, summed=summed)
    else:
        with tf.device(places[0]):
            network = job.network()
        step = plain(job, network)
    if side:
        batches = decoded(job, side)
        if with_strategy:
            batches = strategy.experimental_distribute_dataset(batches)
        fed = iter(batches)
        call = traced(lambda: step(*next(fed)))
    else:
        batch = (
            resident_on_each(job, strategy, places)
            if with_strategy
            else resident(job, places[0])
        )
        call = functools.partial(traced(step), *batch)
    yield READY

    def steps() -> Iterator[int]:
        while True:
            call()
            yield job.batch

    yield from every(steps(), sync=wait)
