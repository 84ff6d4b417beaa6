"""The verdicts that questions share: what is fastest and what costs most, in words."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant, pay_back
from perfkit.engine.statistics import WORTH_KNOWING, Comparison, Estimate, Sure, Timing
from perfkit.engine.trial import REFUSED, Note, Yielded
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.questions.shared.code import code_of

_BROKEN = "Trials failed: fix the errors that they report, then run again."
_SHORT = "Give the run more seconds: no trial reached steady steps."
_PAYS_BACK = "has a slow first call: it is ahead after {}"
_PAYING: dict[str, str] = {
    "at once": "is ahead from its first call",
    "never": "never pays back, because its calls are slower",
    "not shown": "is not shown to pay back",
    "one round": "needs a second round to show when it is ahead",
}


@dataclass(frozen=True)
class Choice:
    """A variant that a reader may choose.

    ``do`` says in a sentence what that means: ``"Cache the decoded images."`` The code
    are its lines, as a reader types them, or what reads them from the source.
    """

    do: str
    code: str | Callable[[], str]

    @property
    def lines(self) -> str:
        """Its lines, as a reader types them."""
        return self.code if isinstance(self.code, str) else self.code()


@dataclass(frozen=True)
class Race:
    """Which of several variants of the same work is fastest.

    The choices are the variants that may be chosen, by name, the baseline among them.
    The unit is what an example is, such as ``"images"``; the subject, which runs faster
    then, begins a sentence.
    """

    measured: Measurement
    choices: Mapping[str, Choice]
    unit: str
    subject: str = "This training"

    @property
    def baseline(self) -> str:
        """What all are compared with."""
        return self.measured.baseline

    @cached_property
    def runners(self) -> tuple[str, ...]:
        """The choices that were timed."""
        return tuple(name for name in self.choices if self.measured.timing(name))

    @property
    def _untimed(self) -> set[str]:
        """The choices of which no rate is known though they were asked for."""
        asked = {v.name for v in self.measured.variants if not v.unavailable}
        asked |= {trial.variant for trial in self.measured.trials}
        return (self.choices.keys() & asked) - {*self.runners}

    @cached_property
    def ranked(self) -> tuple[Timing, ...]:
        """The fastest that was timed, then those it is not shown to beat."""
        return self.measured.fastest(self.runners) if self.runners else ()

    @cached_property
    def compared(self) -> Comparison | None:
        """The fastest against the baseline; None where that is itself, or unknown."""
        if not self.ranked or self.ranked[0].variant == self.baseline:
            return None
        return self.measured.compare(self.ranked[0].variant, self.baseline)

    @property
    def won(self) -> bool:
        """Whether something is shown to be faster than the baseline."""
        return self.compared is not None and self.compared.verdict == "faster"

    @property
    def winner(self) -> str:
        """What is shown to be faster than the baseline; "" for nothing."""
        return self.ranked[0].variant if self.won else ""

    @property
    def is_clear(self) -> bool:
        """Whether a winner is sure, and worth it at the near end of its interval.

        None leads it that is too noisy to say: that may be faster by far.
        """
        best = self.compared if self.won else None
        if best is None or best.sure != "sure" or best.low < WORTH_KNOWING:
            return False
        return all(rival.ratio <= best.ratio for rival in self._leaders)

    @property
    def is_open(self) -> bool:
        """Whether something may be faster, for all that was measured."""
        return any(rival.verdict == "too noisy to say" for rival in self._leaders)

    @property
    def _leaders(self) -> list[Comparison]:
        """The fastest, and those that it does not beat, against the baseline."""
        return self._against_baseline([timing.variant for timing in self.ranked])

    def _against_baseline(self, names: Iterable[str]) -> list[Comparison]:
        rivals = (name for name in names if name != self.baseline)
        compared = (self.measured.compare(name, self.baseline) for name in rivals)
        return [comparison for comparison in compared if comparison]

    def first_calls(
        self, batch: int, unit: str = "steps"
    ) -> tuple[tuple[str, ...], tuple[Fact, ...]]:
        """When each has paid back its first call; what to warn of, and the rows."""
        warnings, facts = tuple[str, ...](), list[Fact]()
        for name in self.runners:
            paid = pay_back(self.measured, name, self.baseline)
            if not paid or name == self.baseline:
                continue
            sentence = _PAYING.get(paid.paying)
            sentence = sentence or _PAYS_BACK.format(paid.steps(batch, unit))
            facts.append(Fact(f"First call, {quoted(name)}", sentence))
            if name == self.winner and paid.paying in ("pays back", "not shown"):
                warnings = (f"It {sentence}.",)
        return warnings, tuple(facts)

    def verdict(
        self,
        *,
        warnings: tuple[str, ...] = (),
        facts: tuple[Fact, ...] = (),
        because: tuple[str, ...] = (),
        next: str = "",
    ) -> Verdict:
        """Say what to do, how much that brings, how sure that is.

        The warnings are what could change the decision for the winner; ``next`` is what
        to do after that, "" for what fits any race.
        """
        only = f"Only {quoted(self.runners[0])}" if self.runners else "Nothing"
        broken = any(trial.has_failed for trial in self.measured.trials)
        then = _BROKEN if broken else _SHORT
        verdict = Verdict(headline=f"{only} could be timed.", next=then)
        compared = self.measured.comparisons if len(self.choices) > 1 else ()
        if len(self.runners) > 1:
            verdict = self._won(warnings) if self.won else self._not_won()
        elif compared and not self._untimed:
            # Nothing else may be chosen of what was asked for.
            first, *rest = (f"{comparison}." for comparison in compared)
            sure = compared[0].sure
            verdict = Verdict(headline=first, sure=sure, because=tuple(rest))
        return replace(
            verdict,
            facts=facts,
            because=(*verdict.because, *because, *failures(self.measured)),
            next=next or verdict.next,
        )

    def _won(self, warnings: tuple[str, ...]) -> Verdict:
        best, *ties = self.ranked
        compared = self.compared
        assert compared
        fast = compared.judgement
        if compared.ends:
            fast = f"{compared.as_fast_as} {quoted(self.baseline)}"
        rates = rates_behind(self.measured, compared, self.unit)
        old, new = self.choices[self.baseline], self.choices[best.variant]
        tied = listed([tie.variant for tie in ties]) if ties else ""
        return Verdict(
            headline=new.do,
            much=f"{self.subject} then runs {fast}{rates}.",
            sure=compared.sure,
            interval=compared.ends,
            edits=(Edit(old=old.lines, new=new.lines),),
            warnings=warnings,
            because=(f"{tied} may be as fast.",) if tied else (),
            winner=best.variant,
        )

    def _not_won(self) -> Verdict:
        best, base, compared = self.ranked[0], quoted(self.baseline), self.compared
        sentence = f"{quoted(best.variant)} reaches {best.in_words(self.unit)}"
        unknown = False
        if best.variant != self.baseline:
            unknown = compared is None or compared.sure == "not known yet"
            fast = f"; the run does not show whether {base} is slower"
            if compared and compared.ends:
                fast = f", {compared.as_fast_as} {base}"
            sentence += fast
        headline = f"Keep {base}: nothing else is shown to be faster."
        rivals = self._against_baseline(self.runners)
        sure = compared.sure if compared else sure_of_all(rivals)
        if sure == "sure" and self._untimed:
            sure = "likely"
        if self.is_open or unknown:
            headline = f"This run does not show whether anything is faster than {base}."
            sure = "not known yet"
        return Verdict(
            headline=headline,
            much=f"{sentence}.",
            sure=sure,
            interval=compared.ends if compared else "",
        )


# What makes or does each way of the same work, and what choosing it means.
Ways = Mapping[str, tuple[Callable[..., Any], str]]


def choices_of(ways: Ways) -> dict[str, Choice]:
    """Each way as a choice, whose lines are read from what makes or does it."""
    return {
        name: Choice(do, functools.partial(code_of, function))
        for name, (function, do) in ways.items()
    }


def raced(
    run: Callable[[str], Iterator[Yielded]], ways: Ways, against: Mapping[str, str]
) -> dict[str, Variant]:
    """A variant of each way, which ``run`` is given by its name."""
    return {
        name: Variant(name, functools.partial(run, name), do, against[name])
        for name, (_, do) in ways.items()
    }


def refusal(reason: str, answers: Mapping[str, Any], right: Any, **close: Any) -> Note:
    """Refuse each way whose answer is not as close as ``np.allclose`` is to be told."""
    wrong = [k for k, v in answers.items() if not np.allclose(v, right, **close)]
    return Note(REFUSED, dict.fromkeys(wrong, reason))


# What every verdict says in the same words.

MORE = "Give it more seconds, such as a budget of 180 s, for a second round."


def quoted(name: str) -> str:
    """A variant's name as it stands in a sentence."""
    return f'"{name}"'


def listed(names: Sequence[str]) -> str:
    """Several names in a sentence."""
    *first, last = [quoted(name) for name in names]
    return f"{', '.join(first)} or {last}" if first else last


def fact(label: str, estimate: Estimate, write: Callable[[float], str]) -> Fact:
    """A number with its interval as a row; ``"?"`` where that leaves too much open."""
    low, high = estimate.low, estimate.high
    if not units.is_known(low, high):
        return Fact(label, units.UNKNOWN)
    ends = f"{write(low)} to {write(high)}" if low < high else ""
    return Fact(label, write(estimate.value), ends)


def between(estimate: Estimate, write: Callable[[float], str]) -> str:
    """A number with the ends of its interval."""
    return units.between(estimate.value, estimate.low, estimate.high, write)


def sure_of_all(compared: Iterable[Comparison]) -> Sure:
    """How sure what is said of all of them together is."""
    return "sure" if all(c.sure == "sure" for c in compared) else "likely"


def rounds(compared: Comparison) -> str:
    """How many rounds a comparison rests on; of one that is not judged, that too."""
    if not compared.is_judged:
        return "one round: not judged"
    return f"{compared.rounds} rounds" if compared.rounds > 1 else "one round"


def failures(measured: Measurement) -> tuple[str, ...]:
    """How trials ended that did not complete, once for each variant."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in measured.trials
        if trial.outcome not in ("completed", "stopped") and not trial.is_try
    }
    ends = ended | {v.name: v.unavailable for v in measured.variants if v.unavailable}
    return tuple(f"{quoted(name)} {end.rstrip('.')}." for name, end in ends.items())


def rates_behind(
    measured: Measurement, compared: Comparison, unit: str = "examples"
) -> str:
    """Its two rates, ``": 877 instead of 516 images/s"``; "" if unknown."""
    timings = map(measured.timing, (compared.variant, compared.baseline))
    rates = [units.rate(t.rate, unit) for t in timings if t and t.is_known]
    return f": {units.instead(*rates)}" if len(rates) == 2 else ""


def judge_costs(
    measured: Measurement, compared: Sequence[Comparison], subject: str, than: str = ""
) -> tuple[Comparison | None, Verdict]:
    """What is shown to cost most, if anything, and what is said of that.

    With it the subject takes longer ``than`` without; the headline is the caller's.
    """
    slower = [one for one in compared if one.verdict == "slower"]
    noisy = [one.variant for one in compared if one.verdict == "too noisy to say"]
    if not slower and (noisy or not compared):
        costs = f"{listed(noisy) if noisy else 'anything'} costs anything"
        headline = f"This run does not show whether {costs}."
        return None, Verdict(headline=headline, sure="not known yet", next=MORE)
    if not slower:
        much, sure = "Each costs less than 10 %, if anything.", sure_of_all(compared)
        headline = "None of these is shown to cost anything."
        return None, Verdict(headline=headline, much=much, sure=sure)
    worst = min(slower, key=lambda one: one.ratio)
    names = (one.variant for one in compared if one is not worst)
    pairs = ((name, measured.compare(name, worst.variant)) for name in names)
    ties = [name for name, pair in pairs if not pair or pair.verdict != "faster"]
    duration, interval = "longer", ""
    if units.is_known(worst.low, worst.high):
        ends = (worst.high, worst.ratio, worst.low)
        low, times, high = (units.times(1 / end) for end in ends)
        duration, interval = f"{times} times as long{than}", f"{low} to {high}"
    rates = rates_behind(measured, worst)
    return worst, Verdict(
        headline="",
        much=f"With {quoted(worst.variant)} {subject} takes {duration}{rates}.",
        sure=worst.sure,
        interval=interval,
        warnings=(f"{listed(ties)} may cost as much.",) if ties else (),
    )
