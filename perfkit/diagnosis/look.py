"""Look at a training in a process of its own: what is it, and what might help it?"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import hints, raised, variables
from perfkit.diagnosis.choosing import planned
from perfkit.diagnosis.epochs import Epochs, fitted
from perfkit.diagnosis.facts import Facts, facts_of, facts_of_loop, some_epochs
from perfkit.diagnosis.loop_calls import LoopCalls
from perfkit.diagnosis.looping import Looping
from perfkit.diagnosis.maker import contain
from perfkit.diagnosis.pipeline.facts import (
    driven_plan,
    kinds,
    live_plan,
    pipeline_facts,
    tells_too_little,
)
from perfkit.diagnosis.pipeline.rebuilding import leave_files_alone
from perfkit.diagnosis.screening import Turns
from perfkit.diagnosis.tracing import Tracing, noted
from perfkit.diagnosis.training import Training, handed_over
from perfkit.errors import BadParameterError, RunError
from perfkit.measure.launcher import read_early
from perfkit.measure.tick import READY, Note, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from perfkit.measure.tick import Yielded
    from perfkit.measure.trial import Outcome

FACTS, PROBLEM, TRACEBACK = "facts", "problem", "traceback"
# Seconds from the beginning of the diagnosis until the facts were known.
SPENT = "spent"
ANATOMY = "anatomy"
# The longer one waits for another trace of what was traced anew.
_LOOK_S, _LONGEST_LOOK_S = 1.5, 12.0
_ENOUGH_TICKS = 60


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
        The notes ``"anatomy"`` and ``"facts"``, or ``"problem"`` with a sentence and,
        where the user's own code raised, ``"traceback"``; then what the turns tell.
    """
    try:
        following = Turns(hints.causes(maker)) if screens else None
        yield from _looked(maker, following, budget, began)
    except BadParameterError as error:
        yield Note(PROBLEM, str(error))
    except Exception as error:
        yield Note(TRACEBACK, raised.note_of(error))
        yield Note(PROBLEM, f"The training raised {raised.in_short(error)}")


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
    said = notes.get(PROBLEM) or f"The training {message.rstrip('.')}."
    if outcome == "timed-out":
        said += " If it does not hang, give it a larger budget."
    error = RunError(str(said))
    if TRACEBACK in notes:
        error.add_note(raised.in_text(notes[TRACEBACK]))
    raise error


def _looked(
    maker: Callable[[], Any],
    following: Turns | None,
    budget: float | None,
    asked: float,
) -> Iterator[Yielded]:
    seen: list[tuple[Training, float]] = []
    contain(maker)
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
        plan = live_plan()
        yield Note(ANATOMY, plan)
        timed: dict[str, Any] = {
            "step_s": _step_s(ticks),
            "ready_s": ticks[0][0] - began if ticks else 0.0,
            "retraced": traces.anew(),
            "late": variables.set_late(loaded),
        }
        if looping.training:
            some_epochs(running, looping)
            data = pipeline_facts(looping.training) | {"plan": kinds(plan)}
            facts = facts_of_loop(looping, pipeline=data, **timed)
            yield Note(FACTS, facts.as_note())
            return
        training, setup_s = seen[0]
        if training.kind == "tf.data" and tells_too_little(plan):
            yield Note(ANATOMY, driven_plan(training.data))
        data = pipeline_facts(training) | {"plan": kinds(plan)}
        facts = facts_of(training, setup_s=setup_s, pipeline=data, **timed)
        yield Note(FACTS, facts.as_note())
        if following is None:
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
