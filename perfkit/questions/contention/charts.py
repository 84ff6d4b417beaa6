"""The chart of what counters and steps show."""

import math
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit.charts import canvas, rows
from perfkit.charts.canvas import BLUE, GREY, INK, SMALL, WIDTH, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.findings.text import one_line
from perfkit.questions import result_of
from perfkit.questions.contention import QUIET, SIGNS

# Of each variant, each sign's numbers by round.
Signs = dict[str, dict[str, dict[str, float]]]

_ROW, _ABOVE, _BELOW, _ABREAST = 22, 26, 12, 3
# Beside a bar its number needs so many pixels.
_NUMBER = 78


def signs(finding: Finding) -> Figure:
    """Draw each sign's mean over the rounds, a bar per variant and a dot per round."""
    title = f"{one_line(finding.experiment, 40)}: what the counters and the steps show"
    readings: Signs = result_of(finding).signs
    if not readings:
        return canvas.message(title, "No variant was sampled for long enough.")
    panes = [sign for sign in SIGNS if any(sign in row for row in readings.values())]
    lines = canvas.caption_lines(["bar: mean over the rounds", "dot: one round"])
    inner, stripes = len(readings) * _ROW, math.ceil(len(panes) / _ABREAST)
    stripe = _ABOVE + inner + _BELOW
    height = canvas.TOP + stripes * stripe + 16 * len(lines) + 8

    def draw(drawing: Drawing) -> None:
        names = [rows.name(variant) for variant in readings]
        margin = 12 + canvas.text_width(names) + 12
        wide = (WIDTH - margin) / _ABREAST
        for number, sign in enumerate(panes):
            down, across = divmod(number, _ABREAST)
            top, begin = canvas.TOP + down * stripe + _ABOVE, margin + across * wide
            axes = canvas.place(drawing, begin, top, wide - _NUMBER, inner)
            _draw(axes, sign, readings)
            labels = names if across == 0 else [""] * len(names)
            axes.set_yticks(range(len(names)), labels)

    words = []
    for variant, row in readings.items():
        means = [f"{sign} {_mean(sign, rounds)}" for sign, rounds in row.items()]
        words.append(f"{one_line(variant, 60)}: {', '.join(means)}")
    return canvas.paint(title, lines, height, f"{title}. {'; '.join(words)}.", draw)


def _mean(sign: str, rounds: dict[str, float]) -> str:
    return SIGNS[sign].write(fmean(rounds.values()))


def _draw(axes: Axes, sign: str, readings: Signs) -> None:
    peak = max(n for row in readings.values() for n in row.get(sign, {}).values())
    axes.set_ylim(len(readings) - 0.5, -0.5)
    axes.set_xlim(0, peak * 1.02 or 1.0)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.axvline(0, color=INK, lw=0.8)
    for place, (variant, row) in enumerate(readings.items()):
        if sign not in row:
            canvas.note(axes, "not known", (0, place), (4, 0), in_row=True)
            continue
        dots = list(row[sign].values())
        colour = GREY if variant == QUIET else BLUE
        axes.barh(place, fmean(dots), 0.62, color=colour, alpha=0.75)
        axes.plot(dots, [place] * len(dots), ".", color=INK, ms=3.5, alpha=0.7)
        canvas.note(axes, _mean(sign, row[sign]), (1, place), (6, 0), in_row=True)
    canvas.note(axes, sign, (0, 1), (0, 10), fontsize=SMALL, fontweight="bold")


KINDS: dict[str, Kind] = {
    "signs": Kind(
        signs,
        "What the counters and the steps show",
        lambda finding: bool(result_of(finding).signs),
        leads=True,
    )
}
