"""Texts that come from a file or a machine, made fit to be shown."""

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import units

if TYPE_CHECKING:
    from jinja2 import Template

_LONGEST = 300
_MOST_LINES = 40
# Of a text that a file makes enormous, so many times what is shown is looked at.
_LOOKED_AT = 8


def plain(text: str, longest: int = _LONGEST) -> str:
    """Keep what can be printed: no escapes, no change of direction, no line breaks.

    After so many characters it is cut, and the cut is shown.
    """
    start = text[: _LOOKED_AT * longest]
    ellipsis = "…" if len(start) < len(text) else ""
    return _cut(" ".join(_printable(start).split()) + ellipsis, longest)


def minute(recorded: str) -> str:
    """When something was recorded, as a reader reads it: to the minute."""
    return plain(recorded[:16].replace("T", " "))


def plain_lines(text: str) -> str:
    """The same for lines of code: their breaks and indentation stay."""
    start = text[: _LOOKED_AT * _LONGEST * _MOST_LINES]
    lines = start.splitlines()[:_MOST_LINES]
    return "\n".join(_cut(_printable(line).rstrip(), _LONGEST) for line in lines)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        " " if c.isspace() else c for c in text if c.isprintable() or c.isspace()
    )


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


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


def paragraphs(text: str, **values: Any) -> tuple[str, ...]:
    """The paragraphs of a text beside this file, a line each, with values filled in."""
    filled = _template(text).render(values).split("\n\N{PILCROW SIGN}\n")
    return tuple(" ".join(paragraph.split()) for paragraph in filled)


@functools.cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, undefined=StrictUndefined)
    for write in (plain, units.percent, units.seconds):
        environment.filters[write.__name__] = write
    return environment.get_template(name)


def without_marks(text: str) -> str:
    """Leave out the backticks around code, in a table that sets nothing apart."""
    return text.replace("`", "")


def with_code(escaped: str) -> str:
    """Set as code what stands between backticks in text that is escaped already."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escaped)
