"""What every verdict says in the same words."""

from collections.abc import Callable, Iterable, Sequence

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison, Estimate, Sure
from perfkit.findings.record import Fact, Verdict

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
    unavailable = {v.name: v.unavailable for v in measured.variants if v.unavailable}
    ends = ended | unavailable
    return tuple(f"{quoted(name)} {end.rstrip('.')}." for name, end in ends.items())


def rates_behind(
    measured: Measurement, compared: Comparison, unit: str = "examples"
) -> str:
    """Its two rates, ``": 877 instead of 516 images/s"``; "" if unknown."""
    timings = map(measured.timing, (compared.variant, compared.baseline))
    rates = [units.rate(t.rate, unit) for t in timings if t and t.is_known]
    return f": {units.instead(*rates)}" if len(rates) == 2 else ""


def judge_costs(
    measured: Measurement,
    compared: Sequence[Comparison],
    subject: str,
    than: str = "",
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
