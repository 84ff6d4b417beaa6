"""Look at a training in a process of its own: what is it, and what might help it?"""

import contextlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from perfkit.diagnosis import failure, hints, settings
from perfkit.diagnosis.epochs import Epochs, fitted
from perfkit.diagnosis.facts import Facts, facts_of, facts_of_loop, some_epochs
from perfkit.diagnosis.failure import known
from perfkit.diagnosis.loop import LoopCalls, Looping
from perfkit.diagnosis.maker import contain, uncontained_in_words
from perfkit.diagnosis.pipeline.facts import (
    driven_plan,
    kinds,
    live_plan,
    pipeline_facts,
    tells_too_little,
)
from perfkit.diagnosis.pipeline.memory import leave_files_alone
from perfkit.diagnosis.rounds import planned
from perfkit.diagnosis.screening import Turns
from perfkit.diagnosis.tracing import Tracing, noted
from perfkit.diagnosis.training import Training, handed_over
from perfkit.measure.launcher import read_early
from perfkit.measure.tick import READY, Note, Tick, Yielded
from perfkit.measure.trial import Outcome

FACTS = "facts"
# Seconds from the beginning of the diagnosis until the facts were known.
SPENT = "spent"
ANATOMY = "anatomy"
# Why what it writes reaches the user's files; told before it runs.
UNCONTAINED = "uncontained"
# The longer one waits for another trace of what was traced anew.
_LOOK_S, _LONGEST_LOOK_S = 1.5, 12.0
_ENOUGH_TICKS = 60
_NO_PLAN = {"missing": "TensorFlow does not tell the plan of this pipeline."}


def look(
    maker: Callable[[], Any],
    budget: float | None = None,
    *,
    began: float = 0.0,
    screens: bool = False,
) -> Iterator[Yielded]:
    """Make the training, run it for a moment, and tell what was seen.

    Args:
        maker: Makes the training.
        budget: Seconds of the whole diagnosis; None for what it needs.
        began: When that began, on ``time.perf_counter``.
        screens: Whether changes of the training then take turns here.

    Yields:
        The notes ``"uncontained"`` where it is, ``"anatomy"`` and ``"facts"``, then
        what the turns tell; or what was raised, as ``failure.as_notes`` has it.
    """
    yield from failure.as_notes(_looked(maker, budget, began, screens=screens))


def doing(notes: Mapping[str, Any], otherwise: str) -> str:
    """What to say while it looks, by what it has noted so far."""
    why = notes.get(UNCONTAINED)
    return uncontained_in_words(why) if why else otherwise


def facts_in(notes: Mapping[str, Any], outcome: Outcome, message: str) -> Facts:
    """What a look has found, from its notes.

    Args:
        notes: By name.
        outcome: How its process ended; ``"completed"`` where it goes on.
        message: One sentence on another outcome, without a subject.

    Raises:
        RunError: The training cannot be run; a note holds what its own code raised.
    """
    if FACTS in notes:
        return Facts(**notes[FACTS])
    raise failure.run_error(notes, outcome, message, "give it a larger budget")


def _looked(
    maker: Callable[[], Any], budget: float | None, asked: float, *, screens: bool
) -> Iterator[Yielded]:
    following = Turns(hints.causes(maker)) if screens else None
    seen: list[tuple[Training, float]] = []
    if uncontained := contain(maker):
        yield Note(UNCONTAINED, uncontained)
    began, loaded = time.perf_counter(), read_early(os.environ)

    looping = Looping(epochs := Epochs(batch=1), calls=LoopCalls())
    traces = Tracing()
    traces.look()

    def making() -> Training | None:
        returned = maker()
        if looping.training:
            return None
        training = handed_over(returned)
        leave_files_alone(training)
        seen.append((training, time.perf_counter() - began))
        return training

    # With no end of an epoch the first step is told at once.
    with contextlib.closing(fitted(making, epochs, looping, following)) as running:
        ticks = _some(running, traces)
        plan = known(live_plan, otherwise=_NO_PLAN)
        yield Note(ANATOMY, plan)
        timed: dict[str, Any] = {
            "step_s": _step_s(ticks),
            "ready_s": ticks[0][0] - began if ticks else 0.0,
            "retraced": traces.anew(),
            "late": settings.set_late(loaded),
            "uncontained": uncontained,
        }
        if looping.training:
            some_epochs(running, looping)
            data = pipeline_facts(looping.training) | {"plan": kinds(plan)}
            facts = facts_of_loop(looping, pipeline=data, **timed)
            yield Note(FACTS, facts.as_note())
            return
        training, setup_s = seen[0]
        if training.kind == "tf.data" and tells_too_little(plan):
            yield Note(ANATOMY, known(driven_plan, training.data, otherwise=plan))
        data = pipeline_facts(training) | {"plan": kinds(plan)}
        facts = facts_of(training, setup_s=setup_s, pipeline=data, **timed)
        yield Note(FACTS, facts.as_note())
        # What one variant's turn has traced would not be traced anew in another's.
        if following is None or (facts.retraced and not facts.reshaped):
            return
        spent_s = time.perf_counter() - asked
        following.go_on(facts, planned(facts, spent_s, budget).turns_s)
        yield Note(SPENT, spent_s)
        for told in noted(running, traces, facts.batch):
            following.heard(told)
            yield told


def _some(ticks: Generator[Any], traces: Tracing) -> list[tuple[float, int]]:
    """When each tick came and how many steps it held, for a second or two."""
    found: list[tuple[float, int]] = []
    for tick in itertools.islice(ticks, _ENOUGH_TICKS):
        if tick == READY:
            traces.begin()
        steps = tick.examples if isinstance(tick, Tick) else 0
        found.append((time.perf_counter(), steps))
        looked = found[-1][0] - found[0][0]
        if looked > (_LONGEST_LOOK_S if traces.undecided else _LOOK_S):
            break
    return found


def _step_s(ticks: list[tuple[float, int]]) -> float:
    """Seconds of a step; 0.0 where there was but one."""
    pairs = itertools.pairwise(ticks)
    steps = [(at - before) / count for (before, _), (at, count) in pairs if count]
    return statistics.median_high(steps) if steps else 0.0
