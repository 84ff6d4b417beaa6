"""What all charts are drawn on: sizes in pixels, colours that any theme can carry."""

import functools
import hashlib
import io
import textwrap
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from perfkit.charts.figure import INK, SVG, Figure, fitted
from perfkit.findings.record import Finding
from perfkit.findings.text import plain

# Readers with any colour vision tell them apart, and they stand out, 3 to 1, from white
# and from black alike.
BLUE, GREEN, RED, GREY = "#0173b2", "#029e73", "#d55e00", "#949494"
# Marker, filled, colour: a verdict is told apart by its shape as well.
MARKS = {
    "faster": (">", True, GREEN),
    "slower": ("<", True, RED),
    "no difference shown": ("o", True, GREY),
    "too noisy to say": ("o", False, GREY),
}

# Every chart has this width; where there is less room its box shrinks it a little, so
# that no text is smaller than 9 pixels, and then scrolls.
WIDTH = 760
ROW = 34
TEXT, SMALL = 13.0, 12.0
# Of an average character of the text, as wide fonts have it.
_CANVAS_CHARACTER = 0.56
# Of an average bold character.
_STAMP_CHARACTER = 0.62
_HEADING = 14.0
_BETWEEN = "  ·  "
TOP, _CAPTION_LINE = 34, 18
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


def drawn(
    title: str,
    lines: Sequence[str],
    height: float,
    alt: str,
    draw: Callable[[Drawing], None],
) -> Figure:
    """Draw a picture of ``WIDTH`` by ``height`` pixels, and what stands around it.

    Args:
        title: What the picture is about, at its top.
        lines: Of the caption: what the marks mean, at the bottom.
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
        _head(drawing, title)
        draw(drawing)
        _caption(drawing, lines)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawing.savefig(raw, format="svg", metadata=nothing, transparent=True)
    return Figure(fitted(raw.getvalue(), alt), alt)


def message(title: str, words: str) -> Figure:
    """A picture for where there is nothing to draw: it says why."""

    def draw(drawing: Drawing) -> None:
        drawing.text(12 / WIDTH, 0.25, words, fontsize=TEXT)

    return drawn(title, [], 70, f"{title}. {words}", draw)


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


def _head(drawing: Drawing, text: str) -> None:
    high = 72 * drawing.get_size_inches()[1]
    _, colon, rest = text.partition(": ")
    if colon and len(text) * _HEADING * _STAMP_CHARACTER > WIDTH - 24:
        # Whatever it is about stands above the picture as well.
        text = f"{rest[:1].upper()}{rest[1:]}"
    at = 12 / WIDTH, 1 - 20 / high
    drawing.text(*at, text, fontsize=_HEADING, fontweight="bold")


def _caption(drawing: Drawing, lines: Sequence[str]) -> None:
    high = 72 * drawing.get_size_inches()[1]
    for number, line in enumerate(reversed(lines)):
        bottom = (8 + number * _CAPTION_LINE) / high
        drawing.text(12 / WIDTH, bottom, line, fontsize=SMALL)


def origin(finding: Finding) -> str:
    """The machine and the day of a finding, for a caption."""
    return f"{plain(finding.machine.summary, 160)}, {plain(finding.recorded[:10])}"


def caption_lines(parts: Sequence[str]) -> list[str]:
    """Put the parts of a caption into lines that fit, whole where they can be."""
    longest = int((WIDTH - 24) / (SMALL * _CANVAS_CHARACTER))
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
    return inner, TOP + inner + axis + len(lines) * _CAPTION_LINE + 8


def text_width(texts: Sequence[str], size: float = TEXT) -> float:
    """Pixels that the longest of some texts takes, at most."""
    return size * max(map(_ems, texts), default=0.0)


@functools.lru_cache(maxsize=4096)
def _ems(text: str) -> float:
    """The width in Matplotlib's own letters, wider than most; capitals are widest."""
    one = FontProperties(size=100)
    return text_to_path.get_text_width_height_descent(text, one, False)[0] / 100


_LINE, _PAD = 18, 8


def stamped(figure: Figure, words: str) -> Figure:
    """Put a band on top of a picture: a sentence, in lines as long as that is wide."""
    root = ElementTree.fromstring(figure.svg)
    left, top, wide, height = map(float, root.get("viewBox", "").split())
    longest = int((wide - 4 * _PAD) / (SMALL * _STAMP_CHARACTER))
    lines = textwrap.wrap(words, longest)
    high = len(lines) * _LINE + 2 * _PAD
    root.set("viewBox", f"{left:g} {top - high:g} {wide:g} {height + high:g}")
    root.set("height", f"{float(root.get('height', height)) + high:g}")
    alt = f"{words} {figure.alt}"
    root.set("aria-label", alt)
    # What comes first in a drawing lies below the rest; nothing else is up here.
    root.append(_band(lines, top - high, wide, high))
    ElementTree.register_namespace("", SVG)
    return Figure(ElementTree.tostring(root, encoding="unicode"), alt)


def _band(
    lines: list[str], top: float, wide: float, high: float
) -> ElementTree.Element:
    band = ElementTree.Element(f"{{{SVG}}}g")
    place = {"x": "1", "y": f"{top + 1:g}", "width": f"{wide - 2:g}"}
    look = "fill:none;stroke:currentColor;stroke-width:1.5"
    frame = place | {"height": f"{high - _PAD + 2:g}", "style": look}
    ElementTree.SubElement(band, f"{{{SVG}}}rect", frame)
    font = f"font-size:{SMALL}px;font-weight:bold;font-family:system-ui, sans-serif"
    for number, line in enumerate(lines):
        at = {"x": f"{_PAD}", "y": f"{top + (number + 1) * _LINE:g}"}
        text = ElementTree.SubElement(
            band, f"{{{SVG}}}text", at | {"style": f"{font};fill:currentColor"}
        )
        text.text = line
    return band
