"""Markdown to HTML: formulas as MathML, code in colour, no raw HTML that does more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from perfkit.export.clean import Outline, clean
from perfkit.export.code import highlighted
from perfkit.export.mathematics import mathml
from perfkit.export.pictures import inline_only

if TYPE_CHECKING:
    from perfkit.export.pictures import Pictures

# No cell that a person wrote is longer, and what is parsed slowly ends here.
_LONGEST = 50_000
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
    if len(text) > _LONGEST:
        return Markup("<pre>{}</pre>").format(text[:_LONGEST])
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
