"""Parts of a whole: where the time of a step goes."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import INK, RED, Figure
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings, time_shares


def waits(finding: Finding) -> Figure:
    """Draw for each variant the share of its time that it waits for its input."""
    title = f"{finding.experiment}: where the time of a step goes"
    shares = dict[str, float]()
    for name in (standing.variant for standing in standings(finding)):
        parts = time_shares(t for t in finding.trials if t.variant == name)
        if "input" in parts:
            shares[name] = parts["input"]

    def draw(axes: Axes) -> None:
        for row, share in enumerate(shares.values()):
            axes.barh(row, 1, 0.5, facecolor=INK, alpha=0.12)
            # With a hatch, so that no meaning hangs on the colour alone.
            axes.barh(row, share, 0.5, facecolor=RED, hatch="////", edgecolor=INK, lw=0)
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the measured time")

    labels = [
        (name, (f"waiting for input {units.percent(share)}", ""))
        for name, share in shares.items()
    ]
    lines = canvas.caption_lines(["light: the rest of the step"])
    return rows.picture(title, labels, lines, draw)
