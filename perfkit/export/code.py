"""Code and what a terminal shows, as HTML."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from markupsafe import Markup
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

from perfkit.export.clean import printable

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

# Whose colours are told by a short and quick lexer.
_LANGUAGES = {
    "python": "python",
    "python3": "python",
    "py": "python",
    "ipython": "ipython3",
    "ipython3": "ipython3",
    "bash": "bash",
    "sh": "bash",
    "json": "json",
    "toml": "toml",
    "yaml": "yaml",
}
_LONGEST_CODE = 20_000
# Of what is longer the beginning and the end are shown.
_MOST_LINES, _LONGEST_LINE = 240, 2000
_LARGEST_TEXT = 2_000_000
# What a terminal obeys and a reader does not see: colours, titles, links.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\|$)"
    r"|\x1b[ -/]*[0-~]"
)


def highlighted(code: str, language: str) -> Markup:
    """Code with its words marked, for the colours of the page.

    Args:
        code: The code.
        language: As a notebook or a fence names it; what is unknown has no colours.
    """
    name = _LANGUAGES.get(language.lower(), "")
    if not name or len(code) > _LONGEST_CODE:
        return Markup("<pre><code>{}</code></pre>\n").format(printable(code))
    formatter = HtmlFormatter(nowrap=True, classprefix="t-")
    marked = Markup(highlight(printable(code), _lexer(name), formatter))
    return Markup('<pre class="highlight"><code>{}</code></pre>\n').format(marked)


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


@functools.cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name)
