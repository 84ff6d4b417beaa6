"""Seconds, bytes, rates and ratios as text: one formatter for charts and prose."""

from collections.abc import Callable

_SECONDS = ((1e-6, "ns", 1e9), (1e-3, "µs", 1e6), (1.0, "ms", 1e3))
_BYTES = ("B", "KB", "MB", "GB", "TB")
# What is counted by the billion has prefixes; everything else has words.
_PREFIXED = ("FLOP", "B", "Hz")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
_WORDS = ((1e9, "billion "), (1e6, "million "))
# What is not known: never 0, and never a number that could be anything.
UNKNOWN = "?"
# An interval whose ends lie further apart than this factor says too little.
_VAGUE = 4.0
# Up to this factor two runs that tell what lies between them hardly contradict.
_WIDE = 1.5


def significant(value: float, digits: int = 3) -> str:
    """Write ``value`` with ``digits`` significant digits; a tiny one as ``"2e-05"``."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text or abs(value) >= 1000 else text


def count(number: float | str, noun: str) -> str:
    """How many there are of a thing: ``"1 core"``, ``"2.5 cores"``."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"


def seconds(value: float) -> str:
    """Write a duration given in seconds, as ``"12.3 ms"`` or ``"2 min 05 s"``."""
    if value < 0:
        return f"-{seconds(-value)}"
    if value >= 99.5:
        minutes, remainder = divmod(round(value), 60)
        return f"{minutes} min {remainder:02d} s"
    for below, unit, factor in _SECONDS:
        if 0 < value < below * 0.9995:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value)} s"


def size(value: float) -> str:
    """Write a number of bytes, in powers of 1000, as ``"1.5 GB"``."""
    amount, unit = float(value), _BYTES[0]
    for unit in _BYTES:
        if abs(amount) < 999.5 or unit == _BYTES[-1]:
            break
        amount /= 1000
    return f"{significant(amount)} {unit}"


def rate(value: float, unit: str = "examples") -> str:
    """Write a rate given per second, as ``"1,240 examples/s"`` or ``"12 GFLOP/s"``."""
    factor, name = _scale(value, unit)
    return f"{significant(value / factor)} {name}"


def instead(after: str, before: str) -> str:
    """Two amounts with their unit said once: ``"877 instead of 516 images/s"``."""
    number, _, unit = after.rpartition(" ")
    return f"{number if before.endswith(f' {unit}') else after} instead of {before}"


def is_known(low: float, high: float) -> bool:
    """Whether an interval says enough for what lies in it to be a result."""
    if high < 0:
        low, high = -high, -low
    return low == high or 0 < low <= high <= _VAGUE * low


def is_narrow(low: float, high: float) -> bool:
    """Whether what lies in an interval may be told without it, and compared later."""
    return 0 < low <= high <= _WIDE * low


def roughly(
    value: float, low: float, high: float, write: Callable[[float], str]
) -> str:
    """Write a value; where its interval is wide, that: ``"24 ms to 77 ms"``."""
    return write(value) if is_narrow(low, high) else f"{write(low)} to {write(high)}"


def between(
    value: float, low: float, high: float, write: Callable[[float], str]
) -> str:
    """Write a value with its interval, as ``"12 ms (11 ms to 13 ms)"``, or ``"?"``."""
    if not is_known(low, high):
        return UNKNOWN
    return f"{write(value)}{_ends(low, high, write)}"


def rate_between(value: float, low: float, high: float, unit: str = "examples") -> str:
    """Write a rate with its interval, as ``"12.3 GFLOP/s (11.9 to 12.8)"``.

    What is not known is ``"? FLOP/s"``.
    """
    if not is_known(low, high):
        return f"{UNKNOWN} {_scale(0.0, unit)[1]}"
    factor, name = _scale(value, unit)
    ends = _ends(low, high, lambda end: significant(end / factor))
    return f"{significant(value / factor)} {name}{ends}"


def ratio_between(value: float, low: float, high: float) -> str:
    """Write a ratio with its interval, as ``"1.32× (1.28 to 1.36)"``, or ``"?"``."""
    if not is_known(low, high):
        return UNKNOWN
    return f"{ratio(value)}{_ends(low, high, _end)}"


def _ends(low: float, high: float, write: Callable[[float], str]) -> str:
    """An interval behind its value; "" for a single value, which has none."""
    return "" if low == high else f" ({write(low)} to {write(high)})"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """What to divide a rate by, and what it is called then."""
    steps = _PREFIXES if unit in _PREFIXED else _WORDS
    fitting = (step for step in steps if abs(value) >= 0.9995 * step[0])
    factor, before = next(fitting, (1.0, ""))
    # Hertz are per second already.
    return factor, f"{before}{unit}" + ("" if unit == "Hz" else "/s")


def ratio(value: float) -> str:
    """Write a ratio with its sign of multiplication, as ``"1.32×"``."""
    two_digits = f"{value:.2f}" if 0.0995 <= value < 9.995 else significant(value)
    return f"{two_digits}×"


def _end(value: float) -> str:
    # What is claimed leaves out 1: an end that is not 1 is not written as 1.
    return f"{value:.3f}" if 0 < abs(value - 1) < 0.005 else ratio(value)[:-1]


def times(value: float) -> str:
    """Write a ratio as a reader repeats it, as ``"2.0"`` or ``"130"``."""
    if 0 < abs(value - 1) < 0.005:
        return _end(value)
    # One digit would hide how far it is from 1.
    digits = 2 if value < 1.295 else 1
    return f"{value:.{digits}f}" if 0.0995 <= value < 9.95 else significant(value, 2)


def percent(value: float) -> str:
    """Write a share given as a fraction, as ``"37 %"``."""
    return f"{100 * value:.1f} %" if 0 < abs(value) < 0.0995 else f"{100 * value:.0f} %"
