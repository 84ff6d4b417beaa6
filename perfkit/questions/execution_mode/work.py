"""The trainings that run a step in several ways."""

import functools
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from perfkit.engine.tick import READY, Note, Yielded
from perfkit.errors import installing
from perfkit.questions.shared import cache, loops
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.loops import Job, Traces, looped, step_of, wait

# Of a model, an optimizer and a loss.
MakeStep = Callable[[Any, Any, Any], Any]

# Longer than any trial: the end of an epoch is what the observers' variants are about.
_ENDLESS_STEPS, _ENDLESS_EPOCHS = 10**9, 10**6
QUIET = {"verbose": 0}
# Of an epoch's steps, as many batches as validation_split=0.2 holds back.
VALIDATION_SHARE = 5
# The note that says whether Keras, left to itself, compiles with XLA on this machine.
BY_DEFAULT = "fit uses XLA"


def numbered(job: Job, network: Any, *, as_tensor: bool = False) -> Iterator[Yielded]:
    """Give the step the number of each step as well: a Python int, or a tensor."""
    traces, with_number = Traces(), numbering(step_of(network))
    note_trace = tf.autograph.experimental.do_not_convert(traces.trace)

    def noting(features: Any, labels: Any, number: Any) -> Any:
        note_trace(features=features, labels=labels, number=number)
        return with_number(features, labels, number)

    loop = with_tensors if as_tensor else with_numbers
    yield from looped(job, graph_of(noting), traces, loop=loop)


def numbering(step: Any) -> Callable[..., Any]:
    """Make a step that is given its number."""

    def with_number(features: Any, labels: Any, number: Any) -> Any:
        return step(features, labels), tf.convert_to_tensor(number)

    return with_number


def graph_of(with_number: Any) -> Any:
    """Make a graph of it."""
    numbered = tf.function(with_number)
    return numbered


def with_numbers(batches: Any, numbered: Any) -> Iterator[int]:
    """Give each step its number."""
    for number, (features, labels) in enumerate(batches):
        numbered(features, labels, number)
        yield len(labels)


def with_tensors(batches: Any, numbered: Any) -> Iterator[int]:
    """Give each step its number, as a tensor."""
    # In its loop looking names up in what stands for the module would count.
    import tensorflow as tf

    for number, (features, labels) in enumerate(batches):
        numbered(features, labels, tf.constant(number))
        yield len(labels)


def made_anew(job: Job, network: Any) -> Iterator[Yielded]:
    """Call ``tf.function`` inside the loop, at every step."""
    traces = Traces()
    body = loops.with_traces(step_of(network), traces)
    yield from looped(job, body, traces, loop=with_anew)


def with_anew(batches: Any, step: Any) -> Iterator[int]:
    """Make a function of its own for each step."""
    for features, labels in batches:
        tf.function(step)(features, labels)
        yield len(labels)


def keeping() -> Any:
    """Make a callback that keeps the losses of an epoch."""
    import keras

    class Keeping(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._losses: list[float] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self._losses.append(logs["loss"])

    callback = Keeping()
    return callback


def histograms() -> Any:
    """Make the callback that writes them into a folder of perfkit's."""
    folder = cache.folder() / "histograms"
    # A trial is ended without a word, so the last one's files are still there.
    shutil.rmtree(folder, ignore_errors=True)
    return writing(str(folder))


def writing(folder: str, interval: int = 1) -> Any:
    """Make a callback that writes all weights, once in so many epochs."""
    import keras

    callback = keras.callbacks.TensorBoard(folder, histogram_freq=interval)
    return callback


def histograms_missing() -> str:
    """Say why histograms cannot be written here; "" where they can."""
    if importlib.util.find_spec("tensorboard") is not None:
        return ""
    return f"needs TensorBoard, which is not installed: `{installing('tensorboard')}`"


def watched(
    job: Job,
    network: Any,
    *,
    metrics: list[str] | None = None,
    callback: Callable[[], Any] | None = None,
    validates: bool = False,
    **options: Any,
) -> Iterator[Yielded]:
    """Train with ``fit`` in epochs; ``options`` are as of ``fit``.

    Metrics, a callback that is made or batches that are held back watch it.
    """
    prepared(job, network, metrics=metrics)
    steps = job.epoch if job.steps is None else job.steps
    epochs = _ENDLESS_EPOCHS if job.steps is None else 1
    options = {"shuffle": False, "epochs": epochs} | QUIET | options
    if validates:
        held_back = job.first(max(1, job.epoch // VALIDATION_SHARE))
        options["validation_data"] = held_back.batches()
    fit = functools.partial(loops.fit, network, job.batches(), steps, **options)
    watching = [callback()] if callback else []
    yield READY
    yield from loops.ticks(
        lambda counting: fit(callbacks=[*watching, counting]),
        examples=job.batch,
        whole_epochs=steps,
        sync=wait,
    )


def uses_xla(network: Any) -> bool:
    """Whether Keras compiles this network with XLA where nobody says anything of it."""
    network.compile(optimizer="sgd", loss="mse")
    return bool(network.jit_compile)


def fitted(job: Job, network: Any, **options: Any) -> Iterator[Yielded]:
    """Train with ``fit``, in one epoch that has no end.

    Its ``options`` are as of ``compile``; none to learn what Keras does by itself.
    """
    if not options:
        yield Note(BY_DEFAULT, uses_xla(network))
    traces = prepared(job, network, **options)
    steps = _ENDLESS_STEPS if job.steps is None else job.steps
    fit = functools.partial(loops.fit, network, job.batches(), steps, shuffle=False)
    yield READY
    ticks = loops.ticks(
        lambda counting: fit(callbacks=[counting], **QUIET),
        examples=job.batch,
        sync=wait,
        stepped=traces.step,
    )
    # A step that runs eagerly is never traced.
    yield from ticks if options.get("run_eagerly") else loops.with_notes(ticks, traces)


def prepared(job: Job, network: Any, **options: Any) -> Traces:
    """Compile the network and have the traces of its train step counted."""
    optimizer, loss = loops.optimizer_for(network), loops.loss_function()
    loops.compile_model(network, optimizer, loss, **options)
    traces, train_step = Traces(), network.train_step

    def traced_step(data: Any) -> Any:
        traces.trace(features=data[0], labels=data[1])
        return train_step(data)

    network.train_step = traced_step
    return traces
