"""The chart of what each pair of channel counts reaches, a cell each."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from perfkit import units
from perfkit.charts import canvas
from perfkit.charts.canvas import BLUE, INK, SMALL, WIDTH, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.questions import result_of
from perfkit.questions.convolution.channels import Cell

_LEFT, _RIGHT = 150, 24
_CELL = 46
# No machine does as much in a second; a file may say anything.
_LARGEST = 1e18
# Text stays readable on the darkest cell, in a light theme and in a dark one.
_LIGHTEST, _DARKEST = 0.04, 0.6
# What runs at this share of the best, or below, is lightest.
_LEAST = 0.5
_MULTIPLE = 8


def channels(finding: Finding) -> Figure:
    """Draw arithmetic per second by channels in and out, darker being faster."""
    title = "convolution: arithmetic by channel counts"
    cells = _cells(finding)
    if not cells:
        return canvas.message(title, "No channel counts were timed.")
    into = sorted({cell.into for cell in cells})
    out = sorted({cell.out for cell in cells})
    darkness = f"darkest: the most; lightest: {units.percent(_LEAST)} of that or less"
    lines = canvas.caption_lines(
        ["number: GFLOP/s, and half its 95 % interval", darkness]
    )
    inner = _CELL * len(into)
    best = max(cell.speed.rate for cell in cells)

    def draw(drawing: Drawing) -> None:
        width = WIDTH - _LEFT - _RIGHT
        axes = canvas.place(drawing, _LEFT, canvas.TOP, width, inner)
        axes.grid(visible=False)
        axes.set_xlim(-0.5, len(out) - 0.5)
        axes.set_ylim(len(into) - 0.5, -0.5)
        axes.set_xticks(range(len(out)), list(map(_count, out)))
        axes.set_yticks(range(len(into)), list(map(_count, into)))
        axes.tick_params(length=0, labelsize=SMALL)
        axes.spines["bottom"].set_visible(False)
        axes.set_xlabel("channels that come out (filters)")
        axes.set_ylabel("channels that go in")
        for cell in cells:
            _draw_cell(axes, cell, (out.index(cell.out), into.index(cell.into)), best)

    words = "; ".join(
        f"{cell.into} in, {cell.out} out: {_gigaflops(cell, ' GFLOP/s')}"
        for cell in cells
    )
    height = canvas.TOP + inner + 48 + 16 * len(lines) + 8
    return canvas.paint(title, lines, height, f"{title}. {words}.", draw)


def _cells(finding: Finding) -> list[Cell]:
    """What can be drawn."""
    cells: dict[str, Cell] = result_of(finding).cells
    return [cell for cell in cells.values() if 0 < cell.speed.rate < _LARGEST]


def _gigaflops(cell: Cell, unit: str = "") -> str:
    """Its speed with half its interval: ``"112 ± 3 %"``, or ``"?"``."""
    ends = (cell.speed.rate, cell.speed.low, cell.speed.high)
    return units.spread(*ends, lambda s: f"{units.significant(s / 1e9)}{unit}")


def _draw_cell(axes: Axes, cell: Cell, at: tuple[int, int], best: float) -> None:
    share = max(0.0, (cell.speed.rate / best - _LEAST) / (1 - _LEAST))
    alpha = _LIGHTEST + (_DARKEST - _LIGHTEST) * share
    corner = (at[0] - 0.48, at[1] - 0.46)
    axes.add_patch(Rectangle(corner, 0.96, 0.92, facecolor=BLUE, alpha=alpha, lw=0))
    style: Any = {"textcoords": "offset points", "ha": "center", "va": "center"}
    number, _, interval = _gigaflops(cell).partition(" ")
    for words, shift in ((number, 7), (interval, -9)):
        axes.annotate(words, at, (0, shift), fontsize=SMALL, color=INK, **style)


def _count(number: int) -> str:
    times, remainder = divmod(number, _MULTIPLE)
    return f"{number} = {_MULTIPLE} × {times}" if not remainder else str(number)


KINDS: dict[str, Kind[Finding]] = {
    "channels": Kind(
        channels, "What each channel count reaches", lambda f: bool(_cells(f))
    ),
}
