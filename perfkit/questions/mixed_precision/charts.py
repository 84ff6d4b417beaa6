"""The charts of what each precision learns."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.layout import even_ticks
from perfkit.findings.record import Finding
from perfkit.findings.text import plain
from perfkit.questions import result_of
from perfkit.questions.mixed_precision.verdict import Pairs, PrecisionResult, Rows
from perfkit.questions.shared.precision import FLOAT32

# Of float32, then of the others: their dashes tell them apart as well.
_PLAIN = (INK, "-")
_LOOKS: tuple[tuple[str, Any], ...] = (
    *((BLUE, (0, (5, 2))), (GREEN, (0, (1, 1.5)))),
    *((RED, (0, (4, 2, 1, 2))), (GREY, (0, (8, 3)))),
)
# Pixels from the left to the second axes, and those of the names beside them.
_MIDDLE, _NAMES = 330, 170
_LARGEST_LOSS = 1e6


def _result(finding: Finding) -> PrecisionResult:
    result: PrecisionResult = result_of(finding)
    return result


def drawable_pairs(finding: Finding) -> tuple[Pairs, ...]:
    """The precisions with losses beside float32's, as many as have a look."""
    pairs = (pair for pair in _result(finding).pairs if pair.seeds)
    drawable = (pair for pair in pairs if _highest(pair) < _LARGEST_LOSS)
    return tuple(itertools.islice(drawable, len(_LOOKS)))


def _highest(pair: Pairs) -> float:
    return float(np.abs([pair.losses, pair.usual]).max())


def losses(finding: Finding) -> Figure:
    """Draw the losses of every precision, and what each adds to those of float32."""
    title = f"{plain(finding.experiment, 40)}: does each precision learn the same?"
    pairs = drawable_pairs(finding)
    if not pairs:
        return canvas.message(title, "No two precisions learnt from the same weights.")
    lines = canvas.caption_lines(
        [
            "line: mean over the seeds; band: from the lowest to the highest",
            "left: loss of examples when they are seen first, for seeds that all had",
            f"right: what it adds to the loss of {FLOAT32} with the same seed",
        ]
    )
    # Other seeds would draw other lines.
    shared = set(pairs[0].seeds).intersection(*(pair.seeds for pair in pairs))

    def in_all(pair: Pairs, rows: Rows) -> Rows:
        rows_of = zip(pair.seeds, rows, strict=True)
        return tuple(row for seed, row in rows_of if seed in shared) or rows

    def draw(drawing: Drawing) -> None:
        gap = canvas.WIDTH - _MIDDLE
        left_axes = curves.axes(drawing, "loss", left=52, right=gap + 14)
        right_axes = curves.axes(drawing, "", left=_MIDDLE + 52, right=_NAMES)
        canvas.note(right_axes, f"added to the loss of {FLOAT32}", (0, 1), (-40, 12))
        longest = max(pairs, key=lambda pair: len(pair.steps))
        _draw_band(left_axes, longest, in_all(longest, longest.usual), _PLAIN)
        for pair, look in zip(pairs, _LOOKS, strict=False):
            _draw_band(left_axes, pair, in_all(pair, pair.losses), look)
            _draw_band(right_axes, pair, pair.apart, look)
        right_axes.axhline(0, color=INK, lw=1.2)
        _set_scales(left_axes, right_axes, pairs)
        names = [FLOAT32, *(plain(pair.precision, 22) for pair in pairs)]
        curves.key(right_axes, names, (_PLAIN, *_LOOKS), (1.05, 1.2))

    words = [
        f"{plain(pair.precision, 40)} with {units.count(len(pair.seeds), 'seed')}: "
        f"{pair.alike}; by step {pair.steps[-1]} the loss is {_last(pair.losses)} in "
        f"the mean, and {_last(pair.usual)} in {FLOAT32}"
        for pair in pairs
    ]
    alt = f"{'. '.join([title, *words])}."
    return canvas.paint(title, lines, curves.height(lines), alt, draw)


def _last(rows: Sequence[Sequence[float]]) -> str:
    return units.significant(sum(row[-1] for row in rows) / len(rows))


def _draw_band(axes: Axes, pair: Pairs, rows: Any, look: tuple[str, Any]) -> None:
    (colour, dashes), values = look, np.array(rows)
    low, high = values.min(axis=0), values.max(axis=0)
    axes.fill_between(pair.steps, low, high, color=colour, alpha=0.15, lw=0)
    axes.plot(pair.steps, values.mean(axis=0), color=colour, ls=dashes, lw=1.8)


def _set_scales(left_axes: Axes, right_axes: Axes, pairs: Sequence[Pairs]) -> None:
    curves.even(left_axes, max(*map(_highest, pairs), 1e-6), units.significant)
    far = max(*(float(np.abs(pair.apart).max()) for pair in pairs), 1e-6)
    right_axes.set_ylim(-1.1 * far, 1.1 * far)
    curves.ticks(right_axes, even_ticks(-far, far), lambda value: f"{value:+.3g}")
    last = max(pair.steps[-1] for pair in pairs)
    for axes in (left_axes, right_axes):
        curves.along(axes, last, units.significant, "training steps")


def loss_scale(finding: Finding) -> Figure:
    """Draw the loss scale after each step, with the steps that changed nothing."""
    title = f"{plain(finding.experiment, 40)}: the loss scale of float16"
    scale = _result(finding).scale
    if scale is None:
        return canvas.message(title, "No training in float16 told its loss scale.")
    steps = len(scale.scales) - 1
    caption = (
        "line: what the loss is multiplied by before its gradients are taken",
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
