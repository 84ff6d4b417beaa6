"""The chart of what counters and steps show."""

import math
import statistics

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit.charts import canvas, rows
from perfkit.charts.canvas import BLUE, GREY, INK, SMALL, WIDTH, Figure, Kind
from perfkit.experiments.contention.signs import QUIET, SIGNS, Sign, values
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import plain

Read = dict[str, dict[Sign, dict[int, float]]]

_ROW, _ABOVE, _BELOW = 22, 26, 12
_ABREAST = 3
# Beside a bar its number needs so many pixels.
_NUMBER = 78


def signs(finding: Finding) -> Figure:
    """Draw each sign's mean over the rounds, a bar per variant and a dot per round."""
    title = f"{plain(finding.experiment, 40)}: what the counters and the steps show"
    read = _read(finding)
    if not read:
        return canvas.message(title, "No variant was sampled for long enough.")
    shown = [sign for sign in SIGNS if any(sign in found for found in read.values())]
    lines = canvas.caption_lines(["bar: mean over the rounds", "dot: one round"])
    inner = len(read) * _ROW
    stripes = math.ceil(len(shown) / _ABREAST)
    stripe = _ABOVE + inner + _BELOW
    height = canvas.TOP + stripes * stripe + 16 * len(lines) + 8

    def draw(drawing: Drawing) -> None:
        names = [rows.name(variant) for variant in read]
        left = 12 + canvas.text_width(names) + 12
        wide = (WIDTH - left) / _ABREAST
        for number, sign in enumerate(shown):
            down, across = divmod(number, _ABREAST)
            top = canvas.TOP + down * stripe + _ABOVE
            axes = canvas.place(
                drawing, left + across * wide, top, wide - _NUMBER, inner
            )
            _draw(axes, sign, read)
            labels = names if across == 0 else [""] * len(names)
            axes.set_yticks(range(len(names)), labels)

    said = "; ".join(_in_words(variant, found) for variant, found in read.items())
    return canvas.drawn(title, lines, height, f"{title}. {said}.", draw)


def _read(finding: Finding) -> Read:
    """What was read of each variant, the quiet training first."""
    names = [standing.variant for standing in standings(finding)]
    names.sort(key=lambda name: name != QUIET)
    found = {name: values(finding, name) for name in dict.fromkeys(names)}
    return {name: known for name, known in found.items() if known}


def _draw(axes: Axes, sign: Sign, read: Read) -> None:
    found = [known.get(sign, {}) for known in read.values()]
    most = max(value for known in found for value in known.values())
    axes.set_ylim(len(read) - 0.5, -0.5)
    axes.set_xlim(0, most * 1.02 or 1.0)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.axvline(0, color=INK, lw=0.8)
    for row, (variant, known) in enumerate(zip(read, found, strict=True)):
        if not known:
            canvas.note(axes, "not told", (0, row), (4, 0), in_row=True)
            continue
        mean = statistics.fmean(known.values())
        axes.barh(row, mean, 0.62, color=GREY if variant == QUIET else BLUE, alpha=0.75)
        axes.plot(
            list(known.values()), [row] * len(known), ".", color=INK, ms=3.5, alpha=0.7
        )
        words = sign.write(mean)
        canvas.note(axes, words, (1, row), (6, 0), in_row=True)
    canvas.note(axes, sign.name, (0, 1), (0, 10), fontsize=SMALL, fontweight="bold")


def _in_words(variant: str, found: dict[Sign, dict[int, float]]) -> str:
    said = [
        f"{sign.name} {sign.write(statistics.fmean(known.values()))}"
        for sign, known in found.items()
    ]
    return f"{plain(variant, 60)}: {', '.join(said)}"


KINDS: dict[str, Kind[Finding]] = {
    "signs": Kind(
        signs,
        "What the counters and the steps show",
        lambda f: bool(_read(f)),
        leads=True,
    ),
}
