"""The question of a race, and its verdict: is one side faster than the other?

Whether both do the same job is said before any rate is compared: their model, their
data, and how they learn at first.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from perfkit import units
from perfkit.engine.host import Environment, Place
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Table
from perfkit.findings.reports import TYPED
from perfkit.findings.standing import LEAST_ROUNDS, SIDES
from perfkit.findings.text import as_sentence, lower
from perfkit.questions.base import NOT_ASKED, Experiment
from perfkit.questions.shared.verdicts import failures, rates_behind
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.maker import digest, name_of, tell_edits
from perfkit.training.race import learning
from perfkit.training.race.learning import Difference
from perfkit.training.race.sides import LEFT, Side, Work, look_at, train

_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")
# In a race's result: whether all sides do the same job, but for a batch size that was
# meant. Only then do rates compare.
SAME_JOB = "same_job"
# Rounds that a budget has room for if nobody gives one. A race on other backends or of
# a patch is brief.
PLANNED_ROUNDS, BRIEF_ROUNDS = 8, LEAST_ROUNDS + 1
TOO_FEW = f"Give it more seconds: a race needs {LEAST_ROUNDS} rounds for a claim."
_WHOLE = "Race both to their end: `perfkit race a.py b.py --whole`."


@dataclass(frozen=True, kw_only=True)
class Race(Experiment):
    """Is one of these trainings faster than the other?

    Attributes:
        sides: The baseline first.
        facts: Of each side's training, by its name; none before they were looked at.
        typed: The command that asks for it, without paths.
        packages: Those whose versions differ between the sides' environments.
        rounds: For how many a budget has room where nobody gives one.

    Class attributes:
        noise: What the same code differs by where no control was run; None if unknown.
    """

    name: ClassVar[str] = "race"
    noise: ClassVar[float | None] = None

    sides: tuple[Side, ...] = field(default=(), metadata=NOT_ASKED)
    facts: Mapping[str, Facts] = field(default_factory=dict, metadata=NOT_ASKED)
    typed: str = field(default="", metadata=NOT_ASKED)
    packages: tuple[Fold, ...] = field(default=(), metadata=NOT_ASKED)
    rounds: int = field(default=PLANNED_ROUNDS, metadata=NOT_ASKED)

    @property
    def baseline(self) -> str:
        """The name of the first side."""
        return self.sides[0].name

    @property
    def question(self) -> str:
        """Ask it of these sides."""
        first, *rivals = (side.name for side in self.sides)
        if len(rivals) == 1:
            return f"Is {rivals[0]} faster than {first}?"
        return f"Which is fastest: {', '.join([first, *rivals[:-1]])} or {rivals[-1]}?"

    @property
    def parameters(self) -> dict[str, Any]:
        """The command that asks it again, and which code that is about."""
        code = [side.code or digest(side.maker) for side in self.sides]
        return {TYPED: self.typed, SIDES: [s.name for s in self.sides], "code": code}

    def make_variants(self) -> Mapping[str, Variant]:
        """Its sides, whose work needs a first look at them."""
        return {
            side.name: Variant(side.name, self.work(side), against=self.baseline)
            for side in self.sides
        }

    def look(self, side: Side) -> Work:
        """Make the first look at a side, which notes its facts."""
        return Work(side, look_at)

    def work(self, side: Side) -> Work:
        """Make a trial of a side."""
        facts = self.facts.get(side.name, Facts())
        return Work(side, functools.partial(train, facts=facts))

    def is_over(self, measured: Measurement) -> bool:
        """Whether no round is to follow, whatever the rates say."""
        return False

    def compare(self, measured: Measurement) -> list[Comparison | None]:
        """Each other side against the first."""
        return [measured.compare(s.name, self.baseline) for s in self.sides[1:]]

    def result(self, measured: Measurement) -> dict[str, bool]:
        """Say whether all sides do the same job."""
        return {SAME_JOB: bool(self.facts) and not self.has_other_job(measured)}

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which is faster; where they do different work, that comes first."""
        first, *rivals = self.sides
        comparable = [s for s in rivals if measured.compare(s.name, first.name)]
        if not comparable:
            return Verdict(
                headline="There is no answer yet: no two sides could be compared.",
                because=failures(measured),
                next="Look at how the trials ended, or give the race more seconds.",
            )
        fastest, *_ = measured.fastest(tuple(side.name for side in self.sides))
        best = next((s for s in comparable if s.name == fastest.variant), None)
        rates = {timing.variant: timing.rate for timing in measured.timings}
        nearest = best or max(comparable, key=lambda side: rates[side.name])
        verdict = self._compare(nearest, measured)
        remaining = [side for side in comparable if side != nearest]
        if len(rivals) > 1 and best is None:
            names = ", ".join(side.name for side in comparable)
            size = verdict.much and f"Nearest is {nearest.name}: {lower(verdict.much)}"
            verdicts = {c.verdict for c in self.compare(measured) if c}
            shown = "None of these is shown to be faster"
            if verdicts == {"slower"}:
                shown = "All are slower"
            headline = f"{shown} than {first.name}: {names}."
            verdict = replace(verdict, headline=headline, much=size)
            remaining = comparable
        jobs = filter(None, (self._other_job(side, measured) for side in remaining))
        edits = (tell_edits(s.maker, s.code) for s in self.sides if s.code)
        edited = dict.fromkeys(itertools.chain(*edits))
        return replace(
            verdict,
            warnings=(*edited, *verdict.warnings, *jobs),
            because=failures(measured),
            folds=self._folds(measured),
        )

    def _compare(self, side: Side, measured: Measurement) -> Verdict:
        """Compare one side with the baseline."""
        compared = measured.compare(side.name, self.baseline)
        assert compared
        name, baseline = side.name, self.baseline
        differ = self.differences(side, measured)
        rates = self._rates(compared, measured)
        if any(d.other_work for d in differ):
            details = "; ".join(d.sentence for d in differ)
            loops = {self.facts[n].loop for n in (name, baseline)}
            return Verdict(
                headline=f"{name} and {baseline} do different work, so neither is "
                f"called faster: {details}.",
                much=as_sentence(rates),
                # What a step is differs where one side has a loop and the other none.
                next=_WHOLE if len(loops) > 1 else "",
            )
        headline, size = _in_words(compared, *self._in_sentence(side))
        if differ:
            headline = self._other_job(side, measured)
            size = f"per example it {_compared(compared)}"
        is_short = _is_short(compared) and not differ
        return Verdict(
            headline=headline,
            much=as_sentence(": ".join(filter(None, (size, rates)))),
            # The faster side may be known although the size of the gain is not.
            sure="likely" if _is_open(compared) else compared.sure,
            interval=_ends(compared),
            warnings=() if differ else tuple(self._warned(side, measured)),
            next=TOO_FEW if is_short else "",
            winner=name if compared.verdict == "faster" and not differ else "",
        )

    def _in_sentence(self, side: Side) -> tuple[str, str]:
        """How a side and the baseline are called: a variable runs nothing itself."""
        first, place, training = self.sides[0], side.place, name_of(side.maker)
        if place.cores:
            return f"{training} on {side.name}", f"on {self.baseline}"
        if place.python:
            return f"{training} in {side.name}", f"in {self.baseline}"
        # A script may set variables itself, and those are of its own place as well.
        if side.maker == first.maker and place.variables != first.place.variables:
            return f"{training} with {side.name}", "without"
        return side.name, self.baseline

    def _folds(self, measured: Measurement) -> tuple[Fold, ...]:
        """Whether it is the same job, and what else differs; none that is empty."""
        same_job = tuple(self._same_job(measured))
        job = (Fold("Is it the same job?", same_job),) if same_job else ()
        return (*job, *self.packages)

    def differences(
        self, side: Side, measured: Measurement | None
    ) -> tuple[Difference, ...]:
        """Return how a side's work differs from the baseline's beyond what was asked.

        Without a measurement, from the facts of the first look alone.
        """
        if not self.facts:
            return ()
        facts = self.facts[side.name], self.facts[self.baseline]
        is_retuned = self.is_retuned(side)
        by_facts = differences(*facts, retuned=is_retuned)
        if is_retuned or measured is None:
            return tuple(by_facts)
        return (*by_facts, *learning.in_learning(measured, side.name, self.baseline))

    def is_retuned(self, side: Side) -> bool:
        """Whether a side has steps of another size, and is meant to have them."""
        if not side.retuned:
            return False
        return self.facts[side.name].batch != self.facts[self.baseline].batch

    def has_other_job(self, measured: Measurement | None = None) -> bool:
        """Whether a side does another job, so that no rate says what is slower."""
        return any(self.differences(side, measured) for side in self.sides[1:])

    def _other_job(self, side: Side, measured: Measurement) -> str:
        """Say how a side's job differs from the baseline's; "" if it does not."""
        opening = f"{side.name} does another job than {self.baseline}"
        differ = "; ".join(d.sentence for d in self.differences(side, measured))
        return differ and f"{opening}: {differ}."

    def _same_job(self, measured: Measurement) -> Iterator[str]:
        for side in self.sides[1:]:
            if sentence := self._other_job(side, measured):
                yield sentence
            elif learning.alike(measured, side.name, self.baseline):
                yield f"{side.name}: both sides have the same first losses."

    def _warned(self, side: Side, measured: Measurement) -> Iterator[str]:
        if self.is_retuned(side):
            yield (
                f"{side.name} learns differently: tune its learning rate again, and "
                "watch the validation loss."
            )
        facts = {n: self.facts.get(n, Facts()) for n in (side.name, self.baseline)}
        filling = [n for n in facts if facts[n].pipeline.get("cached")]
        if len(filling) == 1:
            yield (
                f"{filling[0]} fills a cache in its first epoch, which is not in this "
                "rate: --whole counts the whole run."
            )
        if facts[side.name].loop:
            yield (
                f"{side.name} is a loop of your own, so perfkit does not see its "
                "losses: check that both sides do the same."
            )
        trials = measured.trials_of(self.baseline)
        modules = next((t.notes[LEFT] for t in trials if LEFT in t.notes), ())
        if modules:
            yield (
                f"{self.baseline} ran with {', '.join(modules)} from the working tree, "
                "so changes there are not measured: git does not keep it, or both "
                "sides share it. To race it, run `pip install .` for each version in "
                "an environment of its own, and use --python."
            )

    def _rates(self, compared: Comparison, measured: Measurement) -> str:
        """Return the rates of both sides; "" if one is not known well enough."""
        facts = [self.facts[name] for name in (compared.variant, compared.baseline)]
        # Of a loop of the user's own nobody may know how many examples a step has.
        is_counted = any(f.batch > 1 for f in facts) or not any(f.loop for f in facts)
        unit = "examples" if is_counted else "steps"
        return rates_behind(measured, compared, unit).removeprefix(": ")


def _in_words(compared: Comparison, side: str, baseline: str) -> tuple[str, str]:
    """Return a headline on two sides with the same job, and how they may differ."""
    if _is_open(compared):
        than = f"{side} is {compared.verdict} than {baseline}"
        return f"{than}; by how much is not known yet.", ""
    if compared.verdict == "no difference shown":
        largest = max(compared.high, 1 / compared.low) - 1
        headline = f"No difference shown between {side} and {baseline}."
        return headline, f"if there is one, it is below {units.percent(largest)}"
    if compared.is_noise:
        return f"This race does not show whether {side} is faster than {baseline}.", ""
    return f"{side} {_compared(compared)} as {baseline}.", ""


def _is_open(compared: Comparison) -> bool:
    """Whether there is a difference of unknown size."""
    return not (compared.is_noise or compared.ends)


def _is_short(compared: Comparison) -> bool:
    """Whether it says nothing because it rests on too few rounds."""
    return compared.rounds < LEAST_ROUNDS and compared.is_noise


def _ends(compared: Comparison) -> str:
    """The interval of what is said: how many times as fast, or as long."""
    if _is_short(compared) or not compared.ends:
        return ""
    low, high = compared.low, compared.high
    if compared.verdict == "slower":
        low, high = 1 / high, 1 / low
    return f"{in_times(low)} to {in_times(high)}"


def _compared(compared: Comparison) -> str:
    if _is_open(compared):
        return f"is {compared.judgement}"
    words = {
        "slower": f"takes {in_times(1 / compared.ratio)} times as long",
        "faster": f"runs {in_times(compared.ratio)} times as fast",
        "no difference shown": "shows no difference",
    }
    return words.get(compared.verdict, "is not shown to be faster")


def in_times(value: float) -> str:
    """Two digits behind the point where one would hide the difference."""
    return f"{value:.2f}" if value < 1.995 else units.times(value)


def differences(
    new: Facts, base: Facts, *, retuned: bool = False
) -> Iterator[Difference]:
    """Yield how a side's work differs from the baseline's, from the facts of both.

    Of a side that is ``retuned``, another batch size is intended and no difference.
    """
    if new.counts != base.counts:
        sentence = "one of them only counts its steps, whose size is unknown"
        yield Difference(sentence, other_work=True)
        return
    # The model of a custom loop is unknown.
    has_models = not (new.loop or base.loop)
    # A functional model lists its inputs, and a Sequential does not.
    layers, baseline = ([n for n in f.layers if n != "InputLayer"] for f in (new, base))
    if has_models and new.parameters != base.parameters:
        after, before = f"{new.parameters:,}", f"{base.parameters:,}"
        sentence = f"its model has {after} parameters instead of {before}"
        yield Difference(sentence, other_work=True)
    elif has_models and layers != baseline:
        mine, theirs = Counter(layers), Counter(baseline)
        extra, absent = map(", ".join, (mine - theirs, theirs - mine))
        parts = (extra and f"has {extra}", absent and f"lacks {absent}")
        phrase = " and ".join(filter(None, parts)) or "has its layers in another order"
        sentence = f"its model {phrase}"
        yield Difference(sentence, other_work=True)
    # Examples may differ in size from batch to batch.
    is_open = any(
        facts.open_shapes or facts.data not in ("tf.data", "arrays")
        for facts in (new, base)
    )
    inputs, base_inputs = (_inputs(facts, sizes=not is_open) for facts in (new, base))
    if inputs != base_inputs:
        sentence = f"an example is {_listed(inputs)} instead of {_listed(base_inputs)}"
        yield Difference(sentence, other_work=True)
    if new.batch != base.batch and not retuned:
        yield Difference(f"a step holds {new.batch} examples instead of {base.batch}")
    # Examples of an epoch, whose last batch may be dropped; 0 where nobody knows.
    epoch, usual = ((facts.steps or 0) * facts.batch for facts in (new, base))
    if epoch and usual and abs(epoch - usual) > max(new.batch, base.batch):
        sentence = f"an epoch holds {epoch:,} examples instead of {usual:,}"
        yield Difference(sentence)


def _inputs(facts: Facts, *, sizes: bool) -> tuple[str, ...]:
    """The shapes of what goes into the model, without the length of a batch."""
    # Labels and weights come last; their encoding does not change the example.
    parts = facts.element[:-1] if len(facts.element) > 1 else facts.element
    shapes = (_SHAPE.fullmatch(part) for part in parts)
    inside = [match[2].split(", ")[1:] for match in shapes if match]
    visible = (shape if sizes else ["?"] * len(shape) for shape in inside)
    return tuple(", ".join(shape) or "one number" for shape in visible)


def _listed(shapes: tuple[str, ...]) -> str:
    return " and ".join(f"({s})" if "," in s else s for s in shapes) or "none"


def fold(
    title: str, headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]
) -> tuple[Fold, ...]:
    """A table under a title; nothing where it has no rows."""
    return (Fold(title, tables=(Table("", headings, rows),)),) if rows else ()


def packages(
    sides: Sequence[Side], environments: Mapping[Place, Environment]
) -> tuple[Fold, ...]:
    """List the packages whose versions differ; none where all sides share a place."""
    places = [environments[side.place] for side in sides if environments]
    versions = [{"Python": place.python, **place.versions} for place in places]
    rows = tuple(
        (name, *(column.get(name, "none") for column in versions))
        for name in dict.fromkeys(itertools.chain(*versions))
        if len({column.get(name) for column in versions}) > 1
    )
    headings = ("package", *(side.name for side in sides))
    return fold("Packages that differ", headings, rows)
