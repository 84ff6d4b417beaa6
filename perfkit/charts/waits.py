"""Where does a step's time go? The share of it that each variant spent in each part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, rows, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.svg import INK
from perfkit.findings.standing import standings
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.findings.record import Finding
    from perfkit.measure.trial import Trial

_COLOURS = ((RED, "////"), (BLUE, ""), (GREEN, "...."), (GREY, "xxxx"))
_WORDS = {"input": "waiting for input"}


def waits(finding: Finding) -> Figure:
    """Draw for each variant the shares of its time that it reported, part by part."""
    title = f"{plain(finding.experiment, 40)}: where the time of a step goes"
    known = ((s.variant, _shares(finding, s.variant)) for s in standings(finding))
    shares = {variant: found for variant, found in known if found}
    if not shares:
        return canvas.message(title, "No variant reported where its time goes.")
    parts = list(dict.fromkeys(part for found in shares.values() for part in found))
    parts = parts[: len(_COLOURS)]
    lines = canvas.caption_lines(["light: the rest of the step"])
    inner, height = canvas.frame(len(shares), lines, axis=62)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(variant) for variant in shares]
        axes = rows.axes(drawing, names, inner, right=180)
        for row, found in enumerate(shares.values()):
            _draw_row(axes, row, found, parts)
        _name_parts(axes, parts)
        axes.set_xlim(0, 1)
        scales.put(axes, [0, 0.25, 0.5, 0.75, 1], units.percent)
        axes.set_xlabel("share of the time between two ticks")
        canvas.heading(drawing, title)
        canvas.caption(drawing, lines)

    said = "; ".join(_in_words(variant, found) for variant, found in shares.items())
    return canvas.drawn(height, f"{title}. {said}.", draw)


def _shares(finding: Finding, variant: str) -> dict[str, float]:
    """The share of each part over all completed trials, their first ticks left out."""
    spent, parts = 0.0, dict[str, float]()
    for trial in finding.trials:
        if trial.variant != variant or trial.outcome != "completed":
            continue
        spent += sum(list(_worked(trial))[1:])
        for part, seconds in trial.parts.items():
            parts[part] = parts.get(part, 0.0) + sum(seconds[1:])
    return {part: min(1.0, s / spent) for part, s in parts.items()} if spent > 0 else {}


def _worked(trial: Trial) -> Iterator[float]:
    """Seconds of each tick with examples."""
    for (before, _), (now, examples) in zip(trial.ticks, trial.ticks[1:], strict=False):
        if examples:
            yield now - before


def _draw_row(axes: Axes, row: int, found: dict[str, float], parts: list[str]) -> None:
    axes.barh(row, 1, 0.5, facecolor=INK, alpha=0.12)
    left = 0.0
    for part, (colour, hatch) in zip(parts, _COLOURS, strict=False):
        share = min(found.get(part, 0.0), 1 - left)
        axes.barh(
            row, share, 0.5, left, facecolor=colour, hatch=hatch, edgecolor=INK, lw=0
        )
        left += share
    words = [f"{_part(part)} {units.percent(found.get(part, 0.0))}" for part in parts]
    rows.beside(axes, row, words[0], plain(", ".join(words[1:]), 30), bold=False)


def _name_parts(axes: Axes, parts: list[str]) -> None:
    """A patch and a name for each part, under the axis."""
    left = 0.0
    for part, (colour, hatch) in zip(parts, _COLOURS, strict=False):
        words = _part(part) + (" (hatched)" if hatch else "")
        canvas.note(axes, "■", (0, 0), (left, -48), color=colour)
        canvas.note(axes, words, (0, 0), (left + 15, -48))
        left += 40 + canvas.text_width([words], canvas.SMALL)


def _part(part: str) -> str:
    return _WORDS.get(part, plain(part, 24))


def _in_words(variant: str, found: dict[str, float]) -> str:
    parts = ", ".join(
        f"{_part(p)} {units.percent(share)}" for p, share in found.items()
    )
    return f"{plain(variant, 60)}: {parts}"
