"""From ticks to a rate with its interval, and from two rates to a ratio with its own.

A timing's interval comes from resampling trials first and the blocks of ticks within
them second: two processes that do the same differ, and so do two moments of one. With
few trials it borrows from the spread of the other variants.

A comparison looks at rounds: the log of the ratio in each, where both variants ran side
by side, and Student's interval of their mean. The spread of a handful of rounds is
badly known, so each comparison borrows from the spread of the others (a moderated t,
after Smyth 2004), and no spread is believed that is smaller than what the turns within
the rounds show. One round is shown and not judged: a claim needs two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from perfkit import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from perfkit.measure.steady import Steady

Comparing = Literal["faster", "slower", "no difference shown", "too noisy to say"]

# Enough that the interval of the same ticks is the same to a percent of its width.
_RESAMPLES = 1000
_LEVEL = 0.975
# The spread of the other comparisons counts like so many more rounds.
_BORROWED = 2.0
# One round shows nothing of how processes differ.
ROUNDS_NEEDED = 2
# A difference smaller than this is not worth a change of code: an interval that leaves
# none larger open says "no difference shown", a wider one "too noisy to say".
WORTH_KNOWING = 1.10


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How fast one variant is, and how sure that is.

    Attributes:
        variant: Its name.
        rate: Examples per second in the steady state.
        low: Lower end of the 95 % interval of ``rate``.
        high: Upper end of it.
        trials: How many completed trials it rests on.
        setup_s: Seconds until it was ready, the median over trials.
        first_call_s: Seconds of the first tick (trace, compile, autotune), the median.
        warm_up_s: Seconds from ready until the rate was steady, the median.
        drift: Relative change of the rate within a trial, from its first to its last
            steady tick, the median; 0.0 where none is shown.
        cv: Spread between trials: standard deviation over mean, of their rates.
    """

    variant: str
    rate: float
    low: float
    high: float
    trials: int
    setup_s: float
    first_call_s: float
    warm_up_s: float
    drift: float
    cv: float

    def __str__(self) -> str:
        """One line that states its doubt."""
        return (
            f"{self.variant}: {units.rate_between(self.rate, self.low, self.high)}, "
            f"{self.trials} trial{'s' if self.trials != 1 else ''}"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a variant's rate compares with another's.

    Attributes:
        variant: The one in question.
        baseline: The one it is held against.
        ratio: Rate of ``variant`` over rate of ``baseline``: above 1 is faster.
        low: Lower end of the 95 % interval of ``ratio``.
        high: Upper end of it.
        verdict: ``faster`` or ``slower`` only where at least two rounds were run, the
            interval leaves out 1 and the ratio lies beyond the noise floor.
        rounds: How many rounds it rests on.
    """

    variant: str
    baseline: str
    ratio: float
    low: float
    high: float
    verdict: Comparing
    rounds: int

    @property
    def is_noise(self) -> bool:
        """Whether no difference can be claimed."""
        return self.verdict not in ("faster", "slower")

    @property
    def half_width(self) -> float:
        """Half the interval as a share of the ratio: 0.05 for ± 5 %."""
        return float(np.sqrt(self.high / self.low) - 1)

    @property
    def is_judged(self) -> bool:
        """Whether it rests on as many rounds as a verdict needs."""
        return self.rounds >= ROUNDS_NEEDED

    @property
    def judgement(self) -> str:
        """Its verdict in words; of too few rounds that there is none."""
        return self.verdict if self.is_judged else "one round: not judged"

    @property
    def interval(self) -> str:
        """Its ratio with its interval, as text."""
        return units.ratio_between(self.ratio, self.low, self.high)

    def __str__(self) -> str:
        """One line that states its doubt."""
        return (
            f"{self.variant} against {self.baseline}: {self.interval}, {self.judgement}"
        )


def timing(
    variant: str,
    steadies: Sequence[Steady],
    setups: Sequence[float],
    usual: float = 0.0,
    seed: int = 0,
) -> Timing:
    """Put the trials of one variant together.

    Args:
        variant: Its name.
        steadies: The steady part of each completed trial, at least one.
        setups: Seconds of set-up of each.
        usual: How the log rates of a variant's trials usually vary in this run; what
            ``usual_spread`` says.
        seed: Of the resampling.
    """
    logs = np.log([steady.rate for steady in steadies])
    error, freedom = _resampled_error(steadies, usual, seed)
    middle, half = float(logs.mean()), _student(freedom) * error
    return Timing(
        variant=variant,
        rate=float(np.exp(middle)),
        low=float(np.exp(middle - half)),
        high=float(np.exp(middle + half)),
        trials=len(logs),
        setup_s=float(np.median(setups)),
        first_call_s=float(np.median([steady.first_call_s for steady in steadies])),
        warm_up_s=float(np.median([steady.warm_up_s for steady in steadies])),
        drift=float(np.median([steady.drift for steady in steadies])),
        cv=float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0,
    )


def usual_spread(groups: Iterable[Sequence[Steady]]) -> float:
    """The usual variance of the log rate from trial to trial, over a run's variants."""
    logs = (np.log([steady.rate for steady in group]) for group in groups)
    known = [float(of_one.var(ddof=1)) for of_one in logs if len(of_one) > 1]
    return float(np.median(known)) if known else 0.0


def _resampled_error(
    steadies: Sequence[Steady], usual: float, seed: int
) -> tuple[float, float]:
    """Standard error of the mean log rate, and its degrees of freedom."""
    draw = np.random.default_rng(seed)
    count = len(steadies)
    resampled = np.stack([_resampled_log_rates(steady, draw) for steady in steadies])
    picks = draw.integers(count, size=(count, _RESAMPLES))
    means = resampled[picks, np.arange(_RESAMPLES)].mean(axis=0)
    own = count - 1
    # A bootstrap of few comes out too narrow by this factor.
    variance = float(means.var()) * count * (count / own if own else 1.0)
    freedom = own + (_BORROWED if usual else 0.0)
    if freedom:
        variance = max(
            (own * variance + (freedom - own) * usual) / freedom,
            float(resampled.var(axis=1).mean()),
        )
    return float(np.sqrt(variance / count)), max(1.0, freedom)


@dataclass(frozen=True)
class Rounds:
    """The ratio of two variants in each round that holds both.

    Attributes:
        variant: The one in question.
        baseline: The one it is held against.
        logs: Log of the ratio of rates, shape (rounds,).
        within: Variance of each of them, from the turns in the round, shape (rounds,).
        shared: Variance of what is the same in all rounds, and no mean makes smaller.
    """

    variant: str
    baseline: str
    logs: NDArray[np.float64]
    within: NDArray[np.float64]
    shared: float = 0.0

    @property
    def variance(self) -> float:
        """Of the log ratio from round to round; at least what the turns show."""
        seen = float(self.logs.var(ddof=1)) if len(self.logs) > 1 else 0.0
        return max(seen, float(self.within.mean()))


def rounds(
    variant: str,
    baseline: str,
    pairs: Sequence[tuple[Steady, Steady]],
    seed: int = 0,
    shared: float = 0.0,
) -> Rounds:
    """Take the ratio of each round.

    Args:
        variant: The one in question.
        baseline: The one it is held against.
        pairs: Of each round: the variant's steady part and the baseline's.
        seed: Of the resampling.
        shared: Variance of what is the same in all rounds.
    """
    draw = np.random.default_rng(seed)
    ratios = [_log_ratio(one, other, draw) for one, other in pairs]
    logs, within = np.array(ratios).reshape(-1, 2).T
    return Rounds(variant, baseline, logs, within, shared)


def usual_variance(all_rounds: Sequence[Rounds]) -> float:
    """The usual variance of a round's log ratio, over all comparisons of a run."""
    known = [r.variance for r in all_rounds if len(r.logs) > 1]
    # The median, so that one wild variant does not make all the others look wild.
    return float(np.median(known)) if known else 0.0


def comparison(of: Rounds, usual: float, floor: float | None) -> Comparison:
    """Say what the rounds show.

    Args:
        of: The ratios, at least one.
        usual: What ``usual_variance`` says of the whole run.
        floor: The noise floor, a ratio of at least 1; None while it is unknown.
    """
    low, middle, high = _interval(of, usual)
    return Comparison(
        variant=of.variant,
        baseline=of.baseline,
        ratio=float(np.exp(middle)),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        verdict=(
            judge(low, middle, high, np.log(floor) if floor else 0.0)
            if len(of.logs) >= ROUNDS_NEEDED
            else "too noisy to say"
        ),
        rounds=len(of.logs),
    )


def _interval(of: Rounds, usual: float) -> tuple[float, float, float]:
    """Low, middle and high of the mean log ratio."""
    middle, error, freedom = _moderated(of, usual)
    half = _student(freedom) * error
    return middle - half, middle, middle + half


def _moderated(of: Rounds, usual: float) -> tuple[float, float, float]:
    """Mean log ratio, its standard error, and the degrees of freedom of that."""
    count = len(of.logs)
    own = count - 1
    mixed = (own * of.variance + _BORROWED * usual) / (own + _BORROWED)
    variance = max(mixed, float(of.within.mean()))
    # One round shows nothing of how rounds differ, whatever the others do.
    freedom = own + _BORROWED if own else 1.0
    error = float(np.sqrt(variance / count + of.shared))
    return float(of.logs.mean()), error, freedom


def noise_floor(twin: Rounds, usual: float) -> float:
    """The ratio, 1 or more, that the baseline reached against itself.

    It is the ratio seen and one standard error more: about what two runs of the same
    thing may show. That a variant's own interval leaves out 1 is asked besides.
    """
    middle, error, _ = _moderated(twin, usual)
    return float(np.exp(abs(middle) + error))


def judge(low: float, middle: float, high: float, floor: float = 0.0) -> Comparing:
    """What the logs of a ratio, its interval and the noise floor say of two rounds."""
    if low > 0 and middle > floor:
        return "faster"
    if high < 0 and middle < -floor:
        return "slower"
    left_open = max(abs(low), abs(high))
    return (
        "no difference shown"
        if left_open <= np.log(WORTH_KNOWING)
        else "too noisy to say"
    )


def _log_ratio(
    one: Steady, other: Steady, draw: np.random.Generator
) -> tuple[float, float]:
    """The log ratio of two trials of a round, and its variance."""
    common, mine, theirs = np.intersect1d(one.keys, other.keys, return_indices=True)
    if len(common) < 2:
        resampled = _resampled_log_rates(one, draw) - _resampled_log_rates(other, draw)
        return float(np.log(one.rate / other.rate)), float(resampled.var())
    # Turn by turn side by side: what the machine did meanwhile is in both alike.
    work = np.stack([one.examples[mine], other.examples[theirs]])
    time = np.stack([one.seconds[mine], other.seconds[theirs]])
    picks = draw.integers(len(common), size=(len(common), _RESAMPLES))
    rates = np.log(work.take(picks, 1).sum(axis=1) / time.take(picks, 1).sum(axis=1))
    whole = np.log(work.sum(axis=1) / time.sum(axis=1))
    return float(whole[0] - whole[1]), float((rates[0] - rates[1]).var())


def _resampled_log_rates(
    steady: Steady, draw: np.random.Generator
) -> NDArray[np.float64]:
    """Log rates of one trial with its blocks drawn anew, shape (resamples,)."""
    blocks = len(steady.seconds)
    picks = draw.integers(blocks, size=(blocks, _RESAMPLES))
    work, time = (
        of.take(picks).sum(axis=0) for of in (steady.examples, steady.seconds)
    )
    return np.asarray(np.log(work / time))


def _student(freedom: float) -> float:
    """How many standard errors an interval reaches."""
    # Not with the module, which every trial imports: it takes most of a second.
    from scipy import stats

    return float(stats.t.ppf(_LEVEL, freedom))
