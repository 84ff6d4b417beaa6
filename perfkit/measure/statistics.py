"""From ticks to a rate with its interval, and from two rates to a ratio with its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Comparing = Literal["faster", "slower", "no difference shown", "too noisy to say"]


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


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a variant's rate compares with another's.

    Attributes:
        variant: The one in question.
        baseline: The one it is held against.
        ratio: Rate of ``variant`` over rate of ``baseline``: above 1 is faster.
        low: Lower end of the 95 % interval of ``ratio``.
        high: Upper end of it.
        verdict: ``faster`` or ``slower`` only where the interval leaves out 1 and the
            ratio lies beyond the noise floor.
        rounds: How many rounds it rests on.
    """

    variant: str
    baseline: str
    ratio: float
    low: float
    high: float
    verdict: Comparing
    rounds: int
