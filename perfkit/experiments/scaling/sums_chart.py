"""What does summing gradients take? Computed from the link, and seen in the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREY
from perfkit.charts.svg import INK
from perfkit.experiments.scaling import facts, names, numbers
from perfkit.experiments.scaling.devices import GPU
from perfkit.experiments.scaling.names import SHARED
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.scaling.devices import Kind
    from perfkit.experiments.scaling.numbers import Sum
    from perfkit.findings.record import Finding

_EXPERIMENT = "scaling"
# So many times the longest time seen an interval may reach before it is cut.
_REACH = 1.6


def sums(finding: Finding) -> Figure:
    """Draw for each number of devices what the sum was to take and what it took."""
    measured = measurement(finding)
    of, found = numbers.kind(measured), numbers.sums(measured)
    title = f"{plain(finding.experiment, 40)}: summing the gradients of {of}s"
    if not found:
        return canvas.message(title, "No sum was timed against a step without it.")
    lines = canvas.caption_lines(list(_caption(finding, shared=of != GPU)))
    inner, height = canvas.frame(len(found), lines, axis=48)
    said = [
        (f"seen {facts.between(one.seen, units.seconds)}", _more(one)) for one in found
    ]

    def draw(drawing: Drawing) -> None:
        labels = [names.of(of, one.count) for one in found]
        axes = rows.axes(drawing, labels, inner, right=rows.room(said))
        high = _REACH * max(max(one.seen.value, _expected(one)) for one in found)
        for row, (one, words) in enumerate(zip(found, said, strict=True)):
            _draw_row(axes, row, one, high)
            rows.beside(axes, row, *words)
        axes.set_xlim(0, high)
        scales.put(axes, scales.even_ticks(0, high), units.seconds)
        axes.set_xlabel("time of each step")
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = " ".join(_in_words(found, said, of))
    end = f"{SHARED} " * (of != GPU)
    alt = f"{title}. {words} {end}Measured on {canvas.origin(finding)}."
    return canvas.drawn(height, alt, draw)


def has_sums(finding: Finding) -> bool:
    """Whether the sum of gradients was left out of some steps."""
    is_one = finding.experiment == _EXPERIMENT
    return is_one and bool(numbers.sums(measurement(finding)))


def _expected(one: Sum) -> float:
    return one.predicted.value if one.predicted else 0.0


def _draw_row(axes: Axes, row: int, one: Sum, high: float) -> None:
    expected, seen = _expected(one), max(one.seen.value, 0.0)
    axes.barh(row, expected, 0.5, facecolor=BLUE, alpha=0.75, lw=0)
    rest: Any = {"facecolor": GREY, "hatch": "xxxx", "edgecolor": INK}
    axes.barh(row, max(seen - expected, 0.0), 0.5, expected, alpha=0.75, lw=0, **rest)
    low, top = max(one.seen.low, 0.0), min(one.seen.high, high)
    axes.hlines(row, low, max(low, top), colors=INK, lw=2.2)
    axes.plot(seen, row, "o", color=INK, ms=6)


def _more(one: Sum) -> str:
    if one.predicted is None:
        return "nothing was predicted"
    return f"computed {facts.between(one.predicted, units.seconds)}"


def _caption(finding: Finding, *, shared: bool) -> Iterator[str]:
    yield "blue: computed from what the link copies, not measured"
    yield "● and line: seen, with its 95 % interval"
    yield "hatched: the rest, which the link does not explain and nothing measured"
    if shared:
        yield SHARED
    yield canvas.origin(finding)


def _in_words(
    found: tuple[Sum, ...], said: list[tuple[str, str]], of: Kind
) -> Iterator[str]:
    for one, words in zip(found, said, strict=True):
        yield f"{names.of(of, one.count)}: {', '.join(words)}."
