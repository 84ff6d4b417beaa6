"""What is known of a training before anything is changed: which changes apply to it."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.questions.shared.loops import described
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.failure import try_read
from perfkit.training.diagnose.loop import Looping
from perfkit.training.diagnose.script import is_held_in_loop
from perfkit.training.diagnose.training import (
    Training,
    epochs_between,
    examples_in,
    first_batch,
    follows_validation,
    metrics_of,
    steers,
    steps_of,
    updates_once,
    validation_steps,
)

# What holds work that the graph around it does not show.
_HIDDEN = (
    *("While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall"),
    # Of layers such as GRU and LSTM on a GPU.
    "CudnnRNN",
)


def flop_of(model: Any, batch: Any) -> float | None:
    """Multiplications and additions of one training step; None where nobody knows."""
    import tensorflow as tf

    if not isinstance(batch, tuple | list) or len(batch) < 2:
        return None

    def gradients(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(features, training=True)
            loss = model.compute_loss(features, labels, predicted)
        return tape.gradient(loss, model.trainable_variables)

    def count_flop() -> float | None:
        step = tf.function(gradients, autograph=False)
        return of_graph(step.get_concrete_function(*batch[:2]).graph)

    # A model with a step of its own may be made for another.
    return try_read(count_flop, otherwise=None)


def of_graph(graph: Any) -> float | None:
    """Count the products in a graph; None where it does not show them all."""
    operations = _needed(graph)
    if any(operation.type.startswith(_HIDDEN) for operation in operations):
        return None
    counts = [_COUNTED[op.type](op) for op in operations if op.type in _COUNTED]
    return float(sum(counts)) if all(math.isfinite(n) for n in counts) else None


def _needed(graph: Any) -> set[Any]:
    """What its outputs hang on: gradients that nobody asks for are never computed."""
    needed: set[Any] = set()
    open_ = [tensor.op for tensor in graph.outputs]
    while open_:
        operation = open_.pop()
        if operation not in needed:
            needed.add(operation)
            open_ += [tensor.op for tensor in operation.inputs]
    return needed


def _elements(tensor: Any) -> float:
    count = tensor.shape.num_elements()
    return math.nan if count is None else float(count)


def _product(flag: str) -> Callable[[Any], float]:
    def count(operation: Any) -> float:
        inner = operation.inputs[0].shape[-2 if operation.get_attr(flag) else -1]
        return 2 * _elements(operation.outputs[0]) * (inner or math.nan)

    return count


def _convolution(kernel: Any, output: Any) -> float:
    """Count the products of a convolution, or of one of its gradients."""
    return 2 * _elements(output) * _elements(kernel) / (kernel.shape[-1] or math.nan)


def _einsum(operation: Any) -> float:
    equation = operation.get_attr("equation").decode()
    names = equation.partition("->")[0].split(",")
    if "..." in equation or len(names) != 2:
        return math.nan
    sizes = {
        name: size
        for letters, tensor in zip(names, operation.inputs, strict=True)
        for name, size in zip(letters, tensor.shape, strict=True)
    }
    return 2 * math.prod(math.nan if s is None else s for s in sizes.values())


_COUNTED: dict[str, Callable[[Any], float]] = {
    "MatMul": _product("transpose_a"),
    "BatchMatMul": _product("adj_x"),
    "BatchMatMulV2": _product("adj_x"),
    "Conv2D": lambda op: _convolution(op.inputs[1], op.outputs[0]),
    "Conv2DBackpropFilter": lambda op: _convolution(op.outputs[0], op.inputs[2]),
    "Conv2DBackpropInput": lambda op: _convolution(op.inputs[1], op.inputs[2]),
    "Einsum": _einsum,
}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A training, looked at and run for a moment; JSON values only.

    Attributes:
        model: Its name.
        parameters: Numbers it learns.
        layers: Names of its layers' classes, in order.
        data: The kind of its data, as ``Training.kind`` has it.
        batch: Examples of a step.
        steps: Of an epoch; None where nobody knows.
        endless: Whether one iterator goes on from epoch to epoch.
        again: Whether a script calls fit again and again, for an epoch each time.
        ready_s: Seconds until its first step was done, making and tracing included.
        step_s: Seconds of a step, roughly.
        eager: Whether its steps run eagerly.
        steps_per_execution: As compiled.
        counted: Whether the steps of an epoch can be counted, however many are made at
            a time.
        xla: Whether its step is compiled by XLA.
        can_xla: Whether Keras would have XLA compile it, if asked to.
        tf32: Whether a GPU may round the factors of its products in float32.
        metrics: Names of the metrics it was compiled with, the loss apart.
        callbacks: Names of the callbacks' classes, in order.
        steering: Those of them that may change what is learnt.
        following: Those of them that hang on the results of the validation.
        progress: Whether fit draws its progress bar.
        validation: Whether there are validation data.
        validation_steps: Of a validation; None where nobody knows.
        validated: Epochs from one validation to the next; 0 where there is none.
        asked: Epochs that ``fit`` is asked for; 0 where nobody knows.
        policy: The dtype policy that most of its layers have.
        element: Per tensor of a batch: dtype and shape, such as "float32[32, 224]".
        pipeline: What is known of the data's stages; see ``diagnosis.pipeline``.
        loop: Whether it is a loop of the user's own, marked by ``perfkit.steps``.
        retraced: Functions that are traced again and again; see ``diagnosis.tracing``.
        flop: Multiplications and additions of a step; None where nobody knows.
        open_shapes: Whether the shape of its batches, their length apart, is left open.
        epochs: Of such a loop: how many of its epochs a trial may begin.
        between_s: Of such a loop: seconds of its own code between two epochs.
        waits_s: Of such a loop: seconds that a step waits for its batch, the median;
            None where that was not seen.
        graphs_s: Of such a loop: seconds of a step within each function under
            ``tf.function``, by name, "" for those of Keras; {} where nothing runs as a
            graph or a GPU works on after such a call.
        late: Variables of the environment that it set after TensorFlow had been loaded.
        uncontained: Who refuses what of a training that is not sealed, in sentences;
            "" of one that is.
        padded: What is known of texts that were padded beforehand; see ``padded``.
        settings: Lines that set what slows it, by cause; see ``diagnosis.settings``.
        eager_calls: Functions that such a loop calls in each step and that compute
            eagerly, as ``"module:function"``.
        computes: What its steps compute eagerly in no such function: ``"layers"`` of
            Keras, ``"operations"`` alone, or "" for nothing.
        drawn: What a step of such a loop draws itself: how many ``"batches"`` from
            iterators over ``tf.data``, and how many ``"iterators"`` it makes.
        lines: Whose work may be left out; see ``diagnosis.changes.lines``.
    """

    model: str = ""
    parameters: int = 0
    layers: tuple[str, ...] = ()
    data: str = ""
    batch: int = 1
    steps: int | None = None
    endless: bool = False
    again: bool = False
    ready_s: float = 0.0
    step_s: float = 0.0
    eager: bool = False
    steps_per_execution: int = 1
    counted: bool = True
    xla: bool = False
    can_xla: bool = True
    tf32: bool = True
    metrics: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    progress: bool = False
    validation: bool = False
    validation_steps: int | None = None
    validated: float = 0
    asked: int = 0
    policy: str = "float32"
    element: tuple[str, ...] = ()
    pipeline: dict[str, Any] = field(default_factory=dict)
    loop: bool = False
    epochs: int = 1
    between_s: float = 0.0
    waits_s: float | None = None
    graphs_s: dict[str, float] = field(default_factory=dict)
    retraced: dict[str, dict[str, Any]] = field(default_factory=dict)
    open_shapes: bool = False
    flop: float | None = None
    late: tuple[str, ...] = ()
    uncontained: str = ""
    padded: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, list[str]] = field(default_factory=dict)
    eager_calls: tuple[str, ...] = ()
    computes: str = ""
    drawn: dict[str, float] = field(default_factory=dict)
    lines: tuple[dict[str, Any], ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it is a loop that is given numbers, and no batches."""
        return self.loop and all(part.endswith("[]") for part in self.element)

    @property
    def reshaped(self) -> bool:
        """Whether the shapes of the batches are what is traced anew."""
        entries = self.retraced.values()
        return any("shape" in entry["changed"].values() for entry in entries)

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Of its pipeline, the source first; none where nobody tells of them."""
        stages: list[dict[str, Any]] = self.pipeline.get("stages", [])
        return stages

    def as_note(self) -> dict[str, Any]:
        """What travels from the process that looked, and stands in the file."""
        return asdict(self)


def facts_of(training: Training, **run_facts: Any) -> Facts:
    """Look at a training without running it; ``run_facts`` came from a run."""
    import tensorflow as tf

    model, arguments = training.model, training.arguments
    batch = _seen_batch(training)
    policies: list[str] = try_read(
        lambda: [layer.dtype_policy.name for layer in model.layers], otherwise=[]
    )
    steps = try_read(steps_of, training, otherwise=None)
    callbacks = arguments.get("callbacks") or ()
    return Facts(
        model=model.name,
        parameters=try_read(
            lambda: sum(math.prod(weight.shape) for weight in model.weights),
            otherwise=0,
        ),
        layers=try_read(lambda: _classes(model.layers), otherwise=()),
        steps=steps,
        endless=bool(arguments.get("steps_per_epoch")),
        again=training.epochs == 1 and is_held_in_loop(),
        eager=bool(model.run_eagerly) or tf.config.functions_run_eagerly(),
        steps_per_execution=int(model.steps_per_execution),
        counted=bool(steps) or updates_once(model),
        xla=bool(model.jit_compile),
        can_xla=try_read(_can_xla, model, otherwise=True),
        tf32=tf.config.experimental.tensor_float_32_execution_enabled(),
        metrics=try_read(metrics_of, model, otherwise=()),
        callbacks=_classes(callbacks),
        steering=_classes(c for c in callbacks if steers(c)),
        following=_classes(c for c in callbacks if follows_validation(c)),
        progress=arguments.get("verbose", "auto") != 0,
        validation=epochs_between(arguments) > 0,
        validation_steps=try_read(
            validation_steps, arguments, training.data, otherwise=None
        ),
        validated=epochs_between(arguments),
        asked=training.epochs,
        policy=max(set(policies), key=policies.count, default="float32"),
        flop=flop_of(model, batch),
        padded=try_read(padded, model, batch, otherwise={}),
        **_of_data(training, batch),
        **run_facts,
    )


def _classes(objects: Iterable[Any]) -> tuple[str, ...]:
    return tuple(type(item).__name__ for item in objects)


def _can_xla(model: Any) -> bool:
    """Whether Keras takes it; where it refuses, it warns and goes on without."""
    if model.jit_compile:
        return True
    with warnings.catch_warnings(action="ignore"):
        model.jit_compile = True
        is_accepted = bool(model.jit_compile)
        model.jit_compile = False
    return is_accepted


def _of_data(training: Training, batch: Any) -> dict[str, Any]:
    """What is known alike of a training and of a loop."""
    return {
        "data": training.kind,
        "batch": try_read(examples_in, batch, otherwise=1),
        "element": try_read(_element, batch, otherwise=tuple[str, ...]()),
        "open_shapes": try_read(open_shapes, training, otherwise=False),
        "settings": training.settings,
    }


def _element(batch: Any) -> tuple[str, ...]:
    import tensorflow as tf

    return tuple(
        described(part)
        for part in tf.nest.flatten(batch)
        if hasattr(part, "shape") and hasattr(part, "dtype")
    )


def open_shapes(training: Training) -> bool:
    """Whether batches of ``tf.data`` may differ in more than their length."""
    import tensorflow as tf

    if training.kind != "tf.data":
        return False
    specs = tf.nest.flatten(training.data.element_spec)
    shapes = [getattr(spec, "shape", None) for spec in specs]
    return any(shape and shape.rank and None in tuple(shape)[1:] for shape in shapes)


def _seen_batch(training: Training) -> Any:
    """A batch; nothing where there is none that can be counted."""
    import tensorflow as tf

    # The thread that trained may be at its generator still, or it was closed.
    batch = try_read(first_batch, training, otherwise=())
    parts = tf.nest.flatten(batch) if training.kind == "generator" else ()
    return batch if all(hasattr(part, "dtype") for part in parts) else ()


# Shorter rows are features, not texts; of less padding nobody would gain.
_SHORTEST, _MOSTLY_FULL = 16, 0.8


def padded(model: Any, batch: Any) -> dict[str, Any]:
    """Describe the padding of a batch; nothing where there is none to save.

    Returns:
        ``{"part": place among the parts of a batch, "front": whether the padding
        stands in front, "longest": length of its longest text}``.
    """
    import tensorflow as tf

    model_inputs = getattr(model, "inputs", None) or ()
    if any(len(t.shape) == 2 and t.shape[1] is not None for t in model_inputs):
        return {}
    parts = tf.nest.flatten(batch)
    # Labels are no texts, and what goes beside a text would have to be cut with it.
    inputs = len(tf.nest.flatten(batch[0])) if isinstance(batch, tuple) else len(parts)
    for place, part in enumerate(parts[:inputs]):
        if getattr(part, "dtype", None) not in (tf.int32, tf.int64, "int32", "int64"):
            continue
        rows = np.asarray(part)
        if rows.ndim != 2 or rows.shape[1] < _SHORTEST:
            continue
        shapes = (tuple(np.shape(p)) for at, p in enumerate(parts) if at != place)
        if any(len(shape) > 1 and shape[1] == rows.shape[1] for shape in shapes):
            continue
        for front in (False, True):
            lengths = _lengths(rows, front=front)
            if lengths.mean() < _MOSTLY_FULL * rows.shape[1]:
                longest = int(lengths.max())
                return {"part": place, "front": front, "longest": longest}
    return {}


def _lengths(rows: NDArray[np.int_], *, front: bool) -> NDArray[np.int_]:
    """The length of each row without its padding, shape (rows,)."""
    words = rows[:, ::-1] != 0 if not front else rows != 0
    skipped = np.where(words.any(axis=1), words.argmax(axis=1), rows.shape[1])
    return np.asarray(rows.shape[1] - skipped)


# Another epoch is waited for so long: its beginning tells that there are more.
_WAIT_S = 2.0
# Trials that had to wait longer from epoch to epoch would see little else.
LONG_BETWEEN_S = 5.0


def some_epochs(running: Iterator[object], looping: Looping) -> None:
    """Let a loop that has epochs begin as many as a trial may, each for a step.

    Where it has no more than this sees, its function ends here, too: no trial will
    come so far.
    """
    if looping.calls:
        looping.calls.end()
    if not looping.repeated:
        return
    looping.hurry, began = True, time.perf_counter()
    for _ in running:
        enough = looping.begun >= looping.max_epochs
        if enough or time.perf_counter() - began > _WAIT_S:
            return


def facts_of_loop(looping: Looping, **run_facts: Any) -> Facts:
    """Say what was seen of a loop; ``run_facts`` is what only timing tells."""
    import tensorflow as tf

    training = looping.training
    assert training is not None
    batch, calls = looping.first, looping.calls
    repeated = looping.repeated and looping.between_s <= LONG_BETWEEN_S
    eager = tf.config.functions_run_eagerly()
    at_once = not (eager or tf.config.list_physical_devices("GPU"))
    return Facts(
        model="a loop of your own",
        steps=looping.length or try_read(steps_of, training, otherwise=None),
        eager=eager,
        loop=True,
        eager_calls=calls.eager() if calls else (),
        computes=calls.computes() if calls else "",
        drawn=calls.draws_per_step() if calls else {},
        epochs=min(looping.begun, looping.max_epochs) if repeated else 1,
        between_s=looping.between_s,
        waits_s=float(np.median(calls.waits_s)) if calls and calls.waits_s else None,
        graphs_s=calls.graphs_s() if calls and at_once else {},
        **_of_data(training, batch),
        **run_facts,
    )


# Steps of an epoch in a trial fill so many seconds, where real ones take longer.
_EPOCH_S = 0.35
_FEWEST = 4
# Of steps that take longer than this fewer have to do.
_LONG_S, _FEWEST_LONG = 0.4, 2
_SHORTER = 1.5


def _steps_in(step_s: float, at_a_time: int = 1) -> int:
    fewest = _FEWEST if step_s < _LONG_S else _FEWEST_LONG
    return max(fewest * at_a_time, round(_EPOCH_S / step_s))


def epochs_for(facts: Facts, changes: Sequence[Change] = ()) -> Epochs:
    """How long the epochs of a trial are."""
    if facts.loop:
        # The one epoch of a loop that has no more never ends in a trial.
        if facts.epochs == 1 or not facts.steps:
            return Epochs(batch=facts.batch)
        fitting = _steps_in(facts.step_s or _EPOCH_S)
        if facts.pipeline.get("cached") or fitting >= facts.steps / _SHORTER:
            return Epochs(batch=facts.batch, steps=facts.steps)
        return Epochs(batch=facts.batch, steps=facts.steps, trial_steps=fitting)
    times = next((change.batches for change in changes if change.batches != 1), 1)
    at_a_time = max([facts.steps_per_execution, *(change.steps for change in changes)])
    steps = math.ceil(facts.steps / times) if facts.steps else None
    epochs = Epochs(
        batch=round(facts.batch * times),
        steps=steps,
        examples=(facts.steps or 0) * facts.batch,
        validation=facts.validation_steps,
        validated=facts.validated,
    )
    if not steps:
        return epochs
    step_s = facts.step_s * times or _EPOCH_S
    fitting = _steps_in(step_s, at_a_time)
    if facts.pipeline.get("hidden cache") or fitting >= steps / _SHORTER:
        # An epoch of few executions has no ticks but its own.
        is_short = steps * step_s < _EPOCH_S or steps <= _FEWEST * at_a_time
        return replace(epochs, has_epoch_ticks=is_short)
    return replace(epochs, trial_steps=fitting)
