"""Whole scripts: each trial runs one of them from its first line to its end.

For what has no step in common: a script with ten fits, an agent, a data preparation.
"""

import math
import multiprocessing
import statistics
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.plan import Event, Foreseen, Progress, TrialEnded
from perfkit.engine.tick import READY, Note, Yielded
from perfkit.engine.trial import RUN
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold
from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.findings.text import as_sentence
from perfkit.questions.parameters import NOT_ASKED
from perfkit.questions.shared.words import failures
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.maker import contain
from perfkit.training.race.question import Race
from perfkit.training.race.sides import InPlace, Side

# Without a budget so many rounds are enough, where they take so many seconds.
_ROUNDS, _SHORTEST_S = 6, 60.0
# Runs vary: a budget that is asked for holds so many times what they took.
_SPARE = 1.1
# How the message of a trial begins that one of our own errors ended.
_ENDED = "ended: "
_NOT_COMPARED = (
    "perfkit did not compare what the scripts computed: check that they do the same "
    "work."
)


@dataclass(frozen=True)
class WholeWork(InPlace):
    """A trial of a side: one run."""

    def __call__(self) -> Iterator[Yielded]:
        """Run the script, and tell when it has ended."""
        self.side.moved.move()
        contain(self.side.maker)
        modules = set(sys.modules)
        yield Note(RUN, True)
        yield READY
        self.side.maker()
        # Python does so at its end: pools are told to end, threads are waited for.
        threading._shutdown()  # type: ignore[attr-defined]
        for child in multiprocessing.active_children():
            if not child.daemon:
                child.join()
        yield 1
        yield from self.note_leftovers(modules)


@dataclass(frozen=True, kw_only=True)
class WholeRace(Race):
    """Does one of these scripts end sooner than the other?

    Attributes:
        budget: Seconds of all rounds.
        auto: Whether nobody gave a budget.
    """

    # Where no control was run the intervals decide alone.
    noise: ClassVar[float | None] = 1.0

    budget: float = field(default=math.inf, metadata=NOT_ASKED)
    auto: bool = field(default=False, metadata=NOT_ASKED)

    def work(self, side: Side, *left_out: Change) -> WholeWork:
        """Make a run of a side."""
        return WholeWork(side)

    def is_over(self, measured: Measurement) -> bool:
        """Whether a script has failed, or enough is known without a budget."""
        trials = measured.trials
        rounds = max((trial.round for trial in trials), default=0)
        spent = max((trial.started_s + trial.wall_s for trial in trials), default=0.0)
        enough = self.auto and rounds >= _ROUNDS and spent >= _SHORTEST_S
        return enough or any(trial.has_failed for trial in trials)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which ends sooner, or which did not end."""
        last, seconds = measured.trials[-1], self._seconds(measured)
        compared = filter(None, self.compare(measured))
        rounds = max((c.rounds for c in compared), default=0)
        name = self.baseline if last.variant == CONTROL else last.variant
        took = ", ".join(
            f"a run of {side} took {units.seconds(run_s)}"
            for side, run_s in seconds.items()
        )
        if last.has_failed and rounds < LEAST_ROUNDS:
            is_ours = last.message.startswith(_ENDED)
            reason = last.message.rstrip(".").removeprefix(_ENDED)
            return Verdict(
                headline=f"{reason}." if is_ours else f"{name} {reason}.",
                much=as_sentence(took),
                because=failures(measured),
                next="Run it by itself until it ends well, then race it again.",
            )
        is_over = last.started_s + last.wall_s >= self.budget
        if last.outcome == "stopped" and is_over and not rounds:
            usual = statistics.fmean([*seconds.values(), last.wall_s])
            needed_s = LEAST_ROUNDS * len(self.sides) * usual
            return Verdict(
                headline=f"The budget of {units.seconds(self.budget)} ended before "
                f"{name} did.",
                much=as_sentence(took),
                next=f"Give --budget {_in_tens(2 * needed_s)}: three runs of each take "
                f"more than {units.seconds(needed_s)}.",
            )
        return super().verdict(measured)

    def too_few(self, measured: Measurement) -> str:
        """Say that the budget holds fewer than three runs of each; "" otherwise."""
        run_s = self._run_s(measured)
        runs = int(self.budget / (run_s * len(self.sides))) if run_s else LEAST_ROUNDS
        if runs >= LEAST_ROUNDS:
            return ""
        needed = _in_tens(_SPARE * LEAST_ROUNDS * len(self.sides) * run_s)
        return (
            f"One run takes about {units.seconds(run_s)}: this budget holds "
            f"{runs or 'less than 1'} of each; give --budget {needed} for three."
        )

    def expected_s(self, measured: Measurement) -> float:
        """Seconds that it may take without a budget."""
        usual = _ROUNDS * (len(self.sides) + 1) * self._run_s(measured)
        return min(self.budget, max(_SHORTEST_S, usual))

    def _run_s(self, measured: Measurement) -> float:
        """Seconds of a run with its start, the mean over the sides; 0.0 if unknown."""
        seconds = self._seconds(measured, started=True).values()
        return statistics.fmean(seconds) if seconds else 0.0

    def _seconds(
        self, measured: Measurement, *, started: bool = False
    ) -> dict[str, float]:
        """Return the seconds of a run of each side; ``started`` includes its start."""
        runs = {s.name: measured.by_round(s.name).values() for s in self.sides}
        took = {
            name: [trial.wall_s if started else 1 / part.rate for trial, part in pairs]
            for name, pairs in runs.items()
        }
        return {name: statistics.median(times) for name, times in took.items() if times}

    def _rates(self, side: Side, measured: Measurement) -> str:
        timings = (measured.timing(name) for name in (side.name, self.baseline))
        time, before = (units.seconds(1 / timing.rate) for timing in timings if timing)
        return f"one run takes {units.instead(time, before)}"

    def _warned(self, side: Side, measured: Measurement) -> Iterator[str]:
        yield from super()._warned(side, measured)
        yield _NOT_COMPARED

    def _next(self, measured: Measurement) -> str:
        return self.too_few(measured) or super()._next(measured)

    def _folds(self, nearest: Side, measured: Measurement) -> tuple[Fold, ...]:
        return self.packages


def foreseeing(events: Iterable[Event], race: WholeRace) -> Iterator[Event]:
    """Add how many runs the budget holds, once the first run has ended."""
    measured, warning = None, ""
    for event in events:
        if isinstance(event, TrialEnded):
            measured = event.measurement
        if race.auto and isinstance(event, Progress):
            expected = race.expected_s(measured) if measured else 0.0
            event = replace(event, expected=expected)
        yield event
        if measured and not warning and (warning := race.too_few(measured)):
            yield Foreseen(warning)


def _in_tens(seconds: float) -> int:
    return 10 * math.ceil(seconds / 10)
