"""The ways to run a step, and how often each is traced."""

from __future__ import annotations

import collections
import functools
import importlib.util
import inspect
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.experiments.shared import cache, loops
from perfkit.experiments.shared.loops import (
    Traces,
    step_of,
    steps,
    telling,
    traced,
    wait,
    with_traces,
)
from perfkit.measure.tick import READY, Note, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import keras
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from perfkit.experiments.shared.loops import Feed, Job
    from perfkit.measure.tick import Yielded

    Weights = NDArray[np.float64]


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


_OBSERVERS_ENDLESS = 10**6
# Of an epoch's steps, as many batches as validation_split=0.2 holds back.
VALIDATION_SHARE = 5


def nobody(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """A fit in epochs that nobody watches: no metrics, no callbacks, verbose=0."""
    yield from _watched(job, network)


def metrics(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with metrics=["accuracy"]."""
    yield from _watched(job, network, metrics=["accuracy"])


def callback(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with a callback of one's own that keeps the loss of every batch."""
    import keras

    class Keeping(keras.callbacks.Callback):  # type: ignore[misc]
        """Keeps the losses of an epoch."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._losses: list[float] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self._losses.append(logs["loss"])

    yield from _watched(job, network, callbacks=[Keeping()])


def progress_bar(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with verbose=1, the progress bar; it writes into a pipe here."""
    yield from _watched(job, network, verbose=1)


def validation(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with validation after every epoch, on a fifth as many batches."""
    batches = max(1, job.epoch // VALIDATION_SHARE)
    held_back = job.first(batches).batches()
    yield from _watched(job, network, validation_data=held_back)


def histograms(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same with TensorBoard(histogram_freq=1): all weights after every epoch."""
    import keras

    folder = cache.folder() / "histograms"
    # A trial is ended without a word, so the last one's files are still there.
    shutil.rmtree(folder, ignore_errors=True)
    board = keras.callbacks.TensorBoard(str(folder), histogram_freq=1)
    yield from _watched(job, network, callbacks=[board])


def histograms_missing() -> str:
    """Say why histograms cannot be written here; "" where they can."""
    if importlib.util.find_spec("tensorboard") is not None:
        return ""
    return "needs TensorBoard, which is not installed: `pip install tensorboard`"


def _watched(
    job: Job,
    network: keras.Model,
    *,
    metrics: list[str] | None = None,
    callbacks: list[Any] | None = None,
    **options: Any,
) -> Iterator[Yielded]:
    """Train with ``fit`` in epochs; ``options`` are as of ``fit``."""
    prepared(job, network, metrics=metrics)
    steps = job.epoch if job.steps is None else job.steps
    fit = functools.partial(
        network.fit,
        job.batches(),
        steps_per_epoch=steps,
        epochs=_OBSERVERS_ENDLESS if job.steps is None else 1,
        shuffle=False,
        **({"verbose": 0} | options),
    )
    yield READY
    yield from loops.ticks(
        lambda counting: fit(callbacks=[*(callbacks or ()), counting]),
        examples=job.batch,
        whole_epochs=steps,
        sync=wait,
    )


# Longer than any trial: the end of an epoch is what the observers' arms are about.
_FITS_ENDLESS = 10**9
# The note that says whether Keras, left to itself, compiles with XLA on this machine.
BY_DEFAULT = "fit uses XLA"


def plain(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """model.fit instead of your own loop, with XLA only where Keras chooses it."""
    yield Note(BY_DEFAULT, uses_xla(network))
    yield from fitted(job, network)


def eagerly(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with run_eagerly=True: Python runs every operation."""
    yield from fitted(job, network, run_eagerly=True)


def compiled(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with jit_compile=True: XLA compiles the step."""
    yield from fitted(job, network, jit_compile=True)


def uncompiled(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with jit_compile=False: a graph, and no XLA."""
    yield from fitted(job, network, jit_compile=False)


def by_eight(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with steps_per_execution=8: back to Python every 8 steps."""
    yield from fitted(job, network, steps_per_execution=8)


def by_many(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """The same fit with steps_per_execution=64: back to Python every 64 steps."""
    yield from fitted(job, network, steps_per_execution=64)


def compiled_by_many(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """XLA and steps_per_execution=64 together."""
    yield from fitted(job, network, jit_compile=True, steps_per_execution=64)


def uses_xla(network: keras.Model) -> bool:
    """Whether Keras compiles this network with XLA where nobody says anything of it."""
    network.compile(optimizer="sgd", loss="mse")
    return bool(network.jit_compile)


def fitted(job: Job, network: keras.Model, **options: Any) -> Iterator[Yielded]:
    """Train with ``fit``, in one epoch that has no end.

    Args:
        job: What to train on.
        network: What to train.
        **options: As of ``compile``.
    """
    traces = prepared(job, network, **options)
    fit = functools.partial(
        network.fit,
        job.batches(),
        steps_per_epoch=_FITS_ENDLESS if job.steps is None else job.steps,
        verbose=0,
        shuffle=False,
    )
    yield READY
    ticks = loops.ticks(
        lambda counting: fit(callbacks=[counting]),
        examples=job.batch,
        sync=wait,
        stepped=traces.step,
    )
    # A step that runs eagerly is never traced.
    yield from ticks if options.get("run_eagerly") else telling(ticks, traces)


def prepared(job: Job, network: keras.Model, **options: Any) -> Traces:
    """Compile the network and have the traces of its train step counted.

    Args:
        job: What it will be trained on.
        network: What to compile.
        **options: As of ``compile``.
    """
    network.compile(
        optimizer=loops.optimizer_for(network), loss=loops.loss_function(), **options
    )
    traces, train_step = Traces(), network.train_step

    def traced_step(data: Any) -> Any:
        traces.trace(features=data[0], labels=data[1])
        return train_step(data)

    network.train_step = traced_step
    return traces


EAGER, GRAPH, FIT, UNWATCHED = "eager loop", "tf.function", "fit", "fit unwatched"
Kind = Literal["mode", "retracing", "observer"]


@dataclass(frozen=True)
class Way:
    """One way to execute a training.

    Attributes:
        name: In charts, files and on the command line.
        run: Trains the network it is given, without an end, and yields ticks.
        against: The way that it changes one thing of.
        advice: What to write to have it; for modes only.
        kind: ``"mode"`` for what may be called the fastest, ``"retracing"`` for what
            shows how a graph is traced again, ``"observer"`` for who watches ``fit``.
        feed: What its batches look like.
        missing: Says why it cannot run here; "" where it can.
        xla: What it tells ``compile`` of XLA; None leaves that to Keras.
    """

    name: str
    run: Callable[[Job, Any], Iterator[Yielded]]
    against: str = EAGER
    advice: str = ""
    kind: Kind = "mode"
    feed: Feed = "even"
    missing: Callable[[], str] = str
    xla: bool | None = None

    @property
    def changes(self) -> str:
        """The one thing it changes, in a sentence."""
        return (inspect.getdoc(self.run) or "").partition("\n")[0]


WAYS = {
    way.name: way
    for way in (
        Way(EAGER, loops.eager, advice="for features, labels in batches: step(...)"),
        Way("fit eagerly", eagerly, FIT, "model.compile(..., run_eagerly=True)"),
        Way(GRAPH, loops.graph, advice="@tf.function"),
        Way(
            "tf.function XLA",
            loops.compiled,
            GRAPH,
            "@tf.function(jit_compile=True)",
        ),
        Way(FIT, plain, GRAPH, "model.fit(batches, verbose=0)"),
        Way(
            "fit XLA",
            compiled,
            FIT,
            "model.compile(..., jit_compile=True)",
            xla=True,
        ),
        Way(
            "fit without XLA",
            uncompiled,
            FIT,
            "model.compile(..., jit_compile=False)",
            xla=False,
        ),
        Way(
            "fit 8 steps",
            by_eight,
            FIT,
            "model.compile(..., steps_per_execution=8)",
        ),
        Way(
            "fit 64 steps",
            by_many,
            FIT,
            "model.compile(..., steps_per_execution=64)",
        ),
        Way(
            "fit XLA 64 steps",
            compiled_by_many,
            "fit 64 steps",
            "model.compile(..., jit_compile=True, steps_per_execution=64)",
            xla=True,
        ),
        Way("Python number", python_number, GRAPH, kind="retracing"),
        Way(
            "number as tensor",
            tensor_number,
            "Python number",
            kind="retracing",
        ),
        Way(
            "changing shapes",
            changing,
            GRAPH,
            kind="retracing",
            feed="changing",
        ),
        Way(
            "shapes left open",
            left_open,
            "changing shapes",
            kind="retracing",
            feed="changing",
        ),
        Way("made anew", made_anew, GRAPH, kind="retracing"),
        Way(
            "ragged last batch",
            ragged,
            GRAPH,
            kind="retracing",
            feed="ragged",
        ),
        Way(UNWATCHED, nobody, FIT, kind="observer"),
        Way("metrics", metrics, UNWATCHED, kind="observer"),
        Way("callback", callback, UNWATCHED, kind="observer"),
        Way("progress bar", progress_bar, UNWATCHED, kind="observer"),
        Way("validation", validation, UNWATCHED, kind="observer"),
        Way(
            "histograms",
            histograms,
            UNWATCHED,
            kind="observer",
            missing=histograms_missing,
        ),
    )
}
# What is not traced again and again, for each way that is.
REMEDIES = {
    "Python number": "number as tensor",
    "changing shapes": "shapes left open",
    "made anew": GRAPH,
    "ragged last batch": GRAPH,
}
# What a single way is held against that is asked alone.
BASELINES: dict[Kind, str] = {
    "mode": EAGER,
    "retracing": GRAPH,
    "observer": UNWATCHED,
}
# What is asked together, by the question that it answers; the first of each is what
# the others are held against, and what is run twice to know the noise.
GROUPS = {
    "modes": (
        *(EAGER, "fit eagerly", GRAPH, "tf.function XLA"),
        *(FIT, "fit XLA", "fit without XLA", "fit 8 steps"),
    ),
    "steps per execution": (FIT, "fit 8 steps", "fit 64 steps", "fit XLA 64 steps"),
    "retracing": (
        *(GRAPH, "Python number", "number as tensor", "changing shapes"),
        *("shapes left open", "made anew", "ragged last batch"),
    ),
    "observers": (
        *(UNWATCHED, "metrics", "callback", "progress bar", "validation"),
        "histograms",
    ),
}


def alike(asked: Mapping[str, Way], *, xla: bool) -> dict[str, str]:
    """Say of each way that asks for what Keras does anyway which way has it already.

    Args:
        asked: The ways of a run, by name.
        xla: Whether Keras, left to itself, uses XLA here.
    """
    does = "compiles with XLA" if xla else "uses no XLA"
    return {
        name: f'is what "{way.against}" does here, where Keras {does} by itself'
        for name, way in asked.items()
        if way.xla is xla and way.against in asked
    }


STEPS = 8
# XLA adds in another order, which was seen to make a thirtieth of this; one step more
# or less would be an eighth of the way.
_TOLERANCE = 0.01


def differences(ways: Iterable[Way], job: Job) -> dict[str, str]:
    """Say of each way that does not learn what it should how it differs, by name."""
    short = job.first(STEPS)
    wanted = dict[str, Any]()
    found = dict[str, str]()
    for way in ways:
        if way.feed not in wanted:
            wanted[way.feed] = expected(short, way.feed)
        difference = _difference(way, short, wanted[way.feed])
        if difference:
            found[way.name] = difference
    return found


def expected(job: Job, feed: Feed) -> Weights:
    """How far the weights move in ``job.steps`` steps of plain gradient descent."""
    import tensorflow as tf

    network, loss_of = job.network(), loops.loss_function()
    start = _weights(network)
    for features, labels in job.batches(feed):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(features, training=True))
        slopes = tape.gradient(loss, network.trainable_variables)
        for weight, slope in zip(network.trainable_variables, slopes, strict=True):
            weight.assign_sub(loops.LEARNING_RATE * slope)
    return _weights(network) - start


def _difference(way: Way, job: Job, wanted: Weights) -> str:
    import numpy as np
    import tensorflow as tf

    network = job.network()
    start = _weights(network)
    try:
        collections.deque(way.run(job, network), maxlen=0)
    except tf.errors.OpError:
        # What cannot run at all says so in its trial, and only there for sure.
        return ""
    moved = _weights(network) - start
    apart = float(np.linalg.norm(moved - wanted) / np.linalg.norm(wanted))
    if apart <= _TOLERANCE:
        return ""
    return (
        f"does not learn what the others learn: after {job.steps} steps its weights "
        f"are {100 * apart:.0f} % of the way from where they should be"
    )


def _weights(network: keras.Model) -> Weights:
    import numpy as np

    return np.concatenate([np.ravel(one) for one in network.get_weights()])
