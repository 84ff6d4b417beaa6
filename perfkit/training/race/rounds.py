"""When a race needs another round, and the races of whole scripts.

A whole script runs from its first line to its end: that compares what has no step in
common, such as a script with ten fits, an agent, a data preparation.
"""

import multiprocessing
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison
from perfkit.engine.trial import READY, RUN, Note, Yielded
from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.questions.base import NOT_ASKED
from perfkit.training.diagnose.maker import contain
from perfkit.training.diagnose.rounds import trial_s
from perfkit.training.race.question import Race
from perfkit.training.race.sides import Side, Work

# Without a budget so many rounds are enough, where they take so many seconds.
_ENOUGH_ROUNDS, _ENOUGH_S = 6, 60.0


def run_whole(side: Side) -> Generator[Yielded]:
    """Run a script to its end, and tell when that has come."""
    contain(side.maker)
    yield Note(RUN, True)
    yield READY
    side.maker()
    # Python does so at its end: pools are told to end, threads are waited for.
    threading._shutdown()  # type: ignore[attr-defined]
    for child in multiprocessing.active_children():
        if not child.daemon:
            child.join()
    yield 1


@dataclass(frozen=True, kw_only=True)
class WholeRace(Race):
    """Does one of these scripts end sooner than the other?

    Nobody gave it a budget where it is ``auto``.
    """

    # Where no control was run the intervals decide alone.
    noise: ClassVar[float | None] = 1.0
    # A run of a script is a single tick.
    longest_s: ClassVar[float] = 86_400

    auto: bool = field(default=False, metadata=NOT_ASKED)

    def work(self, side: Side) -> Work:
        """Make a run of a side."""
        return Work(side, run_whole)

    def is_over(self, measured: Measurement) -> bool:
        """Whether a script has failed, or enough is known without a budget."""
        trials = measured.trials
        rounds = max((trial.round for trial in trials), default=0)
        spent = max((trial.started_s + trial.wall_s for trial in trials), default=0.0)
        enough = self.auto and rounds >= _ENOUGH_ROUNDS and spent >= _ENOUGH_S
        return enough or any(trial.has_failed for trial in trials)

    def _rates(self, compared: Comparison, measured: Measurement) -> str:
        names = compared.variant, compared.baseline
        timings = (measured.timing(name) for name in names)
        time, before = (units.seconds(1 / timing.rate) for timing in timings if timing)
        return f"one run takes {units.instead(time, before)}"

    def _warned(self, side: Side, measured: Measurement) -> Iterator[str]:
        yield from super()._warned(side, measured)
        yield (
            "perfkit does not compare what the scripts compute, so check that both do "
            "the same work."
        )


# An interval this narrow needs no more rounds.
_NARROW = 0.025
# After so many rounds without any rate there will be none.
_TRIED = 2
# A race of few rounds may take less than usual.
_SHORTEST_S, _SHORTEST_ROUND_S, _LONGEST_S = 60.0, 15.0, 600.0


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
    trials = [trial_s(race.facts[side.name]) for side in race.sides]
    # The control repeats the first.
    round_s = sum(trials) + trials[0]
    shortest_s = min(_SHORTEST_S, race.rounds * _SHORTEST_ROUND_S)
    return min(_LONGEST_S, max(shortest_s, race.rounds * round_s))
