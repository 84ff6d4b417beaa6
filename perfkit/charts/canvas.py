"""What all charts are drawn on: sizes in pixels, colours that any theme can carry."""

from __future__ import annotations

import hashlib
import io
import textwrap
import threading
import warnings
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Drawing

from perfkit.charts.figure import Figure
from perfkit.charts.svg import INK, fitted
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from perfkit.findings.record import Finding

# Readers with any colour vision tell them apart, and they stand out, 3 to 1, from white
# and from black alike.
BLUE, GREEN, RED, GREY = "#0173b2", "#029e73", "#d55e00", "#949494"

WIDTH = 760
ROW = 32
TEXT, SMALL = 12.0, 10.5
# Of an average character of the text, as wide fonts have it.
_CHARACTER = 0.56
_BETWEEN = "  ·  "
_TOP, _CAPTION_LINE = 34, 16
# Matplotlib reads some of its settings from one table for all threads.
_lock = threading.Lock()
_SETTINGS: dict[str, Any] = {
    # A reader's own style changes none of these.
    **dict.fromkeys(("xtick.direction", "ytick.direction"), "out"),
    **dict.fromkeys(("xtick.top", "ytick.right", "axes.grid"), False),
    "font.family": "sans-serif",
    "font.sans-serif": ["Arial", "DejaVu Sans", "Liberation Sans", "sans-serif"],
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "white",
    "patch.force_edgecolor": True,
    "grid.linestyle": "-",
    "svg.fonttype": "none",
    # Names come from files: a dollar sign in them is no formula.
    "text.parse_math": False,
    "font.size": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": TEXT,
    "axes.labelsize": SMALL,
    "hatch.linewidth": 0.8,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color"), INK
    ),
    **dict.fromkeys(("ytick.color", "hatch.color", "grid.color"), INK),
}


def drawn(height: float, alt: str, draw: Callable[[Drawing], None]) -> Figure:
    """Draw a picture of ``WIDTH`` by ``height`` pixels.

    Args:
        height: Pixels.
        alt: What the picture shows, in words.
        draw: Fills the drawing; one pixel is one point.
    """
    salt = hashlib.sha256(alt.encode()).hexdigest()
    settings: Any = _SETTINGS | {"svg.hashsalt": salt}
    raw = io.StringIO()
    with _lock, mpl.rc_context(settings), warnings.catch_warnings():
        # The reader's browser has glyphs that the font measured with does not have.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        drawing = Drawing(figsize=(WIDTH / 72, height / 72), dpi=72)
        FigureCanvasSVG(drawing)
        draw(drawing)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawing.savefig(raw, format="svg", metadata=nothing, transparent=True)
    return Figure(fitted(raw.getvalue(), alt), alt)


def message(title: str, words: str) -> Figure:
    """A picture for where there is nothing to draw: it says why."""

    def draw(drawing: Drawing) -> None:
        heading(drawing, title)
        drawing.text(12 / WIDTH, 0.25, words, fontsize=TEXT)

    return drawn(70, f"{title}. {words}", draw)


def place(
    drawing: Drawing, left: float, top: float, width: float, height: float
) -> Axes:
    """Axes at a place that is given in pixels from the upper left corner."""
    wide, high = (72 * inches for inches in drawing.get_size_inches())
    box = (left / wide, 1 - (top + height) / high, width / wide, height / high)
    axes = drawing.add_axes(box)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=4, width=0.8)
    axes.spines["bottom"].set_linewidth(0.8)
    axes.grid(axis="x", alpha=0.15, lw=0.8)
    axes.set_axisbelow(True)
    return axes


def heading(drawing: Drawing, text: str) -> None:
    """What the picture is about, at its top."""
    high = 72 * drawing.get_size_inches()[1]
    drawing.text(12 / WIDTH, 1 - 20 / high, text, fontsize=13, fontweight="bold")


def caption(drawing: Drawing, lines: Sequence[str]) -> None:
    """What the marks mean, at the bottom."""
    high = 72 * drawing.get_size_inches()[1]
    for number, line in enumerate(reversed(lines)):
        bottom = (8 + number * _CAPTION_LINE) / high
        drawing.text(12 / WIDTH, bottom, line, fontsize=SMALL)


def origin(finding: Finding) -> str:
    """The machine and the day of a finding, for a caption."""
    return f"{plain(finding.machine.summary, 160)}, {plain(finding.recorded[:10])}"


def caption_lines(parts: Sequence[str]) -> list[str]:
    """Put the parts of a caption into lines that fit, whole where they can be."""
    longest = int((WIDTH - 24) / (SMALL * _CHARACTER))
    lines = [""]
    for part in (piece for text in parts for piece in textwrap.wrap(text, longest)):
        joined = f"{lines[-1]}{_BETWEEN}{part}" if lines[-1] else part
        if len(joined) > longest:
            lines.append(part)
        else:
            lines[-1] = joined
    return [line for line in lines if line]


def note(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    shift: tuple[float, float],
    *,
    in_row: bool = False,
    **style: Any,
) -> None:
    """Text beside the axes.

    Args:
        axes: Where.
        text: What.
        at: The point it belongs to, in fractions of the axes.
        shift: Pixels to the right of that point and up.
        in_row: Whether the second number of ``at`` is a row instead.
        **style: As of ``Axes.annotate``.
    """
    vertical = "data" if in_row else "axes fraction"
    usual: dict[str, Any] = {"va": "center", "fontsize": SMALL}
    axes.annotate(
        text,
        at,
        xycoords=("axes fraction", vertical),
        xytext=shift,
        textcoords="offset points",
        **usual | style,
    )


def frame(rows: float, lines: Sequence[str], axis: float = 40) -> tuple[float, float]:
    """Height of the axes and of the picture that hold ``rows`` and a caption."""
    inner = max(1.0, rows) * ROW
    return inner, _TOP + inner + axis + len(lines) * _CAPTION_LINE + 8


def text_width(texts: Sequence[str], size: float = TEXT) -> float:
    """Pixels that the longest of some texts takes, at most."""
    return max((len(text) for text in texts), default=0) * size * _CHARACTER


TOP = _TOP
