"""Charts that give each variant a row: its name, a place to draw, its numbers."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit.charts import canvas
from perfkit.charts.canvas import SMALL, TEXT, Figure
from perfkit.charts.layout import row_in_words
from perfkit.findings.text import plain

_LONGEST_NAME = 34
_GAP = 12
# The axes begin at least so far from the left: below them stand numbers and a word.
_LEAST_NAME = "the machine"


def picture(
    title: str,
    labels: Sequence[tuple[str, tuple[str, str]]],
    lines: list[str],
    draw: Callable[[Axes], None],
    *,
    alt: str = "",
    height: float = 1.0,
    right: float | None = None,
    bold: Iterable[str] = (),
) -> Figure:
    """A picture with a row per name, above the lines of its caption.

    A label is a name, and the words to the right of the row and below these, which
    stand out if they are ``bold``. They have ``right`` pixels; None for what they need.
    A row is ``height`` times as high as usual. ``alt`` is for who cannot see the
    picture; "" for each row's name and words.
    """
    inner = max(1.0, len(labels) * height) * canvas.ROW
    outer = canvas.height(inner, lines)

    def put(drawing: Drawing) -> None:
        names = [name(variant) for variant, _ in labels]
        wide = _room([words for _, words in labels]) if right is None else right
        panel = axes(drawing, names, inner, right=wide)
        for row, (variant, words) in enumerate(labels):
            beside(panel, row, *words, bold=variant in bold)
        draw(panel)

    alt = alt or in_words(title, [row_in_words(row, *words) for row, words in labels])
    return canvas.paint(title, lines, outer, alt, put)


def in_words(title: str, rows: Iterable[str]) -> str:
    """A picture for who cannot see it: its title, and a clause for each row."""
    return f"{title}. {'; '.join(rows)}."


def name(variant: str) -> str:
    """A variant's name as it fits beside its row."""
    return plain(variant, _LONGEST_NAME)


def margin(names: Sequence[str]) -> float:
    """Pixels before the axes."""
    return 12 + canvas.text_width([*names, _LEAST_NAME]) + _GAP


def axes(drawing: Drawing, names: Sequence[str], height: float, right: float) -> Axes:
    """Axes with a row per name, the first on top, and ``right`` pixels for numbers."""
    before = margin(names)
    wide = canvas.WIDTH - before - right
    panel = canvas.place(drawing, before, canvas.TOP, wide, height)
    panel.set_ylim(max(1, len(names)) - 0.5, -0.5)
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", pad=_GAP)
    return panel


def _room(labels: Sequence[tuple[str, str]]) -> float:
    """Pixels that the numbers beside the rows need, each with its second line."""
    words = canvas.text_width([words for words, _ in labels], TEXT)
    details = canvas.text_width([details for _, details in labels], SMALL)
    return max(words, details, 60) + 2 * _GAP


def beside(
    axes: Axes, row: float, words: str, detail: str = "", *, bold: bool = False
) -> None:
    """Numbers to the right of a row, with a second line in small."""
    weight = "bold" if bold else "normal"
    up = 7 if detail else 0
    for text, size, shift in ((words, TEXT, up), (detail, SMALL, up - 14)):
        style: Any = {"fontsize": size, "fontweight": weight}
        canvas.note(axes, text, (1, row), (_GAP, shift), in_row=True, **style)


def within(axes: Axes, row: float, words: str) -> None:
    """A sentence in place of what cannot be drawn, with a cross before it."""
    canvas.note(axes, "\u2715", (0, row), (4, 0), in_row=True, color=canvas.RED)
    room = canvas.WIDTH * (1 - axes.get_position().x0) - 30
    lines = textwrap.wrap(words, int(room / canvas.text_width(["n"], canvas.SMALL)))
    canvas.note(axes, "\n".join(lines), (0, row), (20, 0), in_row=True)
