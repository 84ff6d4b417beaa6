"""How much memory does a batch take? Forecast, measured, and what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, RED
from perfkit.charts.svg import INK
from perfkit.experiments.batch_size import search, told
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.batch_size.search import Found
    from perfkit.experiments.shared.memory_forecast import Forecast
    from perfkit.findings.record import Finding

_MB, _MOST_MB = 10**6, 10**9


def memory(finding: Finding) -> Figure:
    """Draw the peak of memory at each batch size, and which batch was too large."""
    title = f"{plain(finding.experiment, 40)}: the memory of a batch"
    held = measured(finding)
    if not held:
        return canvas.message(title, "No trial told how much memory it took.")
    expected, found = told.forecast(finding.notes), search.found(finding.trials)
    asked = told.asked_for(finding.trials, _fits(found)) or 0
    lines = canvas.caption_lines(list(_caption(finding, expected, found, asked)))

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "bytes above the start, at the peak (logarithmic)")
        sizes = [*held, *(s for s in (_fits(found), _fails(found)) if s)]
        curves.sizes(axes, sorted(set(sizes)))
        forecast = [float(expected.of(size)) for size in sizes] if expected else []
        others = (*forecast, asked, _limit(finding))
        seen = [*held.values(), *(value for value in others if value > 0)]
        curves.measure(axes, seen, [], units.size)
        if expected:
            _draw_forecast(axes, expected, sizes)
        axes.plot(list(held), list(held.values()), "o", color=BLUE, ms=7)
        _draw_limit(axes, _limit(finding))
        _draw_found(axes, found, asked)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    words = _in_words(held, expected, found)
    return canvas.drawn(curves.height(lines), f"{title}. {words}", draw)


def measured(finding: Finding) -> dict[int, float]:
    """Bytes at the peak: of the GPU where there is one, else of the process."""
    for what in ("gpu_peak", "resident"):
        known = told.memory(finding.trials, what)
        if known := {size: bytes_ for size, bytes_ in known.items() if bytes_ > 0}:
            return known
    return {}


def _draw_forecast(axes: Axes, expected: Forecast, sizes: list[int]) -> None:
    x = np.geomspace(min(sizes), max(sizes), 60)
    y = expected.fixed + x * expected.activations
    if (y > 0).all():
        axes.plot(x, y, color=INK, lw=1.4, alpha=0.8)
        curves.label(axes, "forecast from shapes", float(x[-1]), float(y[-1]))


def _draw_limit(axes: Axes, limit: int) -> None:
    if limit:
        axes.axhline(limit, color=INK, lw=1.2, ls=(0, (6, 3)), alpha=0.8)
        right = axes.get_xlim()[1]
        curves.label(axes, f"perfkit's limit {units.size(limit)}", right, limit)


def _draw_found(axes: Axes, found: Found | None, asked: int) -> None:
    top = axes.get_ylim()[1] / 1.1
    if fits := _fits(found):
        axes.axvline(fits, color=GREEN, lw=1.4, ls=(0, (4, 3)))
        axes.plot(fits, asked or top, "^", color=GREEN, ms=8)
    if fails := _fails(found):
        axes.axvline(fails, color=RED, lw=1.4, ls=(0, (1, 2)))
        axes.plot(fails, top, "x", color=RED, ms=8, mew=2)


def _fits(found: Found | None) -> int:
    return found.fits if found else 0


def _fails(found: Found | None) -> int:
    return found.fails or 0 if found else 0


def _caption(
    finding: Finding, expected: Forecast | None, found: Found | None, asked: int
) -> Iterator[str]:
    yield "dot: measured at the peak, the median over trials"
    if expected:
        yield "line: weights, gradients, optimizer and activations, from shapes"
    if fits := _fits(found):
        limit = _limit(finding)
        into = f" into the {units.size(limit)} that perfkit allows" if limit else ""
        size = f", it had asked for {units.size(asked)}" if asked else ""
        yield f"▲ dashed: {fits:,} fit{into}{size}"
    if fails := _fails(found):
        yield f"✕ dotted: {fails:,} do not"


def _limit(finding: Finding) -> int:
    """Bytes above the start that a try may ask for; 0 where the device decides."""
    limit = finding.parameters.get("memory")
    if type(limit) is not int or not 0 < limit < _MOST_MB or finding.notes.get("gpus"):
        return 0
    return limit * _MB


def _in_words(
    held: dict[int, float], expected: Forecast | None, found: Found | None
) -> str:
    said = []
    for size, bytes_ in held.items():
        forecast = f", forecast {units.size(expected.of(size))}" if expected else ""
        said.append(f"{size:,} examples a batch: {units.size(bytes_)}{forecast}")
    if fits := _fits(found):
        said.append(f"{fits:,} fit")
    if fails := _fails(found):
        said.append(f"{fails:,} do not fit")
    return ". ".join(said) + "."
