"""When a race needs another round, and the races of whole scripts.

A whole script runs from its first line to its end: that compares what has no step in
common, such as a script with ten fits, an agent, a data preparation.
"""

import math
import multiprocessing
import statistics
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.plan import Event, Progress, TrialEnded
from perfkit.engine.statistics import Comparison
from perfkit.engine.tick import READY, Note, Yielded
from perfkit.engine.trial import RUN
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold
from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.findings.text import as_sentence
from perfkit.questions.parameters import NOT_ASKED
from perfkit.questions.shared.words import failures
from perfkit.training.diagnose.maker import contain
from perfkit.training.diagnose.rounds import trial_s
from perfkit.training.race.question import Race
from perfkit.training.race.sides import InPlace, Side

# Without a budget so many rounds are enough, where they take so many seconds.
_ENOUGH_ROUNDS, _ENOUGH_S = 6, 60.0
# Runs vary: a budget that is asked for holds so many times what they took.
_SPARE = 1.1
# How the message of a trial begins that one of our own errors ended.
_ENDED = "ended: "
_NOT_COMPARED = (
    "perfkit does not compare what the scripts compute, so check that both do the same "
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

    def work(self, side: Side) -> WholeWork:
        """Make a run of a side."""
        return WholeWork(side)

    def is_over(self, measured: Measurement) -> bool:
        """Whether a script has failed, or enough is known without a budget."""
        trials = measured.trials
        rounds = max((trial.round for trial in trials), default=0)
        spent = max((trial.started_s + trial.wall_s for trial in trials), default=0.0)
        enough = self.auto and rounds >= _ENOUGH_ROUNDS and spent >= _ENOUGH_S
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
                next="Run it by itself until it succeeds, then race it again.",
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
            f"A run of each side takes about {units.seconds(run_s * len(self.sides))} "
            f"together, so this budget holds {runs or 'less than 1'} of each; give "
            f"--budget {needed} for three."
        )

    def expected_s(self, measured: Measurement) -> float:
        """Seconds that it may take without a budget."""
        usual = _ENOUGH_ROUNDS * (len(self.sides) + 1) * self._run_s(measured)
        return min(self.budget, max(_ENOUGH_S, usual))

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

    def _folds(self, measured: Measurement) -> tuple[Fold, ...]:
        return self.packages


def expecting(events: Iterable[Event], race: WholeRace) -> Iterator[Event]:
    """Tell how long runs without a budget take, as far as those that ended show."""
    measured = None
    for event in events:
        if isinstance(event, TrialEnded):
            measured = event.measurement
        if isinstance(event, Progress):
            expected = race.expected_s(measured) if measured else 0.0
            event = replace(event, expected=expected)
        yield event


def _in_tens(seconds: float) -> int:
    return 10 * math.ceil(seconds / 10)


# An interval this narrow needs no more rounds.
_NARROW = 0.025
# After so many rounds without any rate there will be none.
_TRIED = 2
_SHORTEST_S, _LONGEST_S = 60.0, 600.0


def choose_variants(
    race: Race, measured: Measurement, *, worse: float | None = None
) -> tuple[Variant, ...]:
    """Return the variants of the next round; none if another round is useless.

    A race that was asked whether a side is worse is over once that is decided.
    """
    variants = tuple(race.make_variants().values())
    rounds = max((trial.round for trial in measured.trials), default=0)
    compared = race.compare(measured)
    if race.is_over(measured) or (rounds >= _TRIED and not any(compared)):
        return ()
    if rounds and worse is not None and race.has_other_job():
        return ()
    if rounds < LEAST_ROUNDS:
        return variants
    noise = measured.noise_floor or race.noise
    if worse is not None and decided(compared, worse, noise) is not None:
        return ()
    is_narrow = all(c and c.half_width <= _NARROW for c in compared)
    return () if is_narrow else variants


def decided(
    compared: Sequence[Comparison | None], worse: float, noise: float | None
) -> bool | None:
    """Whether any side is slower than the baseline by a share; None if that is open.

    A race that looks after each round is misled by luck more often than one that looks
    once. Where the same code differs from itself by more than the share that was asked
    for (``noise``, a ratio of at least 1), only a difference of twice that decides.
    """
    limit = 1 - worse
    if noise is None:
        return None
    enough = noise**2 if noise * limit > 1 else 1.0
    plain = [
        c
        for c in compared
        if c and c.rounds >= LEAST_ROUNDS and max(c.ratio, 1 / c.ratio) >= enough
    ]
    if any(c.verdict == "slower" and c.high < limit for c in plain):
        return True
    is_complete = bool(compared) and len(plain) == len(compared)
    return False if is_complete and all(c.low >= limit for c in plain) else None


def budget_for(race: Race) -> float:
    """Seconds that a race needs, ten minutes at most."""
    sides = [race.facts[side.name] for side in race.sides]
    trials = [trial_s(facts.ready_s, facts.step_s) for facts in sides]
    # The control repeats the first.
    round_s = sum(trials) + trials[0]
    return min(_LONGEST_S, max(_SHORTEST_S, race.rounds * round_s))
