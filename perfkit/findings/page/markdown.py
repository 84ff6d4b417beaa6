"""Markdown as HTML: formulas as MathML, code in colour, no raw HTML that does more."""

import contextlib
import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import Converter
from markupsafe import Markup, escape
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

from perfkit.findings.page.clean import Outline, Pictures, clean, inline_only, printable
from perfkit.findings.text import plain

# No cell that a person wrote is longer, and what is parsed slowly ends here.
_LONGEST = 50_000
_LONGEST_CODE = 20_000
# Longer ones are no formula that a reader could follow.
_LONGEST_FORMULA = 3000
_LONGEST_SHOWN = 1000
# A longer formula does not fit into a line of a narrow page.
_LONGEST_IN_LINE = 50
# Whose colours are told by a short and quick lexer.
_LANGUAGES = {
    *("python", "python3", "py", "ipython", "ipython3"),
    *("bash", "sh", "json", "toml", "yaml"),
}


def markdown(
    text: str, *, outline: Outline | None = None, pictures: Pictures = inline_only
) -> Markup:
    """Turn the Markdown of a notebook into HTML for a page, as ``clean`` leaves it."""
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
        return highlighted(code, *(info or "").split()[:1])

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


def highlighted(code: str, language: str = "") -> Markup:
    """Code with its words marked for the page's colours, if its language has any."""
    name = language.lower()
    if name not in _LANGUAGES or len(code) > _LONGEST_CODE:
        return Markup("<pre><code>{}</code></pre>\n").format(printable(code))
    formatter = HtmlFormatter(nowrap=True, classprefix="t-")
    marked = Markup(highlight(printable(code), get_lexer_by_name(name), formatter))
    return Markup('<pre class="highlight"><code>{}</code></pre>\n').format(marked)


def mathml(latex: str, *, block: bool = False) -> Markup:
    """Turn LaTeX without its dollar signs into MathML, on a line of its own or not.

    What is no LaTeX stays as it was written.
    """
    element = None
    # The converter says in many ways, from KeyError to its own, that it is lost.
    with contextlib.suppress(Exception):
        if 0 < len(latex.strip()) <= _LONGEST_FORMULA:
            display = "block" if block else "inline"
            element = Converter(display=display).convert_to_element(latex.strip())
    if element is None or re.search(r"\\[a-zA-Z]", "".join(element.itertext())):
        code = Markup("<code>{}</code>").format(plain(latex, _LONGEST_SHOWN))
        return Markup("<p>{}</p>").format(code) if block else code
    # ElementTree escapes what the converter leaves as it is, but for characters that it
    # names by their numbers. Cleaning decides which elements and attributes stay.
    xml = ElementTree.tostring(element, encoding="unicode")
    return Markup(re.sub(r"&amp;(#x?[0-9a-fA-F]+;)", r"&\1", xml))


def without_dollars(text: str) -> tuple[str, bool]:
    """A formula as IPython gives it out, and whether it stands on its own line."""
    match = re.fullmatch(r"(\$\$?)(.*)\1", text.strip(), re.DOTALL)
    return (match[2], match[1] == "$$") if match else (text.strip(), True)
