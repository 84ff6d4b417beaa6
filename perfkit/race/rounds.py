"""Which trials a round of a race holds, and why its sides differ.

First the sides alone; once they differ, each also without parts of its step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfkit.diagnosis import changes
from perfkit.diagnosis.change import Change
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.gains import step_of
from perfkit.diagnosis.rounds import AS_GIVEN, given, to_variant, trial_s
from perfkit.diagnosis.split import split
from perfkit.findings.diagnosis import Part
from perfkit.findings.report import Fold, Table
from perfkit.findings.reports import part_in_words
from perfkit.findings.standing import LEAST_ROUNDS
from perfkit.measure.host import Environment, Place
from perfkit.measure.measurement import CONTROL, Measurement, Variant
from perfkit.measure.statistics import Comparison
from perfkit.race.sides import Side, Work

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
        other_job: Whether a side does another job, so that no rate says what is slower.
        explains: Whether rounds are left for why the sides differ.
    """

    sides: Sequence[Side]
    facts: Mapping[str, Facts]
    budget: float
    worse: float | None = None
    other_job: bool = False
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
        if rounds and self.worse is not None and self.other_job:
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


# What a reader calls the parts of a step.
_PARTS = {
    "input": "waiting for input",
    "transfer": "copying to the device",
    "dispatch": "dispatch overhead",
    "callbacks": "callbacks, metrics and progress bar",
    "epoch ends": "ends of epochs",
    "compute": "compute",
}


def where(
    sides: Sequence[Side], facts: Mapping[str, Facts], measured: Measurement
) -> Fold:
    """Lay the parts of these sides' steps beside each other; empty if unmeasured."""
    columns: dict[str, dict[str, str]] = {}
    for side in sides:
        timing = measured.timing(side.name)
        if timing and (step := parts(side, facts[side.name], measured)):
            step_s = facts[side.name].batch / timing.rate
            columns[side.name] = {
                n: part_in_words(p, step_s)[0] for n, p in step.items()
            }
    rows = tuple(
        (label, *(column.get(name, "") for column in columns.values()))
        for name, label in _PARTS.items()
        if any(name in column for column in columns.values())
    )
    table = Table("", ("part of a step", *columns), rows)
    return Fold("Where the time of a step goes", tables=(table,))


def parts(side: Side, facts: Facts, measured: Measurement) -> dict[str, Part]:
    """Where the time of a side's step goes; empty where that was not measured."""
    applied = ceilings(facts)
    names = {side.name: AS_GIVEN}
    names |= {without(side.name, change): change.name for change in applied}
    if side.name == measured.baseline:
        names[CONTROL] = CONTROL
    view = Measurement(
        variants=(given(), *map(to_variant, applied)),
        trials=tuple(
            replace(trial, variant=names[trial.variant])
            for trial in measured.trials
            if trial.variant in names
        ),
        notes=measured.notes,
        baseline=AS_GIVEN,
    )
    if not view.comparisons:
        return {}
    every, _ = changes.applicable(facts)
    # The samples say whether there is a card, whose copies nobody timed.
    gpus = int(any(name.startswith("gpu0_") for name in measured.samples))
    return split(step_of(view, facts), every, view, facts, gpus=gpus)


def packages(sides: Sequence[Side], environments: Mapping[Place, Environment]) -> Fold:
    """List the packages whose versions differ; empty where all sides share a place."""
    if not environments:
        return Fold("")
    versions = [
        {"Python": known.python, **known.versions}
        for known in (environments[side.place] for side in sides)
    ]
    rows = tuple(
        (name, *(each.get(name, "none") for each in versions))
        for name in dict.fromkeys(name for each in versions for name in each)
        if len({each.get(name) for each in versions}) > 1
    )
    table = Table("", ("package", *(side.name for side in sides)), rows)
    return Fold("Packages that differ", tables=(table,))
