"""What does each change take off a step? Every swap alone, the best of them together.

Gains do not add up, so no bar begins where another ends: each starts from the step as
given, and what was measured together has a bar of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.svg import INK
from perfkit.findings.diagnosis import Gain
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.diagnosis import Diagnosis

_MOST = 20
# Colour and hatch, so that no meaning hangs on the colour alone.
_LOOKS = {
    "defect": (RED, "////"),
    "opportunity": (BLUE, "...."),
    "together": (GREEN, "\\\\\\\\"),
    "ceiling": (GREY, "xxxx"),
}
_WORDS = {
    "defect": "a defect",
    "opportunity": "an opportunity",
    "together": "measured together",
    "ceiling": "no input: the ceiling",
}
_NOTHING = Gain(estimate=1.0, low=1.0, high=1.0)


@dataclass(frozen=True)
class _Bar:
    """One row: the step with something changed.

    Attributes:
        name: What was changed.
        kind: One of ``_LOOKS``; "" for the step as given.
        gain: What that brought.
    """

    name: str
    kind: str = ""
    gain: Gain = _NOTHING


def waterfall(found: Diagnosis) -> Figure:
    """Draw the step as given, what each claimed swap takes off it, and the limits."""
    title = f"{plain(found.training, 60)}: what each change takes off a step"
    step = found.step
    if step is None:
        return canvas.message(title, "The training as given could not be measured.")
    bars = list(_bars(found))
    lines = canvas.caption_lines(list(_caption(bars)))
    inner, height = canvas.frame(len(bars), lines, axis=48)

    def draw(drawing: Drawing) -> None:
        said = [_beside(bar, step.median_s) for bar in bars]
        names = [rows.name(bar.name) for bar in bars]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        _set_scale(axes, bars, step.median_s, step.high)
        for row, bar in enumerate(bars):
            _draw_row(axes, row, bar, step.median_s)
            rows.beside(axes, row, *said[row], bold=bar.kind == "together")
        _whisker(axes, 0, step.low, step.high)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = "; ".join(_in_words(bar, step.median_s) for bar in bars)
    return canvas.drawn(height, f"{title}. {words}.", draw)


def _bars(found: Diagnosis) -> Iterator[_Bar]:
    yield _Bar("as given")
    for cause in found.causes[:_MOST]:
        yield _Bar(_named(cause.cause, cause.swap), cause.kind, cause.speedup)
    if found.together:
        yield _Bar("the best together", "together", found.together.speedup)
    if found.ceiling:
        yield _Bar("without input", "ceiling", found.ceiling)


def _named(cause: str, swap: str) -> str:
    if not swap:
        return cause
    return f"{cause}: {swap}" if len(cause) + len(swap) <= 30 else swap


def _set_scale(axes: Axes, bars: list[_Bar], step: float, step_high: float) -> None:
    # A swap may turn out slower with its whole interval; most of that is shown.
    ends = [step / bar.gain.low for bar in bars]
    high = 1.06 * min(max(step_high, step, *ends), 2 * step)
    axes.set_xlim(0, high)
    scales.put(axes, scales.even_ticks(0, high), _seconds)
    axes.set_xlabel("time for the examples of a step as given")


def _seconds(value: float) -> str:
    return units.seconds(value) if value else "0"


def _draw_row(axes: Axes, row: int, bar: _Bar, step: float) -> None:
    left = step / bar.gain.estimate
    axes.barh(row, min(left, axes.get_xlim()[1]), 0.5, facecolor=INK, alpha=0.25)
    if bar.kind and left < step:
        colour, hatch = _LOOKS[bar.kind]
        axes.barh(
            row,
            step - left,
            0.5,
            left,
            facecolor=colour,
            hatch=hatch,
            edgecolor=INK,
            lw=0,
            alpha=0.75,
        )
    if bar.kind:
        _whisker(axes, row, step / bar.gain.high, step / bar.gain.low)


def _whisker(axes: Axes, row: int, low: float, high: float) -> None:
    high = min(high, axes.get_xlim()[1])
    axes.hlines(row, low, high, colors=INK, lw=1.8)
    axes.plot([low, high], [row, row], "|", color=INK, ms=9, mew=1.8)


def _beside(bar: _Bar, step: float) -> tuple[str, str]:
    left = units.seconds(step / bar.gain.estimate)
    if not bar.kind:
        return left, ""
    gain = units.ratio_between(bar.gain.estimate, bar.gain.low, bar.gain.high)
    if gain == units.UNKNOWN:
        return gain, _WORDS[bar.kind]
    return left, f"{gain}, {_WORDS[bar.kind]}"


def _caption(bars: list[_Bar]) -> Iterator[str]:
    kinds = {bar.kind for bar in bars}
    yield "plain: the time that is left"
    if kinds & {"defect", "opportunity", "together"}:
        yield "hatched: what the change takes off"
        yield "each was measured against the step as given: gains do not add up"
    else:
        yield "no swap is claimed to bring anything"
    yield "bar with ends: 95 % interval"


def _in_words(bar: _Bar, step: float) -> str:
    left, more = _beside(bar, step)
    name = plain(bar.name, 80)
    return f"{name} {left}" + (f", {more}" if more else "")
