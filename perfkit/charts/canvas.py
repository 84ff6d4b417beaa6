"""Finished pictures, and what they are drawn on.

A picture is SVG for the eye and a text for who cannot see it; sizes are pixels, and its
colours are such that any theme can carry them.
"""

import functools
import hashlib
import io
import re
import secrets
import textwrap
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from perfkit.findings.record import Finding
from perfkit.findings.text import plain, printable

# A colour that stands for the page's own: text, axes, outlines.
INK = "#010203"

SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBERS = ("d", "x", "y", "width", "height", "points", "transform")
_FONT = re.compile(r"font-family:[^;]*")
# Where it is the root of a document it is a picture, in an <img> or a file; no page
# gives it colours then. The selector does not hold within a page.
_STYLE = """
svg.perfkit-chart:root{color:#1a1a1a;background:#fff}
@media(prefers-color-scheme:dark){svg.perfkit-chart:root{color:#e8e8e8;background:#111}}
"""


def fitted(raw: str, alt: str) -> str:
    """Make a page's picture, described by ``alt``, of Matplotlib's SVG with text."""
    root = ElementTree.fromstring(raw)
    for parent in list(root.iter()):
        for child in list(parent):
            kind = child.tag.rpartition("}")[2]
            invisible = kind == "path" and child.get("style") == "fill: none"
            if invisible or kind in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        _clean(element)
    values = [value for element in root.iter() for value in element.attrib.values()]
    used_ids = set(re.findall(r"url\(#([^)]+)\)", " ".join(values)))
    used_ids |= {element.get("href", "").removeprefix("#") for element in root.iter()}
    for element in root.iter():
        if element.get("id", "") not in used_ids:
            element.attrib.pop("id", None)
    root.attrib.pop("version", None)
    root.attrib |= {
        "class": "perfkit-chart",
        "role": "img",
        "aria-label": alt,
        "width": root.get("width", "").removesuffix("pt"),
        "height": root.get("height", "").removesuffix("pt"),
        "style": "max-width:100%;height:auto",
        # Matplotlib sets these for all elements of the page that the picture is in.
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    style = Element(f"{{{SVG}}}style")
    style.text = _STYLE.strip()
    root.insert(0, style)
    ElementTree.register_namespace("", SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text)


def _clean(element: Element) -> None:
    if _HREF in element.attrib:
        element.set("href", element.attrib.pop(_HREF))
    style = _FONT.sub("font-family: system-ui, sans-serif", element.get("style", ""))
    if style:
        style = style.replace(INK, "currentColor").replace("; ", ";").replace(": ", ":")
        element.set("style", style)
    if element.tag.endswith("}text") and "rotate(-0" in element.get("transform", ""):
        del element.attrib["transform"]
    for name in _NUMBERS:
        if name in element.attrib:
            element.set(name, _short(element.attrib[name]))


def _short(numbers: str) -> str:
    rounded = re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.1f}", numbers)
    without_zeros = re.sub(r"(\d)\.0\b", r"\1", rounded)
    # A letter of a path needs no blank beside it.
    return re.sub(r" ?\b([MLCQz])\b ?", r"\1", " ".join(without_zeros.split()))


# What can be scrolled must be reached by keyboard as well. A picture of 760 px that is
# shrunk to 576 has text of 9 px; where there is less room the box scrolls.
_SCROLLED = (
    '<div class="perfkit-scroll" tabindex="0" style="overflow-x:auto">'
    '<div style="min-width:576px">{}</div></div>'
)
_IDS = re.compile(r'\bid="|url\(#|\bhref="#')


@dataclass(frozen=True, repr=False)
class Figure:
    """A chart as it is shown and kept, and in words what it shows.

    Within a page the SVG takes over the page's colours; as a picture of its own it
    brings a light or a dark background along.
    """

    svg: str
    alt: str

    def in_page(self, prefix: str = "") -> str:
        """The picture for a page that may hold it twice.

        A browser takes the first element of an id. If that lies in a part of the page
        that is folded away, what refers to it, such as a hatched area, is not drawn. So
        each call gives ids of its own: they begin with ``prefix``, or at random.
        """
        prefix = prefix or f"i{secrets.token_hex(4)}"
        return _SCROLLED.format(_IDS.sub(rf"\g<0>{prefix}", self.svg))

    def save(self, path: str | Path) -> Path:
        """Write the picture as an SVG file."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # JupyterLab shows image/svg+xml as an <img> without alt text, out of reach of
        # its theme. It prefers text/html, where neither is so.
        return {
            "text/html": self.in_page(),
            "image/svg+xml": self.svg,
            "text/plain": self.alt,
        }


@dataclass(frozen=True)
class Kind:
    """One kind of chart; it folds out from a line with its title.

    It ``fits`` a finding that holds what it draws. If it ``leads``, it comes before the
    charts that every finding has.
    """

    draw: Callable[[Finding], Figure]
    title: str
    fits: Callable[[Finding], bool]
    leads: bool = False


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
# Of an average character of the text, as wide fonts have it, and of a bold one.
_CHARACTER, _BOLD_CHARACTER = 0.56, 0.62
_HEADING = 14.0
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
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "hatch.color", "grid.color"), INK),
}


def paint(
    title: str,
    lines: Sequence[str],
    height: float,
    alt: str,
    draw: Callable[[Drawing], None],
) -> Figure:
    """Draw a picture of ``WIDTH`` by ``height`` pixels, and what stands around it.

    ``lines`` are those of the caption, at the bottom. ``draw`` fills the drawing, in
    which one pixel is one point. What is written in it is printable: here, in ``note``
    and in ``rows.name``.
    """
    alt = " ".join(printable(alt).split())
    salt = hashlib.sha256(alt.encode()).hexdigest()
    settings: Any = _SETTINGS | {"svg.hashsalt": salt}
    raw = io.StringIO()
    with _lock, mpl.rc_context(settings), warnings.catch_warnings():
        # The reader's browser has glyphs that the font measured with does not have.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        drawing = Drawing(figsize=(WIDTH / 72, height / 72), dpi=72)
        FigureCanvasSVG(drawing)
        heading = plain(title, int((WIDTH - 24) / (_HEADING * _BOLD_CHARACTER)))
        at = 12 / WIDTH, 1 - 20 / height
        drawing.text(*at, heading, fontsize=_HEADING, fontweight="bold")
        draw(drawing)
        for number, line in enumerate(reversed(lines)):
            bottom = (8 + number * _CAPTION_LINE) / height
            drawing.text(12 / WIDTH, bottom, printable(line), fontsize=SMALL)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawing.savefig(raw, format="svg", metadata=nothing, transparent=True)
    return Figure(fitted(raw.getvalue(), alt), alt)


def message(title: str, words: str) -> Figure:
    """A picture for where there is nothing to draw: it says why."""

    def draw(drawing: Drawing) -> None:
        drawing.text(12 / WIDTH, 0.25, plain(words, 110), fontsize=TEXT)

    return paint(title, [], 70, f"{title}. {words}", draw)


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


def caption_lines(parts: Sequence[str]) -> list[str]:
    """Put the parts of a caption into lines that fit, whole where they can be."""
    longest = int((WIDTH - 24) / (SMALL * _CHARACTER))
    lines = list[str]()
    for part in (piece for text in parts for piece in textwrap.wrap(text, longest)):
        joined = f"{lines[-1]}  ·  {part}" if lines else part
        if lines and len(joined) <= longest:
            lines.pop()
            part = joined
        lines.append(part)
    return lines


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

    It stands ``shift`` pixels to the right of ``at`` and up: fractions of the axes, or
    with ``in_row`` such a fraction and a row. ``style`` is as of ``Axes.annotate``.
    """
    coordinates = "axes fraction", "data" if in_row else "axes fraction"
    usual: dict[str, Any] = {"va": "center", "fontsize": SMALL, "xycoords": coordinates}
    look = usual | style
    axes.annotate(printable(text), at, shift, textcoords="offset points", **look)


def height(inner: float, lines: Sequence[str], axis: float = 40) -> float:
    """Of a picture whose axes are so high, with a caption and the axis below them."""
    return TOP + inner + axis + len(lines) * _CAPTION_LINE + 8


def text_width(texts: Sequence[str], size: float = TEXT) -> float:
    """Pixels that the longest of some texts takes, at most."""
    return size * max(map(_ems, texts), default=0.0)


@functools.lru_cache(maxsize=4096)
def _ems(text: str) -> float:
    """The width in Matplotlib's own letters, wider than most; capitals are widest."""
    font = FontProperties(size=100)
    return text_to_path.get_text_width_height_descent(text, font, False)[0] / 100


_LINE, _PAD = 18, 8


def stamped(figure: Figure, words: str) -> Figure:
    """Put a sentence on top of a picture, in lines as long as that is wide."""
    root, words = ElementTree.fromstring(figure.svg), plain(words, 600)
    left, top, wide, high = map(float, root.get("viewBox", "").split())
    lines = textwrap.wrap(words, int((wide - 2 * _PAD) / (SMALL * _BOLD_CHARACTER)))
    band = len(lines) * _LINE + _PAD
    root.set("viewBox", f"{left:g} {top - band:g} {wide:g} {high + band:g}")
    root.set("height", f"{float(root.get('height', high)) + band:g}")
    alt = f"{words} {figure.alt}"
    root.set("aria-label", alt)
    font = f"font-size:{SMALL}px;font-weight:bold;font-family:system-ui, sans-serif"
    for number, line in enumerate(lines, start=1):
        at = {"x": f"{left + _PAD:g}", "y": f"{top - band + number * _LINE:g}"}
        look = at | {"style": f"{font};fill:currentColor"}
        ElementTree.SubElement(root, f"{{{SVG}}}text", look).text = line
    ElementTree.register_namespace("", SVG)
    return Figure(ElementTree.tostring(root, encoding="unicode"), alt)
