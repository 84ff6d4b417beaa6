"""When a race needs another round, and the races of whole scripts.

A whole script runs from its first line to its end: that compares what has no step in
common, such as a script with ten fits, an agent, a data preparation.
"""

import math
import multiprocessing
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement, Variant
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
from perfkit.training.race.question import TOO_FEW, Race
from perfkit.training.race.sides import InPlace, Side

# Without a budget so many rounds are enough, where they take so many seconds.
_ENOUGH_ROUNDS, _ENOUGH_S = 6, 60.0
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
        last = measured.trials[-1]
        compared = filter(None, self.compare(measured))
        rounds = max((c.rounds for c in compared), default=0)
        name = self.baseline if last.variant == CONTROL else last.variant
        timed = filter(None, (measured.timing(side.name) for side in self.sides))
        took = ", ".join(
            f"a run of {t.variant} took {units.seconds(1 / t.rate)}" for t in timed
        )
        if last.has_failed and rounds < LEAST_ROUNDS:
            return Verdict(
                headline=f"{name} {last.message.rstrip('.')}.",
                much=as_sentence(took),
                because=failures(measured),
                next="Run it by itself until it succeeds, then race it again.",
            )
        is_over = last.started_s + last.wall_s >= self.budget
        if last.outcome == "stopped" and is_over and not rounds:
            return Verdict(
                headline=f"The budget of {units.seconds(self.budget)} ended before "
                f"{name} did.",
                much=as_sentence(took),
                next=TOO_FEW,
            )
        return super().verdict(measured)

    def _rates(self, side: Side, measured: Measurement) -> str:
        timings = (measured.timing(name) for name in (side.name, self.baseline))
        time, before = (units.seconds(1 / timing.rate) for timing in timings if timing)
        return f"one run takes {units.instead(time, before)}"

    def _warned(self, side: Side, measured: Measurement) -> Iterator[str]:
        yield from super()._warned(side, measured)
        yield _NOT_COMPARED

    def _folds(self, measured: Measurement) -> tuple[Fold, ...]:
        return self.packages


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
