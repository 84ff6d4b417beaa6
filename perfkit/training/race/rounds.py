"""Which trials a round of a race holds: the sides alone, then what explains them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison
from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.training.diagnose.rounds import to_variant, trial_s
from perfkit.training.race.question import Race, ceilings, without

# Rounds of the sides alone, as planned; then rounds with what explains.
_ROUNDS, _WHY_ROUNDS = 6, 2
# An interval this narrow needs no more rounds.
_NARROW = 0.025
# After so many rounds without any rate there will be none.
_TRIED = 2
_SHORTEST_S, _LONGEST_S = 60.0, 600.0
# The share of a budget after which a difference that is shown is explained.
_EXPLAIN_AFTER = 0.4


@dataclass(frozen=True)
class Rounds:
    """Chooses the variants of each round of a race.

    Attributes:
        race: Its sides, and what is known of them.
        budget: Seconds of all rounds.
        worse: What counts as slower, as a share; None where nobody asked. A race that
            has decided that is over.
        explains: Whether rounds are left for why the sides differ.
    """

    race: Race
    budget: float
    worse: float | None = None
    explains: bool = True

    def __call__(self, measured: Measurement) -> tuple[Variant, ...]:
        """Return the variants of the next round; none if another round is useless."""
        race, variants = self.race, tuple(self.race.make_variants().values())
        rounds = max((trial.round for trial in measured.trials), default=0)
        compared = race.compare(measured)
        if race.is_over(measured) or (rounds >= _TRIED and not any(compared)):
            return ()
        if rounds and self.worse is not None and race.has_other_job():
            return ()
        if rounds < LEAST_ROUNDS:
            return variants
        noise = measured.noise_floor or race.noise
        if self.worse is not None and decided(compared, self.worse, noise) is not None:
            return ()
        spent = max(trial.started_s + trial.wall_s for trial in measured.trials)
        differ = any(c and not c.is_noise for c in compared)
        narrow = all(c and c.half_width <= _NARROW for c in compared)
        if not differ:
            return () if narrow else variants
        ablations = tuple(self._ablations(measured)) if self.explains else ()
        counts = (len(measured.trials_of(variant.name)) for variant in ablations)
        repeats = min(counts, default=_WHY_ROUNDS)
        if repeats >= _WHY_ROUNDS and narrow:
            return ()
        if narrow or repeats or spent > _EXPLAIN_AFTER * self.budget:
            return (*variants, *ablations)
        return variants

    def _ablations(self, measured: Measurement) -> Iterator[Variant]:
        """Yield the baseline and its fastest rival, each without a part of its step."""
        race = self.race
        rivals = tuple(side.name for side in race.sides[1:])
        fastest = [timing.variant for timing in measured.fastest(rivals)[:1]]
        explained = [s for s in race.sides if s.name in (race.baseline, *fastest)]
        for side in explained:
            for change in ceilings(race.facts[side.name]):
                variant = to_variant(change, race.work(side, change))
                name = without(side.name, change)
                yield replace(variant, name=name, against=side.name)


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


def budget_for(race: Race, *, explains: bool = True) -> float:
    """Seconds that a race needs, ten minutes at most."""
    sides = [race.facts[side.name] for side in race.sides]
    trials = [trial_s(facts.ready_s, facts.step_s) for facts in sides]
    round_s = sum(trials) + trials[0]
    needed = (LEAST_ROUNDS + 1) * round_s
    if explains:
        ends = ((sides[0], trials[0]), (sides[-1], trials[-1]))
        why_s = sum(len(ceilings(facts)) * each_s for facts, each_s in ends)
        needed = _ROUNDS * round_s + _WHY_ROUNDS * (round_s + why_s)
    return min(_LONGEST_S, max(_SHORTEST_S, needed, 2 * (trials[0] + trials[-1])))
