"""The variants of running a step, and how often each is traced."""

from __future__ import annotations

import collections
import functools
import importlib.util
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perfkit.errors import installing
from perfkit.experiments.shared import cache, loops
from perfkit.experiments.shared.code import Name, code_of
from perfkit.experiments.shared.loops import (
    Traces,
    looped,
    step_of,
    traced,
    wait,
    with_notes,
    with_traces,
)
from perfkit.measure.measurement import OWN
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
    # Of a model, an optimizer and a loss.
    MakeStep = Callable[[Any, Any, Any], Any]

EAGER, GRAPH, FIT, UNWATCHED = "eager loop", "tf.function", "fit", "fit unwatched"
Kind = Literal["mode", "retracing", "observer"]
# Longer than any trial: the end of an epoch is what the observers' variants are about.
_ENDLESS_STEPS, _ENDLESS_EPOCHS = 10**9, 10**6
_QUIET = {"verbose": 0}
# Of an epoch's steps, as many batches as validation_split=0.2 holds back.
VALIDATION_SHARE = 5
# The note that says whether Keras, left to itself, compiles with XLA on this machine.
BY_DEFAULT = "fit uses XLA"


def numbered(
    job: Job, network: keras.Model, *, as_tensor: bool = False
) -> Iterator[Yielded]:
    """Give the step the number of each step as well: a Python int, or a tensor."""
    import tensorflow as tf

    traces, with_number = Traces(), numbering(step_of(network))
    tell = tf.autograph.experimental.do_not_convert(traces.trace)

    def told(features: tf.Tensor, labels: tf.Tensor, number: Any) -> Any:
        tell(features=features, labels=labels, number=number)
        return with_number(features, labels, number)

    loop = with_tensors if as_tensor else with_numbers
    yield from looped(job, graph_of(told), traces, loop=loop)


def numbering(step: Any) -> Callable[..., Any]:
    """Make a step that is given its number."""
    import tensorflow as tf

    def with_number(features: Any, labels: Any, number: Any) -> Any:
        return step(features, labels), tf.convert_to_tensor(number)

    return with_number


def graph_of(with_number: Any) -> Any:
    """Make a graph of it."""
    import tensorflow as tf

    numbered = tf.function(with_number)
    return numbered


def with_numbers(batches: Any, numbered: Any) -> Iterator[int]:
    """Give each step its number."""
    for number, (features, labels) in enumerate(batches):
        numbered(features, labels, number)
        yield len(labels)


def with_tensors(batches: Any, numbered: Any) -> Iterator[int]:
    """Give each step its number, as a tensor."""
    import tensorflow as tf

    for number, (features, labels) in enumerate(batches):
        numbered(features, labels, tf.constant(number))
        yield len(labels)


def made_anew(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """Call ``tf.function`` inside the loop, at every step."""
    traces = Traces()
    body = with_traces(step_of(network), traces)
    yield from looped(job, body, traces, loop=with_anew)


def with_anew(batches: Any, step: Any) -> Iterator[int]:
    """Make a function of its own for each step."""
    import tensorflow as tf

    for features, labels in batches:
        tf.function(step)(features, labels)
        yield len(labels)


def by_hand(make_step: MakeStep, job: Job, network: keras.Model) -> Iterator[Yielded]:
    """Train with a step of one's own, called from a loop in Python."""
    step = make_step(network, loops.optimizer_for(network), loops.loss_function())
    yield READY
    yield from every(loops.loop(job.batches(), step), sync=wait)


def callback(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """Watch with a callback of one's own."""
    yield from watched(job, network, callbacks=[keeping()])


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


def validation(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """Watch with batches that are held back."""
    batches = max(1, job.epoch // VALIDATION_SHARE)
    held_back = job.first(batches).batches()
    yield from watched(job, network, validation_data=held_back)


def histograms(job: Job, network: keras.Model) -> Iterator[Yielded]:
    """Watch with TensorBoard."""
    folder = cache.folder() / "histograms"
    # A trial is ended without a word, so the last one's files are still there.
    shutil.rmtree(folder, ignore_errors=True)
    yield from watched(job, network, callbacks=[writing(str(folder))])


def writing(folder: str, every: int = 1) -> Any:
    """Make a callback that writes all weights, once in so many epochs."""
    import keras

    callback = keras.callbacks.TensorBoard(folder, histogram_freq=every)
    return callback


def histograms_missing() -> str:
    """Say why histograms cannot be written here; "" where they can."""
    if importlib.util.find_spec("tensorboard") is not None:
        return ""
    return f"needs TensorBoard, which is not installed: `{installing('tensorboard')}`"


def watched(
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
    epochs = _ENDLESS_EPOCHS if job.steps is None else 1
    given = (network, job.batches(), steps)
    more = _QUIET | options
    fit = functools.partial(loops.fit, *given, shuffle=False, epochs=epochs, **more)
    yield READY
    yield from loops.ticks(
        lambda counting: fit(callbacks=[*(callbacks or ()), counting]),
        examples=job.batch,
        whole_epochs=steps,
        sync=wait,
    )


def uses_xla(network: keras.Model) -> bool:
    """Whether Keras compiles this network with XLA where nobody says anything of it."""
    network.compile(optimizer="sgd", loss="mse")
    return bool(network.jit_compile)


def fitted(job: Job, network: keras.Model, **options: Any) -> Iterator[Yielded]:
    """Train with ``fit``, in one epoch that has no end.

    Its ``options`` are as of ``compile``; none to learn what Keras does by itself.
    """
    if not options:
        yield Note(BY_DEFAULT, uses_xla(network))
    traces = prepared(job, network, **options)
    steps = _ENDLESS_STEPS if job.steps is None else job.steps
    given = (network, job.batches(), steps)
    fit = functools.partial(loops.fit, *given, shuffle=False, **_QUIET)
    yield READY
    ticks = loops.ticks(
        lambda counting: fit(callbacks=[counting]),
        examples=job.batch,
        sync=wait,
        stepped=traces.step,
    )
    # A step that runs eagerly is never traced.
    yield from ticks if options.get("run_eagerly") else with_notes(ticks, traces)


def prepared(job: Job, network: keras.Model, **options: Any) -> Traces:
    """Compile the network and have the traces of its train step counted."""
    optimizer, loss = loops.optimizer_for(network), loops.loss_function()
    loops.compile_model(network, optimizer, loss, **options)
    traces, train_step = Traces(), network.train_step

    def traced_step(data: Any) -> Any:
        traces.trace(features=data[0], labels=data[1])
        return train_step(data)

    network.train_step = traced_step
    return traces


@dataclass(frozen=True)
class Method:
    """How a variant executes a training.

    Attributes:
        name: In charts, files and on the command line.
        run: Trains the network it is given, without an end, and yields ticks.
        changes: The one thing it changes, in a sentence.
        read: Reads its lines from the source.
        against: The variant that it changes one thing of.
        do: Of a mode: what choosing it means, as a sentence. Of what costs time: what
            to do about it. "" where there is nothing to do.
        fix: Of what costs time: reads the lines to write instead.
        untimed: Whether what to do about it was not timed, only leaving it out.
        kind: ``"mode"`` for what may be called the fastest, ``"retracing"`` for what
            shows how a graph is traced again, ``"observer"`` for who watches ``fit``.
        feed: What its batches look like.
        missing: Says why it cannot run here; "" where it can.
        xla: What it tells ``compile`` of XLA; None leaves that to Keras.
    """

    name: str
    run: Callable[[Job, Any], Iterator[Yielded]]
    changes: str
    read: Callable[[], str]
    against: str = EAGER
    do: str = ""
    fix: Callable[[], str] = str
    untimed: bool = False
    kind: Kind = "mode"
    feed: Feed = "even"
    missing: Callable[[], str] = str
    xla: bool | None = None

    @functools.cached_property
    def code(self) -> str:
        """Its lines, behind the step of a loop of one's own."""
        lines = self.read()
        if not re.search(r"\bstep\b", lines):
            return lines
        return f"{code_of(loops.gradient_step)}\n{lines}"


def _lines_of_fit(*used: Callable[..., Any], said: Any = None, **options: Any) -> str:
    """The lines of a training with ``fit``.

    Args:
        *used: What makes its callbacks.
        said: What is said to ``compile``, by name.
        **options: As of ``fit``.
    """
    made = code_of(*used), code_of(loops.compile_model, **(said or {}))
    return "\n".join(filter(None, (*made, code_of(loops.fit, **(_QUIET | options)))))


def _fit(
    name: str, changes: str, do: str, against: str = FIT, **options: Any
) -> Method:
    """A mode of ``fit`` that tells ``compile`` something."""
    return Method(
        name,
        functools.partial(fitted, **options),
        changes,
        functools.partial(_lines_of_fit, said=options),
        against,
        do,
        xla=options.get("jit_compile"),
    )


def _loop(*parts: Callable[..., Any], **options: Any) -> Callable[[], str]:
    """Read the lines of a loop with a step that is traced."""
    return functools.partial(code_of, *parts, **options)


_MODES = (
    Method(
        EAGER,
        loops.eager,
        "A loop of your own: Python runs every operation of every step.",
        _loop(loops.loop),
        do="Run every operation from Python.",
    ),
    _fit(
        "fit eagerly",
        "The same fit with run_eagerly=True: Python runs every operation.",
        "Use `fit`, run eagerly.",
        run_eagerly=True,
    ),
    Method(
        GRAPH,
        traced,
        "The step is traced once, by tf.function, and then run as a graph.",
        _loop(loops.compiled, loops.loop),
        do="Put the step into a `tf.function`.",
    ),
    Method(
        "tf.function XLA",
        functools.partial(traced, jit_compile=True),
        "The graph of the step is compiled by XLA.",
        _loop(loops.compiled, loops.loop, jit_compile=True),
        GRAPH,
        "Compile the step with XLA.",
    ),
    Method(
        FIT,
        fitted,
        "model.fit instead of your own loop, with XLA only where Keras chooses it.",
        _lines_of_fit,
        GRAPH,
        "Use `fit`.",
    ),
    _fit(
        "fit XLA",
        "The same fit with jit_compile=True: XLA compiles the step.",
        "Use `fit`, and compile its step with XLA.",
        jit_compile=True,
    ),
    _fit(
        "fit without XLA",
        "The same fit with jit_compile=False: a graph, and no XLA.",
        "Use `fit` without XLA.",
        jit_compile=False,
    ),
    *(
        _fit(
            f"fit {steps} steps",
            f"The same fit with steps_per_execution={steps}: back to Python every "
            f"{steps} steps.",
            f"Use `fit`, with {steps} steps at a time.",
            steps_per_execution=steps,
        )
        for steps in (8, 64)
    ),
    _fit(
        "fit XLA 64 steps",
        "XLA and steps_per_execution=64 together.",
        "Use `fit`, with XLA and 64 steps at a time.",
        "fit 64 steps",
        jit_compile=True,
        steps_per_execution=64,
    ),
)
_retracing = functools.partial(Method, kind="retracing")
_observer = functools.partial(Method, kind="observer", against=UNWATCHED)
_RETRACING = (
    _retracing(
        "Python number",
        numbered,
        "The step is given its number as a Python int: a new value, a new trace.",
        _loop(numbering, graph_of, with_numbers),
        GRAPH,
        "Give the step its number as a tensor.",
        _loop(numbering, graph_of, with_tensors),
    ),
    _retracing(
        "number as tensor",
        functools.partial(numbered, as_tensor=True),
        "The step is given its number as a tensor: one trace for all values.",
        _loop(numbering, graph_of, with_tensors),
        "Python number",
    ),
    _retracing(
        "changing shapes",
        functools.partial(traced, feed="changing"),
        "Every batch has another size: a new shape, a new trace.",
        _loop(loops.resized, loops.compiled, loops.loop),
        GRAPH,
        "Trace once for all sizes, with `reduce_retracing=True`.",
        _loop(loops.resized, loops.compiled, loops.loop, reduce_retracing=True),
        feed="changing",
    ),
    _retracing(
        "shapes left open",
        functools.partial(traced, feed="changing", reduce_retracing=True),
        "The same batches; the trace leaves open what changes, with reduce_retracing.",
        _loop(loops.resized, loops.compiled, loops.loop, reduce_retracing=True),
        "changing shapes",
        feed="changing",
    ),
    _retracing(
        "made anew",
        made_anew,
        "tf.function is called inside the loop: every step has a function of its own.",
        _loop(with_anew),
        GRAPH,
        "Make the function once, before the loop.",
        _loop(loops.compiled, loops.loop),
    ),
    _retracing(
        "ragged last batch",
        functools.partial(traced, feed="ragged"),
        "The last batch of an epoch is smaller than the others.",
        _loop(loops.batched, loops.compiled, loops.loop),
        GRAPH,
        "Drop the last batch of an epoch where it is smaller.",
        _loop(
            functools.partial(loops.batched, drop_remainder=True),
            *(loops.compiled, loops.loop),
        ),
        feed="ragged",
    ),
)


def _watched(*used: Callable[..., Any], **more: Any) -> Callable[[], str]:
    """Read the lines of a ``fit`` in epochs."""
    return functools.partial(_lines_of_fit, *used, epochs=Name("epochs"), **more)


_BY_CALLBACK = {"callbacks": Name("[callback]")}
_HELD_BACK = {"validation_data": Name("held_back")}
_OBSERVERS = (
    _observer(
        UNWATCHED,
        watched,
        "A fit in epochs that nobody watches: no metrics, no callbacks, verbose=0.",
        _watched(),
        against=FIT,
    ),
    _observer(
        "metrics",
        functools.partial(watched, metrics=["accuracy"]),
        'The same with metrics=["accuracy"].',
        _watched(said={"metrics": ["accuracy"]}),
        do="Leave out metrics that you do not read.",
        fix=_watched(),
    ),
    _observer(
        "callback",
        callback,
        "The same with a callback of one's own that keeps the loss of every batch.",
        _watched(keeping, **_BY_CALLBACK),
        do="Let the callback work once an epoch, not after each batch.",
        fix=lambda: (
            "class Keeping(keras.callbacks.Callback):\n"
            "    def on_epoch_end(self, epoch, logs=None): ...\n"
            "callback = Keeping()\n" + _watched(**_BY_CALLBACK)()
        ),
        untimed=True,
    ),
    _observer(
        "progress bar",
        functools.partial(watched, verbose=1),
        "The same with verbose=1, the progress bar; it writes into a pipe here.",
        _watched(verbose=1),
        do="Switch the progress bar off.",
        fix=_watched(),
    ),
    _observer(
        "validation",
        validation,
        "The same with validation after every epoch, on a fifth as many batches.",
        _watched(**_HELD_BACK),
        do="Validate less often.",
        fix=_watched(**_HELD_BACK, validation_freq=5),
        untimed=True,
    ),
    _observer(
        "histograms",
        histograms,
        "The same with TensorBoard(histogram_freq=1): all weights after every epoch.",
        _watched(functools.partial(writing, Name("folder"), 1), **_BY_CALLBACK),
        do="Write histograms less often.",
        fix=_watched(functools.partial(writing, Name("folder"), 5), **_BY_CALLBACK),
        untimed=True,
        missing=histograms_missing,
    ),
)
VARIANTS = {one.name: one for one in (*_MODES, *_RETRACING, *_OBSERVERS)}
# What a single variant is held against that is asked alone.
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


def own(make_step: MakeStep) -> Method:
    """Make a variant of a function that makes a step."""
    run = functools.partial(by_hand, make_step)
    return Method(OWN, run, "Your own step, called from a loop in Python.", str)


def why_not(make_step: MakeStep, job: Job) -> str:
    """Say why a step of one's own is not timed; "" where it learns what all learn."""
    network = job.network()
    try:
        made = make_step(network, loops.optimizer_for(network), loops.loss_function())
        if made is None:
            return "gives back nothing: its function is still to be written"
        return differences([own(make_step)], job).get(OWN, "")
    # Whatever the author of a function did wrong is theirs to read, not the run's end.
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0][:_MESSAGE]
        return f"raised {type(error).__name__}: {first}"


def alike(asked: Mapping[str, Method], *, xla: bool) -> dict[str, str]:
    """Say of each that asks for what Keras does anyway which one has it already.

    ``xla`` is whether Keras, left to itself, uses XLA here.
    """
    does = "compiles with XLA" if xla else "uses no XLA"
    return {
        name: f'is what "{one.against}" does here, where Keras {does} by itself'
        for name, one in asked.items()
        if one.xla is xla and one.against in asked
    }


STEPS = 8
# XLA adds in another order, which was seen to make a thirtieth of this; one step more
# or less would be an eighth of the way.
_TOLERANCE = 0.01
_MESSAGE = 80


def differences(methods: Iterable[Method], job: Job) -> dict[str, str]:
    """Say of each that does not learn what it should how it differs, by name."""
    short = job.first(STEPS)
    wanted = dict[str, Any]()
    found = dict[str, str]()
    for method in methods:
        if method.feed not in wanted:
            wanted[method.feed] = expected(short, method.feed)
        difference = _difference(method, short, wanted[method.feed])
        if difference:
            found[method.name] = difference
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


def _difference(method: Method, job: Job, wanted: Weights) -> str:
    import numpy as np
    import tensorflow as tf

    network = job.network()
    start = _weights(network)
    try:
        collections.deque(method.run(job, network), maxlen=0)
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
