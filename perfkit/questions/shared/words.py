"""What every verdict says in the same words."""

from collections.abc import Callable, Iterable, Sequence

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Comparison, Estimate, Sure
from perfkit.findings.record import Fact

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


def longer(compared: Comparison) -> tuple[str, str]:
    """How many times as long as its baseline it takes, and the ends of its interval.

    Both are "" where that is not known.
    """
    if not units.is_known(compared.low, compared.high):
        return "", ""
    ends = compared.high, compared.ratio, compared.low
    low, value, high = (units.times(1 / end) for end in ends)
    return value, f"{low} to {high}"


def costliest(
    measured: Measurement, compared: Sequence[Comparison]
) -> tuple[Comparison | None, str, str]:
    """What is shown to cost most, what may cost as much, and what noise hides.

    The second and the third are names in a sentence, "" for none.
    """
    slower = [one for one in compared if one.verdict == "slower"]
    noisy = [one.variant for one in compared if one.verdict == "too noisy to say"]
    worst = min(slower, key=lambda one: one.ratio, default=None)
    names = [one.variant for one in compared if worst and one is not worst]
    pairs = [(n, measured.compare(n, worst.variant)) for n in names] if worst else []
    ties = [name for name, pair in pairs if not pair or pair.verdict != "faster"]
    return worst, listed(ties) if ties else "", listed(noisy) if noisy else ""
