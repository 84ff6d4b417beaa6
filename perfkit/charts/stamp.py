"""A picture that says of itself, in a band at its top, that it was recorded."""

from __future__ import annotations

import textwrap
from xml.etree import ElementTree

from perfkit.charts.canvas import SMALL
from perfkit.charts.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_LINE, _PAD = 18, 8
# Of an average bold character, as wide fonts have it.
_CHARACTER = 0.62


def stamped(figure: Figure, words: str) -> Figure:
    """Put a band with a sentence on top of a picture.

    Args:
        figure: The picture; it stays as it is below the band.
        words: What the band says, in lines as long as the picture is wide.
    """
    root = ElementTree.fromstring(figure.svg)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    longest = int((width - 4 * _PAD) / (SMALL * _CHARACTER))
    lines = textwrap.wrap(words, longest)
    high = len(lines) * _LINE + 2 * _PAD
    root.set("viewBox", f"{left:g} {top - high:g} {width:g} {height + high:g}")
    root.set("height", f"{float(root.get('height', height)) + high:g}")
    alt = f"{words} {figure.alt}"
    root.set("aria-label", alt)
    # What comes first in a drawing lies below the rest; nothing else is up here.
    root.append(_band(lines, top - high, width, high))
    ElementTree.register_namespace("", _SVG)
    return Figure(ElementTree.tostring(root, encoding="unicode"), alt)


def _band(
    lines: list[str], top: float, width: float, high: float
) -> ElementTree.Element:
    band = ElementTree.Element(f"{{{_SVG}}}g")
    place = {"x": "1", "y": f"{top + 1:g}", "width": f"{width - 2:g}"}
    look = "fill:none;stroke:currentColor;stroke-width:1.5"
    frame = place | {"height": f"{high - _PAD + 2:g}", "style": look}
    ElementTree.SubElement(band, f"{{{_SVG}}}rect", frame)
    font = f"font-size:{SMALL}px;font-weight:bold;font-family:system-ui, sans-serif"
    for number, line in enumerate(lines):
        at = {"x": f"{_PAD}", "y": f"{top + (number + 1) * _LINE:g}"}
        text = ElementTree.SubElement(
            band, f"{{{_SVG}}}text", at | {"style": f"{font};fill:currentColor"}
        )
        text.text = line
    return band
