"""Markdown to HTML: formulas as MathML, code in colour, no raw HTML that does more."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup, escape
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from perfkit.errors import BadFileError, BadParameterError
from perfkit.export.clean import Outline, clean
from perfkit.export.code import highlighted
from perfkit.export.pictures import inline_only
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.store import Recorded, load, whole_file
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from perfkit.export.pictures import Pictures


# Longer ones are no formula that a reader could follow.
_MATHEMATICS_LONGEST = 3000
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

    if not latex or len(latex) > _MATHEMATICS_LONGEST:
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


# With every picture that it holds.
_LARGEST_NOTEBOOK = 256 * 10**6


@dataclass(frozen=True)
class Notebook:
    """The file of a notebook and what it holds, as JSON reads it."""

    path: Path
    document: dict[str, Any]


def listed(sources: Any) -> list[Any]:
    """One source as a list of one."""
    if isinstance(sources, str | Path | Finding | Diagnosis):
        return [sources]
    try:
        return list(sources)
    except TypeError:
        return [sources]


def read(source: Any) -> Recorded | Notebook:
    """Read a source; a finding or a diagnosis is one already.

    Raises:
        BadFileError: The file is neither a notebook nor a finding.
        BadParameterError: It is not even a file.
    """
    if isinstance(source, Finding | Diagnosis):
        return source
    if not isinstance(source, str | Path):
        raise BadParameterError(
            f"{plain(repr(source), 80)} cannot be exported; give a finding, or the "
            "file of a finding or of a notebook."
        )
    path = Path(os.path.expanduser(source))
    known, document = _document(path)
    if known and isinstance(document, dict) and "nbformat" in document:
        return Notebook(path, document)
    if known and not (isinstance(document, dict) and "kind" in document):
        raise BadFileError(f"{plain(path.name)} is neither a notebook nor a finding.")
    # What is no JSON at all is told by who reads findings.
    return load(path)


def _document(path: Path) -> tuple[bool, Any]:
    """Whether the file can be read as JSON, and as what."""
    try:
        return True, json.loads(whole_file(path, _LARGEST_NOTEBOOK))
    except (BadFileError, ValueError, RecursionError):
        return False, None


# No cell that a person wrote is longer, and what is parsed slowly ends here.
_MARKDOWN_LONGEST = 50_000
# A longer formula does not fit into a line of a narrow page.
_LONGEST_IN_LINE = 50


def markdown(
    text: str, *, outline: Outline | None = None, pictures: Pictures = inline_only
) -> Markup:
    """Turn the Markdown of a notebook into HTML for a page.

    Args:
        text: The Markdown.
        outline: The headings of the page so far; None makes headings plain text.
        pictures: Gives the picture that stands at an address.
    """
    if len(text) > _MARKDOWN_LONGEST:
        return Markup("<pre>{}</pre>").format(text[:_MARKDOWN_LONGEST])
    html = MarkdownWithMath(renderer=_Renderer(escape=False)).render(text)
    return clean(html, alt="Picture", pictures=pictures, outline=outline)


class _Renderer(IPythonRenderer):
    """What nbconvert's own makes of Markdown, without its scripts and anchors."""

    def heading(self, text: str, level: int, **_: Any) -> str:
        """A heading that links within the notebook find."""
        name = re.sub(r"\s+", "-", Markup(text).striptags())
        return f'<h{level} id="{escape(name)}">{text}</h{level}>'

    def block_code(self, code: str, info: str | None = None) -> str:
        """Code between fences."""
        language = (info or "").split()
        return highlighted(code, language[0] if language else "")

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture; cleaning finds what is at its address."""
        return f'<img src="{escape(url)}" alt="{text}">'

    def inline_math(self, body: str) -> str:
        """A formula within a line."""
        return mathml(body, block=len(body) > _LONGEST_IN_LINE)

    def block_math(self, body: str) -> str:
        """A formula on a line of its own."""
        return mathml(body, block=True)

    def latex_environment(self, name: str, body: str) -> str:
        r"""A formula between \begin and \end."""
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", block=True)
