"""The chart of what each channel count reaches."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from perfkit import units
from perfkit.charts import canvas
from perfkit.charts.canvas import BLUE, INK, SMALL, WIDTH, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.findings.text import plain

_LEFT, _RIGHT = 150, 24
_CELL = 46
# More counts than a picture can hold are no sweep around a count.
_MOST = 12
_SOUND = 1e18
# Text stays readable on the darkest cell, in a light theme and in a dark one.
_LIGHTEST, _DARKEST = 0.04, 0.6
# What runs at this share of the best, or below, is lightest.
_LEAST = 0.5
_MULTIPLE = 8


@dataclass(frozen=True)
class Cell:
    """One pair of channel counts, and how fast a convolution with them is.

    Attributes:
        into: Channels that go in.
        out: Channels that come out.
        speed: Arithmetic per second.
        gigaflops: The same as a reader sees it.
        interval: Half the 95 % interval as a share of it, in words.
    """

    into: int
    out: int
    speed: float
    gigaflops: str
    interval: str


def channels(finding: Finding) -> Figure:
    """Draw arithmetic per second by channels in and out, darker being faster."""
    title = f"{plain(finding.experiment, 40)}: arithmetic by channel counts"
    cells = _cells(finding)
    if not cells:
        return canvas.message(title, "No variant tells its channel counts.")
    rows = sorted({cell.into for cell in cells})[:_MOST]
    columns = sorted({cell.out for cell in cells})[:_MOST]
    darkness = f"darkest: the most; lightest: {units.percent(_LEAST)} of that or less"
    lines = canvas.caption_lines(
        ["number: GFLOP/s, and half its 95 % interval", darkness]
    )
    inner = _CELL * len(rows)
    height = canvas.TOP + inner + 48 + 16 * len(lines) + 8
    best = max(cell.speed for cell in cells)

    def draw(drawing: Drawing) -> None:
        width = WIDTH - _LEFT - _RIGHT
        axes = canvas.place(drawing, _LEFT, canvas.TOP, width, inner)
        _set_counts(axes, rows, columns)
        for cell in cells:
            if cell.into in rows and cell.out in columns:
                at = (columns.index(cell.out), rows.index(cell.into))
                _draw_cell(axes, cell, at, best)

    words = "; ".join(
        f"{cell.into} in, {cell.out} out: {cell.gigaflops} GFLOP/s {cell.interval}"
        for cell in cells
    )
    return canvas.paint(title, lines, height, f"{title}. {words}.", draw)


def _cells(finding: Finding) -> list[Cell]:
    """What can be drawn; a file may hold anything."""
    cells = []
    for timing in finding.timings:
        try:
            note = finding.notes["channels"][timing.variant]
            into, out, flops = (float(note[key]) for key in ("in", "out", "flops"))
        except (KeyError, OverflowError, TypeError, ValueError):
            continue
        speed = timing.rate * flops
        counts = 0 < into < _SOUND and 0 < out < _SOUND
        if counts and 1 / _SOUND < speed < _SOUND and timing.low > 0:
            share = (timing.high / timing.low) ** 0.5 - 1
            interval = f"± {units.percent(share)}" if share < 1 else "(hardly known)"
            gigaflops = units.significant(speed / 1e9)
            cells.append(Cell(int(into), int(out), speed, gigaflops, interval))
    return cells


def _set_counts(axes: Axes, rows: list[int], columns: list[int]) -> None:
    axes.grid(visible=False)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [_count(number) for number in columns])
    axes.set_yticks(range(len(rows)), [_count(number) for number in rows])
    axes.tick_params(length=0, labelsize=SMALL)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlabel("channels that come out (filters)")
    axes.set_ylabel("channels that go in")


def _draw_cell(axes: Axes, cell: Cell, at: tuple[int, int], best: float) -> None:
    share = max(0.0, (cell.speed / best - _LEAST) / (1 - _LEAST))
    alpha = _LIGHTEST + (_DARKEST - _LIGHTEST) * share
    corner = (at[0] - 0.48, at[1] - 0.46)
    axes.add_patch(Rectangle(corner, 0.96, 0.92, facecolor=BLUE, alpha=alpha, lw=0))
    style: Any = {"textcoords": "offset points", "ha": "center", "va": "center"}
    for words, shift in ((cell.gigaflops, 7), (cell.interval, -9)):
        axes.annotate(words, at, (0, shift), fontsize=SMALL, color=INK, **style)


def _count(number: int) -> str:
    times, remainder = divmod(number, _MULTIPLE)
    return f"{number} = {_MULTIPLE} × {times}" if not remainder else str(number)


KINDS: dict[str, Kind[Finding]] = {
    "channels": Kind(
        channels, "What each channel count reaches", lambda f: bool(_cells(f))
    ),
}
