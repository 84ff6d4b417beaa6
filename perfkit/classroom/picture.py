"""Where does each machine stand? Every one of them on every rung, on one scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, RED
from perfkit.charts.svg import INK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.classroom.measures import Measure
    from perfkit.classroom.record import Classroom

_TITLE = "Every machine, relative to the median one"
_HEIGHT = 0.75
# Dots that the eye cannot tell apart are one: so many fit between 1 and e.
_APART = 80
# Beyond, a machine stands at the edge: one broken file must not flatten all others.
_FARTHEST = 1000.0


def picture(room: Classroom) -> Figure:
    """Draw every machine's rates over those of the median machine, a row per rung."""
    shown = room.measures
    if not shown:
        return canvas.message(_TITLE, "No passport holds a rate.")
    lines = canvas.caption_lines(list(_caption(room)))
    inner, height = canvas.frame(_HEIGHT * len(shown), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(measure.name) for measure in shown]
        said = [(_beside(measure), "") for measure in shown]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        _set_scale(axes, shown)
        for row, measure in enumerate(shown):
            _draw_row(axes, row, measure, room.you)
            rows.beside(axes, row, said[row][0])
        canvas.heading(drawing, _TITLE)
        canvas.caption(drawing, lines)

    return canvas.drawn(height, f"{_TITLE}. {_in_words(room)}", draw)


def _set_scale(axes: Axes, shown: Sequence[Measure]) -> None:
    ends = [_within(end) for m in shown for end in (m.ratios[0], m.ratios[-1])]
    # Machines that are alike shall look alike.
    low, high = min(0.5, *ends) / 1.15, max(2.0, *ends) * 1.15
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    scales.put(axes, scales.log_ticks(low, high), units.ratio)
    axes.set_xlabel("rate over that of the median machine (logarithmic)")
    axes.axvline(1, color=INK, lw=1, linestyle=(0, (4, 3)), alpha=0.7)


def _draw_row(axes: Axes, row: int, measure: Measure, you: int | None) -> None:
    dots = _told_apart(measure.ratios)
    axes.plot(dots, [row] * len(dots), "o", color=BLUE, ms=5, alpha=0.45, mew=0)
    yours = None if you is None else measure.ratio(you)
    if yours is not None:
        axes.plot([_within(yours)], [row], "D", color=RED, ms=8, mec=INK, mew=0.8)


def _told_apart(ratios: Sequence[float]) -> list[float]:
    places = {round(math.log(_within(ratio)) * _APART) for ratio in ratios}
    return [math.exp(place / _APART) for place in sorted(places)]


def _within(ratio: float) -> float:
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)


def _beside(measure: Measure) -> str:
    return units.rate(measure.median, measure.unit)


def _caption(room: Classroom) -> Iterator[str]:
    yield "dot: a machine, or several at the same place"
    yield "dashed line: the median machine, whose rate is to the right"
    if room.you is not None:
        yield "\u25c6 you are here"


def _in_words(room: Classroom) -> str:
    return ". ".join(_sentence(measure, room.you) for measure in room.measures) + "."


def _sentence(measure: Measure, you: int | None) -> str:
    low, high = measure.ratios[0], measure.ratios[-1]
    said = (
        f"{measure.name}: {len(measure.rates)} machines from {units.ratio(low)} to "
        f"{units.ratio(high)} of {_beside(measure)}"
    )
    yours = None if you is None else measure.ratio(you)
    return said if yours is None else f"{said}, you at {units.ratio(yours)}"
