"""Parts of a whole: where the time of a step goes."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import INK, RED, Figure
from perfkit.engine.trial import waits_of
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings


def waits(finding: Finding) -> Figure:
    """Draw for each variant the share of its time that it waits for its input."""
    title = f"{finding.experiment}: where the time of a step goes"
    known = waits_of(finding.trials)
    ranked = [s.variant for s in standings(finding) if s.variant in known]
    if not ranked:
        return canvas.message(title, "No variant reported where its time goes.")
    shares = [min(1.0, known[name]) for name in ranked]

    def draw(axes: Axes) -> None:
        places = range(len(ranked))
        axes.barh(places, [1.0] * len(ranked), 0.5, facecolor=INK, alpha=0.12)
        # With a hatch, so that no meaning hangs on the colour alone.
        axes.barh(places, shares, 0.5, facecolor=RED, hatch="////", edgecolor=INK, lw=0)
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the measured time")

    words = [f"waiting for input {units.percent(share)}" for share in shares]
    labels = [(name, (text, "")) for name, text in zip(ranked, words, strict=True)]
    lines = canvas.caption_lines(["light: the rest of the step"])
    return rows.picture(title, labels, lines, draw, right=205)
