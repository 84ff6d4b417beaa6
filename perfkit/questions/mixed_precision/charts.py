"""The charts of what each precision learns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure, Kind
from perfkit.charts.layout import even_ticks
from perfkit.findings.record import Finding
from perfkit.findings.text import plain
from perfkit.questions.mixed_precision.verdict import Pairs, pairs, scale
from perfkit.questions.shared.precision import FLOAT32

# Told apart by their dashes as well; float32 is a plain line.
_LOOKS = ((BLUE, (0, (5, 2))), (GREEN, (0, (1, 1.5))), (RED, (0, (4, 2, 1, 2))))
_MORE = (GREY, (0, (8, 3)))
_MIDDLE = 330
_NAMES = 170
_LARGEST_LOSS = 1e6


def losses(finding: Finding) -> Figure:
    """Draw the losses of every precision, and what each adds to those of float32."""
    title = f"{plain(finding.experiment, 40)}: does each precision learn the same?"
    precisions = learnt(finding)
    if not precisions:
        return canvas.message(title, "No two precisions learnt from the same weights.")
    lines = canvas.caption_lines(
        [
            "line: mean over the seeds; band: from the lowest to the highest",
            "left: loss of examples when they are seen first, for seeds that all had",
            f"right: what it adds to the loss of {FLOAT32} with the same seed",
        ]
    )

    def draw(drawing: Drawing) -> None:
        gap = canvas.WIDTH - _MIDDLE
        left_axes = curves.axes(drawing, "loss", left=52, right=gap + 14)
        right_axes = curves.axes(drawing, "", left=_MIDDLE + 52, right=_NAMES)
        canvas.note(right_axes, f"added to the loss of {FLOAT32}", (0, 1), (-40, 12))
        longest = max(precisions, key=lambda p: len(p.steps))
        usual = longest.usual[_shared(longest, precisions)]
        _band(left_axes, longest.steps, usual, (INK, "-"))
        for pair, look in zip(precisions, (*_LOOKS, _MORE), strict=False):
            _band(left_axes, pair.steps, pair.losses[_shared(pair, precisions)], look)
            _band(right_axes, pair.steps, pair.apart, look)
        right_axes.axhline(0, color=INK, lw=1.2)
        _ends(left_axes, right_axes, precisions)
        names = [FLOAT32, *(plain(p.precision, 22) for p in precisions)]
        curves.key(right_axes, names, [(INK, "-"), *_LOOKS, _MORE], (1.05, 1.2))

    words = ". ".join(_losses_in_words(p) for p in precisions)
    return canvas.paint(title, lines, curves.height(lines), f"{title}. {words}.", draw)


def learnt(finding: Finding) -> tuple[Pairs, ...]:
    """The precisions that can be held against float32, as many as can be told apart."""
    sound = (
        p
        for p in pairs(finding.trials)
        if p.seeds and max(np.abs(p.losses).max(), p.usual.max()) < _LARGEST_LOSS
    )
    return tuple(sound)[: len(_LOOKS) + 1]


def _shared(pair: Pairs, precisions: Sequence[Pairs]) -> list[int]:
    """The rows whose seed all have: other seeds would draw other lines."""
    seeds = set(pair.seeds).intersection(*(p.seeds for p in precisions))
    rows = range(len(pair.seeds))
    return [row for row in rows if pair.seeds[row] in seeds] or list(rows)


def _band(
    axes: Axes,
    steps: Sequence[int],
    rows: NDArray[np.float64],
    look: tuple[str, Any],
) -> None:
    colour, dashes = look
    low, high = rows.min(axis=0), rows.max(axis=0)
    axes.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0)
    axes.plot(steps, rows.mean(axis=0), color=colour, ls=dashes, lw=1.8)


def _ends(left_axes: Axes, right_axes: Axes, precisions: Sequence[Pairs]) -> None:
    high = max(float(max(p.losses.max(), p.usual.max())) for p in precisions)
    curves.even(left_axes, max(high, 1e-6), units.significant)
    far = max(max(float(np.abs(p.apart).max()) for p in precisions), 1e-6)
    right_axes.set_ylim(-1.1 * far, 1.1 * far)
    curves.ticks(right_axes, even_ticks(-far, far), lambda value: f"{value:+.3g}")
    last = max(p.steps[-1] for p in precisions)
    for axes in (left_axes, right_axes):
        axes.set_xlim(0, last)
        axes.set_xlabel("training steps")
        ticks = even_ticks(0, last)
        curves.put(axes, ticks[:: 1 + len(ticks) // 6], units.significant)


def _losses_in_words(pair: Pairs) -> str:
    seeds = len(pair.losses)
    return (
        f"{plain(pair.precision, 40)} in {seeds} pair{'s' if seeds > 1 else ''}: "
        f"{pair.alike}; by step {pair.steps[-1]} the loss is "
        f"{units.significant(float(pair.losses[:, -1].mean()))} in the mean, and "
        f"{units.significant(float(pair.usual[:, -1].mean()))} in {FLOAT32}"
    )


def loss_scale(finding: Finding) -> Figure:
    """Draw the loss scale after each step, with the steps that changed nothing."""
    title = f"{plain(finding.experiment, 40)}: the loss scale of float16"
    course = scale(finding.trials)
    if course is None:
        return canvas.message(title, "No training in float16 told its loss scale.")
    caption = (
        "line: what the loss is multiplied by before its gradients are taken",
        "✕ a step that was skipped: a gradient overflowed, and the scale is halved",
    )

    def fill(axes: Axes) -> None:
        steps = range(len(course.scales))
        axes.set_yscale("log", base=2)
        low, high = min(course.scales) / 1.5, max(course.scales) * 1.5
        axes.set_ylim(low, high)
        powers = [2.0**n for n in range(-60, 128) if low <= 2.0**n <= high]
        ticks = powers[:: 1 + len(powers) // 9]
        curves.ticks(axes, ticks, lambda value: f"{value:,.0f}")
        axes.step(steps, course.scales, where="post", color=BLUE, lw=1.8)
        at = [course.scales[step - 1] for step in course.skipped]
        axes.plot(course.skipped, at, "x", color=RED, ms=8, mew=2)
        axes.set_xlim(0, len(steps) - 1)
        axes.set_xlabel("training steps")
        curves.put(axes, even_ticks(0, len(steps) - 1), units.significant)

    skipped = len(course.skipped)
    words = (
        f"In {len(course.scales) - 1} steps it began at {course.scales[0]:,.0f}, "
        f"reached {max(course.scales):,.0f} and ended at {course.scales[-1]:,.0f}; "
        f"{skipped} step{' was' if skipped == 1 else 's were'} skipped"
    )
    label = "loss scale (logarithmic)"
    return curves.picture(title, label, caption, [words], fill, right=40)


KINDS: dict[str, Kind[Finding]] = {
    "losses": Kind(losses, "Does each learn the same", lambda f: bool(learnt(f))),
    "loss scale": Kind(
        loss_scale,
        "How float16 scales its loss",
        lambda f: scale(f.trials) is not None,
    ),
}
