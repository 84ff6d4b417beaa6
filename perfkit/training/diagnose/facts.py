"""What is known of a training before anything is changed: which changes apply to it."""

import math
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from perfkit.questions.shared.loops import described
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.failure import try_read
from perfkit.training.diagnose.loop import Looping
from perfkit.training.diagnose.training import (
    Training,
    epochs_between,
    examples_in,
    first_batch,
    leaves,
    metrics_of,
    steps_of,
    updates_once,
    validation_steps,
)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A training, looked at and run for a moment; JSON values only.

    Attributes:
        parameters: Numbers it learns.
        layers: Names of its layers' classes, in order.
        data: The kind of its data, as ``Training.kind`` has it.
        batch: Examples of a step.
        steps: Of an epoch; None where nobody knows.
        endless: Whether one iterator goes on from epoch to epoch.
        ready_s: Seconds until its first step was done, making and tracing included.
        step_s: Seconds of a step, roughly.
        eager: Whether its steps run eagerly.
        steps_per_execution: As compiled.
        counted: Whether the steps of an epoch can be counted, however many are made at
            a time.
        xla: Whether its step is compiled by XLA.
        metrics: Names of the metrics it was compiled with, the loss apart.
        callbacks: Names of the callbacks' classes, in order.
        steering: Those of them that may change what is learnt, as one's own may.
        progress: Whether fit draws its progress bar.
        validation: Whether there are validation data.
        validation_steps: Of a validation; None where nobody knows.
        validated: Epochs from one validation to the next; 0 where there is none.
        policy: The dtype policy that most of its layers have.
        element: Per tensor of a batch: dtype and shape, such as "float32[32, 224]".
        pipeline: What is known of the data's stages; see ``diagnosis.pipeline``.
        loop: Whether it is a loop of the user's own, marked by ``perfkit.steps``.
        retraced: Functions that are traced again and again; see ``diagnosis.tracing``.
        open_shapes: Whether the shape of its batches, their length apart, is left open.
        epochs: Of such a loop: how many of its epochs a trial may begin.
        between_s: Of such a loop: seconds of its own code between two epochs.
        late: Variables of the environment that it set after TensorFlow had been loaded.
        uncontained: Who refuses what of a training that is not sealed, in sentences;
            "" of one that is.
        padded: What is known of texts that were padded beforehand; see ``padded``.
        settings: Lines that set what slows it, by cause; see ``diagnosis.settings``.
        eager_calls: Functions that such a loop calls in each step and that compute
            eagerly, as ``"module:function"``.
        computes: What its steps compute eagerly in no such function: ``"layers"`` of
            Keras, ``"operations"`` alone, or "" for nothing.
        iterators: How many iterators over ``tf.data`` a step of such a loop makes.
        lines: Whose work may be left out; see ``diagnose.causes.lines``.
        start: Of a race across backends: its first losses from the start that all sides
            share; see ``race.backends``.
    """

    parameters: int = 0
    layers: tuple[str, ...] = ()
    data: str = ""
    batch: int = 1
    steps: int | None = None
    endless: bool = False
    ready_s: float = 0.0
    step_s: float = 0.0
    eager: bool = False
    steps_per_execution: int = 1
    counted: bool = True
    xla: bool = False
    metrics: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()
    progress: bool = False
    validation: bool = False
    validation_steps: int | None = None
    validated: float = 0
    policy: str = "float32"
    element: tuple[str, ...] = ()
    pipeline: dict[str, Any] = field(default_factory=dict)
    loop: bool = False
    epochs: int = 1
    between_s: float = 0.0
    retraced: dict[str, dict[str, Any]] = field(default_factory=dict)
    open_shapes: bool = False
    late: tuple[str, ...] = ()
    uncontained: str = ""
    padded: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, list[str]] = field(default_factory=dict)
    eager_calls: tuple[str, ...] = ()
    computes: str = ""
    iterators: float = 0.0
    lines: tuple[dict[str, Any], ...] = ()
    start: dict[str, Any] = field(default_factory=dict)

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


def facts_of(training: Training, **run_facts: Any) -> Facts:
    """Look at a training without running it; ``run_facts`` came from a run."""
    model, arguments = training.model, training.arguments
    batch = _seen_batch(training)
    policies: list[str] = try_read(
        lambda: [layer.dtype_policy.name for layer in model.layers], otherwise=[]
    )
    steps = try_read(steps_of, training, otherwise=None)
    callbacks = arguments.get("callbacks") or ()
    return Facts(
        parameters=try_read(
            lambda: sum(math.prod(weight.shape) for weight in model.weights),
            otherwise=0,
        ),
        layers=try_read(lambda: _classes(model.layers), otherwise=()),
        steps=steps,
        endless=bool(arguments.get("steps_per_epoch")),
        eager=bool(model.run_eagerly) or _runs_eagerly(),
        # Keras 2 keeps it in a variable of its own.
        steps_per_execution=int(getattr(model, "steps_per_execution", 1)),
        counted=bool(steps) or updates_once(model),
        xla=bool(model.jit_compile),
        metrics=try_read(metrics_of, model, otherwise=()),
        callbacks=_classes(callbacks),
        steering=_classes(c for c in callbacks if steers(c)),
        progress=arguments.get("verbose", "auto") != 0,
        validation=epochs_between(arguments) > 0,
        validation_steps=try_read(
            validation_steps, arguments, training.data, otherwise=None
        ),
        validated=epochs_between(arguments),
        policy=max(set(policies), key=policies.count, default="float32"),
        padded=try_read(padded, model, batch, otherwise={}),
        **_of_data(training, batch),
        **run_facts,
    )


# Those of Keras that change the learning rate or the weights, or end the training.
_STEER = frozenset(
    {
        *("EarlyStopping", "LambdaCallback", "LearningRateScheduler"),
        *("ReduceLROnPlateau", "SwapEMAWeights", "TerminateOnNaN"),
    }
)


def steers(callback: Any) -> bool:
    """Whether it may change what is learnt; nobody reads the code of one's own."""
    kind = type(callback)
    is_own = kind.__module__.partition(".")[0] not in ("keras", "tf_keras")
    return is_own or kind.__name__ in _STEER


def _runs_eagerly() -> bool:
    """Whether TensorFlow was told to run functions eagerly."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and bool(tf.config.functions_run_eagerly())


def _classes(objects: Iterable[Any]) -> tuple[str, ...]:
    return tuple(type(item).__name__ for item in objects)


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
    return tuple(
        described(part)
        for part in leaves(batch)
        if hasattr(part, "shape") and hasattr(part, "dtype")
    )


def open_shapes(training: Training) -> bool:
    """Whether batches of ``tf.data`` may differ in more than their length."""
    if training.kind != "tf.data":
        return False
    specs = leaves(training.data.element_spec)
    shapes = [getattr(spec, "shape", None) for spec in specs]
    return any(shape and shape.rank and None in tuple(shape)[1:] for shape in shapes)


def _seen_batch(training: Training) -> Any:
    """A batch; nothing where there is none that can be counted."""
    # The thread that trained may be at its generator still, or it was closed.
    batch = try_read(first_batch, training, otherwise=())
    parts = leaves(batch) if training.kind == "generator" else ()
    return batch if all(hasattr(part, "dtype") for part in parts) else ()


# As NumPy and as TensorFlow write them.
_INTEGERS = ("int32", "int64", "<dtype: 'int32'>", "<dtype: 'int64'>")
# Shorter rows are features, not texts; of less padding nobody would gain.
_SHORTEST, _MOSTLY_FULL = 16, 0.8


def padded(model: Any, batch: Any) -> dict[str, Any]:
    """Describe the padding of a batch; nothing where there is none to save.

    Returns:
        ``{"part": place among the parts of a batch, "front": whether the padding
        stands in front}``.
    """
    model_inputs = getattr(model, "inputs", None) or ()
    if any(len(t.shape) == 2 and t.shape[1] is not None for t in model_inputs):
        return {}
    parts = list(leaves(batch))
    # Labels are no texts, and what goes beside a text would have to be cut with it.
    inputs = len(list(leaves(batch[0]))) if isinstance(batch, tuple) else len(parts)
    for place, part in enumerate(parts[:inputs]):
        if str(getattr(part, "dtype", "")) not in _INTEGERS:
            continue
        rows = np.asarray(part)
        if rows.ndim != 2 or rows.shape[1] < _SHORTEST:
            continue
        shapes = (tuple(np.shape(p)) for at, p in enumerate(parts) if at != place)
        if any(len(shape) > 1 and shape[1] == rows.shape[1] for shape in shapes):
            continue
        for front in (False, True):
            words = rows != 0 if front else rows[:, ::-1] != 0
            skipped = np.where(words.any(axis=1), words.argmax(axis=1), rows.shape[1])
            if (rows.shape[1] - skipped).mean() < _MOSTLY_FULL * rows.shape[1]:
                return {"part": place, "front": front}
    return {}


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
    training = looping.training
    assert training is not None
    batch, calls = looping.first, looping.calls
    repeated = looping.repeated and looping.between_s <= LONG_BETWEEN_S
    return Facts(
        steps=looping.length or try_read(steps_of, training, otherwise=None),
        eager=_runs_eagerly(),
        loop=True,
        eager_calls=calls.eager() if calls else (),
        computes=calls.computes() if calls else "",
        iterators=calls.iterators_per_step() if calls else 0.0,
        epochs=min(looping.begun, looping.max_epochs) if repeated else 1,
        between_s=looping.between_s,
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


def epochs_for(facts: Facts, times: float = 1, at_a_time: int = 1) -> Epochs:
    """How long the epochs of a trial are.

    Its batches are so many ``times`` as large, and so many steps are made at a time.
    """
    if facts.loop:
        # The one epoch of a loop that has no more never ends in a trial.
        if facts.epochs == 1 or not facts.steps:
            return Epochs(batch=facts.batch)
        fitting = _steps_in(facts.step_s or _EPOCH_S)
        if facts.pipeline.get("cached") or fitting >= facts.steps / _SHORTER:
            return Epochs(batch=facts.batch, steps=facts.steps)
        return Epochs(batch=facts.batch, steps=facts.steps, trial_steps=fitting)
    at_a_time = max(at_a_time, facts.steps_per_execution)
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
