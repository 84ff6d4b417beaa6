"""Look at a training in a process of its own: what is it, and what might help it?

Once that is known, what to change is looked for in the same process, in which the
training is set up once. The training as given and changes of it that need no other
model take turns: each turn is a ``fit`` of a second or of a few steps. Whole groups of
changes are left out first (no input, nobody who watches): what a group cannot bring,
none of its changes can. What may help is then tried one by one. What this finds is
confirmed in fresh processes.
"""

import contextlib
import functools
import gc
import itertools
import os
import random
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from perfkit.engine.launcher import Started, read_early
from perfkit.engine.live import OneProcess, failed, turn
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.trial import READY, WHOLE, Note, Pause, Tick, Yielded
from perfkit.engine.worker import stamp
from perfkit.questions.shared.loops import Told, Turnstile
from perfkit.training.diagnose import failure, settings
from perfkit.training.diagnose.causes import applicable
from perfkit.training.diagnose.causes.lines import remember, with_obstacles
from perfkit.training.diagnose.change import Change, epochs_with
from perfkit.training.diagnose.epochs import EPOCH_END, Block, Epochs, train
from perfkit.training.diagnose.facts import Facts, facts_of, facts_of_loop, some_epochs
from perfkit.training.diagnose.loop import LoopCalls, Looping, fitted
from perfkit.training.diagnose.maker import contain
from perfkit.training.diagnose.pipeline import remember_lines
from perfkit.training.diagnose.pipeline.facts import pipeline_facts
from perfkit.training.diagnose.pipeline.memory import (
    Worth,
    fill_caches,
    leave_files_alone,
)
from perfkit.training.diagnose.rounds import (
    AS_GIVEN,
    Screening,
    planned,
    to_variants,
    turn_s,
)
from perfkit.training.diagnose.tracing import Tracing, add_notes
from perfkit.training.diagnose.training import Training, epochs_between

FACTS = "facts"
# Seconds from the beginning of the diagnosis until the facts were known.
SPENT = "spent"
# Who refuses what of a training that is guarded, in sentences; told before it runs.
UNCONTAINED = "uncontained"
# The longer one waits for another trace of what was traced anew.
_LOOK_S, _LONGEST_LOOK_S = 1.5, 12.0
_ENOUGH_TICKS = 60


@failure.as_notes
def look(
    maker: Callable[[], Any],
    budget: float | None = None,
    *,
    began: float = 0.0,
    screens: bool = False,
    suspects: frozenset[str] = frozenset(),
    lines: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Yielded]:
    """Make the training, run it for a moment, and tell what was seen.

    Args:
        maker: Makes the training.
        budget: Seconds of the whole diagnosis; None for what it needs.
        began: When that began, on ``time.perf_counter``.
        screens: Whether changes of the training then take turns here.
        suspects: Causes that an account points to, to be tried first.
        lines: Whose work may be left out, as ``causes.lines.hot`` has them.

    Yields:
        The notes ``"uncontained"`` where it is and ``"facts"``, then what the turns
        tell; or what was raised, as ``failure.as_notes`` has it.
    """
    if uncontained := contain(maker):
        yield Note(UNCONTAINED, uncontained)
    ready_from, loaded = time.perf_counter(), read_early(os.environ)
    looping, turns = Looping(Epochs(batch=1), calls=LoopCalls()), Turns(suspects)
    traces = Tracing()
    traces.look()
    remember_lines(maker)
    if lines:
        remember(maker)
    screening = turns.screen if screens else None
    # With no end of an epoch the first step is told at once.
    running = fitted(maker, looping, leave_files_alone, screening)
    with contextlib.closing(running):
        run_facts = run_for_a_moment(running, traces, ready_from, loaded)
        run_facts["uncontained"] = uncontained
        if training := looping.fitting:
            run_facts["lines"] = with_obstacles(training, lines)
            run_facts["pipeline"] = pipeline_facts(training)
            facts = facts_of(training, **run_facts)
        else:
            assert looping.training is not None
            some_epochs(running, looping)
            run_facts["pipeline"] = pipeline_facts(looping.training)
            facts = facts_of_loop(looping, **run_facts)
        yield Note(FACTS, asdict(facts))
        # What one variant's turn has traced would not be traced anew in another's.
        if facts.loop or not screens or (facts.retraced and not facts.reshaped):
            return
        spent_s = time.perf_counter() - began
        _, turns_s, _ = planned(facts, spent_s, budget)
        turns.go_on(facts, turns_s)
        yield Note(SPENT, spent_s)
        for event in add_notes(running, traces, facts.batch):
            turns.take_event(event)
            yield event


def facts_in(process: Started, remedy: str) -> Facts:
    """What a look has found, from its notes; see ``failure.run_error``."""
    if FACTS in process.notes:
        return Facts(**process.notes[FACTS])
    raise failure.run_error(process, remedy)


def run_for_a_moment(
    ticks: Iterator[Any], traces: Tracing, began: float, loaded: Mapping[str, str]
) -> dict[str, Any]:
    """Run a training for a second or two, and give the ``Facts`` that only that tells.

    Making it ``began`` then, on ``time.perf_counter``, when ``read_early(os.environ)``
    was what is ``loaded``.
    """
    # When each tick came and how many steps it held.
    times: list[tuple[float, int]] = []
    for tick in itertools.islice(ticks, _ENOUGH_TICKS):
        if tick == READY:
            traces.begin()
        steps = tick.examples if isinstance(tick, Tick) else 0
        times.append((time.perf_counter(), steps))
        elapsed_s = times[-1][0] - times[0][0]
        if elapsed_s > (_LONGEST_LOOK_S if traces.undecided else _LOOK_S):
            break
    pairs = itertools.pairwise(times)
    steps_s = [(at - before) / count for (before, _), (at, count) in pairs if count]
    return {
        "step_s": statistics.median_high(steps_s) if steps_s else 0.0,
        "ready_s": times[0][0] - began if times else 0.0,
        "retraced": traces.anew(),
        "late": settings.set_late(loaded),
    }


# What of a model says how its steps are run, or is made for that.
_VALIDATED = "_eval_epoch_iterator"
_ATTRIBUTES = (
    *("steps_per_execution", "jit_compile", "run_eagerly"),
    *("_compile_loss", "_compile_metrics"),
    *("train_function", "test_function", "predict_function", _VALIDATED),
)
_TICKS = 3
# Steps that take longer were warm after the first look.
_LONG_S = 0.2
# A turn that has not seen the end of an epoch by then ends without one.
_PATIENCE = 4


def capture(model: Any, callbacks: list[Any]) -> Callable[..., None]:
    """Return what lets a model, which nothing trains now, be run as it is now.

    That takes the attributes of its callbacks, if they are to have others.
    """
    import tensorflow as tf

    attributes = {n: getattr(model, n) for n in _ATTRIBUTES if hasattr(model, n)}
    # A validation that was broken off does not go on in another variant's turn.
    if _VALIDATED in attributes:
        attributes[_VALIDATED] = None
    # What stands for ``call`` in each of its layers; nothing where that is its class's.
    calls = [
        (layer, {n: v for n, v in vars(layer).items() if n == "call"})
        for layer in model._flatten_layers(include_self=False)
    ]
    present = [dict(vars(callback)) for callback in callbacks]
    is_eager = tf.config.functions_run_eagerly()

    def put(states: list[dict[str, Any]] = present) -> None:
        if tf.config.functions_run_eagerly() != is_eager:
            tf.config.run_functions_eagerly(is_eager)
        for name, value in attributes.items():
            # A model of a class of its own that is built refuses new metrics otherwise.
            if isinstance(getattr(type(model), name, None), property):
                setattr(model, name, value)
            else:
                vars(model)[name] = value
        for layer, call in calls:
            vars(layer).pop("call", None)
            vars(layer).update(call)
        for callback, state in zip(callbacks, states, strict=True):
            vars(callback).clear()
            vars(callback).update(state)

    return put


class Turns:
    """The turns of a training and of its changes, in the process that looked at it."""

    def __init__(self, suspects: frozenset[str] = frozenset()) -> None:
        self._suspects = suspects
        self._training: Training
        # They stay the objects that code of the user's may know, with attributes of
        # their own in each variant, and at first those that they were made with.
        self._callbacks: list[Any] = []
        self._unused: list[dict[str, Any]]
        self._facts = Facts()
        self._ends = 0.0
        self._changes = dict[str, Change]()
        self._hurried = False
        # The training with something changed.
        self._variants: dict[str, Block] = {}
        self._current = ""
        self._failed: dict[str, str] = {}
        # Of the turn of the moment.
        self._ready_s, self._ticks, self._labels = 0.0, 0, set[str]()
        zero_ns = time.perf_counter_ns()
        self._record = OneProcess(zero_ns, zero_ns=zero_ns, clock=time.perf_counter_ns)

    def go_on(self, facts: Facts, seconds: float) -> None:
        """End the first look, which saw these facts; turns have so many seconds."""
        self._facts = facts
        self._ends = time.perf_counter() + seconds
        changes, _ = applicable(facts)
        # Compiling may take all the time that a setting needs which is wrong for sure.
        needless = ("opportunity",) if facts.settings else ()
        self._changes = {
            change.name: change
            for change in changes
            if change.in_place and change.kind not in needless
        }
        self._hurried = any(
            change.kind == "defect" and not change.in_place for change in changes
        )

    def screen(self, training: Training, epochs: Epochs, turnstile: Turnstile) -> None:
        """Train as given until ``go_on``, then in turns until nothing is left to learn.

        The training stays as it was made.
        """
        self._callbacks = training.arguments["callbacks"]
        self._training = training
        self._unused = [dict(vars(callback)) for callback in self._callbacks]
        train(Block(self._copied(), epochs, lambda: self._ends > 0), turnstile)
        candidates = tuple(self._changes.values())
        choosing = Screening(candidates, self._suspects, hurried=self._hurried)
        # All variants begin where the training as given is now.
        self._variants[AS_GIVEN] = self._make_variant(AS_GIVEN)
        number = 0
        if self._facts.step_s < _LONG_S:
            # The first turn warms up what all variants share.
            self._turn(AS_GIVEN, number, turnstile)
        while time.perf_counter() < self._ends:
            measured = Measurement(
                variants=to_variants(candidates),
                trials=self._record.trials(),
                baseline=AS_GIVEN,
            )
            names = choosing(measured, self._failed)
            if not names:
                return
            number += 1
            order = [AS_GIVEN, *names, *([CONTROL] if number > 1 else [])]
            random.shuffle(order)
            for name in order:
                if time.perf_counter() > self._ends:
                    return
                self._turn(name, number, turnstile)

    def _turn(self, name: str, number: int, turnstile: Turnstile) -> None:
        # Pipelines of the turn before end when nothing holds them.
        gc.collect()
        self._current = name
        turnstile.tell(turn(name, number))
        self._ready_s, self._ticks, self._labels = 0.0, 0, set()
        try:
            block = self._variants.get(name) or self._make_variant(name)
            self._variants[name] = block
            arguments = block.training.arguments
            if block.epochs.has_epoch_ticks and not epochs_between(arguments):
                turnstile.tell(Note(WHOLE, True))
            model = block.training.model
            block.state()
            block.over = self._enough
            train(block, turnstile)
        except Exception as error:
            # What the training raises itself ends it all.
            if name in (AS_GIVEN, CONTROL):
                raise
            self._failed[name] = f"raised {failure.in_short(error)}"
            turnstile.tell(failed(name, self._failed[name]))
            return
        block.state = capture(model, self._callbacks)
        block.at_once = True

    def _make_variant(self, name: str) -> Block:
        training, facts = self._copied(), self._facts
        base = self._variants.get(AS_GIVEN)
        put = base.state if base else capture(training.model, self._callbacks)
        put(self._unused)
        changes = [self._changes[name]] if name in self._changes else []
        epochs = epochs_with(facts, changes)
        apply(training, facts, changes, epochs)
        block = Block(training, epochs)
        # Validating traces a function of its own, which is no part of any epoch.
        validates = epochs_between(training.arguments) > 0
        block.at_once = not validates and not epochs.has_epoch_ticks
        block.state = capture(training.model, self._callbacks)
        return block

    def _copied(self) -> Training:
        """The training with arguments of its own; model, data, callbacks are shared."""
        arguments = self._training.arguments | {"callbacks": [*self._callbacks]}
        return replace(self._training, arguments=arguments)

    # What they tell.

    def take_event(self, event: Told) -> None:
        """Take what is told, when it is."""
        if isinstance(event, Note):
            self._record.take(("note", event.name, event.value))
            return
        if event == READY:
            self._ready_s = time.perf_counter()
        elif not isinstance(event, Pause):
            self._ticks += 1
        elif event.every and self._ready_s:
            self._labels.add(event.label)
        self._record.take(("ticks", [stamp(event, time.perf_counter_ns())]))

    def _enough(self) -> bool:
        """Whether the turn of the moment has shown a rate, and what recurs in it."""
        if not self._ready_s or self._ticks < _TICKS:
            return False
        spent, step_s = time.perf_counter() - self._ready_s, self._facts.step_s
        usual = turn_s(step_s)
        epochs = self._variants[self._current].epochs
        ends = epochs.trial_steps is not None and not epochs.has_epoch_ticks
        # Many steps in one call make longer epochs.
        longest = _PATIENCE * max(usual, (epochs.trial_steps or 0) * step_s / 2)
        over = not ends or EPOCH_END in self._labels or spent > longest
        return over and spent >= usual


# A training in a fresh process: as given, or with some things changed.

# Steps for which a cache is filled where nobody knows how many an epoch has.
_MANY = 64


def trial(
    maker: Callable[[], Any], facts: Facts, changes: Sequence[Change] = ()
) -> Generator[Told]:
    """Train as the maker has it, with these things changed, and touch nothing else."""
    contain(maker)
    yield from contained(maker, facts, changes)


def contained(
    maker: Callable[[], Any], facts: Facts, changes: Sequence[Change] = ()
) -> Generator[Told]:
    """Train so in a process that has no way to the user's files any more."""
    epochs = epochs_with(facts, changes)
    if facts.lines:
        remember(maker)
    applied = [change.apply for change in changes]
    looping = Looping(epochs, max_epochs=facts.epochs, changes=applied)

    def make() -> Any:
        for change in changes:
            change.before()
        return maker()

    traces = Tracing()
    traces.look()
    prepare = functools.partial(apply, facts=facts, changes=changes, epochs=epochs)
    with contextlib.closing(fitted(make, looping, prepare)) as ticks:
        yield from add_notes(ticks, traces, epochs.batch)


def apply(
    training: Training, facts: Facts, changes: Sequence[Change], epochs: Epochs
) -> None:
    """Change these things in a training that has been made, and fill its caches.

    Its epochs are those that it has with these things changed.
    """
    for change in changes:
        change.apply(training)
    if facts.pipeline.get("cached"):
        steps = epochs.trial_steps or facts.steps or _MANY
        fill_caches(training, Worth(steps, facts.steps))
