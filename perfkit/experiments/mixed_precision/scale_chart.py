"""How is the loss scaled in float16, and which steps are skipped?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, curves, scales
from perfkit.charts.canvas import BLUE, RED
from perfkit.experiments.mixed_precision import told
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.experiments.mixed_precision.told import Scale
    from perfkit.findings.record import Finding


def loss_scale(finding: Finding) -> Figure:
    """Draw the loss scale after each step, with the steps that changed nothing."""
    title = f"{plain(finding.experiment, 40)}: the loss scale of float16"
    found = told.scale(finding.trials)
    if found is None:
        return canvas.message(title, "No training in float16 told its loss scale.")
    lines = canvas.caption_lines(
        [
            "line: what the loss is multiplied by before its gradients are taken",
            "✕ a step that was skipped: a gradient overflowed, and the scale is halved",
        ]
    )

    def draw(drawing: Drawing) -> None:
        axes = curves.axes(drawing, "loss scale (logarithmic)", right=40)
        steps = range(len(found.scales))
        axes.set_yscale("log", base=2)
        low, high = min(found.scales) / 1.5, max(found.scales) * 1.5
        axes.set_ylim(low, high)
        curves.ticks(axes, _powers(low, high), lambda value: f"{value:,.0f}")
        axes.step(steps, found.scales, where="post", color=BLUE, lw=1.8)
        at = [found.scales[step - 1] for step in found.skipped]
        axes.plot(found.skipped, at, "x", color=RED, ms=8, mew=2)
        axes.set_xlim(0, len(steps) - 1)
        axes.set_xlabel("training steps")
        scales.put(axes, scales.even_ticks(0, len(steps) - 1), units.significant)
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    return canvas.drawn(curves.height(lines), f"{title}. {_in_words(found)}", draw)


def has_scale(finding: Finding) -> bool:
    """Whether a training in float16 told its loss scale."""
    return told.scale(finding.trials) is not None


def _powers(low: float, high: float) -> list[float]:
    powers = [2.0**power for power in range(-60, 128) if low <= 2.0**power <= high]
    return powers[:: 1 + len(powers) // 9]


def _in_words(found: Scale) -> str:
    skipped = len(found.skipped)
    return (
        f"In {len(found.scales) - 1} steps it began at {found.scales[0]:,.0f}, reached "
        f"{max(found.scales):,.0f} and ended at {found.scales[-1]:,.0f}; {skipped} "
        f"step{' was' if skipped == 1 else 's were'} skipped."
    )
