"""An explanation as one page, and as an output of a notebook.

What files say is escaped, and pictures are taken through the same sieve as anybody's.
"""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.comparing import words
from perfkit.comparing.tables import tables
from perfkit.export.clean import clean
from perfkit.export.compact import compact
from perfkit.export.page import environment
from perfkit.export.writing import check
from perfkit.export.writing import write as write_page
from perfkit.findings.text import with_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perfkit.comparing.record import Explanation
    from perfkit.export.numbers import Table


def write(found: Explanation, path: str | Path) -> Path:
    """Write the page; it is whole or not there at all."""
    target = Path(os.path.expanduser(path))
    check(target, ())
    write_page(target, page(found))
    return target


def page(found: Explanation) -> str:
    """Lay an explanation out as a page."""
    template = environment().get_template("explanation.html.j2")
    figures = [clean(one.svg, alt=one.alt) for one in found.charts.values()]
    return compact(
        template.render(
            found=found,
            legend=list(words.legend(found)),
            advice=[words.advised(one) for one in found.advice],
            figures=figures,
            tables=list(tables(found)),
        )
    )


def in_notebook(found: Explanation) -> str:
    """Headline, reasons, charts and tables for the output of a cell."""
    charts = "".join(figure.in_page() for figure in found.charts.values())
    pieces = (
        f"<p><b>{escape(found.headline)}</b></p>",
        *(f"<p>{escape(line)}</p>" for line in words.legend(found)),
        _list("Because", found.because),
        _list("What to do", map(words.advised, found.advice)),
        _list("Next", found.next),
        charts,
        *map(_table, tables(found)),
    )
    return f"<div>{''.join(pieces)}</div>"


def _list(title: str, sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{with_code(escape(line))}</li>" for line in sentences)
    return f"<p>{title}</p><ul>{items}</ul>" if items else ""


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.headings)
    body = "".join(map(_row, table.rows))
    return (
        f"<details><summary>{escape(table.caption)}</summary>"
        # What can be scrolled must be reached by keyboard as well.
        '<div tabindex="0" style="overflow-x:auto">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        "</details>"
    )


def _row(row: tuple[str, ...]) -> str:
    name, *rest = map(escape, row)
    return (
        f'<tr><th scope="row">{name}</th>'
        + "".join(f"<td>{cell}</td>" for cell in rest)
        + "</tr>"
    )
