"""The training loop as one writes it oneself: eager, traced, or compiled by XLA.

Every loop takes its batches from the same dataset, as ``fit`` does, and waits for the
device at the end of a tick only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import loop_job as jobs
from perfkit.experiments.shared.traces import Traces, telling
from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras
    import tensorflow as tf

    from perfkit.experiments.shared.loop_job import Job
    from perfkit.measure.tick import Yielded

    Step = Callable[[Any, Any], tf.Tensor]


def eager(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """A loop of your own: Python runs every operation of every step."""
    step = step_of(network)
    yield READY
    yield from every(steps(job.batches(), step, Traces()), sync=wait)


def graph(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The step is traced once, by tf.function, and then run as a graph."""
    yield from traced(job, network)


def compiled(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The graph of the step is compiled by XLA."""
    yield from traced(job, network, jit_compile=True)


def traced(
    job: Job, network: keras.Model, *, feed: jobs.Feed = "even", **options: Any
) -> Iterator[Yielded]:
    """Train with a step that is a ``tf.function``.

    Args:
        job: What to train on.
        network: What to train.
        feed: What the batches look like.
        **options: As of ``tf.function``.
    """
    import tensorflow as tf

    traces = Traces()
    step = tf.function(with_traces(step_of(network), traces), **options)
    yield READY
    yield from telling(every(steps(job.batches(feed), step, traces), sync=wait), traces)


def with_traces(plain: Step, traces: Traces) -> Step:
    """Give a step that tells of its traces, and is the same in all else."""
    import tensorflow as tf

    # AutoGraph rewrites what a user's step calls, and must not rewrite this.
    tell = tf.autograph.experimental.do_not_convert(traces.trace)

    def body(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        tell(features=features, labels=labels)
        return plain(features, labels)

    return body


def steps(batches: tf.data.Dataset, step: Step, traces: Traces) -> Iterator[int]:
    """Make one step after another; yields the examples of each."""
    for features, labels in batches:
        step(features, labels)
        traces.step()
        yield int(labels.shape[0])


def step_of(network: keras.Model) -> Step:
    """Give the plain Python function that trains on one batch."""
    import tensorflow as tf

    optimizer, loss_of = jobs.optimizer_for(network), jobs.loss_function()

    def step(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(features, training=True))
        weights = network.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    return step


def wait() -> None:
    """Wait until the device has done everything it was given."""
    import tensorflow as tf

    tf.test.experimental.sync_devices()
