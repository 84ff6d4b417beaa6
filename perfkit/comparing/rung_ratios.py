"""How much faster or slower is each part of B than the same part of A?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import GREEN, GREY, RED
from perfkit.charts.svg import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.comparing.differing import Ratio, RungRatio
    from perfkit.comparing.record import Explanation

_TITLE = "How fast each part of B is, against A's"
_HEIGHT = 0.8
_MOST = 60
# Marker, filled, colour: a verdict is told apart by its shape as well.
_MARKS = {
    "faster": (">", True, GREEN),
    "slower": ("<", True, RED),
    "no difference shown": ("o", True, GREY),
    "too noisy to say": ("o", False, GREY),
}
# Beyond, a rung stands at the edge: one of them must not flatten all others.
_FARTHEST = 1000.0


def rung_ratios(found: Explanation) -> Figure:
    """Draw each rung's ratio with its interval; 1 is neither faster nor slower."""
    shown = [(r, r.speed) for r in found.rungs if r.speed is not None][:_MOST]
    lines = canvas.caption_lines(
        ["line: 95 % interval", "arrow: faster or slower is shown", "ring: too noisy"]
    )
    inner, height = canvas.frame(_HEIGHT * len(shown), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(rung.name) for rung, _ in shown]
        said = [(_beside(speed), "") for _, speed in shown]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        _set_scale(axes, [speed for _, speed in shown])
        for row, (_, speed) in enumerate(shown):
            _draw(axes, row, speed)
            rows.beside(axes, row, *said[row])
        canvas.heading(drawing, _TITLE)
        canvas.caption(drawing, lines)

    told = "; ".join(_sentence(rung, speed) for rung, speed in shown)
    return canvas.drawn(height, f"{_TITLE}. {told}.", draw)


def _set_scale(axes: Axes, shown: list[Ratio]) -> None:
    ratios = [_within(speed.ratio) for speed in shown]
    low, high = scales.limits([1.0, *ratios], [s.low for s in shown])
    # Machines that are alike shall look alike.
    low, high = min(0.5, low) / 1.15, max(2.0, high) * 1.15
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    scales.put(axes, scales.log_ticks(low, high), units.ratio)
    axes.set_xlabel("B's rate over A's (logarithmic)")
    axes.axvline(1, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)


def _draw(axes: Axes, row: int, speed: Ratio) -> None:
    mark, filled, colour = _MARKS[speed.verdict]
    first, last = axes.get_xlim()
    low, high = (min(max(end, first), last) for end in (speed.low, speed.high))
    axes.hlines(row, low, high, colors=colour, lw=2.2)
    face = colour if filled else "none"
    at = min(max(speed.ratio, first), last)
    axes.plot(at, row, mark, ms=8, color=colour, mfc=face, mew=1.6, clip_on=False)


def _within(ratio: float) -> float:
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)


def _beside(speed: Ratio) -> str:
    return units.ratio_between(speed.ratio, speed.low, speed.high)


def _sentence(rung: RungRatio, speed: Ratio) -> str:
    return f"{rung.name} {_beside(speed)}, {speed.verdict}"
