"""Which part of an axis holds some numbers, and which round ones stand on it."""

import math
from collections.abc import Iterable, Sequence

_MOST = 8
# As many points of a line as can be told apart in a picture.
_POINTS = 150
# Beyond this ratio of the largest to the smallest, differences show on a log axis only.
_LOG_ABOVE = 6.0
# An interval is drawn at most so far beyond the values themselves.
_REACH = 2.0
# A guess that lies further from what was measured would squeeze everything else.
_FAR = 3.0


def thinned(*columns: Sequence[float], most: int = _POINTS) -> list[list[float]]:
    """Means of so many values that the picture of a long run is no larger."""
    step = max(1, -(-len(columns[0]) // most))
    return [
        [sum(column[i : i + step]) / len(column[i : i + step]) for i in starts]
        for column in columns
        for starts in [range(0, len(column), step)]
    ]


def is_wide(values: Iterable[float]) -> bool:
    """Whether positive values are so far apart that they need a logarithmic axis."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) / min(positive) > _LOG_ABOVE


def limits(values: Iterable[float], ends: Iterable[float]) -> tuple[float, float]:
    """The positive range that holds all values, and ends of intervals within reach."""
    seen = [value for value in values if value > 0] or [1.0]
    least, most = min(seen) / _REACH, max(seen) * _REACH
    every = [*seen, *(min(max(end, least), most) for end in ends)]
    return min(every), max(every)


def near(guess: float | None, low: float, high: float) -> float | None:
    """A guess for which an axis is made longer; None where it lies too far off."""
    return guess if guess and low / _FAR <= guess <= _FAR * high else None


def even_ticks(low: float, high: float) -> list[float]:
    """Round numbers at even distances, at most eight."""
    if not high > low:
        return [low]
    rough = (high - low) / _MOST
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten; powers alone where those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**power for power in powers for digit in digits]
        ticks = [tick for tick in ticks if low / 1.001 <= tick <= high * 1.001]
        if len(ticks) <= _MOST:
            return ticks if len(ticks) > 1 else even_ticks(low, high)
    return ticks[:: -(-len(ticks) // _MOST)]
