"""A diagnosis as a short report: once as text, once as HTML for a notebook.

All that was read from a file is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from perfkit.findings.card import footnotes, framed, said, saved, stamped
from perfkit.findings.sections import sections
from perfkit.findings.text import plain, plain_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.diagnosis import Diagnosis
    from perfkit.findings.sections import Section

# With so many cells a row's last one takes a line of its own.
_LONG_ROW = 4


def in_text(found: Diagnosis) -> str:
    """The report for a terminal or a log."""
    first = f"{plain(found.training)}: {plain(found.verdict, 600)}"
    stamp = filter(None, [found.finding.stamp])
    return "\n".join([*stamp, first, *lines(found), *saved(found.path)])


def lines(found: Diagnosis) -> Iterator[str]:
    """What follows the verdict, line by line."""
    parts = list(sections(found))
    for section in parts[:1]:
        yield from _in_lines(section)
    if found.because:
        yield "Because"
        yield from (f"  - {plain(reason, 600)}" for reason in found.because)
    for section in parts[1:]:
        yield from _in_lines(section)
    if found.next:
        yield "Next: " + plain_lines(found.next).replace("\n", "\n  ")
    yield from footnotes(found.finding)


def in_html(found: Diagnosis) -> str:
    """The report for a notebook or a page."""
    finding = found.finding
    return framed(
        stamped(finding.stamp),
        f"<p>{escape(plain(finding.question))}</p>",
        *said(finding.verdict),
        *map(_in_html, sections(found)),
        *(
            f'<p class="perfkit-small">{escape(note)}</p>'
            for note in (*footnotes(finding), *saved(found.path))
        ),
    )


def _in_lines(section: Section) -> Iterator[str]:
    yield section.title
    for name, *cells in section.rows:
        apart = cells.pop() if len(cells) >= _LONG_ROW else ""
        words = ", ".join(filter(None, cells))
        yield f"  {name}: {words}" if name else f"  {words}"
        yield from (f"     {line}" for line in apart.splitlines())


def _in_html(section: Section) -> str:
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in section.headings)
    body = "".join(map(_row, section.rows))
    return (
        # What can be scrolled must be reached by keyboard as well.
        '<div class="perfkit-scroll" tabindex="0">'
        "<table><caption style='text-align:left;font-weight:600'>"
        f"{escape(section.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(cells: tuple[str, ...]) -> str:
    name, *rest = map(escape, cells)
    texts = "".join(f'<td class="perfkit-next">{text}</td>' for text in rest)
    return f'<tr><th scope="row">{name}</th>{texts}</tr>'
