"""Where does the time of a step go? Its parts, one after another, to the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREY
from perfkit.charts.svg import INK
from perfkit.findings.sections import part_in_words
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.diagnosis import Diagnosis, Part

_MOST = 20
_REST = "unexplained"


def has_split(found: Diagnosis) -> bool:
    """Whether the step was measured and taken apart."""
    return found.step is not None and bool(found.split)


def split(found: Diagnosis) -> Figure:
    """Draw the parts of a step as steps of a stair; hatched is what is but bounded."""
    title = f"{plain(found.training, 60)}: where the time of a step goes"
    if found.step is None or not found.split:
        return canvas.message(title, "The step was not taken apart.")
    parts = list(found.split.items())[:_MOST]
    parts.sort(key=lambda part: part[0] == _REST)
    whole = found.step.median_s
    lines = canvas.caption_lines(
        ["dashed: the step as given", "hatched: at most", "?: not known"]
    )
    inner, height = canvas.frame(len(parts), lines, axis=48)
    said = [(_in_words(part, whole), part.grade) for _, part in parts]

    def draw(drawing: Drawing) -> None:
        names = [rows.name(name) for name, _ in parts]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        _draw_stair(axes, [part for _, part in parts], whole)
        for row, words in enumerate(said):
            rows.beside(axes, row, *words)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = "; ".join(
        f"{plain(name, 60)} {', '.join(told)}"
        for (name, _), told in zip(parts, said, strict=True)
    )
    return canvas.drawn(
        height, f"{title}. A step: {units.seconds(whole)}. {words}.", draw
    )


def _in_words(part: Part, whole: float) -> str:
    return ", ".join(filter(None, part_in_words(part, whole)))


def _draw_stair(axes: Axes, parts: list[Part], whole: float) -> None:
    at, high = 0.0, whole
    for row, part in enumerate(parts):
        if _in_words(part, whole) == "?":
            continue
        sure = part.low or 0.0 if part.seconds is None else part.seconds
        axes.barh(row, sure, 0.5, at, facecolor=BLUE, lw=0, alpha=0.75)
        at += sure
        high = max(high, at)
        if part.seconds is None and part.high is not None:
            most: Any = {"facecolor": GREY, "hatch": "xxxx", "edgecolor": INK}
            axes.barh(row, part.high - sure, 0.5, at, lw=0, alpha=0.75, **most)
            high = max(high, at + part.high - sure)
    axes.axvline(whole, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)
    axes.set_xlim(0, 1.06 * high)
    scales.put(axes, scales.even_ticks(0, 1.06 * high), units.seconds)
    axes.set_xlabel("time of each step")
