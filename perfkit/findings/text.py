"""Texts of reports: cut to what fits, printable where they come in or go out.

A file's texts are made printable as it is read (``reading.parse``). Templates and what
writes to a terminal or draws do it once more, for texts that never were in a file.
"""

import functools
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from perfkit import units

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST = 300
# Of a text that is enormous, so many times what is shown is looked at.
_LOOKED_AT = 8


def printable(text: str, kept: str = "\n\t") -> str:
    """Keep what can be printed: no escapes, no change of direction.

    The characters ``kept`` stay; any other white space becomes a blank.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in kept else " " if c.isspace() else ""
        for c in text.replace("\r\n", "\n")
    )


def cut(text: str, longest: int) -> str:
    """At most so many characters; a cut is shown."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def one_line(text: str, longest: int = _LONGEST) -> str:
    """The text as one line of at most so many characters; a cut is shown."""
    start = text[: _LOOKED_AT * longest]
    ellipsis = "…" if len(start) < len(text) else ""
    return cut(" ".join(start.split()) + ellipsis, longest)


def plain(text: str, longest: int = _LONGEST) -> str:
    """Make one printable line of a text from outside: a path, an exception."""
    start = text[: _LOOKED_AT * longest]
    ellipsis = "…" if len(start) < len(text) else ""
    return one_line(printable(start) + ellipsis, longest)


def minute(recorded: str) -> str:
    """When something was recorded, as a reader reads it: to the minute."""
    return recorded[:16].replace("T", " ")


def is_file(training: str) -> bool:
    """Whether what is called so is a script or a notebook, or lies in one."""
    return bool(re.search(r"\.(py|ipynb)\b", training))


def as_budget(seconds: float, training: str = "") -> str:
    """A budget as who runs a training again gives it; in words where that is open.

    One in a file is told as a command, as its report repeats it.
    """
    if not training:
        return f"a budget of {seconds:.0f} s"
    option = "--budget " if is_file(training) else "budget="
    return f"`{option}{seconds:.0f}`"


def as_sentence(words: str) -> str:
    """Words with a capital and a full stop; "" for none."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def lower(sentence: str) -> str:
    """A sentence behind a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def listed(names: Iterable[str], most: int = 100) -> str:
    """Names in a sentence, such as ``"a, b and c"``; of many the first."""
    every = [*names]
    if len(every) > most:
        every[most:] = [f"{len(every) - most} more"]
    *first, last = every
    return f"{', '.join(first)} and {last}" if first else last


def place_in_words(file: str, cell: int, lines: str) -> str:
    """Lines of a file, of a cell of a notebook, or of a cell that was just run."""
    where = f"code cell {cell}" if cell else "" if file else "cell"
    return ", ".join(filter(None, (file, where, lines)))


def paragraphs(text: str, **values: Any) -> tuple[str, ...]:
    """The paragraphs of a text beside this file, a line each, with values filled in."""
    filled = templates().get_template(text).render(values)
    return tuple(
        " ".join(paragraph.split())
        for paragraph in filled.split("\n\N{PILCROW SIGN}\n")
    )


@functools.cache
def templates() -> "Environment":
    """The templates of all reports and pages.

    What is put into one is made printable, and escaped unless it is a text
    (``.txt.j2``).
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader([here, here / "page" / "templates"]),
        autoescape=lambda name: not (name or "").endswith(".txt.j2"),
        # Markup was made by a filter, or is clean already.
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "code": _code,
        "percent": units.percent,
        "seconds": units.seconds,
    }
    return environment


def _code(text: str) -> Markup:
    """Escape a text and set what stands between backticks as code."""
    html = escape(printable(text))
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html))


def without_marks(text: str) -> str:
    """Leave out the backticks around code, in a table that sets nothing apart."""
    return text.replace("`", "")
