"""What does each change bring? Ratios to the baseline, with what they leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.markers import CARETLEFTBASE, CARETRIGHTBASE

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.guess import guess
from perfkit.charts.svg import INK
from perfkit.findings.standing import standings
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.record import Finding
    from perfkit.measure.statistics import Comparison

# Marker, filled, colour: a verdict is told apart by its shape as well.
_MARKS = {
    "faster": (">", True, GREEN),
    "slower": ("<", True, RED),
    "no difference shown": ("o", True, GREY),
    "too noisy to say": ("o", False, GREY),
}


def ratios(finding: Finding) -> Figure:
    """Draw each variant's ratio to its baseline, 1 being neither faster nor slower."""
    compared = [s.comparison for s in standings(finding) if s.comparison]
    title = f"{plain(finding.experiment, 40)}: what each change brings"
    if not compared:
        return canvas.message(title, "No two variants could be compared.")
    lines = canvas.caption_lines(list(_caption(finding)))
    inner, height = canvas.frame(len(compared), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(comparison.variant) for comparison in compared]
        several = len({comparison.baseline for comparison in compared}) > 1
        axes = rows.axes(drawing, names, inner, right=232 if several else 190)
        _set_scale(axes, finding, compared)
        if finding.noise_floor:
            noise = sorted((1 / finding.noise_floor, finding.noise_floor))
            axes.axvspan(*noise, color=GREY, alpha=0.3, lw=0)
        axes.axvline(1, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)
        if expected := guess(finding).ratio:
            axes.axvline(expected, color=BLUE, lw=2, ls=":")
        for row, comparison in enumerate(compared):
            _draw_row(axes, row, comparison)
            more = _says(comparison, finding, several=several)
            rows.beside(axes, row, comparison.interval, more)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    said = "; ".join(_in_words(comparison) for comparison in compared)
    return canvas.drawn(height, f"{title}. {said}.", draw)


def _set_scale(axes: Axes, finding: Finding, compared: list[Comparison]) -> None:
    values = [1.0, *(comparison.ratio for comparison in compared)]
    ends = [end for c in compared for end in (c.low, c.high)]
    low, high = scales.limits(values, ends)
    high = max(high, min(guess(finding).ratio or 1.0, 3 * high))
    axes.set_xscale("log")
    low, high = low / 1.04, high * 1.04
    axes.set_xlim(low, high)
    numbers = scales.even_ticks(low, high)
    if high / low > 2:
        ticks = scales.log_ticks if high / low > 8 else scales.even_ticks
        # 1 is where nothing changes: it stands on the axis, with room around it.
        numbers = [1.0, *(tick for tick in ticks(low, high) if not 0.9 < tick < 1.1)]
    scales.put(
        axes, sorted(numbers), lambda value: f"{value:.3g}\N{MULTIPLICATION SIGN}"
    )
    names = {plain(comparison.baseline, 40) for comparison in compared}
    against = names.pop() if len(names) == 1 else "its baseline"
    axes.set_xlabel(f"rate, as a multiple of {against} (logarithmic)")


def _draw_row(axes: Axes, row: int, comparison: Comparison) -> None:
    mark, filled, colour = _MARKS[comparison.verdict]
    low, high = axes.get_xlim()
    axes.hlines(
        row, max(comparison.low, low), min(comparison.high, high), colors=colour, lw=2.4
    )
    for end, outside, cut in (
        (low, comparison.low < low, CARETLEFTBASE),
        (high, comparison.high > high, CARETRIGHTBASE),
    ):
        if outside:
            axes.plot(end, row, marker=cut, color=colour, ms=6, clip_on=False)
    axes.plot(
        comparison.ratio,
        row,
        mark,
        ms=9,
        color=colour,
        mfc=colour if filled else "none",
        mew=1.8,
        clip_on=False,
    )


def _says(comparison: Comparison, finding: Finding, *, several: bool) -> str:
    words = [comparison.judgement]
    if several:
        words.append(f"against {comparison.baseline}")
    if guess(finding).variant == comparison.variant:
        words.append("your guess")
    return plain(", ".join(words), 38)


def _caption(finding: Finding) -> Iterator[str]:
    yield "bar: 95 % interval"
    if finding.noise_floor:
        floor = units.percent(abs(finding.noise_floor - 1))
        yield f"grey band: the noise floor, ± {floor}; no smaller difference is claimed"
    if guess(finding).ratio:
        yield "dotted line: your guess"


def _in_words(comparison: Comparison) -> str:
    return (
        f"{plain(comparison.variant, 60)} against {plain(comparison.baseline, 60)}: "
        f"{comparison.interval}, {comparison.judgement}"
    )
