"""What a cell gave out, as HTML that needs nothing but the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from perfkit.export.clean import clean, shows_something
from perfkit.export.code import printable, terminal
from perfkit.export.markdown import markdown
from perfkit.export.mathematics import mathml, without_dollars
from perfkit.export.pictures import encoded
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nbformat import NotebookNode

    from perfkit.export.pictures import Pictures

_WIDGET = "application/vnd.jupyter.widget-view+json"
# Of several forms of the same thing, the first that shows anything.
_FORMS = (
    "text/html",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "text/markdown",
    "text/latex",
    "text/plain",
)
_LONGEST_ALT = 300


def joined(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """The outputs of a cell, what was printed in a row in one piece."""
    made: list[NotebookNode] = []
    for given in outputs:
        stream = given.name if given.output_type == "stream" else ""
        if stream and made and made[-1].get("name") == stream:
            made[-1].text += given.text
        else:
            made.append(given)
    return made


def output(given: NotebookNode, under: str, pictures: Pictures) -> Markup:
    """Show one output of a cell.

    Args:
        given: As the notebook holds it.
        under: The heading before it, which says what a picture without words is about.
        pictures: Gives the picture that stands at an address in Markdown.
    """
    match given.output_type:
        case "stream":
            kind = "err" if given.name == "stderr" else "out"
            return _text(given.text, kind)
        case "error":
            lines = given.traceback or [f"{given.ename}: {given.evalue}"]
            return _text("\n".join(lines), "error")
    return _display(given.data, given.metadata, under, pictures)


def _display(
    data: Mapping[str, Any], about: Mapping[str, Any], under: str, pictures: Pictures
) -> Markup:
    live = next((kind for kind in data if _is_live(kind)), "")
    alt = _alt(data, about, under)
    for form in _FORMS:
        # The text form of what is live is its address in the kernel.
        if form not in data or (form == "text/plain" and live):
            continue
        made = _form(form, _whole(data[form]), alt, pictures)
        if shows_something(made):
            return made
    if live or "text/html" in data:
        return Markup('<p class="missing">{}</p>').format(_missing(live, data))
    return Markup("")


def _form(form: str, value: str, alt: str, pictures: Pictures) -> Markup:
    match form:
        case "text/html" | "image/svg+xml":
            return clean(value, alt=alt)
        case "text/markdown":
            return markdown(value, pictures=pictures)
        case "text/latex":
            latex, block = without_dollars(value)
            return clean(mathml(latex, block=block))
        case "text/plain":
            return _text(value, "out")
    picture = encoded(value, vectors=False)
    if picture.missing:
        return Markup('<p class="missing">{} ({})</p>').format(alt, picture.missing)
    return Markup('<img src="{}" alt="{}">').format(picture.uri, alt)


def _text(text: str, kind: str) -> Markup:
    said = terminal(text)
    if not said:
        return Markup("")
    return Markup('<pre class="{}" tabindex="0">{}</pre>').format(kind, said)


def _is_live(kind: str) -> bool:
    """Whether it is a form that only a script draws."""
    return kind.endswith("javascript") or kind.startswith("application/vnd.")


def _missing(live: str, data: Mapping[str, Any]) -> str:
    name = _whole(data.get("text/plain", "")).partition("(")[0].strip()
    called = f" ({name})" if name.isidentifier() and len(name) <= 40 else ""
    if live == _WIDGET:
        return f"A control{called} stood here; it works in the notebook only."
    return f"Something that a script draws{called} stood here; the notebook shows it."


def _alt(data: Mapping[str, Any], about: Mapping[str, Any], under: str) -> str:
    """What a picture shows: as it says itself, else what it stands under."""
    said = about.get("alt") or data.get("alt")
    words = _whole(data.get("text/plain", ""))
    if not isinstance(said, str) or not said:
        said = "" if words.startswith("<") else words
    return plain(said, _LONGEST_ALT) or (f"Figure: {under}" if under else "Figure")


def _whole(value: Any) -> str:
    """A value of a bundle as text; a notebook keeps long ones in lines."""
    if isinstance(value, list):
        return "".join(map(str, value))
    return value if isinstance(value, str) else printable(str(value))
