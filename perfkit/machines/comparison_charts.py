"""The charts of a comparison of two machines."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves, rows, scale
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED, SMALL, WIDTH
from perfkit.charts.figure import INK, Figure
from perfkit.findings.text import plain
from perfkit.machines.comparison import UNEXPLAINED, Explained, Explanation, One
from perfkit.machines.comparison_report import share
from perfkit.machines.ratios import Ratio
from perfkit.passports.words import seconds

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
    guessed = [f"your guess: {plain(found.guess, 80)}"] if found.guess else []
    lines = canvas.caption_lines([*_caption(work), *guessed])

    told = work.predicted.seconds if work.predicted else 0.0
    ends = [end for bar in bars for end in (bar.start, bar.end)]
    low, high = 1.06 * min(0.0, *ends), 1.06 * max(told, 1e-9, *ends)

    def draw(axes: Axes) -> None:
        axes.set_xlim(low, high)
        ticks = scale.even_ticks(low, high)
        curves.put(axes, ticks, lambda value: units.seconds(value) if value else "0")
        axes.set_xlabel(f"time of {work.a_unit}")
        for row, bar in enumerate(bars):
            _draw_bar(axes, row, bar)
        if work.predicted is not None:
            axes.axvline(told, color=INK, lw=1.2, ls=(0, (4, 3)))

    words = "; ".join(f"{bar.name} {', '.join(filter(None, bar.said))}" for bar in bars)
    return rows.picture(
        title,
        [(bar.name, bar.said) for bar in bars],
        lines,
        draw,
        alt=f"{title}. {words}. {'. '.join(lines)}.",
        axis=48,
        bold={"A", "B"},
    )


def ratio_scale(axes: Axes, low: float, high: float, label: str) -> None:
    """Ratios on a logarithmic axis; a dashed line marks 1."""
    # Machines that are alike shall look alike.
    low, high = min(0.5, low) / 1.15, max(2.0, high) * 1.15
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    curves.put(axes, scale.log_ticks(low, high), units.ratio)
    axes.set_xlabel(f"{label} (logarithmic)")
    axes.axvline(1, color=INK, lw=1, ls=(0, (4, 3)), alpha=0.7)


# Beyond, a ratio stands at the edge: one broken file must not flatten all others.
_FARTHEST = 1000.0


def within(ratio: float) -> float:
    """A ratio as far away as an axis shows it."""
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)


def _bars(work: Explained) -> Iterator[_Bar]:
    at = work.a or 0.0
    yield _whole("A", at)
    for one in work.changes:
        change = one.change or 0.0
        if not change and not one.a and not one.b:
            continue
        kind = "more" if change > 0 else "less"
        low, high = one.low or 0.0, one.high or 0.0
        said = f"{'+' * (change > 0)}{seconds(change)}"
        yield _Bar(
            name=one.name,
            kind="open" if one.name == UNEXPLAINED else kind,
            start=at,
            end=at + change,
            low=at + low,
            high=at + high,
            said=(said, share(one)),
        )
        at += change
    yield _whole("B", work.b or 0.0)


def _whole(name: str, end: float) -> _Bar:
    return _Bar(name, "whole", 0.0, end, end, end, (seconds(end), ""))


def _draw_bar(axes: Axes, row: int, bar: _Bar) -> None:
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
        told = seconds(work.predicted.seconds)
        yield f"dashed: predicted from A and the microbenchmarks, {told}"
    if not work.claimed:
        yield "no difference of the whole is claimed"


_RATIOS_TITLE = "How fast each part of B is, against A's"
_RATIOS_HEIGHT = 0.8
_MOST = 60


def microbenchmarks(found: Explanation) -> Figure:
    """Draw each ratio with its interval; 1 is neither faster nor slower."""
    shown = {r.name: r.speed for r in found.microbenchmarks if r.speed is not None}
    shown = dict([*shown.items()][:_MOST])
    said = {n: units.ratio_between(s.ratio, s.low, s.high) for n, s in shown.items()}
    lines = canvas.caption_lines(
        ["line: 95 % interval", "arrow: faster or slower is shown", "ring: too noisy"]
    )

    def draw(axes: Axes) -> None:
        ratios = [within(speed.ratio) for speed in shown.values()]
        ends = scale.limits([1.0, *ratios], [speed.low for speed in shown.values()])
        ratio_scale(axes, *ends, "B's rate over A's")
        for row, speed in enumerate(shown.values()):
            _draw_ratio(axes, row, speed)

    told = "; ".join(f"{name} {said[name]}, {shown[name].verdict}" for name in shown)
    return rows.picture(
        _RATIOS_TITLE,
        [(name, (words, "")) for name, words in said.items()],
        lines,
        draw,
        alt=f"{_RATIOS_TITLE}. {told}.",
        height=_RATIOS_HEIGHT,
    )


def _draw_ratio(axes: Axes, row: int, speed: Ratio) -> None:
    mark, filled, colour = canvas.MARKS[speed.verdict]
    first, last = axes.get_xlim()
    low, at, high = (
        min(max(value, first), last) for value in (speed.low, speed.ratio, speed.high)
    )
    axes.hlines(row, low, high, colors=colour, lw=2.2)
    face = colour if filled else "none"
    axes.plot(at, row, mark, ms=8, color=colour, mfc=face, mew=1.6, clip_on=False)


_USAGE_TITLE = "What both machines did meanwhile"
_USAGE_HEIGHT, _GAP, _LEFT, _RIGHT = 78, 18, 130, 190
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
    _Panel("speed of a core", ("core_speed",), units.percent, 1.0),
    _Panel("GPU busy", ("gpu0_busy",), units.percent, 1.0),
    _Panel("GPU memory", ("gpu0_memory",), units.size),
    _Panel("GPU power in W", ("gpu0_power",), units.significant),
)
Points = list[tuple[float, float]]


def usage(found: Explanation) -> Figure:
    """Draw processor, memory, disk, GPU and power of both."""
    sides = found.a, found.b
    every = {one: [_points(side, one.names) for side in sides] for one in _PANELS}
    shown = {panel: both for panel, both in every.items() if any(both)}
    if not shown:
        return canvas.message(_USAGE_TITLE, "Neither machine was watched.")
    lines = canvas.caption_lines(
        ["blue: A", "red, dashed: B", "beside: the mean of each"]
    )
    step = _USAGE_HEIGHT + _GAP
    height = canvas.TOP + len(shown) * step + 40 + 16 * len(lines) + 8
    times = (t for side in sides for t in side.samples.get("t", ()))
    end = max(1e-3, *(t for t in times if t is not None))

    def draw(drawing: Drawing) -> None:
        for number, (panel, both) in enumerate(shown.items()):
            top, width = canvas.TOP + 4 + number * step, WIDTH - _LEFT - _RIGHT
            axes = canvas.place(drawing, _LEFT, top, width, _USAGE_HEIGHT)
            _usage_draw(axes, panel, both)
            axes.set_xlim(0, end)
            curves.put(axes, scale.even_ticks(0, end), "{:g}".format)
            axes.tick_params(axis="x", labelbottom=number == len(shown) - 1)
        axes.set_xlabel("seconds since the start of each recording")

    said = "; ".join(
        f"{panel.title} of {name}: {_mean(points, panel)} on average"
        for panel, both in shown.items()
        for (name, *_), points in zip(_LINES, both, strict=True)
    )
    return canvas.drawn(_USAGE_TITLE, lines, height, f"{_USAGE_TITLE}. {said}.", draw)


def _usage_draw(axes: Axes, panel: _Panel, both: Sequence[Points]) -> None:
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


def _mean(points: Points, panel: _Panel) -> str:
    if not points:
        return "not known"
    return panel.write(sum(value for _, value in points) / len(points))


def pictures(found: Explanation) -> dict[str, Figure]:
    """Each that there is something to draw in, by name."""
    known = any(one.speed for one in found.microbenchmarks)
    every = {
        "waterfall": (from_a_to_b, any(work.changes for work in found.works)),
        "microbenchmarks": (microbenchmarks, known),
        "usage": (usage, found.a.samples.get("t") or found.b.samples.get("t")),
    }
    return {name: draw(found) for name, (draw, there) in every.items() if there}
