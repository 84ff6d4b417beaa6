"""Does it learn as fast as it runs? The loss against examples and against seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.charts import canvas, curves, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.experiments.batch_size import told
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.batch_size.told import Curve
    from perfkit.findings.record import Finding

# Told apart by their dashes as well.
_LOOKS = ((BLUE, "-"), (GREEN, (0, (5, 2))), (RED, (0, (1, 1.5))), (GREY, (0, (4, 2))))
_MIDDLE = 400
_LARGEST_LOSS = 1e6


def learning(finding: Finding) -> Figure:
    """Draw how the loss fell at several batch sizes, by examples and by seconds."""
    title = f"{plain(finding.experiment, 40)}: speed is not learning"
    found = trainings(finding)
    if not found:
        return canvas.message(title, "No training was run to learn.")
    lines = canvas.caption_lines(
        [
            "loss of examples that were held out; one training at each batch size",
            "a batch size changes the training itself: fewer, larger steps",
        ]
    )

    def draw(drawing: Drawing) -> None:
        gap = canvas.WIDTH - _MIDDLE
        by_samples = curves.axes(drawing, "loss", left=60, right=gap + 20)
        by_seconds = curves.axes(drawing, "", left=_MIDDLE + 20, right=120)
        high = max(loss for curve in found for loss in curve.losses)
        for curve, (colour, dashes) in zip(found, _LOOKS, strict=False):
            style: Any = {"color": colour, "ls": dashes, "lw": 1.8}
            by_samples.plot(curve.samples[1:], curve.losses[1:], **style)
            by_seconds.plot(curve.seconds, curve.losses, **style)
        for axes in (by_samples, by_seconds):
            curves.even(axes, max(high, 1e-6), units.significant)
        _below(by_samples, by_seconds, found)
        _name(by_seconds, found)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    said = ". ".join(_in_words(curve) for curve in found)
    return canvas.drawn(curves.height(lines), f"{title}. {said}.", draw)


def trainings(finding: Finding) -> tuple[Curve, ...]:
    """The trainings that can be drawn, as many as can be told apart."""
    sound = (
        curve
        for curve in told.curves(finding.trials)
        if all(0 <= loss < _LARGEST_LOSS for loss in curve.losses)
        and curve.samples[1] > 0
        and curve.seconds[-1] > 0
    )
    return tuple(sound)[: len(_LOOKS)]


def _below(by_samples: Axes, by_seconds: Axes, found: Sequence[Curve]) -> None:
    by_samples.set_xscale("log")
    low = float(min(curve.samples[1] for curve in found))
    high = float(max(curve.samples[-1] for curve in found))
    by_samples.set_xlim(low / 1.1, high * 1.1)
    ticks = scales.log_ticks(low / 1.1, high * 1.1)
    # Half of the picture has room for half of the numbers.
    scales.put(by_samples, ticks[:: 1 + len(ticks) // 5], units.significant)
    by_samples.set_xlabel("examples learnt from (logarithmic)")
    end = max(curve.seconds[-1] for curve in found)
    by_seconds.set_xlim(0, end)
    ticks = scales.even_ticks(0, end)
    scales.put(by_seconds, ticks[:: 1 + len(ticks) // 5], units.significant)
    by_seconds.set_xlabel("seconds of training")


def _name(axes: Axes, found: Sequence[Curve]) -> None:
    """A name for each curve in the margin, in their order, each beside its look."""
    for row, (curve, (colour, dashes)) in enumerate(zip(found, _LOOKS, strict=False)):
        high = 0.95 - 0.1 * row
        axes.plot(
            [1.03, 1.13],
            [high, high],
            color=colour,
            ls=dashes,
            lw=1.8,
            transform=axes.transAxes,
            clip_on=False,
        )
        canvas.note(axes, f"batch {curve.batch:,}", (1.13, high), (6, 0))


def _in_words(curve: Curve) -> str:
    return (
        f"With {curve.batch:,} examples a batch the loss fell from "
        f"{units.significant(curve.losses[0])} to "
        f"{units.significant(curve.losses[-1])} in {units.seconds(curve.seconds[-1])}, "
        f"after {curve.samples[-1]:,} examples"
    )
