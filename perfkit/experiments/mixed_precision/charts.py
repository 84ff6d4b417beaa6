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
from perfkit.experiments.mixed_precision.verdict import Pairs, pairs, scale
from perfkit.experiments.shared.precision import FLOAT32
from perfkit.findings.record import Finding
from perfkit.findings.text import plain

# Told apart by their dashes as well; float32 is a plain line.
_LOOKS = ((BLUE, (0, (5, 2))), (GREEN, (0, (1, 1.5))), (RED, (0, (4, 2, 1, 2))))
_MORE = (GREY, (0, (8, 3)))
_MIDDLE = 330
_NAMES = 170
_LARGEST_LOSS = 1e6


def losses(finding: Finding) -> Figure:
    """Draw the losses of every precision, and what each adds to those of float32."""
    title = f"{plain(finding.experiment, 40)}: does each precision learn the same?"
    found = learnt(finding)
    if not found:
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
        left = curves.axes(drawing, "loss", left=52, right=gap + 14)
        right = curves.axes(drawing, "", left=_MIDDLE + 52, right=_NAMES)
        canvas.note(right, f"added to the loss of {FLOAT32}", (0, 1), (-40, 12))
        longest = max(found, key=lambda one: len(one.steps))
        usual = longest.usual[_shared(longest, found)]
        _band(left, longest.steps, usual, (INK, "-"))
        for one, look in zip(found, (*_LOOKS, _MORE), strict=False):
            _band(left, one.steps, one.losses[_shared(one, found)], look)
            _band(right, one.steps, one.apart, look)
        right.axhline(0, color=INK, lw=1.2)
        _ends(left, right, found)
        names = [FLOAT32, *(plain(one.precision, 22) for one in found)]
        curves.key(right, names, [(INK, "-"), *_LOOKS, _MORE], (1.05, 1.2))

    said = ". ".join(_losses_in_words(one) for one in found)
    return canvas.drawn(title, lines, curves.height(lines), f"{title}. {said}.", draw)


def learnt(finding: Finding) -> tuple[Pairs, ...]:
    """The precisions that can be held against float32, as many as can be told apart."""
    sound = (
        one
        for one in pairs(finding.trials)
        if one.seeds and max(np.abs(one.losses).max(), one.usual.max()) < _LARGEST_LOSS
    )
    return tuple(sound)[: len(_LOOKS) + 1]


def _shared(one: Pairs, found: Sequence[Pairs]) -> list[int]:
    """The rows whose seed all have: other seeds would draw other lines."""
    seeds = set(one.seeds).intersection(*(other.seeds for other in found))
    rows = range(len(one.seeds))
    return [row for row in rows if one.seeds[row] in seeds] or list(rows)


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


def _ends(left: Axes, right: Axes, found: Sequence[Pairs]) -> None:
    high = max(float(max(one.losses.max(), one.usual.max())) for one in found)
    curves.even(left, max(high, 1e-6), units.significant)
    far = max(max(float(np.abs(one.apart).max()) for one in found), 1e-6)
    right.set_ylim(-1.1 * far, 1.1 * far)
    curves.ticks(right, even_ticks(-far, far), lambda value: f"{value:+.3g}")
    last = max(one.steps[-1] for one in found)
    for axes in (left, right):
        axes.set_xlim(0, last)
        axes.set_xlabel("training steps")
        ticks = even_ticks(0, last)
        curves.put(axes, ticks[:: 1 + len(ticks) // 6], units.significant)


def _losses_in_words(one: Pairs) -> str:
    seeds = len(one.losses)
    return (
        f"{plain(one.precision, 40)} in {seeds} pair{'s' if seeds > 1 else ''}: "
        f"{one.alike}; by step {one.steps[-1]} the loss is "
        f"{units.significant(float(one.losses[:, -1].mean()))} in the mean, and "
        f"{units.significant(float(one.usual[:, -1].mean()))} in {FLOAT32}"
    )


def loss_scale(finding: Finding) -> Figure:
    """Draw the loss scale after each step, with the steps that changed nothing."""
    title = f"{plain(finding.experiment, 40)}: the loss scale of float16"
    found = scale(finding.trials)
    if found is None:
        return canvas.message(title, "No training in float16 told its loss scale.")
    caption = (
        "line: what the loss is multiplied by before its gradients are taken",
        "✕ a step that was skipped: a gradient overflowed, and the scale is halved",
    )

    def fill(axes: Axes) -> None:
        steps = range(len(found.scales))
        axes.set_yscale("log", base=2)
        low, high = min(found.scales) / 1.5, max(found.scales) * 1.5
        axes.set_ylim(low, high)
        powers = [2.0**n for n in range(-60, 128) if low <= 2.0**n <= high]
        ticks = powers[:: 1 + len(powers) // 9]
        curves.ticks(axes, ticks, lambda value: f"{value:,.0f}")
        axes.step(steps, found.scales, where="post", color=BLUE, lw=1.8)
        at = [found.scales[step - 1] for step in found.skipped]
        axes.plot(found.skipped, at, "x", color=RED, ms=8, mew=2)
        axes.set_xlim(0, len(steps) - 1)
        axes.set_xlabel("training steps")
        curves.put(axes, even_ticks(0, len(steps) - 1), units.significant)

    skipped = len(found.skipped)
    words = (
        f"In {len(found.scales) - 1} steps it began at {found.scales[0]:,.0f}, reached "
        f"{max(found.scales):,.0f} and ended at {found.scales[-1]:,.0f}; {skipped} "
        f"step{' was' if skipped == 1 else 's were'} skipped"
    )
    what = "loss scale (logarithmic)"
    return curves.picture(title, what, caption, [words], fill, right=40)


KINDS: dict[str, Kind[Finding]] = {
    "losses": Kind(losses, "Does each learn the same", lambda f: bool(learnt(f))),
    "loss scale": Kind(
        loss_scale,
        "How float16 scales its loss",
        lambda f: scale(f.trials) is not None,
    ),
}
