"""What each machine did meanwhile: both on one time axis, a panel per reading."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, scales
from perfkit.charts.canvas import BLUE, RED, SMALL, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.comparing.record import Explanation, One

_TITLE = "What both machines did meanwhile"
_HEIGHT, _GAP, _LEFT, _RIGHT = 78, 18, 130, 190
# The first is solid, the second dashed, so that no meaning hangs on the colour alone.
_LINES = (("A", BLUE, "-"), ("B", RED, "--"))


@dataclass(frozen=True)
class _Panel:
    """One reading.

    Attributes:
        title: What it is, with its unit.
        names: Of the samples that are added up to it.
        write: Writes one value.
        most: What the axis reaches at least; None for what is there.
    """

    title: str
    names: tuple[str, ...]
    write: Callable[[float], str]
    most: float | None = None


_CPU = ("cpu_trial", "cpu_other", "cpu_perfkit")
_PANELS = (
    _Panel("cores busy", _CPU, units.significant),
    _Panel("of them, others'", ("cpu_other",), units.significant),
    _Panel("memory used", ("memory_used",), units.size),
    _Panel("read from disk", ("disk_read",), lambda value: units.rate(value, "B")),
    _Panel("speed of a core", ("pulse",), units.percent, 1.0),
    _Panel("GPU busy", ("gpu0_busy",), units.percent, 1.0),
    _Panel("GPU memory", ("gpu0_memory",), units.size),
    _Panel("GPU power in W", ("gpu0_power",), units.significant),
)
Points = list[tuple[float, float]]


def usage(found: Explanation) -> Figure:
    """Draw processor, memory, disk, GPU and power of both."""
    panels = [panel for panel in _PANELS if any(_both(found, panel))]
    if not panels:
        return canvas.message(_TITLE, "Neither machine was watched.")
    lines = canvas.caption_lines(
        ["blue: A", "red, dashed: B", "beside: the mean of each"]
    )
    height = canvas.TOP + len(panels) * (_HEIGHT + _GAP) + 40 + 16 * len(lines) + 8
    end = max((t for one in (found.a, found.b) for t in _times(one)), default=1.0)

    def draw(drawing: Drawing) -> None:
        made = [_axes(drawing, number) for number in range(len(panels))]
        for axes, panel in zip(made, panels, strict=True):
            _draw(axes, panel, _both(found, panel))
            axes.set_xlim(0, max(end, 1e-3))
            scales.put(axes, scales.even_ticks(0, max(end, 1e-3)), "{:g}".format)
            axes.tick_params(axis="x", labelbottom=axes is made[-1])
        made[-1].set_xlabel("seconds since the start of each recording")
        canvas.heading(drawing, _TITLE)
        canvas.caption(drawing, lines)

    said = "; ".join(text for panel in panels for text in _in_words(found, panel))
    return canvas.drawn(height, f"{_TITLE}. {said}.", draw)


def _axes(drawing: Drawing, number: int) -> Axes:
    top = canvas.TOP + 4 + number * (_HEIGHT + _GAP)
    return canvas.place(drawing, _LEFT, top, WIDTH - _LEFT - _RIGHT, _HEIGHT)


def _draw(axes: Axes, panel: _Panel, both: Sequence[Points]) -> None:
    highest = max(value for points in both for _, value in points)
    most = max(highest, panel.most or 0.0) or 1.0
    for place, ((name, colour, dashes), points) in enumerate(
        zip(_LINES, both, strict=True)
    ):
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, ls=dashes, lw=1.5)
        told = f"{name}: {_mean(points, panel)}"
        canvas.note(axes, told, (1, 1), (12, -12 - 17 * place), color=colour)
    axes.set_ylim(0, most * 1.05)
    axes.set_yticks([0, most], ["0", panel.write(most)])
    axes.tick_params(axis="y", labelsize=SMALL)
    canvas.note(axes, panel.title, (0, 0.5), (-8, 0), ha="right")


def _both(found: Explanation, panel: _Panel) -> list[Points]:
    return [_points(one, panel.names) for one in (found.a, found.b)]


def _points(one: One, names: tuple[str, ...]) -> Points:
    """When and how much, where at least one of the samples is there."""
    columns = [one.samples[name] for name in names if name in one.samples]
    points = []
    for at, t in enumerate(one.samples.get("t", ())):
        known = [c[at] for c in columns if at < len(c) and c[at] is not None]
        total = math.fsum(value for value in known if value is not None)
        if known and t is not None:
            points.append((t, max(0.0, total)))
    return points


def _times(one: One) -> Iterator[float]:
    yield from (t for t in one.samples.get("t", ()) if t is not None)


def _mean(points: Points, panel: _Panel) -> str:
    if not points:
        return "not known"
    return panel.write(sum(value for _, value in points) / len(points))


def _in_words(found: Explanation, panel: _Panel) -> Iterator[str]:
    for (name, *_), points in zip(_LINES, _both(found, panel), strict=True):
        yield f"{panel.title} of {name}: {_mean(points, panel)} on average"
