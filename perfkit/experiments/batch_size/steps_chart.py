"""What does a step cost? Its time at each batch size, and the line through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, RED
from perfkit.charts.svg import INK
from perfkit.experiments.batch_size import numbers
from perfkit.experiments.batch_size.rates_chart import timed
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.batch_size.numbers import Line, StepTime
    from perfkit.findings.record import Finding
    from perfkit.measure.estimate import Estimate


def step_costs(finding: Finding) -> Figure:
    """Draw the time of a step at each batch size, and overhead and cost apart."""
    title = f"{plain(finding.experiment, 40)}: what a step costs"
    steps = numbers.step_times(tuple(timed(finding).values()))
    if not steps:
        return canvas.message(title, "No batch size has a rate.")
    line = numbers.line(steps, finding.noise_floor)
    lines = canvas.caption_lines(list(_caption(line)))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "seconds of a step (logarithmic)")
        curves.sizes(axes, [step.size for step in steps])
        ends = [end for step in steps for end in (step.low, step.high)]
        curves.measure(axes, [s.seconds for s in steps], ends, units.seconds)
        if line:
            _draw_line(axes, line)
        _draw_steps(axes, steps, line)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = _in_words(steps, line)
    return canvas.drawn(curves.height(lines), f"{title}. {words}", draw)


def _draw_steps(axes: Axes, steps: Sequence[StepTime], line: Line | None) -> None:
    off = dict(line.bends) if line else {}
    for step in steps:
        colour = RED if step.size in off else BLUE
        curves.between(axes, step.size, step.low, step.high, colour)
        mark = "s" if step.size in off else "o"
        axes.plot(step.size, step.seconds, mark, color=colour, ms=7)
        if step.size in off:
            words = f"{units.ratio(off[step.size])} the line"
            curves.label(axes, words, step.size, step.seconds)


def _draw_line(axes: Axes, line: Line) -> None:
    low, high = axes.get_xlim()
    x = np.geomspace(low, high, 60)
    y = line.overhead.value + x * line.cost.value
    bottom, top = axes.get_ylim()
    seen = (y >= bottom) & (y <= top)
    axes.plot(x[seen], y[seen], color=INK, lw=1.4, alpha=0.8)
    if line.shows_overhead and bottom <= line.overhead.value <= top:
        axes.axhline(line.overhead.value, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.6)
        words = f"overhead {units.seconds(line.overhead.value)}"
        curves.label(axes, words, high, line.overhead.value)
    if seen.any():
        end = float(x[seen][-1]), float(y[seen][-1])
        curves.label(axes, f"+ {units.seconds(line.cost.value)} each", *end)


def _caption(line: Line | None) -> Iterator[str]:
    yield "bar: 95 % interval"
    if line is None:
        yield "a line needs three sizes"
        return
    yield f"line: {_equation(line)}"
    if line.bends:
        yield "■ off the line by more than the interval allows"


def _equation(line: Line) -> str:
    overhead, cost = _written(line.overhead), _written(line.cost)
    if not line.shows_overhead:
        return f"no overhead shown ({overhead}), and {cost} for each example"
    return f"an overhead of {overhead}, and {cost} for each example"


def _written(part: Estimate) -> str:
    return units.between(part.value, part.low, part.high, units.seconds)


def _in_words(steps: Sequence[StepTime], line: Line | None) -> str:
    said = [f"{s.size:,} examples: {units.seconds(s.seconds)}" for s in steps]
    if line:
        said.append(f"Fitted: {_equation(line)}")
        said += [
            f"Off the line: {size:,}, {units.ratio(times)} of it"
            for size, times in line.bends
        ]
    return ". ".join(said) + "."
