"""What the cells of a notebook gave out, as a page shows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from perfkit.export.clean import clean, printable, shows_something
from perfkit.export.markdown import markdown, mathml, without_dollars
from perfkit.export.pictures import encoded
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nbformat import NotebookNode

    from perfkit.export.pictures import Pictures

_WIDGET = "application/vnd.jupyter.widget-view+json"
# Of several forms of the same thing, the first that shows anything.
_FORMS = (
    *("text/html", "image/svg+xml", "image/png", "image/jpeg", "image/gif"),
    *("image/webp", "text/markdown", "text/latex", "text/plain"),
)
_LONGEST_ALT = 300
# Of what is longer the beginning and the end are shown.
_MOST_LINES, _LONGEST_LINE = 240, 2000
_LARGEST_TEXT = 2_000_000
# What a terminal obeys and a reader does not see: colours, titles, links.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\|$)"
    r"|\x1b[ -/]*[0-~]"
)


def shown(
    outputs: Iterable[NotebookNode], under: str, pictures: Pictures
) -> Iterator[Markup]:
    """Show what a cell gave out.

    Args:
        outputs: As the notebook holds them.
        under: The heading before them, which says what a picture without words is
            about.
        pictures: Gives the picture that stands at an address in Markdown.
    """
    for given in _joined(outputs):
        match given.output_type:
            case "stream":
                yield _text(given.text, "err" if given.name == "stderr" else "out")
            case "error":
                lines = given.traceback or [f"{given.ename}: {given.evalue}"]
                yield _text("\n".join(lines), "error")
            case _:
                alt = _alt(given.data, given.metadata, under)
                yield _display(given.data, alt, pictures)


def _joined(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """The outputs of a cell, what was printed in a row in one piece."""
    made: list[NotebookNode] = []
    for given in outputs:
        stream = given.name if given.output_type == "stream" else ""
        if stream and made and made[-1].get("name") == stream:
            made[-1].text += given.text
        else:
            made.append(given)
    return made


def _display(data: Mapping[str, Any], alt: str, pictures: Pictures) -> Markup:
    live = next((kind for kind in data if _is_live(kind)), "")
    for form in _FORMS:
        # The text form of what is live is its address in the kernel.
        if form not in data or (form == "text/plain" and live):
            continue
        made = _form(form, str(data[form]), alt, pictures)
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
    return encoded(value, vectors=False).element(alt)


def _is_live(kind: str) -> bool:
    """Whether it is a form that only a script draws."""
    return kind.endswith("javascript") or kind.startswith("application/vnd.")


def _missing(live: str, data: Mapping[str, Any]) -> str:
    name = str(data.get("text/plain", "")).partition("(")[0].strip()
    called = f" ({name})" if name.isidentifier() and len(name) <= 40 else ""
    if live == _WIDGET:
        return f"A control{called} stood here; it works in the notebook only."
    return f"Something that a script draws{called} stood here; the notebook shows it."


def _alt(data: Mapping[str, Any], about: Mapping[str, Any], under: str) -> str:
    """What a picture shows: as it says itself, else what it stands under."""
    said = about.get("alt") or data.get("alt")
    words = str(data.get("text/plain", ""))
    if not isinstance(said, str) or not said:
        said = "" if words.startswith("<") else words
    return plain(said, _LONGEST_ALT) or (f"Figure: {under}" if under else "Figure")


def _text(text: str, kind: str) -> Markup:
    said = terminal(text)
    shape = Markup('<pre class="{}" tabindex="0">{}</pre>')
    return shape.format(kind, said) if said else Markup("")


def terminal(text: str) -> str:
    """What a terminal would show in the end, without its colours, cut if it is long."""
    written = _ESCAPES.sub("", text[:_LARGEST_TEXT]).split("\n")
    # What stands before a carriage return was written over.
    last = (line.rstrip("\r").rpartition("\r")[2] for line in written)
    lines = printable("\n".join(last)).rstrip().split("\n")
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = f"… {len(lines) - 2 * half:,} lines are left out here …"
        lines = [*lines[:half], left_out, *lines[-half:]]
    return "\n".join(
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
        for line in lines
    )
