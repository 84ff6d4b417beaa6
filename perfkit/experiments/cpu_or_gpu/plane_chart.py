"""At which widths and batch sizes does the second device pay, by the fitted costs?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import GREEN
from perfkit.experiments.cpu_or_gpu import numbers, where
from perfkit.experiments.cpu_or_gpu.crossover_chart import (
    has_crossover,
    mark_of,
)
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.cpu_or_gpu.fit import Fit
    from perfkit.experiments.cpu_or_gpu.numbers import Point
    from perfkit.findings.record import Finding

    Edge = tuple[float, float, float]

_BATCHES = 25
# The plane reaches this factor beyond the batch sizes that were measured.
_BEYOND = 4


def crossover_plane(finding: Finding) -> Figure:
    """Draw the line in the plane of width and batch beyond which the second pays."""
    title = f"{plain(finding.experiment, 40)}: where the second device pays"
    measured = measurement(finding)
    points = [p for p in numbers.points(measured) if p.size]
    if not points:
        return canvas.message(title, "No width was timed on both devices.")
    fits = numbers.fits(measured)
    batches = _batches(points)
    widest = max(p.size.width for p in points if p.size)
    edges = where.boundary(measured, batches, widest)
    known = {b: e for b, e in zip(batches, edges, strict=True) if e}
    lines = canvas.caption_lines(list(_caption(finding, known, [*fits.values()])))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "examples in a batch (logarithmic)")
        _set_scales(axes, points, batches)
        _draw_edge(axes, known)
        for point in points:
            if point.size:
                colour, mark = mark_of(point)
                axes.plot(point.size.width, point.batch, mark, color=colour, ms=9)
                words = units.ratio(point.gain.ratio)
                curves.label(axes, words, point.size.width, point.batch)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = " ".join(_in_words(points, known))
    stamp = f"Measured on {canvas.origin(finding)}."
    return canvas.drawn(curves.height(lines), f"{title}. {words} {stamp}", draw)


def has_plane(finding: Finding) -> bool:
    """Whether both devices' costs could be fitted."""
    return has_crossover(finding) and len(numbers.fits(measurement(finding))) > 1


def _batches(points: Sequence[Point]) -> list[float]:
    sizes = [p.batch for p in points]
    low, high = max(1.0, min(sizes) / _BEYOND), max(sizes) * _BEYOND
    return [float(batch) for batch in np.geomspace(low, high, _BATCHES)]


def _set_scales(axes: Axes, points: Sequence[Point], batches: Sequence[float]) -> None:
    curves.sizes(axes, [p.size.width for p in points if p.size])
    axes.set_xlabel("width of the network (logarithmic)")
    axes.set_yscale("log")
    axes.set_ylim(batches[0], batches[-1])
    axes.yaxis.set_major_locator(FixedLocator(sorted({p.batch for p in points})))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda batch, _: f"{batch:,.0f}"))


def _draw_edge(axes: Axes, known: dict[float, Edge]) -> None:
    if not known:
        return
    batches = list(known)
    middle, low, high = zip(*known.values(), strict=True)
    axes.fill_betweenx(batches, low, high, color=GREEN, alpha=0.15, lw=0)
    axes.plot(middle, batches, color=GREEN, lw=1.6)


def _caption(
    finding: Finding, known: dict[float, Edge], fits: Sequence[Fit]
) -> Iterator[str]:
    if known:
        yield "line: to its right the second device pays, by the fitted costs"
        worst = max(fit.misses for fit in fits)
        yield f"the fit misses a measured step by {units.percent(worst)} at most"
        yield "band: 95 % interval, if the fit has the right form"
    else:
        yield "the fitted costs do not say for sure where the second device pays"
    yield "◆ pays"
    yield "● does not"
    yield "■ noise hides it"
    yield "number: gain as measured"
    yield canvas.origin(finding)


def _in_words(points: Sequence[Point], known: dict[float, Edge]) -> Iterator[str]:
    for point in points:
        gain = units.ratio(point.gain.ratio)
        yield f"{point.what}, batch {point.batch:,}: {gain}, {where.says(point)}."
    for batch in list(known)[:: max(1, len(known) // 3)]:
        width, low, high = (units.significant(w, 2) for w in known[batch])
        yield (
            f"By the fit it pays from width {width} on at batch {batch:,.0f} ({low} to "
            f"{high})."
        )
    if not known:
        yield "The fitted costs do not say for sure where it pays."
