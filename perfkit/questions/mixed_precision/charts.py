"""The charts of what each precision learns."""

import itertools

import numpy as np
from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, RED, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.findings.text import one_line
from perfkit.questions import result_of
from perfkit.questions.mixed_precision.verdict import Pairs, PrecisionResult, Rows
from perfkit.questions.shared.precision import FLOAT32

_MOST, _LARGEST_LOSS = 4, 1e6


def _result(finding: Finding) -> PrecisionResult:
    result: PrecisionResult = result_of(finding)
    return result


def drawable_pairs(finding: Finding) -> list[Pairs]:
    """The precisions with losses beside float32's, as many as a chart tells apart."""
    pairs = (pair for pair in _result(finding).pairs if pair.seeds)
    fitting = (p for p in pairs if np.abs([p.losses, p.usual]).max() < _LARGEST_LOSS)
    return list(itertools.islice(fitting, _MOST))


def losses(finding: Finding) -> Figure:
    """Draw the losses of every precision, from the same weights and examples."""
    title = f"{finding.experiment}: does each precision learn the same?"
    pairs = drawable_pairs(finding)
    if not pairs:
        return canvas.message(title, "No two precisions learnt from the same weights.")
    # Other seeds would draw other lines.
    shared = set(pairs[0].seeds).intersection(*(pair.seeds for pair in pairs))

    def lines(pair: Pairs, rows: Rows) -> list[curves.Points]:
        numbered = zip(pair.seeds, rows, strict=True)
        rows_shown = [row for seed, row in numbered if seed in shared or not shared]
        return [list(zip(pair.steps, row, strict=True)) for row in rows_shown]

    longest = max(pairs, key=lambda pair: len(pair.steps))
    bundles = {FLOAT32: lines(longest, longest.usual)}
    bundles |= {pair.precision: lines(pair, pair.losses) for pair in pairs}
    caption = (
        *("thick: the mean over seeds that all had", "thin: one seed"),
        "loss: of examples when they are seen first",
    )
    words = [f"{one_line(pair.precision, 40)}: {pair.alike}" for pair in pairs]
    return curves.bundles(title, "training steps", bundles, _steps, caption, words)


def _steps(count: float) -> str:
    return units.count(f"{count:,.0f}", "step")


def loss_scale(finding: Finding) -> Figure:
    """Draw the loss scale after each step, with the steps that changed nothing."""
    title = f"{finding.experiment}: the loss scale of float16"
    scale = _result(finding).scale
    if scale is None:
        return canvas.message(title, "No training in float16 reported its loss scale.")
    steps = len(scale.scales) - 1
    caption = (
        "line: the factor on the loss before its gradients are taken",
        "✕ a step that was skipped: a gradient overflowed, and the scale is halved",
    )

    def fill(axes: Axes) -> None:
        axes.set_yscale("log", base=2)
        low, high = min(scale.scales) / 1.5, max(scale.scales) * 1.5
        axes.set_ylim(low, high)
        powers = [2.0**n for n in range(-60, 128) if low <= 2.0**n <= high]
        ticks = powers[:: 1 + len(powers) // 9]
        curves.ticks(axes, ticks, lambda value: f"{value:,.0f}")
        axes.step(range(steps + 1), scale.scales, where="post", color=BLUE, lw=1.8)
        at = [scale.scales[step - 1] for step in scale.skipped]
        axes.plot(scale.skipped, at, "x", color=RED, ms=8, mew=2)
        curves.along(axes, steps, units.significant, "training steps")

    words = (
        f"In {steps} steps it began at {scale.scales[0]:,.0f}, reached "
        f"{max(scale.scales):,.0f} and ended at {scale.scales[-1]:,.0f}; "
        f"{units.count(len(scale.skipped), 'step')} skipped"
    )
    label = "loss scale (logarithmic)"
    return curves.picture(title, label, caption, [words], fill, right=40)


KINDS: dict[str, Kind[Finding]] = {
    "losses": Kind(
        losses, "Does each learn the same", lambda f: bool(drawable_pairs(f))
    ),
    "loss scale": Kind(
        loss_scale,
        "How float16 scales its loss",
        lambda f: _result(f).scale is not None,
    ),
}
