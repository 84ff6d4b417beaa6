"""How steps are run: with which settings, as a graph, several at a time, by XLA."""

import ast
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from perfkit import units
from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose import settings
from perfkit.training.diagnose.change import (
    OVERHEAD,
    Candidates,
    Change,
    KnownCause,
    Untested,
)
from perfkit.training.diagnose.code import (
    Code,
    Splice,
    Unsure,
    compile_with,
    delete,
    line_of_compile,
    line_of_definition,
    only,
    place_of,
    require,
    value_at,
)
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.loop import OPERATIONS, is_own
from perfkit.training.diagnose.source import (
    Definition,
    called_name,
    dotted,
    is_literal,
    keyword,
    of_kind,
)
from perfkit.training.diagnose.training import Training, see_every_step

# What is about the pipeline alone explains an input that is slow.
_OF_INPUT = "tf.data."


def left_off(facts: Facts, cause: str, name: str, changes: str) -> Iterator[Change]:
    """Leave off all settings that slow the training and belong to one cause.

    ``{}`` stands for their lines in ``changes``.
    """
    if lines := facts.settings.get(cause):
        listed = " and ".join(f"`{line}`" for line in lines)
        yield Change(
            name=name,
            changes=changes.format(listed),
            fix=f"Delete {listed}.",
            before=functools.partial(settings.leave_off, cause),
            after=WITHOUT_INPUT if all(o.startswith(_OF_INPUT) for o in lines) else "",
        )


def _delete_settings(code: Code, cause: str) -> Iterator[Splice]:
    """Delete the lines that set what slows it, as the first look has seen them."""
    for line in require((code.facts.get("settings") or {}).get(cause)):
        name = line.partition("(")[0].split(".")[-1]
        yield from delete(code, only(code.calls_of(name)))


def _of_settings(cause: str, name: str, changes: str, **known: Any) -> KnownCause:
    return KnownCause(
        id=cause,
        kind="defect",
        offer=functools.partial(left_off, cause=cause, name=name, changes=changes),
        edit=functools.partial(_delete_settings, cause=cause),
        everywhere=True,
        **known,
    )


DEBUGGING = _of_settings(
    "debugging",
    name="without debugging",
    changes="Debugging stays off: {}.",
    do="Turn debugging off",
    means="a debug setting is on",
    masks=True,
)
THREADS = _of_settings(
    "threads",
    name="default threads",
    changes="TensorFlow uses one thread per core, without {}.",
    do="Let TensorFlow choose the number of threads",
    means="a setting gives it more or fewer threads than there are cores",
)

_GRAPH = "graph"
# The change of a loop whose steps stand in no function, and what to do there.
PARTS = "model as a graph"
_FUNCTION = (
    "Move the computing of a step into a function with @tf.function, and call that"
)
_REAL = "_perfkit_real"


def eager(facts: Facts) -> Candidates:
    """Run what computes eagerly as a graph."""
    if facts.loop:
        yield from _eager_loop(facts)
    elif facts.eager:
        yield Change(
            name=_GRAPH,
            changes="TensorFlow traces the step once and runs it as a graph.",
            fix="Remove the setting that runs it eagerly: run_eagerly=True in compile, "
            "model.run_eagerly = True, or tf.config.run_functions_eagerly(True).",
            apply=as_graph,
            **_TYPED,
        )


def _eager_loop(facts: Facts) -> Candidates:
    changes = "TensorFlow runs what is under @tf.function as a graph, without {}."
    for change in left_off(facts, "eager", _GRAPH, changes):
        yield replace(change, **_TYPED)
    if functions := tuple(facts.eager_calls):
        listed = " and ".join(f"`{name.partition(':')[2]}`" for name in functions)
        yield Change(
            name="tf.function",
            changes=f"TensorFlow traces {listed} once and runs it as a graph.",
            fix=f"Write @tf.function above {listed}.",
            mind="Python inside it, such as a print or a counter, then runs once.",
            apply=functools.partial(as_graphs, functions=functions),
        )
    elif facts.computes == OPERATIONS:
        reason = f"no function computes its steps. {_FUNCTION}, then diagnose again"
        yield Untested(reason)
    elif facts.computes:
        yield Change(
            name=PARTS,
            changes="Each model and each optimizer that a step calls runs as a graph.",
            fix=f"{_FUNCTION}. That brings at least this much, because here the model "
            "and the optimizer were two graphs.",
            at_least=True,
            apply=parts_as_graphs,
        )


def as_graph(training: Training) -> None:
    """Run the steps as a graph, whoever asked for eager ones."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(False)
    training.model.run_eagerly = False
    training.trace_anew()


def as_graphs(training: Training, *, functions: Iterable[str]) -> None:
    """Put ``tf.function`` around the functions that ``LoopCalls.eager`` names."""
    import tensorflow as tf

    for function in functions:
        module, _, path = function.partition(":")
        *outer, name = path.split(".")
        holder = functools.reduce(getattr, outer, sys.modules[module])
        original = getattr(holder, name)
        # A trial asks for each epoch anew.
        if not isinstance(original, tf.types.experimental.PolymorphicFunction):
            setattr(holder, name, tf.function(original))


def parts_as_graphs(training: Training) -> None:
    """Put ``tf.function`` around each model and optimizer that the user's code calls.

    What a loop computes itself stands in no function, which alone could be a graph.
    """
    import keras
    import tensorflow as tf

    call, apply = keras.Layer.__call__, keras.optimizers.Optimizer.apply
    graphs = dict[tuple[int, ...], Any]()

    def graph_of(function: Callable[..., Any], *owners: Any) -> Any:
        # The owners are kept, so that no other object gets the same id.
        key = tuple(map(id, owners))
        return graphs.setdefault(key, (tf.function(function), owners))[0]

    @functools.wraps(call)
    def call_graph(layer: Any, *args: Any, **kwargs: Any) -> Any:
        # An unbuilt layer makes its variables, which has to happen outside a graph.
        eager = tf.executing_eagerly() and layer.built and is_own(sys._getframe(1))
        if not eager:
            return call(layer, *args, **kwargs)
        return graph_of(lambda *a, **n: call(layer, *a, **n), layer)(*args, **kwargs)

    @functools.wraps(apply)
    def apply_graph(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        variables = None if trainable_variables is None else [*trainable_variables]
        if not (tf.executing_eagerly() and optimizer.built):
            return apply(optimizer, grads, variables)
        owners = (optimizer, *(variables or ()))
        step = graph_of(lambda g: apply(optimizer, g, variables), *owners)
        return step([*grads])

    if not hasattr(call, _REAL):
        setattr(call_graph, _REAL, call)
        keras.Layer.__call__, keras.optimizers.Optimizer.apply = call_graph, apply_graph


def _without_run_eagerly(code: Code) -> Iterator[Splice]:
    """Take out what asks for eager steps, where these are Keras's own.

    What code of the user's draws, counts or reads in Python a graph would do once.
    """
    arguments = of_kind(ast.Name, *code.calls_of("compile"))
    names = {*_STEPS, *(n.id for n in arguments)}
    traced = any(dotted(node).endswith(".function") for node in code.nodes)
    overrides = (getattr(f, "name", "") in names for f in code.of_kind(Definition))
    if traced or any(overrides):
        raise Unsure
    yield from _without_eager(code)


# The methods of a user's own that Keras calls in each step.
_STEPS = ("train_step", "test_step", "call", "compute_loss", "update_state")


def _without_eager(code: Code) -> Iterator[Splice]:
    for call in code.calls:
        at = place_of(call, "run_eagerly")
        if at and called_name(call) == "compile" and code.is_true(value_at(call, at)):
            yield from code.text.remove(call, at)
        elif at and is_literal(value_at(call, at), True):
            # A function of the user's own may need the argument.
            yield from code.text.replace(call, at, "run_eagerly=False")
        if called_name(call) == "run_functions_eagerly":
            value = keyword(call, "run_eagerly", 0)
            if value is not None and code.is_true(value):
                yield from delete(code, call)
    for node, target in code.assignments:
        if called_name(target) == "run_eagerly" and code.is_true(node.value):
            yield from delete(code, node)


def _line_of_eager(code: Code) -> int:
    """The first line that asks for eager steps."""
    first = min(start for start, *_ in _without_eager(code))
    return code.text.source.count("\n", 0, first) + 1


# What to type for a graph where Keras runs the steps, and what that costs.
_TYPED: dict[str, Any] = {
    "mind": "Python in a step then runs once.",
    "edit": _without_run_eagerly,
    "line": _line_of_eager,
}
EAGER = KnownCause(
    id="eager",
    kind="defect",
    do="Run the steps as a graph",
    means="Python runs its steps one operation at a time, not as a graph",
    offer=eager,
    line=lambda code: line_of_definition(code, *code.facts.get("eager_calls") or ()),
    masks=True,
    everywhere=True,
)

_MANY = 16
# The way back to Python takes a few milliseconds at most.
_LONG_S = 0.1
# The last execution of an epoch may hold fewer steps than it says.
UNCOUNTED = (
    "the number of steps in an epoch is unknown, and its optimizer does not count them "
    "(your own train_step, or gathered gradients): give steps_per_epoch"
)


def step_overhead(facts: Facts) -> Candidates:
    """Make several steps before going back to Python."""
    many, current = min(_MANY, facts.steps or _MANY), facts.steps_per_execution
    while facts.endless and (facts.steps or 0) % many:
        # What goes on has no last execution with fewer steps: an epoch would have more.
        many -= 1
    if facts.eager:
        yield Untested("eager steps run one at a time")
    elif facts.step_s > _LONG_S:
        step = units.seconds(facts.step_s)
        yield Untested(f"going back to Python is next to nothing in a step of {step}")
    elif facts.endless and many == 1:
        reason = f"no number of steps at a time divides the {facts.steps} of an epoch"
        yield Untested(reason)
    elif current < many and not facts.counted:
        yield Untested(UNCOUNTED)
    elif current < many:
        note, seldom = "", ""
        if facts.callbacks:
            note = "; callbacks still see every step"
            seldom = f"Keras then calls callbacks once in {many} steps, also one that "
            seldom += "steers each of them."
        yield Change(
            name=f"{many} steps at a time",
            changes=f"Keras runs {many} steps per call instead of {current}{note}.",
            fix=f"model.compile(..., steps_per_execution={many})",
            do=f"Run {many} steps per call",
            mind=seldom,
            edit=functools.partial(
                compile_with, name="steps_per_execution", value=f"{many}"
            ),
            apply=functools.partial(many_steps, steps=many, epoch=facts.steps),
            steps=many,
        )


def many_steps(training: Training, *, steps: int, epoch: int | None = None) -> None:
    """Make several steps before going back to Python.

    The last execution of an epoch of so many steps may hold fewer.
    """
    training.model.steps_per_execution = steps
    training.trace_anew()
    see_every_step(training.arguments["callbacks"], epoch)


STEP_OVERHEAD = KnownCause(
    id=OVERHEAD,
    kind="by gain",
    do="Run several steps per call",
    means="it returns to Python after every step",
    offer=step_overhead,
    line=line_of_compile,
    needs_fit=True,
)


def xla(facts: Facts) -> Candidates:
    """Have XLA compile the step."""
    if facts.eager:
        yield Untested("XLA cannot compile an eager step")
    elif not facts.xla:
        yield Change(
            name="XLA",
            changes="XLA compiles the step.",
            fix="model.compile(..., jit_compile=True)",
            apply=compiled,
        )


def compiled(training: Training) -> None:
    """Let XLA compile the step."""
    training.model.jit_compile = True
    training.trace_anew()


XLA = KnownCause(
    id="xla",
    kind="opportunity",
    do="Compile the steps with XLA",
    means="XLA does not compile its step",
    offer=xla,
    edit=lambda code: compile_with(code, "jit_compile", "True"),
    line=line_of_compile,
    needs_fit=True,
)
