"""A fleet drawn: in a terminal, in plain lines, in a notebook."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from html import escape
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.displays import in_notebook
from perfkit.findings.text import plain
from perfkit.fleet import telling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType

    from perfkit.fleet.outcome import Gathered, Row

_STYLE = """
.perfkit-fleet {overflow-x: auto}
.perfkit-fleet table {color: inherit; border-collapse: collapse; margin: .6em 0;
  font-size: .95em; table-layout: auto !important}
.perfkit-fleet table th, .perfkit-fleet table td {text-align: left !important;
  padding: 3px 16px 3px 0; vertical-align: top; border-bottom: 1px solid #80808060}
"""


class Lines(AbstractContextManager["Lines"]):
    """Prints a line when something changes that is worth one.

    Args:
        write: Prints it.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._told: dict[str, str] = {}

    def show(self, rows: Sequence[Row]) -> None:
        """Print what is new."""
        for row in rows:
            line = telling.brief(row)
            if self._told.get(row.member.key) != line:
                self._told[row.member.key] = line
                self._write(line)

    def __exit__(self, *exception: object) -> None:
        """Leave what was printed."""


class Live(AbstractContextManager["Live"]):
    """A line per member, redrawn in place; it disappears when all have ended."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as Drawn

        self._drawn = Drawn(console=console, auto_refresh=False, transient=True)

    def show(self, rows: Sequence[Row]) -> None:
        """Draw all anew."""
        self._drawn.update(_in_terminal(rows), refresh=True)

    def __enter__(self) -> Live:
        """Take the lines it draws on."""
        self._drawn.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Clear the lines it drew on."""
        self._drawn.stop()


class InNotebook(AbstractContextManager["InNotebook"]):
    """One output of the running cell, updated in place."""

    _handle: Any = None

    def show(self, rows: Sequence[Row]) -> None:
        """Draw all anew."""
        from IPython.display import display

        bundle = {
            "text/plain": "\n".join(map(telling.brief, rows)),
            "text/html": rows_in_html(rows),
        }
        if self._handle is None:
            self._handle = display(  # type: ignore[no-untyped-call]
                bundle, raw=True, display_id=True
            )
        else:
            self._handle.update(bundle, raw=True)

    def __exit__(self, *exception: object) -> None:
        """Leave its last state."""


def display_here(console: Console | None = None) -> Lines | Live | InNotebook:
    """Choose by where the code runs."""
    if in_notebook():
        return InNotebook()
    if console is not None and console.is_terminal:
        return Live(console)
    return Lines(lambda line: print(line, file=sys.stderr, flush=True))


def rows_in_html(rows: Sequence[Row]) -> str:
    """The members while they run, for a notebook."""
    lines = "".join(
        f"<tr><th scope='row'>{escape(row.member.name)}</th>"
        f"<td><progress max='1' value='{_share(row):.3f}' aria-label="
        f"'Share of the run of {escape(row.member.name, quote=True)} that is done'>"
        f"</progress></td><td>{escape(plain(telling.state(row)))}</td></tr>"
        for row in rows
    )
    caption = escape(telling.summary(rows))
    return _table(f"<caption>{caption}</caption>{lines}")


def in_html(gathered: Gathered) -> str:
    """The closing table for a notebook, with each finding folded away below."""
    head = "".join(f"<th scope='col'>{escape(h)}</th>" for h in telling.HEADINGS)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in map(telling.cells, gathered.outcomes)
    )
    said = "".join(f"<p>{escape(line)}</p>" for line in telling.closing(gathered))
    folded = "".join(
        f"<details><summary>{escape(outcome.member.name)}</summary>"
        f"{outcome.document._repr_html_()}</details>"
        for outcome in gathered.outcomes
        if outcome.document
    )
    return _table(f"<tr>{head}</tr>{lines}") + said + folded


def write(gathered: Gathered, console: Console) -> None:
    """Write the closing table to a terminal or a file."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from perfkit.findings.report import sayer

    say = sayer(console)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in telling.HEADINGS:
        table.add_column(Text(heading), overflow="fold")
    for outcome in gathered.outcomes:
        table.add_row(*(Text(plain(cell, 600)) for cell in telling.cells(outcome)))
    console.print(table)
    say()
    for line in telling.closing(gathered):
        say(line)
    for line in telling.saved(gathered):
        say(f"Saved, {line}", whole=True)


def _table(inside: str) -> str:
    return (
        f"<style>{_STYLE}</style><div class='perfkit-fleet'>"
        f"<table>{inside}</table></div>"
    )


def _share(row: Row) -> float:
    return 1.0 if row.outcome else row.share


def _in_terminal(rows: Sequence[Row]) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for row in rows:
        said = Text(plain(telling.state(row)), overflow="ellipsis", no_wrap=True)
        bar = ProgressBar(total=1.0, completed=_share(row), width=20)
        name = Text(row.member.name, no_wrap=True)
        table.add_row(name, bar, Text(units.percent(_share(row))), said)
    return Group(table, Text(telling.summary(rows), style="dim"))
