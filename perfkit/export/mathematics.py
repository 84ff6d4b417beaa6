"""LaTeX to MathML, which browsers draw without a script."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from markupsafe import Markup

from perfkit.findings.text import plain

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# Longer ones are no formula that a reader could follow.
_LONGEST = 3000
_LONGEST_SHOWN = 1000


def mathml(latex: str, *, block: bool = False) -> Markup:
    """Turn LaTeX into MathML; what is no LaTeX stays as it was written.

    Args:
        latex: Without its dollar signs.
        block: Whether it stands on a line of its own.
    """
    element = _converted(latex.strip(), "block" if block else "inline")
    if element is None:
        written = Markup("<code>{}</code>").format(plain(latex, _LONGEST_SHOWN))
        return Markup("<p>{}</p>").format(written) if block else written
    # ElementTree escapes what the converter leaves as it is. The page's own cleaning
    # decides which elements and attributes stay.
    return Markup(ElementTree.tostring(element, encoding="unicode"))


def without_dollars(text: str) -> tuple[str, bool]:
    """A formula as IPython gives it out, and whether it stands on its own line."""
    text = text.strip()
    for mark, block in (("$$", True), ("$", False)):
        inner = text.removeprefix(mark).removesuffix(mark)
        if len(text) - len(inner) == 2 * len(mark):
            return inner, block
    return text, True


def _converted(latex: str, display: str) -> Element | None:
    from latex2mathml.converter import Converter

    if not latex or len(latex) > _LONGEST:
        return None
    try:
        element = Converter(display=display).convert_to_element(latex)
    except Exception:
        # The converter says in many ways, from KeyError to its own, that it is lost.
        return None
    for part in element.iter():
        part.text, part.tail = _resolved(part.text), _resolved(part.tail)
    unknown = re.search(r"\\[a-zA-Z]", "".join(element.itertext()))
    return None if unknown else element


def _resolved(text: str | None) -> str | None:
    """The characters that the converter names by their numbers."""
    if not text:
        return text
    return "".join(c for c in unescape(text) if c.isprintable() or c.isspace())
