"""Charts that give each variant a row: its name, a place to draw, its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.charts import canvas
from perfkit.charts.canvas import SMALL, TEXT, WIDTH
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_LONGEST_NAME = 34
_GAP = 12
MACHINE = "the machine"


def name(variant: str) -> str:
    """A variant's name as it fits beside its row."""
    return plain(variant, _LONGEST_NAME)


def left(names: Sequence[str]) -> float:
    """Pixels before the axes; what stands below them is named there as well."""
    return 12 + canvas.text_width([*names, MACHINE]) + _GAP


def axes(drawing: Drawing, names: Sequence[str], height: float, right: float) -> Axes:
    """Axes with a row per name, the first on top, and ``right`` pixels for numbers."""
    before = left(names)
    made = canvas.place(drawing, before, canvas.TOP, WIDTH - before - right, height)
    made.set_ylim(max(1, len(names)) - 0.5, -0.5)
    made.set_yticks(range(len(names)), names)
    made.tick_params(axis="y", pad=_GAP)
    return made


def room(said: Sequence[tuple[str, str]]) -> float:
    """Pixels that the numbers beside the rows need, each with its second line."""
    words = canvas.text_width([words for words, _ in said], TEXT)
    more = canvas.text_width([more for _, more in said], SMALL)
    return max(words, more, 60) + 2 * _GAP


def beside(
    axes: Axes, row: float, words: str, more: str = "", *, bold: bool = False
) -> None:
    """Numbers to the right of a row, with a second line in small."""
    weight = "bold" if bold else "normal"
    up = 6 if more else 0
    for text, size, shift in ((words, TEXT, up), (more, SMALL, up - 13)):
        if text:
            canvas.note(
                axes,
                text,
                (1, row),
                (_GAP, shift),
                in_row=True,
                fontsize=size,
                fontweight=weight,
            )


def within(axes: Axes, row: float, words: str) -> None:
    """A sentence in place of what cannot be drawn, with a cross before it."""
    canvas.note(axes, "\u2715", (0, row), (4, 0), in_row=True, color=canvas.RED)
    canvas.note(axes, words, (0, row), (20, 0), in_row=True)
