"""After how many examples has an expensive first call paid back?

A variant that traces or compiles starts later and then works faster. It has paid back
where the two lines "first call + examples x seconds per example" cross. Both the extra
of the first call and the saving are known from a few rounds only, so the interval is
that of a ratio of two means, after Fieller (1954): it has no upper end where the saving
could be next to nothing.
"""

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import student
from perfkit.engine.steady import Steady
from perfkit.engine.trial import Trial

Paying = Literal["pays back", "at once", "never", "not shown", "one round"]


@dataclass(frozen=True, kw_only=True)
class PayBack:
    """When a variant has caught up with another that started earlier.

    Attributes:
        variant: The one in question.
        baseline: The one it is held against.
        paying: ``"pays back"`` after ``examples``; ``"at once"``, because its first
            call costs no more; ``"never"``, because its steps are slower; ``"not
            shown"`` where the steps are not shown to differ, or when it is ahead;
            ``"one round"`` where they are, and only one round has timed both.
        examples: After how many; 0.0 for at once, None for the others.
        low: Lower end of the 95 % interval of ``examples``.
        high: Upper end of it; None where it has none.
    """

    variant: str
    baseline: str
    paying: Paying
    examples: float | None = None
    low: float = 0.0
    high: float | None = None

    def steps(self, batch: float, unit: str = "steps") -> str:
        """``examples`` in batches, with its interval: ``"26 steps (12 to 36)"``.

        Where that is wide or has no end, the least is told.
        """
        if self.examples is None:
            return ""
        low = units.significant(self.low / batch, 2)
        if self.high is None or not units.is_known(self.low, self.high):
            # How soon at best is known, whatever the upper end is.
            return f"at least {low} {unit}"
        ends = f"{low} to {units.significant(self.high / batch, 2)}"
        return f"{units.significant(self.examples / batch, 2)} {unit} ({ends})"


@dataclass(frozen=True)
class Line:
    """Seconds that a trial takes for so many examples: ``extra + n * example_s``."""

    extra: float
    example_s: float


def line(trial: Trial, steady: Steady) -> Line:
    """What a trial's first call costs beyond its work, and what an example costs."""
    # The first call did some work, too, and all of that is in its examples.
    first = next(examples for _, examples in trial.ticks if examples)
    example_s = 1 / steady.rate
    return Line(steady.first_call_s - first * example_s, example_s)


def lines(measured: Measurement, variant: str) -> dict[int, Line]:
    """A variant's line in each round."""
    return {n: line(*pair) for n, pair in measured.by_round(variant).items()}


def typical(measured: Measurement, variant: str) -> Line | None:
    """A variant's line over all rounds, the means; None where it was not timed."""
    in_rounds = list(lines(measured, variant).values())
    if not in_rounds:
        return None
    extra, example_s = np.mean([(r.extra, r.example_s) for r in in_rounds], axis=0)
    return Line(float(extra), float(example_s))


def pay_back(measured: Measurement, variant: str, baseline: str) -> PayBack | None:
    """Say after how many examples a variant has caught up; None where unknown."""
    compared = measured.compare(variant, baseline)
    if compared is None:
        return None
    make = functools.partial(PayBack, variant=variant, baseline=baseline)
    late, early = (lines(measured, name) for name in (variant, baseline))
    common = sorted(late.keys() & early.keys())
    extra = np.array([late[n].extra - early[n].extra for n in common])
    saved = np.array([early[n].example_s - late[n].example_s for n in common])
    if compared.verdict != "faster" or len(common) < 2 or saved.mean() <= 0:
        paying: Paying = "never" if compared.verdict == "slower" else "not shown"
        if compared.verdict == "faster" and len(common) == 1:
            paying = "one round"
        return make(paying=paying)
    middle = float(extra.mean() / saved.mean())
    low, high = _fieller(extra, saved)
    if middle <= 0 and high != 0:
        # Its first call may be shorter, or longer.
        return make(paying="not shown", high=high)
    return make(
        paying="pays back" if middle > 0 else "at once",
        examples=max(middle, 0.0),
        low=low,
        high=high,
    )


def _fieller(
    extra: NDArray[np.float64], saved: NDArray[np.float64]
) -> tuple[float, float | None]:
    """The 95 % interval of ``mean(extra) / mean(saved)``, where it is not negative."""
    count, spread = len(extra), np.cov(extra, saved)
    reach = student(count - 1) ** 2 / count
    # All n with a n^2 - 2 b n + c <= 0: extra - n saved might be nothing there.
    a = saved.mean() ** 2 - reach * spread[1, 1]
    b = saved.mean() * extra.mean() - reach * spread[0, 1]
    c = extra.mean() ** 2 - reach * spread[0, 0]
    root = np.sqrt(max(b**2 - a * c, 0.0))
    if a > 0:
        return max(0.0, float((b - root) / a)), max(0.0, float((b + root) / a))
    if c <= 0 or a == 0:
        return 0.0, None
    return float(c / (b + root)), None
