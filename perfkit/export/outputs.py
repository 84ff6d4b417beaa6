"""What the cells of a notebook gave out, as a page shows it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup
from nbformat import NotebookNode

from perfkit.export.clean import clean, printable, shows_something
from perfkit.export.markdown import markdown, mathml, without_dollars
from perfkit.export.pictures import Pictures, encoded
from perfkit.findings.text import plain

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

    The heading that it stands ``under`` says what a picture without words is about.
    """
    kinds = groupby(outputs, lambda one: (one.output_type, one.get("name")))
    for (kind, name), group in kinds:
        if kind == "stream":
            # What was printed in a row is one text.
            written = "".join(one.text for one in group)
            yield _text(written, "err" if name == "stderr" else "out")
            continue
        for one in group:
            if kind == "error":
                lines = one.traceback or [f"{one.ename}: {one.evalue}"]
                yield _text("\n".join(lines), "error")
            else:
                alt = _alt(one.data, one.metadata, under)
                yield _display(one.data, alt, pictures)


def _display(data: Mapping[str, Any], alt: str, pictures: Pictures) -> Markup:
    # Below a panel, for those who load its notebook once the kernel is gone.
    if 'class="perfkit-lost"' in str(data.get("text/html", "")):
        return Markup("")
    # What only a script draws.
    live = [
        kind
        for kind in data
        if kind.startswith("application/vnd.") or kind.endswith("javascript")
    ]
    for form in _FORMS:
        # The text form of what is live is its address in the kernel.
        if form not in data or (form == "text/plain" and live):
            continue
        made = _form(form, str(data[form]), alt, pictures)
        if shows_something(made):
            return made
    if not live and "text/html" not in data:
        return Markup("")
    name = str(data.get("text/plain", "")).partition("(")[0].strip()
    called = f" ({name})" if name.isidentifier() and len(name) <= 40 else ""
    words = f"Something that a script draws{called} stood here; the notebook shows it."
    if live[:1] == [_WIDGET]:
        words = f"A control{called} stood here; it works in the notebook only."
    return Markup('<p class="missing">{}</p>').format(words)


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
