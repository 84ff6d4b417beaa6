"""From ticks to a rate with its interval, and from two rates to a ratio with its own.

A comparison looks at rounds: the log of the ratio in each, where both variants ran side
by side, and Student's interval of their mean. A handful of rounds shows its own spread
badly, so it is mixed with what the turns within the rounds, the other comparisons of
the run and earlier runs on this machine let expect (a moderated t, after Smyth 2004).
So one round claims what no spread that is known here explains, and nothing else. A
comparison that varies beyond all that is expected of it stands by itself.

A timing's interval mixes the spread of its trials with that of the other variants'.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.spread import APART, LEAST, Spread, Variance
from perfkit.engine.steady import Steady

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


# How sure an answer is; "" where it is none that could be.
Sure = Literal["sure", "likely", "profiled", "not known yet", ""]
Comparing = Literal["faster", "slower", "no difference shown", "too noisy to say"]

_LEVEL = 0.975
# A log that no ratio of rates has, and whose number a finding may hold.
_WIDEST = 30.0
# What is known besides of how trials or rounds vary counts like so many more of them.
_BORROWED = 2.0
# What the turns of a round show is mixed with that of so many usual ones.
_TURNS = 3.0
# Of their median: so that one wild variant does not make all the others look wild.
_WILD = 3.0
# The ends of an interval that are further apart leave open how much it is.
_SURE = 2.5
# A difference smaller than this is not worth a change of code: an interval that leaves
# none larger open says "no difference shown", a wider one "too noisy to say".
WORTH_KNOWING = 1.10
# Copies of one training were never this far apart, however few their rounds.
FAR = 1.5


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How fast one variant is, and how sure that is.

    Attributes:
        rate: Examples per second in the steady state.
        low: Lower end of the 95 % interval of ``rate``; ``high`` is the upper end.
        trials: How many completed trials it rests on.
        setup_s: Seconds until it was ready, the median over trials.
        first_call_s: Seconds of the first tick (trace, compile, autotune), the median.
    """

    variant: str
    rate: float
    low: float
    high: float
    trials: int
    setup_s: float
    first_call_s: float

    @property
    def is_known(self) -> bool:
        """Whether its interval says enough for the rate to be a result."""
        return units.is_known(self.low, self.high)

    def in_words(self, unit: str = "examples") -> str:
        """Its rate without its interval, as it stands in a sentence."""
        if not self.is_known:
            return "a rate that is not known yet"
        return units.rate(self.rate, unit)

    def seconds(self, examples: float) -> Estimate:
        """What so many examples take."""
        value, low, high = (examples / r for r in (self.rate, self.high, self.low))
        return Estimate(value=value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a variant's rate compares with another's.

    Attributes:
        variant: The one in question.
        baseline: The one it is held against.
        ratio: Rate of ``variant`` over rate of ``baseline``: above 1 is faster.
        low: Lower end of the 95 % interval of ``ratio``; ``high`` is the upper end.
        verdict: ``faster`` or ``slower`` only where the interval leaves out 1 and the
            ratio lies beyond the noise floor.
        rounds: How many rounds it rests on.
        stands_out: Whether it would still be claimed with an interval so wide that
            none of all the run's comparisons misses the truth, at 95 %. The largest of
            many differences is large by chance, too.
    """

    variant: str
    baseline: str
    ratio: float
    low: float
    high: float
    verdict: Comparing
    rounds: int
    stands_out: bool = True

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
        """Whether it says something: one round does where it leaves no doubt."""
        return self.rounds > 1 or self.verdict != "too noisy to say"

    def after(self, rounds: int) -> "Comparison":
        """The same, which says nothing before so many rounds.

        From two on it does where even the nearer end of its interval is far from 1.
        """
        is_far = self.low > FAR or self.high < 1 / FAR
        if self.rounds >= rounds or (is_far and self.rounds > 1):
            return self
        return replace(self, verdict="too noisy to say")

    @property
    def judgement(self) -> str:
        """Its verdict in words; of one round that leaves doubt that there is none."""
        if not self.is_judged:
            return "one round: not judged"
        if self.is_noise or self.ends:
            return self.verdict
        return f"{self.verdict}, by how much is not known yet"

    @property
    def as_fast_as(self) -> str:
        """How its baseline is named after it: ``"1.7 times as fast as"``."""
        if self.ends:
            return f"{units.times(self.ratio)} times as fast as"
        return f"{'faster or slower' if self.is_noise else self.verdict} than"

    @property
    def sure(self) -> Sure:
        """How sure its verdict is.

        One round, a wide interval or what is the largest of many by chance is likely at
        most.
        """
        is_known = units.is_known(self.low, self.high)
        if self.verdict == "too noisy to say" or not is_known:
            return "not known yet"
        narrow = self.high <= _SURE * self.low
        return "sure" if narrow and self.rounds > 1 and self.stands_out else "likely"

    @property
    def ends(self) -> str:
        """Its interval as a reader repeats it, as ``"1.5 to 2.0"``; "" if unknown."""
        if not units.is_known(self.low, self.high):
            return ""
        return f"{units.times(self.low)} to {units.times(self.high)}"

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
    *,
    one_process: bool = False,
) -> Timing:
    """Put the trials of one variant together, at least one.

    Args:
        variant: Its name.
        steadies: The steady part of each.
        setups: Seconds of set-up of each.
        usual: What ``usual_spread`` says of the run.
        one_process: Whether they are turns of one process that others took part in.
    """
    logs = np.log([steady.rate for steady in steadies])
    df = len(logs) - 1
    freedom = df + (_BORROWED if usual else 0.0)
    variance = float(logs.var(ddof=1)) if df else 0.0
    mixed = (df * variance + (freedom - df) * usual) / freedom if freedom else 0.0
    within = float(np.mean([_variance(_shares(steady)) for steady in steadies]))
    if one_process:
        # No process differs from another: each turn shows how much they vary.
        freedom = max(freedom, sum(len(steady.keys) for steady in steadies) - 1)
    # No spread is believed that is smaller than what the trials show within them.
    half = float(np.sqrt(max(mixed, within) / len(logs))) * student(max(1.0, freedom))
    if not freedom and len(steadies[0].seconds) < 2:
        # One block shows no spread at all, which is not the same as none.
        half = _WIDEST
    middle = float(logs.mean())
    return Timing(
        variant=variant,
        rate=float(np.exp(middle)),
        low=float(np.exp(middle - half)),
        high=float(np.exp(middle + half)),
        trials=len(logs),
        setup_s=float(np.median(setups)),
        first_call_s=float(np.median([steady.first_call_s for steady in steadies])),
    )


def usual_spread(groups: Iterable[Sequence[Steady]]) -> float:
    """The usual variance of the log rate from trial to trial, over a run's variants."""
    logs = (np.log([steady.rate for steady in group]) for group in groups)
    variances = [float(of_one.var(ddof=1)) for of_one in logs if len(of_one) > 1]
    return float(np.median(variances)) if variances else 0.0


@dataclass(frozen=True)
class Rounds:
    """The ratio of two variants in each round that holds both.

    Attributes:
        logs: Log of the ratio of rates, shape (rounds,).
        within: Variance of each of them, from the turns in the round, shape (rounds,).
        turns: How many turns that rests on, shape (rounds,).
        shared: Variance of what is the same in all rounds, and no mean makes smaller.
        one_process: Whether both took turns in one process in each of the rounds.
        alike: Whether both are known to do the same: the log of their ratio is 0.
        single: Whether one of their trials counts with a single turn.
    """

    variant: str
    baseline: str
    logs: _Floats
    within: _Floats
    turns: _Floats
    shared: float = 0.0
    one_process: bool = False
    alike: bool = False
    single: bool = False

    @property
    def freedom(self) -> int:
        """Degrees of freedom of how much the rounds vary."""
        return len(self.logs) - (not self.alike)

    def summed_up(self, turn: float) -> tuple[float, float, float]:
        """What the rounds say together; those of few turns have less of a say.

        The log ratio of a single turn usually has the variance ``turn``.

        Returns:
            Their mean; its variance as it is expected; and how many times as much as
            expected they vary, 0.0 of a single round.
        """
        freedoms = self.turns - 1
        # Of a single turn, over all rounds: one that met no stall must not count more.
        total = freedoms @ (self.within * self.turns) + _TURNS * turn
        within = total / (freedoms.sum() + _TURNS) / self.turns
        weights = 1 / (LEAST**2 + within)
        middle = float(np.average(self.logs, weights=weights))
        around = 0.0 if self.alike else middle
        squares = float(weights @ (self.logs - around) ** 2)
        return middle, float(1 / weights.sum()), squares / max(1, self.freedom)


def rounds(
    variant: str,
    baseline: str,
    pairs: Sequence[tuple[Steady, Steady]],
    shared: float = 0.0,
    *,
    one_process: bool = False,
    alike: bool = False,
) -> Rounds:
    """Take the ratio of each round, from the steady parts of variant and baseline."""
    logs, within, turns = np.array([_log_ratio(*pair) for pair in pairs]).T
    single = any(part.turns == 1 for pair in pairs for part in pair)
    ratios = variant, baseline, logs, within, turns
    return Rounds(*ratios, shared, one_process, alike, single)


def variances(comparisons: Sequence[Rounds]) -> list[Variance]:
    """How much each comparison of a run varied, in units of what was expected."""
    turn = _usual_turn(comparisons)
    return [(r.summed_up(turn)[2], r.freedom) for r in comparisons if r.freedom]


def usual(prior: Spread, comparisons: Sequence[Rounds]) -> Spread:
    """How much a round varies in a run, from what was known and all its comparisons."""
    turn = _usual_turn(comparisons)
    posterior = prior.updated(variances(comparisons), turn)
    if posterior.scale < prior.scale and all(len(r.logs) == 1 for r in comparisons):
        # A control that agrees once may do so by luck.
        return replace(prior, turn=turn)
    return posterior


def _usual_turn(comparisons: Sequence[Rounds]) -> float:
    if not comparisons:
        return 0.0
    turn_variances = np.concatenate([r.within * r.turns for r in comparisons])
    return float(min(turn_variances.mean(), _WILD * np.median(turn_variances)))


def comparison(
    ratios: Rounds, usual: Spread, floor: float | None, among: int = 1
) -> Comparison:
    """Say what the rounds, at least one, show in a run of ``among`` comparisons.

    The noise floor is a ratio of at least 1; None while it is unknown.
    """
    middle, error, freedom = _moderated(ratios, usual)
    half = min(student(freedom) * error, _WIDEST)
    low, high = middle - half, middle + half
    verdict = judge(low, middle, high, np.log(floor) if floor else 0.0)
    claimed = verdict in ("faster", "slower")
    return Comparison(
        variant=ratios.variant,
        baseline=ratios.baseline,
        ratio=float(np.exp(middle)),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        verdict=verdict,
        rounds=len(ratios.logs),
        stands_out=not claimed or abs(middle) > student(freedom, among) * error,
    )


def _moderated(ratios: Rounds, usual: Spread) -> tuple[float, float, float]:
    """Mean log ratio, its standard error, and the degrees of freedom of that."""
    # Not with the module, which every trial imports: it takes most of a second.
    from scipy import special

    middle, expected, varied = ratios.summed_up(usual.turn)
    df, borrowed = ratios.freedom, usual.freedom
    if not df and ratios.one_process:
        # No process can differ from another: each turn shows how much they vary.
        borrowed = max(borrowed, float(ratios.turns[0]) - 1 + _TURNS)
    scale, freedom = usual.scale, df + borrowed
    if df and varied > scale * special.fdtri(df, borrowed, APART):
        scale, freedom = varied, df + _BORROWED
    scale = (df * varied + (freedom - df) * scale) / freedom
    return middle, float(np.sqrt(scale * expected + ratios.shared)), freedom


def noise_floor(control: Rounds, usual: Spread) -> float:
    """The ratio, 1 or more, that the baseline reached against itself.

    It is the ratio seen and one standard error more: about what two runs of the same
    thing may show. That a variant's own interval leaves out 1 is asked besides.
    """
    middle, error, _ = _moderated(control, usual)
    return float(np.exp(abs(middle) + error))


def judge(low: float, middle: float, high: float, floor: float = 0.0) -> Comparing:
    """What the logs of a ratio, its interval and the noise floor say."""
    if low > 0 and middle > floor:
        return "faster"
    if high < 0 and middle < -floor:
        return "slower"
    small = max(abs(low), abs(high)) <= np.log(WORTH_KNOWING)
    return "no difference shown" if small else "too noisy to say"


def _log_ratio(part: Steady, base: Steady) -> tuple[float, float, int]:
    """The log ratio of two trials of a round, its variance, and from how many turns."""
    common, mine, theirs = np.intersect1d(part.keys, base.keys, return_indices=True)
    if len(common) < 2:
        shares, base_shares = _shares(part), _shares(base)
        variance = _variance(shares) + _variance(base_shares)
        turns = min(len(shares), len(base_shares))
        return float(np.log(part.rate / base.rate)), variance, turns
    # Turn by turn side by side: what the machine did meanwhile is in both alike.
    apart = _shares(part, mine) - _shares(base, theirs)
    rate, against = (
        side.examples[blocks].sum() / side.seconds[blocks].sum()
        for side, blocks in ((part, mine), (base, theirs))
    )
    return float(np.log(rate / against)), _variance(apart), len(common)


def _shares(part: Steady, blocks: NDArray[np.intp] | slice = slice(None)) -> _Floats:
    """By how much each block moves the log rate, shape (blocks,)."""
    work, time = part.examples[blocks], part.seconds[blocks]
    return np.asarray(work / work.sum() - time / time.sum())


def _variance(shares: _Floats) -> float:
    """Of the sum of what blocks move, if others of the same kind had been drawn."""
    count = len(shares)
    return float((shares**2).sum() * count / (count - 1)) if count > 1 else 0.0


def student(freedom: float, among: int = 1) -> float:
    """How many standard errors an interval reaches, and so many of them together."""
    from scipy import special

    return float(special.stdtrit(freedom, 1 - (1 - _LEVEL) / among))
