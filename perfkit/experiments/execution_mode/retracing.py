"""Steps that TensorFlow traces again and again, each beside what stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared.loops import step_of, steps, traced, wait, with_traces
from perfkit.experiments.shared.traces import Traces, telling
from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras
    import tensorflow as tf

    from perfkit.experiments.shared.loop_job import Job
    from perfkit.measure.tick import Yielded


def python_number(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The step is given its number as a Python int: a new value, a new trace."""
    yield from _numbered(job, network, int)


def tensor_number(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The step is given its number as a tensor: one trace for all values."""
    import tensorflow as tf

    yield from _numbered(job, network, tf.constant)


def made_anew(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """tf.function is called inside the loop: every step has a function of its own."""
    import tensorflow as tf

    traces = Traces()
    body = with_traces(step_of(network), traces)

    def step(features: tf.Tensor, labels: tf.Tensor) -> Any:
        return tf.function(body)(features, labels)

    yield READY
    yield from telling(every(steps(job.batches(), step, traces), sync=wait), traces)


def ragged(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The last batch of an epoch is smaller than the others."""
    yield from traced(job, network, feed="ragged")


def changing(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """Every batch has another size: a new shape, a new trace."""
    yield from traced(job, network, feed="changing")


def left_open(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same batches; the trace leaves open what changes, with reduce_retracing."""
    yield from traced(job, network, feed="changing", reduce_retracing=True)


def _numbered(
    job: Job, network: keras.Model, given: Callable[[int], Any]
) -> Iterator[Yielded]:
    import tensorflow as tf

    traces, plain = Traces(), step_of(network)

    tell = tf.autograph.experimental.do_not_convert(traces.trace)

    @tf.function  # type: ignore[untyped-decorator]
    def numbered(features: tf.Tensor, labels: tf.Tensor, number: Any) -> Any:
        tell(features=features, labels=labels, number=number)
        return plain(features, labels), tf.convert_to_tensor(number)

    def step(features: tf.Tensor, labels: tf.Tensor) -> Any:
        return numbered(features, labels, given(traces.steps))

    yield READY
    yield from telling(every(steps(job.batches(), step, traces), sync=wait), traces)
