"""The question of a race, and its verdict: is one side faster than the other?

Whether both do the same job is said before any rate is compared: their model, their
data, and how they learn at first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from perfkit import units
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.maker import digest
from perfkit.experiments.base import Experiment
from perfkit.experiments.parameters import NOT_ASKED
from perfkit.experiments.shared.words import failures
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold
from perfkit.findings.reports import TYPED
from perfkit.findings.standing import LEAST_ROUNDS, SIDES
from perfkit.findings.text import as_sentence
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.statistics import Comparison
from perfkit.race import learning
from perfkit.race.learning import Difference
from perfkit.race.rounds import where
from perfkit.race.sides import LEFT, Side

_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")
_NO_RATE = "Look at how the trials ended, or give the race more seconds."
_TOO_FEW = f"Give it more seconds: before {LEAST_ROUNDS} rounds it says nothing."
_LEARNS = (
    "{name} learns otherwise: tune its learning rate anew, and watch the validation "
    "loss."
)
_LEFT = (
    "{two} ran with {names} of the working tree, which git does not keep or both sides "
    "share: what has changed there is not measured. Install each version with "
    "`pip install .` into an environment of its own, and race those with --python."
)
_ALIKE = "{name}: The losses of their first steps are the same."
_NO_LOSS = (
    "{name} is a loop of your own, and how that learns is not seen here: check that "
    "both sides do the same."
)


@dataclass(frozen=True, kw_only=True)
class Race(Experiment):
    """Is one of these trainings faster than the other?

    Attributes:
        of: Its sides, the baseline first.
        facts: Of each side's training, by its name; none before they were looked at.
        typed: The command that asks for it, without paths.
        packages: Those whose versions differ between the sides' environments.
    """

    name: ClassVar[str] = "race"

    of: Any = field(default=(), metadata=NOT_ASKED)
    facts: Any = field(default_factory=dict, metadata=NOT_ASKED)
    typed: Any = field(default="", metadata=NOT_ASKED)
    packages: Any = field(default=Fold(""), metadata=NOT_ASKED)

    def __post_init__(self) -> None:
        """Take the sides as they are: they were checked when they were chosen."""

    @property
    def sides(self) -> Sequence[Side]:
        """Its sides, the baseline first."""
        sides: Sequence[Side] = self.of
        return sides

    @property
    def baseline(self) -> str:  # type: ignore[override]
        """The name of the first side."""
        return self.sides[0].name

    @property
    def question(self) -> str:
        """Ask it of these sides."""
        first, *others = (side.name for side in self.sides)
        if len(others) == 1:
            return f"Is {others[0]} faster than {first}?"
        return f"Which is fastest: {', '.join([first, *others[:-1]])} or {others[-1]}?"

    @property
    def parameters(self) -> dict[str, Any]:
        """The command that asks it again, and which code that is about."""
        code = [digest(side.maker) for side in self.sides]
        return {TYPED: self.typed, SIDES: [s.name for s in self.sides], "code": code}

    def make_variants(self) -> Mapping[str, Variant]:
        """Its sides; the session makes their work, once it has looked at them."""
        return {
            side.name: Variant(side.name, side.maker, side.changes, self.baseline)
            for side in self.sides
        }

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which is faster; where they do different work, that comes first."""
        first, *others = self.sides
        timed = [s for s in others if measured.compare(s.name, first.name)]
        if not timed:
            return Verdict(
                headline="There is no answer yet: no two sides could be compared.",
                because=failures(measured),
                next=_NO_RATE,
            )
        sides = tuple(side.name for side in self.sides)
        fastest, *_ = measured.fastest(sides, rounds=LEAST_ROUNDS)
        best = next((s for s in timed if s.name == fastest.variant), None)
        rates = {timing.variant: timing.rate for timing in measured.timings}
        nearest = best or max(timed, key=lambda side: rates[side.name])
        verdict = self._compare(nearest, measured)
        rest = [side for side in timed if side != nearest]
        if len(others) > 1 and best is None:
            names = ", ".join(side.name for side in timed)
            lower = f"{verdict.much[:1].lower()}{verdict.much[1:]}"
            much = verdict.much and f"Nearest is {nearest.name}: {lower}"
            none = f"None of these is shown to be faster than {first.name}: {names}."
            verdict, rest = replace(verdict, headline=none, much=much), timed
        jobs = filter(None, (self._other_job(side, measured) for side in rest))
        verdict = replace(verdict, warnings=(*verdict.warnings, *jobs))
        return self._with_reasons(verdict, nearest, measured)

    def _compare(self, side: Side, measured: Measurement) -> Verdict:
        """Compare one side with the baseline."""
        compared = measured.compare(side.name, self.baseline)
        assert compared
        compared = compared.after(LEAST_ROUNDS)
        one, two = side.name, self.baseline
        differ = self.differences(side, measured)
        rates = self._rates(side, measured)
        sure, ends = compared.sure, _ends(compared)
        if _is_open(compared):
            # Which of them is faster is known all the same.
            sure = "likely"
        if differ:
            if any(each.other_work for each in differ):
                said = "; ".join(each.said for each in differ)
                return Verdict(
                    headline=f"{one} and {two} do different work, so neither is called "
                    f"faster: {said}.",
                    much=as_sentence(rates),
                )
            per_example = f"per example it {_compared(compared)}"
            return Verdict(
                headline=self._other_job(side, measured),
                much=as_sentence(": ".join(filter(None, (per_example, rates)))),
                sure=sure,
                interval=ends,
            )
        warned = tuple(self._warned(side, measured))
        if _is_open(compared):
            headline = (
                f"{one} is {compared.verdict} than {two}; by how much is not known yet."
            )
        elif compared.verdict in ("faster", "slower"):
            headline = f"{one} {_compared(compared)} as {two}."
        elif compared.verdict == "no difference shown":
            most = max(compared.high, 1 / compared.low) - 1
            headline = f"No difference between {one} and {two} is shown."
            least = f"any is below {units.percent(most)}"
            rates = f"{least}: {rates}" if rates else least
        else:
            headline = f"Whether {one} is faster than {two} is not known yet."
        return Verdict(
            headline=headline,
            much=as_sentence(rates),
            sure=sure,
            interval=ends,
            warnings=warned,
            next="" if compared.rounds >= LEAST_ROUNDS else _TOO_FEW,
            winner=one if compared.verdict == "faster" else "",
        )

    def _with_reasons(
        self, verdict: Verdict, nearest: Side, measured: Measurement
    ) -> Verdict:
        """Add what failed, where the time of a step goes, and what else differs."""
        same_job = Fold("Is it the same job?", tuple(self._same_job(measured)))
        explained = (self.sides[0], nearest)
        folds = (where(explained, self.facts, measured), same_job, self.packages)
        return replace(
            verdict,
            because=failures(measured),
            folds=tuple(
                fold
                for fold in folds
                if fold.sentences or any(table.rows for table in fold.tables)
            ),
        )

    def differences(self, side: Side, measured: Measurement) -> tuple[Difference, ...]:
        """What a side does otherwise than the baseline, but for what was asked for."""
        facts = self.facts[side.name], self.facts[self.baseline]
        seen = differences(*facts, retuned=side.retuned)
        if side.retuned:
            return seen
        return (*seen, *learning.in_learning(measured, side.name, self.baseline))

    def _other_job(self, side: Side, measured: Measurement) -> str:
        """Say which other job a side does; "" where it does the same."""
        named = f"{side.name} does another job than {self.baseline}"
        differ = "; ".join(each.said for each in self.differences(side, measured))
        return differ and f"{named}: {differ}."

    def _same_job(self, measured: Measurement) -> Iterator[str]:
        for side in self.sides[1:]:
            if sentence := self._other_job(side, measured):
                yield sentence
            elif self.facts[side.name].loop:
                yield _NO_LOSS.format(name=side.name)
            elif learning.alike(measured, side.name, self.baseline):
                yield _ALIKE.format(name=side.name)

    def _warned(self, side: Side, measured: Measurement) -> Iterator[str]:
        if side.retuned:
            yield _LEARNS.format(name=side.name)
        trials = measured.of(self.baseline)
        left = next((t.notes[LEFT] for t in trials if LEFT in t.notes), ())
        if left:
            yield _LEFT.format(names=", ".join(left), two=self.baseline)

    def _rates(self, side: Side, measured: Measurement) -> str:
        """How fast both are; "" where that is not known well enough."""
        one, two = measured.timing(side.name), measured.timing(self.baseline)
        assert one
        assert two
        if not all(units.is_known(t.low, t.high) for t in (one, two)):
            return ""
        batches = {self.facts[name].batch for name in (side.name, self.baseline)}
        said = units.instead(units.rate(one.rate), units.rate(two.rate))
        if len(batches) > 1:
            return said
        batch = batches.pop()
        steps = [
            units.roughly(batch / t.rate, batch / t.high, batch / t.low, units.seconds)
            for t in (one, two)
        ]
        return f"a step takes {steps[0]} instead of {steps[1]} ({said})"


def _is_open(compared: Comparison) -> bool:
    """Whether there is a difference, and nobody knows how large it is."""
    known = units.is_known(compared.low, compared.high)
    return compared.verdict in ("faster", "slower") and not known


def _ends(compared: Comparison) -> str:
    """The interval of what is said: how many times as fast, or as long."""
    few = compared.rounds < LEAST_ROUNDS
    if few or not units.is_known(compared.low, compared.high):
        return ""
    ends = [compared.low, compared.high]
    if compared.verdict == "slower":
        ends = [1 / compared.high, 1 / compared.low]
    return " to ".join(map(in_times, ends))


def _compared(compared: Comparison) -> str:
    if _is_open(compared):
        return f"is {compared.verdict}, by how much is not known yet"
    if compared.verdict == "slower":
        return f"takes {in_times(1 / compared.ratio)} times as long"
    if compared.verdict == "faster":
        return f"runs {in_times(compared.ratio)} times as fast"
    if compared.verdict == "no difference shown":
        return "shows no difference"
    return "is not known yet to be faster"


def in_times(value: float) -> str:
    """Two digits behind the point where one would hide the difference."""
    return f"{value:.2f}" if value < 1.995 else units.times(value)


def differences(
    one: Facts, other: Facts, *, retuned: bool = False
) -> tuple[Difference, ...]:
    """What ``one`` does otherwise than ``other``, by what they were seen to be.

    Args:
        one: The side in question.
        other: The baseline.
        retuned: Whether another batch is what was asked for, and so no difference.
    """
    return tuple(_differences(one, other, retuned=retuned))


def _differences(one: Facts, other: Facts, *, retuned: bool) -> Iterator[Difference]:
    if one.counts != other.counts:
        said = "one of them counts its steps, and what these hold is not known"
        yield Difference(said, other_work=True)
        return
    # A loop of one's own does not show its model.
    seen = not (one.loop or other.loop)
    if seen and one.parameters != other.parameters:
        now, before = map(_count, (one.parameters, other.parameters))
        said = f"its model has {now} parameters instead of {before}"
        yield Difference(said, other_work=True)
    elif seen and one.layers != other.layers:
        added = _beyond(one.layers, other.layers)
        left = _beyond(other.layers, one.layers)
        what = [f"has {added}"] * bool(added) + [f"lacks {left}"] * bool(left)
        said = " and ".join(what) or "has them in another order"
        said = f"of the layers of its model it {said}"
        yield Difference(said, other_work=True)
    fixed = not (_has_open_shapes(one) or _has_open_shapes(other))
    mine, theirs = (_inputs(facts, sizes=fixed) for facts in (one, other))
    if mine != theirs:
        said = f"an example is {_listed(mine)} instead of {_listed(theirs)}"
        yield Difference(said, other_work=True)
    if one.batch != other.batch and not retuned:
        yield Difference(f"a step holds {one.batch} examples instead of {other.batch}")
    # Examples of an epoch; 0 where nobody knows.
    mine_, theirs_ = ((each.steps or 0) * each.batch for each in (one, other))
    # The last batch of an epoch may be dropped or not.
    most = max(one.batch, other.batch)
    if mine_ and theirs_ and abs(mine_ - theirs_) > most:
        said = f"an epoch holds {_count(mine_)} examples instead of {_count(theirs_)}"
        yield Difference(said)


def _has_open_shapes(facts: Facts) -> bool:
    """Whether its batches may have other sizes each time."""
    return facts.open_shapes or facts.data not in ("tf.data", "arrays")


def _inputs(facts: Facts, *, sizes: bool) -> tuple[str, ...]:
    """The shapes of what goes into the model, without the length of a batch."""
    # Labels and weights come last; how they are written is no other example.
    parts = facts.element[:-1] if len(facts.element) > 1 else facts.element
    shapes = (_SHAPE.fullmatch(part) for part in parts)
    inside = [found[2].split(", ")[1:] for found in shapes if found]
    shown = (one if sizes else ["?"] * len(one) for one in inside)
    return tuple(", ".join(one) or "one number" for one in shown)


def _listed(shapes: tuple[str, ...]) -> str:
    return " and ".join(f"({one})" if "," in one else one for one in shapes) or "none"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number / 1e6:.3g} million"


def _beyond(some: tuple[str, ...], others: tuple[str, ...]) -> str:
    left = list(others)
    more = [one for one in some if one not in left or left.remove(one)]  # type: ignore[func-returns-value]
    return ", ".join(dict.fromkeys(more))
