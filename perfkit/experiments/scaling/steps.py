"""A training step on one device, and the same step on several.

The step is plain gradient descent, written out, so that what sums the gradients is one
line that can be left out. Without it each device learns from its own examples alone:
that is another training, and its step costs the same but for the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import keras
    import tensorflow as tf

    from perfkit.experiments.scaling.job import Job

    Pair = tuple[Any, Any]
    # Of examples and labels, or of their parts on each device.
    Step = Callable[[Any, Any], None]

LEARNING_RATE = 0.01


def plain(job: Job, network: keras.Model) -> Step:
    """Give the step of one device, without a strategy."""

    def step(features: tf.Tensor, labels: tf.Tensor) -> None:
        slopes = gradients(job, network, features, labels)
        for weight, slope in zip(variables(network), slopes, strict=True):
            _descend(weight, slope)

    return step


def together(
    job: Job, network: keras.Model, strategy: tf.distribute.Strategy, *, summed: bool
) -> Step:
    """Give the step of several devices.

    Args:
        job: What is trained.
        network: Made within the scope of the strategy.
        strategy: Whose devices make the step.
        summed: Whether each learns from the gradients of all, or from its own alone.
    """
    import tensorflow as tf

    def on_each(features: tf.Tensor, labels: tf.Tensor) -> None:
        slopes = gradients(job, network, features, labels)
        context = tf.distribute.get_replica_context()
        if summed:
            slopes = context.all_reduce(tf.distribute.ReduceOp.SUM, slopes)
        context.merge_call(_descend_on_each, args=(variables(network), slopes))

    def step(features: Any, labels: Any) -> None:
        strategy.run(on_each, args=(features, labels))

    return step


def traced(step: Callable[..., None]) -> Callable[..., None]:
    """Give the step as a graph; it does not wait for its devices."""
    import tensorflow as tf

    graph: Callable[..., None] = tf.function(step, autograph=False)
    return graph


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
