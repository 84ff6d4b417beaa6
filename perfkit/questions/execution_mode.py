"""Which way of executing a training step is fastest on this machine?

The suspect: Python starts every operation of every step one by one, so a small step is
nearly all overhead.
The test: make the same steps from the same weights in several modes and compare
examples per second. What a mode's first call costs, to trace or to compile, is kept
apart: it is expensive, and pays back after a number of steps, or never.
"""

import collections
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from perfkit.engine.measurement import OWN, Measurement, Variant
from perfkit.engine.trial import READY, REFUSED, Note, Yielded
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.base import (
    UNWRITTEN,
    Choice,
    Experiment,
    Range,
    mistake_of,
    select,
)
from perfkit.questions.shared import loops, tf, verdicts
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.loops import NOTE, Feed, Job, step_of, traced
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.verdicts import Race, failures, judge_costs

# The ways to run a step, the trainings that do, and whether they learn the same.

EAGER, GRAPH, FIT = "eager loop", "tf.function", "fit"
Kind = Literal["mode", "retracing"]
Weights = NDArray[np.float64]
# Of a model, an optimizer and a loss.
MakeStep = Callable[[Any, Any, Any], Any]

QUIET = {"verbose": 0}
# The note that says whether Keras, left to itself, compiles with XLA on this machine.
BY_DEFAULT = "fit uses XLA"


def numbered(job: Job, network: Any, *, as_tensor: bool = False) -> Iterator[Yielded]:
    """Give the step the number of each step as well: a Python int, or a tensor."""
    loop = with_tensors if as_tensor else with_numbers
    yield from loops.looped(job, numbering(step_of(network)), graph_of, loop)


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
    yield from loops.looped(job, step_of(network), lambda step: step, with_anew)


def with_anew(batches: Any, step: Any) -> Iterator[int]:
    """Make a function of its own for each step."""
    for features, labels in batches:
        tf.function(step)(features, labels)
        yield len(labels)


def fitted(job: Job, network: Any, **options: Any) -> Iterator[Yielded]:
    """Train with ``fit``, in one epoch that has no end.

    Its ``options`` are as of ``compile``; none to learn what Keras does by itself.
    """
    optimizer, loss = loops.optimizer_for(network), loops.loss_function()
    loops.compile_model(network, optimizer, loss, **options)
    if not options:
        yield Note(BY_DEFAULT, bool(network.jit_compile))
    steps = job.steps or loops.ENDLESS
    fit = functools.partial(loops.fit, network, job.batches(), steps, shuffle=False)
    yield READY
    yield from loops.ticks(
        lambda counting: fit(callbacks=[counting], **QUIET),
        examples=job.batch,
        sync=loops.wait,
    )


@dataclass(frozen=True)
class Method:
    """How a variant executes a training.

    It runs without an end. ``does`` says what, in a sentence, and advises a ``"mode"``,
    which may be the fastest. ``"retracing"`` shows how a graph is traced again: ``do``
    says what to do about what costs time, and ``fix`` reads the lines to write instead.
    """

    name: str
    run: Callable[[Job, Any], Iterator[Yielded]]
    does: str
    read: Callable[[], str]
    against: str = EAGER
    do: str = ""
    fix: Callable[[], str] = str
    kind: Kind = "mode"
    feed: Feed = "even"

    @functools.cached_property
    def code(self) -> str:
        """Its lines, behind the step of a loop of one's own."""
        lines = self.read()
        if not re.search(r"\bstep\b", lines):
            return lines
        return f"{code_of(loops.gradient_step)}\n{lines}"


def _fit_lines(**options: Any) -> str:
    """The lines of ``compile``, with ``options``, and of ``fit``."""
    return f"{code_of(loops.compile_model, **options)}\n{code_of(loops.fit, **QUIET)}"


def _fit(name: str, does: str, **options: Any) -> Method:
    """A mode of ``fit`` that tells ``compile`` something."""
    run = functools.partial(fitted, **options)
    return Method(name, run, does, functools.partial(_fit_lines, **options), FIT)


# Reads the lines of a loop with a step that is traced.
_loop = functools.partial(functools.partial, code_of)
_read_graph = _loop(loops.compiled, loops.loop)
_MODES = (
    Method(EAGER, loops.eager, "Run every operation from Python.", _loop(loops.loop)),
    _fit("fit eagerly", "Use `fit`, run eagerly.", run_eagerly=True),
    Method(GRAPH, traced, "Put the step into a `tf.function`.", _read_graph),
    Method(
        "tf.function XLA",
        functools.partial(traced, jit_compile=True),
        "Compile the step with XLA.",
        _loop(loops.compiled, loops.loop, jit_compile=True),
        GRAPH,
    ),
    Method(FIT, fitted, "Use `fit`.", _fit_lines, GRAPH),
    _fit("fit XLA", "Use `fit`, and compile its step with XLA.", jit_compile=True),
    _fit("fit without XLA", "Use `fit` without XLA.", jit_compile=False),
    *(
        _fit(
            f"fit {steps} steps",
            f"Use `fit`, with {steps} steps per call.",
            steps_per_execution=steps,
        )
        for steps in (8, 64)
    ),
)
_read_tensors = _loop(numbering, graph_of, with_tensors)
_read_open = _loop(loops.resized, loops.compiled, loops.loop, reduce_retracing=True)
_dropping = functools.partial(loops.batched, drop_remainder=True)
_retracing = functools.partial(Method, kind="retracing")
_RETRACING = (
    _retracing(
        "Python number",
        numbered,
        "The step gets its number as a Python int, so each new value is traced.",
        _loop(numbering, graph_of, with_numbers),
        GRAPH,
        "Pass the step its number as a tensor.",
        _read_tensors,
    ),
    _retracing(
        "number as tensor",
        functools.partial(numbered, as_tensor=True),
        "The step gets its number as a tensor: one trace for all values.",
        _read_tensors,
        "Python number",
    ),
    _retracing(
        "changing shapes",
        traced,
        "Every batch has another size, so each new shape is traced.",
        _loop(loops.resized, loops.compiled, loops.loop),
        GRAPH,
        "Trace once for all sizes, with `reduce_retracing=True`.",
        _read_open,
        feed="changing",
    ),
    _retracing(
        "shapes left open",
        functools.partial(traced, reduce_retracing=True),
        "The same batches with reduce_retracing: one trace leaves their size open.",
        _read_open,
        "changing shapes",
        feed="changing",
    ),
    _retracing(
        "made anew",
        made_anew,
        "The loop calls tf.function, so every step traces its own function.",
        _loop(with_anew),
        GRAPH,
        "Make the function once, before the loop.",
        _read_graph,
    ),
    _retracing(
        "ragged last batch",
        traced,
        "The last batch of an epoch is smaller than the others.",
        _loop(loops.batched, loops.compiled, loops.loop),
        GRAPH,
        "Drop the last batch of an epoch where it is smaller.",
        _loop(_dropping, loops.compiled, loops.loop),
        feed="ragged",
    ),
)


VARIANTS = {method.name: method for method in (*_MODES, *_RETRACING)}
CHOICES = {
    method.name: verdicts.Choice(method.does, method.read)
    for method in VARIANTS.values()
    if method.kind == "mode"
}
CHOICES[OWN] = verdicts.Choice(
    "Use your own step.", "step = yours(model, optimizer, loss_of)"
)
# Groups of variants, by the question that they answer. The first of each is the
# baseline, which runs twice in each round so that the noise is known.
GROUPS = {
    "modes": (
        *(EAGER, "fit eagerly", GRAPH, "tf.function XLA"),
        *(FIT, "fit XLA", "fit without XLA", "fit 8 steps"),
    ),
    "steps per execution": (FIT, "fit 8 steps", "fit 64 steps"),
    "retracing": (GRAPH, *(method.name for method in _RETRACING)),
}


def own_method(make_step: MakeStep) -> Method:
    """Make a variant of a function that makes a step."""
    run = functools.partial(loops.eager, make_step=make_step)
    return Method(OWN, run, "Your own step, called from a loop in Python.", str)


def why_not(make_step: MakeStep, job: Job) -> str:
    """Say why a step of one's own is not timed; "" where it learns what all learn."""

    def check() -> str:
        network = job.network()
        step = make_step(network, loops.optimizer_for(network), loops.loss_function())
        if step is None:
            return UNWRITTEN
        return differences([own_method(make_step)], job).get(OWN, "")

    return mistake_of(check)


STEPS = 8
# XLA adds in another order, which was seen to make a thirtieth of this; one step more
# or less would be an eighth of the way.
_TOLERANCE = 0.01


def differences(methods: Iterable[Method], job: Job) -> dict[str, str]:
    """Say of each that does not learn what it should how it differs, by name."""
    short, movement = job.first(STEPS), functools.cache(expected)
    jobs = ((method, replace(short, feed=method.feed)) for method in methods)
    differing = {m.name: _difference(m, fed, movement(fed)) for m, fed in jobs}
    return {name: difference for name, difference in differing.items() if difference}


def expected(job: Job) -> Weights:
    """How far the weights move in ``job.steps`` steps of plain gradient descent."""
    network, loss_of = job.network(), loops.loss_function()
    start = _weights(network)
    for features, labels in job.batches():
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(features, training=True))
        slopes = tape.gradient(loss, network.trainable_variables)
        for weight, slope in zip(network.trainable_variables, slopes, strict=True):
            weight.assign_sub(loops.LEARNING_RATE * slope)
    return _weights(network) - start


def _difference(method: Method, job: Job, movement: Weights) -> str:
    network = job.network()
    start = _weights(network)
    try:
        collections.deque(method.run(job, network), maxlen=0)
    except tf.errors.OpError:
        # What cannot run at all says so in its trial, and only there for sure.
        return ""
    moved = _weights(network) - start
    apart = float(np.linalg.norm(moved - movement) / np.linalg.norm(movement))
    if apart <= _TOLERANCE:
        return ""
    return (
        f"does not learn what the others learn: after {job.steps} steps its weights "
        f"are {100 * apart:.0f} % of the way from where they should be"
    )


def _weights(network: Any) -> Weights:
    return np.concatenate([np.ravel(array) for array in network.get_weights()])


@dataclass(frozen=True, kw_only=True)
class ExecutionMode(Experiment):
    """Which way of executing a training step is fastest on this machine?"""

    model: Annotated[
        str, Choice(tuple(MODELS), help="What is trained; the first is the smallest")
    ] = "tiny-dense"
    batch: Annotated[int, Range(8, 1024, unit="examples", help="In a batch")] = 32
    variants: Annotated[
        str, Choice((*GROUPS, *VARIANTS), many=True, help="Groups or single variants")
    ] = "modes"

    name = "execution-mode"
    choices = CHOICES
    # Takes a model, its optimizer and its loss; returns a function of features and
    # labels that trains on one batch.
    function: ClassVar[MakeStep | None] = None

    @property
    def baseline(self) -> str:
        """The first of the first group: each question has a baseline of its own."""
        word = self.variants.split(",")[0]
        groups = (names for group, names in GROUPS.items() if word in (group, *names))
        return next(groups)[0]

    def make_variants(self) -> Mapping[str, Variant]:
        """The variants that ``variants`` asks for, the baseline always first."""
        methods, first = self._methods, self.baseline
        return {
            name: Variant(
                *(name, functools.partial(self._run, name), method.does),
                method.against if method.against in methods else first,
                code=method.code,
            )
            for name, method in methods.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Refuse variants that learn something else."""
        without_gpus()
        yield Note("progress", "Checking that all variants learn the same")
        job = Job(self.model, self.batch)
        methods, function = self._methods, type(self).function
        methods.pop(OWN, None)
        refused = differences(methods.values(), job)
        if function and (reason := why_not(function, job)):
            refused[OWN] = reason
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which mode is fastest, by how much, when it pays back, what to change.

        Of a run whose baseline is a graph: what it costs to trace again.
        """
        facts = [*_facts(measured)]
        guilty = (method for method in VARIANTS.values() if method.do)
        compared = (measured.compare(method.name, method.against) for method in guilty)
        costs = list(filter(None, compared))
        if measured.baseline == GRAPH and costs:
            worst, verdict = judge_costs(measured, costs, "this training")
            if worst:
                method = VARIANTS[worst.variant]
                edit = Edit(old=method.read(), new=method.fix())
                verdict = replace(verdict, headline=method.do, edits=(edit,))
            return replace(verdict, facts=tuple(facts), because=failures(measured))
        race = Race(measured, CHOICES, "examples")
        warnings, first_calls = race.first_calls(self.batch)
        return race.verdict(warnings=warnings, facts=(*facts, *first_calls))

    @property
    def _methods(self) -> dict[str, Method]:
        function = type(self).function
        mine = {OWN: own_method(function)} if function else {}
        methods = select(self.variants, GROUPS, VARIANTS, self.baseline)
        return {self.baseline: methods[self.baseline], **mine, **methods}

    def _run(self, name: str) -> Iterator[Yielded]:
        # The trial has seeded NumPy, with the same number for all variants of a round.
        seed = int(np.random.randint(2**31))
        method = self._methods[name]
        job = Job(self.model, self.batch, seed, feed=method.feed)
        return method.run(job, job.network())


def _facts(measured: Measurement) -> Iterator[Fact]:
    defaults = [trial.notes.get(BY_DEFAULT) for trial in measured.trials]
    if known := [default for default in defaults if default is not None]:
        uses = "compiles with XLA" if known[-1] else "uses no XLA"
        yield Fact(f"{FIT}, without a setting for XLA", uses)
    for name in (m.name for m in VARIANTS.values() if m.kind == "retracing"):
        notes = [t.notes[NOTE] for t in measured.trials_of(name) if NOTE in t.notes]
        if notes:
            # Each trial is a process of its own, and traces anew.
            traces, steps = notes[-1]["traces"], notes[-1]["steps"]
            yield Fact(f"Traces of {name}", f"{traces:,} in {steps:,} steps")
