"""Parts of a whole: where the time of a step goes."""

from typing import Any

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, Figure
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import one_line

# With a hatch each, so that no meaning hangs on the colour alone.
_COLOURS = ((RED, "////"), (BLUE, ""), (GREEN, "----"), (GREY, "xxxx"))


def waits(finding: Finding) -> Figure:
    """Draw for each variant the shares of its time that it reported, part by part."""
    title = f"{finding.experiment}: where the time of a step goes"
    pairs = ((s.variant, _shares(finding, s.variant)) for s in standings(finding))
    shares = {name: by_part for name, by_part in pairs if by_part}
    if not shares:
        return canvas.message(title, "No variant reported where its time goes.")
    parts = list(dict.fromkeys(part for by_part in shares.values() for part in by_part))
    parts = parts[: len(_COLOURS)]

    def draw(axes: Axes) -> None:
        for row, by_part in enumerate(shares.values()):
            axes.barh(row, 1, 0.5, facecolor=INK, alpha=0.12)
            left = 0.0
            for part, (colour, hatch) in zip(parts, _COLOURS, strict=False):
                share = max(0.0, min(by_part.get(part, 0.0), 1 - left))
                style: Any = {"facecolor": colour, "hatch": hatch, "edgecolor": INK}
                axes.barh(row, share, 0.5, left, lw=0, **style)
                left += share
        axes.set_xlim(0, 1)
        curves.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the measured time")

    labels = []
    for name, by_part in shares.items():
        words = [f"{_part(p)} {units.percent(by_part.get(p, 0.0))}" for p in parts]
        labels.append((name, (words[0], one_line(", ".join(words[1:]), 30))))
    lines = canvas.caption_lines(["light: the rest of the step"])
    return rows.picture(title, labels, lines, draw, right=205)


def _shares(finding: Finding, variant: str) -> dict[str, float]:
    """The share of each part over all completed trials, their first ticks left out."""
    spent, parts = 0.0, dict[str, float]()
    for trial in finding.trials:
        if trial.variant != variant or trial.outcome != "completed":
            continue
        spent += sum(ended - began for began, ended, _ in trial.worked[1:])
        for part, seconds in trial.parts.items():
            parts[part] = parts.get(part, 0.0) + sum(seconds[1:])
    return {part: min(1.0, s / spent) for part, s in parts.items()} if spent > 0 else {}


def _part(part: str) -> str:
    return "waiting for input" if part == "input" else one_line(part, 24)
