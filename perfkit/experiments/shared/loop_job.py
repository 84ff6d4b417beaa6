"""What every way of executing a training is given: the same weights and batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from perfkit.experiments.shared.models import MODELS

if TYPE_CHECKING:
    import keras
    import tensorflow as tf
    from numpy.typing import NDArray

    Array = NDArray[Any]

# What the batches of a training look like.
Feed = Literal["even", "ragged", "changing"]

# Batches in memory; a training goes through them again and again.
BATCHES = 8
LEARNING_RATE = 0.01


@dataclass(frozen=True)
class Job:
    """A training that has not begun.

    Attributes:
        model: A name of ``perfkit.experiments.shared.models``.
        batch: Examples in a batch.
        epoch: Steps after which ``fit`` ends an epoch, where it makes epochs.
        seed: Of the weights and the examples.
        steps: How many to make; None for no end.
    """

    model: str
    batch: int
    epoch: int = 50
    seed: int = 0
    steps: int | None = None

    def first(self, steps: int) -> Job:
        """The same training, ended after so many steps."""
        return replace(self, steps=steps)

    def network(self) -> keras.Model:
        """Make the network with fresh weights: the same for the same seed."""
        import keras

        keras.utils.set_random_seed(self.seed)
        return MODELS[self.model].build()

    def batches(self, feed: Feed = "even") -> tf.data.Dataset:
        """All batches, in order: ``steps`` of them, or without an end.

        Args:
            feed: ``"even"``: each has ``batch`` examples. ``"ragged"``: every eighth
                has half of them, as the last of an epoch has. ``"changing"``: no two
                in a row have the same number, and their mean is ``batch``.
        """
        dataset = _FEEDS[feed](self).repeat()
        return dataset if self.steps is None else dataset.take(self.steps)

    def examples(self, count: int) -> tuple[Array, Array]:
        """So many examples with their labels."""
        return MODELS[self.model].batch(count, self.seed)


def optimizer_for(network: keras.Model) -> keras.optimizers.Optimizer:
    """What updates the weights, with everything it needs already made."""
    import keras

    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(network.trainable_variables)
    return optimizer


def loss_function() -> keras.losses.Loss:
    """What all ways minimise."""
    import keras

    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def changing_sizes(batch: int) -> list[int]:
    """Every size from 1 to twice ``batch`` less 1, one large for one small."""
    small = [batch - step for step in range(1, batch)]
    large = [batch + step for step in range(1, batch)]
    return [batch, *(size for pair in zip(large, small, strict=True) for size in pair)]


def _even(job: Job) -> tf.data.Dataset:
    import tensorflow as tf

    features, labels = job.examples(BATCHES * job.batch)
    return tf.data.Dataset.from_tensor_slices(
        (
            features.reshape(BATCHES, job.batch, *features.shape[1:]),
            labels.reshape(BATCHES, job.batch),
        )
    )


def _ragged(job: Job) -> tf.data.Dataset:
    import tensorflow as tf

    arrays = job.examples((BATCHES - 1) * job.batch + max(1, job.batch // 2))
    return tf.data.Dataset.from_tensor_slices(arrays).batch(job.batch)


def _changing(job: Job) -> tf.data.Dataset:
    import tensorflow as tf

    features, labels = job.examples(2 * job.batch - 1)
    whole = tf.constant(features), tf.constant(labels)
    sizes = tf.data.Dataset.from_tensor_slices(changing_sizes(job.batch))
    return sizes.map(lambda size: (whole[0][:size], whole[1][:size]))


_FEEDS = {"even": _even, "ragged": _ragged, "changing": _changing}
