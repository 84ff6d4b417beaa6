"""A finished picture: SVG for the eye, a text for who cannot see it."""

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from markupsafe import Markup

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
    _drop_the_unseen(root)
    for element in root.iter():
        _clean(element)
    _drop_unused_ids(root)
    _dress(root, alt)
    ElementTree.register_namespace("", SVG)
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text)


def _drop_the_unseen(root: Element) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            kind = child.tag.rpartition("}")[2]
            invisible = kind == "path" and child.get("style") == "fill: none"
            if invisible or kind in ("metadata", "style"):
                parent.remove(child)


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
    rounded = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}", numbers)
    without_zeros = re.sub(r"(\d)\.0\b", r"\1", rounded)
    # A letter of a path needs no blank beside it.
    return re.sub(r" ?\b([MLCQz])\b ?", r"\1", " ".join(without_zeros.split()))


def _drop_unused_ids(root: Element) -> None:
    used = set(_references(root))
    for element in root.iter():
        if element.get("id", "") not in used:
            element.attrib.pop("id", None)


def _references(root: Element) -> Iterator[str]:
    for element in root.iter():
        for value in element.attrib.values():
            yield from re.findall(r"url\(#([^)]+)\)", value)
        yield element.get("href", "").removeprefix("#")


def _dress(root: Element, alt: str) -> None:
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
    style = ElementTree.Element(f"{{{SVG}}}style")
    style.text = _STYLE.strip()
    root.insert(0, style)


# What can be scrolled must be reached by keyboard as well. A picture of 760 px that is
# shrunk to 576 has text of 9 px; where there is less room the box scrolls.
_SCROLLED = (
    '<div class="perfkit-scroll" tabindex="0" style="overflow-x:auto">'
    '<div style="min-width:576px">{}</div></div>'
)
_IN_DOCUMENT = (
    '<span class="scroll" role="group" tabindex="0" aria-label="Figure">{}</span>'
)
_IDS = re.compile(r'\bid="|url\(#|\bhref="#')
_ITS_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


@dataclass(frozen=True, repr=False)
class Figure:
    """A chart as it is shown and kept.

    Attributes:
        svg: The picture. Within a page it takes over the page's colours; as a picture
            of its own it brings a light or a dark background along.
        alt: What it shows, in words.
    """

    svg: str
    alt: str

    def in_page(self) -> str:
        """The picture for a page that may hold it twice.

        A browser takes the first element of an id. If that lies in a part of the page
        that is folded away, what refers to it, such as a hatched area, is not drawn. So
        each call gives ids of its own.
        """
        return _SCROLLED.format(_with_ids(self.svg, f"i{secrets.token_hex(4)}"))

    def in_document(self, number: int) -> Markup:
        """The picture for a document of ours, whose style it takes.

        It is Matplotlib's own, made anew from names that were escaped, and needs no
        cleaning.

        Args:
            number: Of the picture in the document, which its ids begin with.
        """
        picture = _ITS_STYLE.sub("", _with_ids(self.svg, f"f{number}-"))
        return Markup(_IN_DOCUMENT.format(picture))

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


def _with_ids(svg: str, mine: str) -> str:
    return _IDS.sub(lambda found: found[0] + mine, svg)


Drawn = TypeVar("Drawn")


@dataclass(frozen=True)
class Kind(Generic[Drawn]):
    """One kind of chart.

    Attributes:
        draw: Draws it.
        title: What it shows, for the line that it folds out from.
        fits: Whether a finding holds what it draws.
        leads: Whether it comes before the charts that every finding has.
    """

    draw: Callable[[Drawn], Figure]
    title: str
    fits: Callable[[Drawn], bool]
    leads: bool = False
