"""Which trials a round of a race holds: the sides, then what explains a difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfkit.diagnosis import changes
from perfkit.diagnosis.change import Change
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.rounds import to_variant, trial_s
from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.statistics import Comparison
from perfkit.race import job
from perfkit.race.side import Side, Work

# Rounds of the sides alone, as planned; then rounds with what explains.
_ROUNDS, _WHY_ROUNDS = 6, 2
# An interval this narrow needs no more rounds.
_NARROW = 0.025
# After so many rounds without any rate there will be none.
_TRIED = 2
_SHORTEST_S, _LONGEST_S = 60.0, 600.0
# The share of a budget after which a difference that is shown is explained.
_EXPLAIN_AFTER = 0.4


def without(side: str, change: Change) -> str:
    """The name of a side with a part of it left out."""
    return f"{side}, {change.name}"


def ceilings(facts: Facts) -> tuple[Change, ...]:
    """Leave whole parts of a step out: input, callbacks, most of Python."""
    applicable, _ = changes.applicable(facts)
    return tuple(
        change
        for change in applicable
        if change.ceiling
        or change.cause == "step-overhead"
        # A single callback has no group that leaves all of them out at once.
        or (change.cause == "callback" and not change.after)
    )


@dataclass(frozen=True)
class Rounds:
    """Chooses the variants of each round of a race.

    Attributes:
        sides: The first is the baseline.
        facts: Of each side's training, by its name.
        budget: Seconds of all rounds.
        worse: What counts as slower, as a share; None where nobody asked. A race that
            has decided that is over.
        explains: Whether rounds are left for why the sides differ.
    """

    sides: Sequence[Side]
    facts: Mapping[str, Facts]
    budget: float
    worse: float | None = None
    explains: bool = True

    @property
    def first(self) -> tuple[Variant, ...]:
        """The baseline, whose control is in every round."""
        return tuple(self._variants())[:1]

    def __call__(self, measured: Measurement) -> tuple[Variant, ...]:
        """The variants of the next round; none where another would tell nothing."""
        rounds = max((trial.round for trial in measured.trials), default=0)
        compared = [
            measured.compare(side.name, self.sides[0].name) for side in self.sides[1:]
        ]
        variants = tuple(self._variants())
        if rounds >= _TRIED and not any(compared):
            return ()
        if rounds and self.worse is not None and self._other_job:
            # No rate says which of two jobs is slower.
            return ()
        if rounds < LEAST_ROUNDS:
            return variants
        noise = self._noise(measured)
        if self.worse is not None and decided(compared, self.worse, noise) is not None:
            return ()
        spent = max(trial.started_s + trial.wall_s for trial in measured.trials)
        differ = any(one and not one.is_noise for one in compared)
        narrow = all(one and one.half_width <= _NARROW for one in compared)
        if not differ:
            return () if narrow else variants
        why = tuple(self._why(measured)) if self.explains else ()
        seen = min((len(measured.of(one.name)) for one in why), default=_WHY_ROUNDS)
        if seen >= _WHY_ROUNDS and narrow:
            return ()
        if narrow or seen or spent > _EXPLAIN_AFTER * self.budget:
            return (*variants, *why)
        return variants

    def _noise(self, measured: Measurement) -> float | None:
        return measured.noise_floor

    @property
    def _other_job(self) -> bool:
        first, *others = (self.facts[side.name] for side in self.sides)
        return any(job.differences(other, first) for other in others)

    def _variants(self) -> Iterator[Variant]:
        first, *others = self.sides
        yield Variant(first.name, Work(first, self.facts[first.name]), first.changes)
        for side in others:
            work = Work(side, self.facts[side.name])
            yield Variant(side.name, work, side.changes, first.name)

    def _why(self, measured: Measurement) -> Iterator[Variant]:
        """The baseline and the fastest of the others, each without a part of it."""
        others = tuple(side.name for side in self.sides[1:])
        names = {self.sides[0].name, *(t.variant for t in measured.fastest(others)[:1])}
        for side in self.sides:
            for change in ceilings(self.facts[side.name]) * (side.name in names):
                work = Work(side, self.facts[side.name], (change,))
                name = without(side.name, change)
                yield replace(to_variant(change, work), name=name, against=side.name)


def decided(
    compared: Sequence[Comparison | None], worse: float, noise: float | None
) -> bool | None:
    """Whether any side is slower than the baseline by more than that share.

    A race that looks after each round is misled by luck more often than one that looks
    once. Where the same code differs from itself by more than the share that was asked
    for, only a difference of twice that decides.

    Args:
        compared: Each side against the baseline.
        worse: What counts as slower, as a share.
        noise: What the control differs from the baseline, a ratio of at least 1; None
            if unknown.

    Returns:
        None where that is left open.
    """
    least = 1 - worse
    if noise is None:
        return None
    enough = noise**2 if noise * least > 1 else 1.0
    told = [
        c
        if c and c.rounds >= LEAST_ROUNDS and max(c.ratio, 1 / c.ratio) >= enough
        else None
        for c in compared
    ]
    if any(c and c.verdict == "slower" and c.high < least for c in told):
        return True
    return False if told and all(c and c.low >= least for c in told) else None


def budget_for(sides: Sequence[Side], facts: Mapping[str, Facts]) -> float:
    """Seconds that a race needs, ten minutes at most."""
    each = {
        side.name: trial_s(facts[side.name].ready_s, facts[side.name].step_s)
        for side in sides
    }
    first, last = each[sides[0].name], each[sides[-1].name]
    whole = sum(each.values()) + first
    why = sum(
        len(ceilings(facts[s.name])) * each[s.name] for s in (sides[0], sides[-1])
    )
    needed = _ROUNDS * whole + _WHY_ROUNDS * (whole + why)
    return min(_LONGEST_S, max(_SHORTEST_S, needed, 2 * (first + last)))
