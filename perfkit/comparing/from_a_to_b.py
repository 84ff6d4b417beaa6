"""From A's step to B's: what each part adds or takes, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.svg import INK
from perfkit.comparing import words
from perfkit.comparing.record import UNEXPLAINED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.comparing.record import Explained, Explanation

# Colour and hatch, so that no meaning hangs on the colour alone.
_LOOKS = {
    "whole": (BLUE, ""),
    "more": (RED, "////"),
    "less": (GREEN, "\\\\\\\\"),
    "open": (GREY, "xxxx"),
}


@dataclass(frozen=True)
class _Bar:
    """One row: from where to where, and the interval of its end."""

    name: str
    kind: str
    start: float
    end: float
    low: float
    high: float
    said: tuple[str, str]


def from_a_to_b(found: Explanation) -> Figure:
    """Draw the job with the largest difference; the first where none is shown."""
    work = found.main
    if work is None or not work.changes:
        work = next(one for one in found.works if one.changes)
    title = f"{work.name}: from A's {work.unit} to B's"
    bars = list(_bars(work))
    lines = canvas.caption_lines(list(_caption(work)))
    inner, height = canvas.frame(len(bars), lines, axis=48)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(bar.name) for bar in bars]
        right = rows.room([bar.said for bar in bars])
        axes = rows.axes(drawing, names, inner, right=right)
        _set_scale(axes, work, bars)
        for row, bar in enumerate(bars):
            _draw(axes, row, bar)
            rows.beside(axes, row, *bar.said, bold=bar.kind == "whole")
        if work.predicted is not None:
            axes.axvline(work.predicted.seconds, color=INK, lw=1.2, ls=(0, (4, 3)))
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    told = "; ".join(f"{bar.name} {', '.join(filter(None, bar.said))}" for bar in bars)
    return canvas.drawn(height, f"{title}. {told}. {'. '.join(lines)}.", draw)


def _bars(work: Explained) -> Iterator[_Bar]:
    at = work.a or 0.0
    yield _whole("A", at)
    for one in work.changes:
        change = one.change or 0.0
        if not change and not one.a and not one.b:
            continue
        kind = "more" if change > 0 else "less"
        low, high = one.low or 0.0, one.high or 0.0
        said = f"{'+' * (change > 0)}{words.seconds(change)}"
        yield _Bar(
            name=one.name,
            kind="open" if one.name == UNEXPLAINED else kind,
            start=at,
            end=at + change,
            low=at + low,
            high=at + high,
            said=(said, words.share(one)),
        )
        at += change
    yield _whole("B", work.b or 0.0)


def _whole(name: str, seconds: float) -> _Bar:
    said = words.seconds(seconds), ""
    return _Bar(name, "whole", 0.0, seconds, seconds, seconds, said)


def _set_scale(axes: Axes, work: Explained, bars: list[_Bar]) -> None:
    told = work.predicted.seconds if work.predicted else 0.0
    high = 1.06 * max(told, *(max(bar.start, bar.end) for bar in bars), 1e-9)
    low = 1.06 * min(0.0, *(min(bar.start, bar.end) for bar in bars))
    axes.set_xlim(low, high)
    scales.put(axes, scales.even_ticks(low, high), _seconds)
    axes.set_xlabel(f"time of a {work.unit}")


def _seconds(value: float) -> str:
    return units.seconds(value) if value else "0"


def _draw(axes: Axes, row: int, bar: _Bar) -> None:
    colour, hatch = _LOOKS[bar.kind]
    left, width = min(bar.start, bar.end), abs(bar.end - bar.start)
    look: Any = {"facecolor": colour, "hatch": hatch, "edgecolor": INK}
    axes.barh(row, width, 0.5, left, lw=0, alpha=0.75, **look)
    if bar.low < bar.high:
        first, last = axes.get_xlim()
        low, high = (min(max(end, first), last) for end in (bar.low, bar.high))
        axes.hlines(row, low, high, colors=INK, lw=1.8)
        axes.plot([low, high], [row, row], "|", color=INK, ms=8, mew=1.6)


def _caption(work: Explained) -> Iterator[str]:
    yield "hatched to the right: B takes longer; to the left: B takes less"
    yield "bar with ends: 95 % interval of a change"
    yield "crossed: not explained"
    if work.predicted is not None:
        told = words.seconds(work.predicted.seconds)
        yield f"dashed: B's step as A's and the rungs let expect it, {told}"
    if not work.claimed:
        yield "no difference of the whole is claimed"
