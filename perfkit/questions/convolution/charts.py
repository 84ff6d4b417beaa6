"""The chart of what each pair of channel counts reaches, a row each."""

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, INK, Figure, Kind
from perfkit.findings.record import Finding
from perfkit.questions import result_of
from perfkit.questions.convolution import Cell

# No machine does less or more in a second; a file may say anything.
_LEAST, _MOST = 1.0, 1e18
_GIGA = 1e9


def channels(finding: Finding) -> Figure:
    """Draw arithmetic per second at each pair of counts, and its interval."""
    title = "convolution: arithmetic by channel counts"
    cells = _cells(finding)
    if not cells:
        return canvas.message(title, "No channel counts were timed.")
    top = 1.06 * max(cell.speed.rate for cell in cells.values()) / _GIGA
    labels = [(name, (_in_words(cell), "")) for name, cell in cells.items()]

    def draw(axes: Axes) -> None:
        for row, cell in enumerate(cells.values()):
            low, high = (end / _GIGA for end in (cell.speed.low, cell.speed.high))
            rows.bar(axes, row, cell.speed.rate / _GIGA, (BLUE, ""), alpha=0.5)
            axes.hlines(row, min(low, top), min(high, top), colors=INK, lw=2)
        curves.along(axes, top, units.significant, "GFLOP/s")

    words = "; ".join(f"{name}: {speed} GFLOP/s" for name, (speed, _) in labels)
    lines = canvas.caption_lines(["line: the 95 % interval"])
    alt = f"{title}. {words}."
    return rows.picture(title, labels, lines, draw, alt=alt, axis=48)


def _cells(finding: Finding) -> dict[str, Cell]:
    """What can be drawn, by the channels that go in, then by those that come out."""
    cells: dict[str, Cell] = result_of(finding).cells
    ordered = sorted(cells.items(), key=lambda pair: (pair[1].into, pair[1].out))
    return {name: cell for name, cell in ordered if _LEAST < cell.speed.rate < _MOST}


def _in_words(cell: Cell) -> str:
    """Its speed with half its interval: ``"112 ± 3 %"``, or ``"?"``."""
    ends = (cell.speed.rate, cell.speed.low, cell.speed.high)
    return units.spread(*ends, lambda flops: units.significant(flops / _GIGA))


KINDS: dict[str, Kind[Finding]] = {
    "channels": Kind(
        channels, "What each channel count reaches", lambda f: bool(_cells(f))
    ),
}
