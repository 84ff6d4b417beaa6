"""What the chart of rates shows and where, whoever draws it.

Matplotlib draws it of a finding, a page draws it of a run that goes on: the same rows
in the same order, the same marks and words, so that nothing jumps when the run ends.
Below stands which part of an axis holds some numbers, and which round ones are on it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from perfkit import units
from perfkit.findings.record import Finding
from perfkit.findings.standing import Guess, Standing
from perfkit.findings.text import one_line

Mark = Literal["fastest", "baseline", "limit", ""]

_PROBLEM, _MORE = 95, 44
# Other programs that take less do not change a rate much.
_MUCH_CORES = 0.5
# What the axis counts; microbenchmarks count something else each.
EXAMPLES, RUNS, OWN = "examples per second", "runs per second", "of its own rate"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One variant.

    Attributes:
        mark: What its dot looks like.
        rate: Where its dot stands; None where there is none.
        ends: Its 95 % interval; None where there is none.
        is_known: Whether that says enough for its rate to be a result.
        words: Its rate, as text.
        ratio: Its rate over the baseline's, as text; "" for none.
        problem: Why it has no rate; "" where it has one, or is still to come.
    """

    name: str
    mark: Mark = ""
    rate: float | None = None
    ends: tuple[float, float] | None = None
    is_known: bool = False
    words: str = ""
    ratio: str = ""
    remarks: str = ""
    problem: str = ""

    @property
    def in_words(self) -> str:
        """What it shows, for who cannot see it."""
        so_far = "so far" if self.rate is not None and self.ends is None else ""
        words = self.words, so_far, self.ratio, self.remarks or self.problem
        return row_in_words(self.name, *words, "" if any(words) else "to come")


def row_in_words(name: str, *words: str) -> str:
    """The name of a row and what stands beside it: ``"naive: 1,000, baseline"``."""
    return f"{name}: {', '.join(filter(None, words))}"


@dataclass(frozen=True, kw_only=True)
class Band:
    """What goes through several rows, the first and the last of which it names.

    Of a line both ``ends`` are the same.
    """

    kind: Literal["noise", "limit", "guess"]
    rows: tuple[int, int]
    ends: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The whole chart: its rows from top to bottom, and its axis with its ticks."""

    rows: tuple[Row, ...]
    bands: tuple[Band, ...] = ()
    ends: tuple[float, float] = (0.0, 1.0)
    is_log: bool = False
    ticks: tuple[float, ...] = ()
    unit: str = EXAMPLES

    @property
    def label(self) -> str:
        """What the axis counts, and whether it is logarithmic."""
        return f"{self.unit} (logarithmic)" if self.is_log else self.unit

    def for_page(self) -> dict[str, Any]:
        """All of it as a page is sent it, places as percent of the axis."""
        return {
            "rows": [self._row_for_page(row) for row in self.rows],
            "bands": [
                [band.kind, *band.rows, *map(self._percent, band.ends)]
                for band in self.bands
            ],
            "ticks": [[self._percent(t), units.significant(t), t] for t in self.ticks],
            "unit": self.label,
        }

    def _row_for_page(self, row: Row) -> dict[str, Any]:
        return {
            "name": row.name,
            "mark": row.mark,
            "at": None if row.rate is None else self._percent(row.rate),
            "known": row.is_known,
            "ends": row.ends and [*map(self._percent, row.ends)],
            "words": [row.words, row.ratio, row.remarks or row.problem],
            "said": row.in_words,
        }

    def _percent(self, value: float) -> float:
        """Where on the axis a number lies, from 0 to 100."""
        low, high = self.ends
        if self.is_log:
            low, value, high = (math.log(max(n, 1e-30)) for n in (low, value, high))
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)


def layout(
    stood: Sequence[Standing],
    guess: Guess,
    noise_floor: float | None = None,
    so_far: Mapping[str, float | None] | None = None,
    *,
    as_share: bool = False,
) -> Layout:
    """Lay out the chart of some variants, a row each in their order.

    The noise is what the baseline differs from itself; None if unknown. ``so_far`` is
    what ticks say of those that have no rate with an interval yet. With ``as_share``
    each is drawn as a share of its own rate.
    """
    so_far = so_far or {}
    rows = tuple(
        _row(s, guess, so_far.get(s.variant), as_share=as_share) for s in stood
    )
    if not any(row.rate for row in rows):
        return Layout(rows=rows)
    values = [row.rate for row in rows if row.rate]
    low, high = limits(values, [end for row in rows for end in row.ends or ()])
    is_log = max(values) > _LOG_ABOVE * min(values)
    runs = any(standing.unit == "runs" for standing in stood)
    low = low if is_log else 0.0
    bands = tuple(
        band
        for band in (() if as_share else _bands(stood, guess, noise_floor))
        if band.kind != "guess" or low / _FAR <= band.ends[0] <= _FAR * high
    )
    guessed = [band.ends[0] for band in bands if band.kind == "guess"]
    low, high = min([low, *guessed]), max([high, *guessed])
    low, high = (low / 1.15, high * 1.15) if is_log else (low, high * 1.06)
    ticks = log_ticks(low, high) if is_log else even_ticks(low, high)
    return Layout(
        rows=rows,
        bands=bands,
        ends=(low, high),
        is_log=is_log,
        ticks=tuple(ticks),
        unit=OWN if as_share else RUNS if runs else EXAMPLES,
    )


def _row(
    standing: Standing, guess: Guess, so_far: float | None, *, as_share: bool
) -> Row:
    marks = {
        "your guess": guess.variant == standing.variant,
        "limit": standing.is_limit,
        "the fastest": standing.is_fastest,
        "baseline": standing.is_baseline,
        standing.problem: True,
    }
    remarks = ", ".join(mark for mark, holds in marks.items() if mark and holds)
    mark: Mark = "fastest" if standing.is_fastest else ""
    mark = "limit" if standing.is_limit else mark
    row = Row(name=standing.variant, mark="baseline" if standing.is_baseline else mark)
    timing, compared = standing.timing, standing.ratio
    value = timing.rate if timing else so_far
    if not value:
        return replace(row, problem=one_line(remarks, _PROBLEM))
    words = units.rate(value, standing.unit) if as_share else units.significant(value)
    if standing.unit == "runs":
        words = f"{units.seconds(1 / value)} a run"
    by = value if as_share else 1.0
    row = replace(row, rate=value / by, words=words)
    if timing is None:
        return row
    remarks, ends = one_line(remarks, _MORE), (timing.low / by, timing.high / by)
    if not units.is_known(timing.low, timing.high):
        return replace(row, ends=ends, remarks=remarks, words=units.UNKNOWN)
    ratio = ""
    if compared and units.is_known(compared.low, compared.high):
        ratio = f"{units.times(compared.ratio)}\N{MULTIPLICATION SIGN}"
    return replace(row, ends=ends, remarks=remarks, is_known=True, ratio=ratio)


def _bands(
    stood: Sequence[Standing], guess: Guess, noise_floor: float | None
) -> Iterator[Band]:
    for row, standing in enumerate(stood):
        if standing.timing is None:
            continue
        rate = standing.timing.rate
        if standing.is_limit:
            yield Band(kind="limit", rows=(0, row), ends=(rate, rate))
        if not standing.is_baseline:
            continue
        mine = [
            place
            for place, s in enumerate(stood)
            if s.group == standing.group and not s.is_limit
        ]
        rows = (min(mine), max(mine))
        if noise_floor:
            ends = (rate / noise_floor, rate * noise_floor)
            yield Band(kind="noise", rows=rows, ends=ends)
        if guess.ratio:
            ends = (rate * guess.ratio, rate * guess.ratio)
            yield Band(kind="guess", rows=rows, ends=ends)


def leads(finding: Finding, stood: Sequence[Standing]) -> str:
    """Who leads and by how much, in a sentence; how sure that is stands beside it."""
    verdict = finding.verdict
    first = next((s for s in stood if s.variant == verdict.winner), None)
    if not finding.unfinished:
        return verdict.headline
    if first is None or first.ratio is None or not first.ratio.ends:
        return " ".join(filter(None, ("So far:", verdict.headline, verdict.much)))
    times = units.times(first.ratio.ratio)
    return f"So far {first.variant} leads, {times} times as fast as {first.group}."


def describe_others(cores: Sequence[float]) -> str:
    """How many cores other programs took on average; "" where they hardly did."""
    busy = fmean(cores) if cores else 0.0
    if busy < _MUCH_CORES:
        return ""
    return f"other programs took {units.count(units.significant(busy, 2), 'core')}"


_MOST_TICKS = 8
# As many points of a line as can be told apart in a picture.
_POINTS = 150
# Beyond this ratio of the largest to the smallest, differences show on a log axis only.
_LOG_ABOVE = 6.0
# An interval is drawn at most so far beyond the values themselves.
_REACH = 2.0
# A guess that lies further from what was measured would squeeze everything else.
_FAR = 3.0


def thinned(*columns: Sequence[float]) -> list[list[float]]:
    """Means of so many values that the picture of a long run is no larger."""
    step = max(1, -(-len(columns[0]) // _POINTS))
    return [
        [fmean(column[i : i + step]) for i in range(0, len(column), step)]
        for column in columns
    ]


def limits(values: Iterable[float], ends: Iterable[float]) -> tuple[float, float]:
    """The positive range that holds all values, and ends of intervals within reach."""
    positive = [value for value in values if value > 0] or [1.0]
    lowest, highest = min(positive) / _REACH, max(positive) * _REACH
    reachable = [*positive, *(min(max(end, lowest), highest) for end in ends)]
    return min(reachable), max(reachable)


def even_ticks(low: float, high: float) -> list[float]:
    """Round numbers at even distances, at most eight."""
    if not high > low:
        return [low]
    rough = (high - low) / _MOST_TICKS
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
        if len(ticks) <= _MOST_TICKS:
            return ticks if len(ticks) > 1 else even_ticks(low, high)
    return ticks[:: -(-len(ticks) // _MOST_TICKS)]
