"""The charts of what each precision learns."""

import itertools

import numpy as np

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import Figure, Kind
from perfkit.findings.record import Finding
from perfkit.findings.text import one_line
from perfkit.questions import result_of
from perfkit.questions.mixed_precision import Pairs, PrecisionResult, Rows
from perfkit.questions.shared.precision import FLOAT32

_MOST, _LARGEST_LOSS = 4, 1e6


def drawable_pairs(finding: Finding) -> list[Pairs]:
    """The precisions with losses beside float32's, as many as a chart tells apart."""
    result: PrecisionResult = result_of(finding)
    pairs = (pair for pair in result.pairs if pair.seeds)
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
        *("thick: the mean over the seeds of all", "thin: one seed"),
        "loss: on examples not seen before",
    )
    words = [f"{one_line(pair.precision, 40)}: {pair.alike}" for pair in pairs]

    def steps(count: float) -> str:
        return units.count(f"{count:,.0f}", "step")

    return curves.bundles(title, "training steps", bundles, steps, caption, words)


KINDS: dict[str, Kind] = {
    "losses": Kind(
        losses, "Does each learn the same", lambda f: bool(drawable_pairs(f))
    )
}
