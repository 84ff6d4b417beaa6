"""A notebook as a page shows it: texts and pictures, ready to be laid out."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from perfkit.export.cited import Cited, cited, newer
from perfkit.export.clean import Outline
from perfkit.export.code import highlighted, printable
from perfkit.export.finding import ShownFinding, machine, shown
from perfkit.export.markdown import markdown
from perfkit.export.outputs import joined, output
from perfkit.export.pictures import beside
from perfkit.export.state import notices, was_run
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbformat import NotebookNode

_TITLE = 300


@dataclass(frozen=True, kw_only=True)
class ShownCell:
    """A cell as a page shows it.

    Attributes:
        text: The prose of a text cell.
        code: The code of a code cell, in colour.
        label: What its fold is called.
        outputs: What it gave out.
    """

    text: str = ""
    code: str = ""
    label: str = ""
    outputs: tuple[Markup, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShownNotebook:
    """A notebook in texts that a page can hold.

    Attributes:
        title: What it is called, as text.
        heading: The same as the notebook sets it.
        source: Which file it is, and how far its outputs can be trusted.
        machines: What its results were measured on, a line each.
        warnings: What a reader has to know before they read on.
        cells: Its cells.
        findings: The findings that it shows.
        missing: Names of findings that it shows and that are not beside it.
    """

    title: str
    heading: Markup
    source: str
    machines: tuple[str, ...]
    warnings: tuple[str, ...]
    cells: tuple[ShownCell, ...]
    findings: tuple[ShownFinding, ...]
    missing: tuple[str, ...]


def prepared(
    notebook: NotebookNode, folder: Path, name: str, saved: float | None
) -> ShownNotebook:
    """Prepare a notebook for a page.

    Args:
        notebook: As it was read.
        folder: Where it lies; nothing outside is read.
        name: Of its file.
        saved: When the file was, in seconds since 1970; None if unknown.
    """
    outline = Outline()
    title, heading, rest = _title(notebook, name, folder, outline)
    found = cited(notebook, folder)
    return ShownNotebook(
        title=title,
        heading=heading,
        source=_source(notebook, name, saved),
        machines=tuple(_machines(found)),
        warnings=(*notices(notebook), *_unsaved(folder, saved)),
        cells=(*rest, *_cells(notebook, folder, outline, skipped=len(rest))),
        findings=tuple(shown(finding, charts=False) for finding in found.findings),
        missing=found.missing,
    )


def _title(
    notebook: NotebookNode, name: str, folder: Path, outline: Outline
) -> tuple[str, Markup, list[ShownCell]]:
    """The title as text and as it is set, and the first cell where it was in that."""
    first = notebook.cells[0] if notebook.cells else None
    if first is not None and first.cell_type == "markdown":
        html = _text(first, folder, outline)
        if html.startswith("<h1") and outline.last:
            opening, _, rest = html.partition("</h1>")
            heading = Markup(opening.partition(">")[2])
            title = plain(heading.striptags(), _TITLE)
            return title, heading, [ShownCell(text=Markup(rest))]
    outline.last = 1
    named = notebook.metadata.get("title")
    title = plain(named if isinstance(named, str) else "", _TITLE) or plain(name)
    return title, escape(title), []


def _cells(
    notebook: NotebookNode, folder: Path, outline: Outline, skipped: int
) -> Iterator[ShownCell]:
    language = _language(notebook)
    for cell in notebook.cells[skipped:]:
        if cell.cell_type == "markdown":
            yield ShownCell(text=_text(cell, folder, outline))
        elif cell.cell_type == "raw":
            text = Markup("<pre>{}</pre>").format(printable(cell.source))
            yield ShownCell(text=text)
        elif cell.source.strip() or cell.outputs:
            yield _code(cell, language, folder, outline)


def _text(cell: NotebookNode, folder: Path, outline: Outline) -> Markup:
    pictures = beside(folder, cell.get("attachments", {}))
    return markdown(cell.source, outline=outline, pictures=pictures)


def _code(
    cell: NotebookNode, language: str, folder: Path, outline: Outline
) -> ShownCell:
    under, pictures = plain(outline.text), beside(folder, {})
    made = (output(given, under, pictures) for given in joined(cell.outputs))
    return ShownCell(
        code=highlighted(cell.source.strip("\n"), language),
        label="Code" if was_run(cell) else "Code, not run",
        outputs=tuple(html for html in made if html),
    )


def _language(notebook: NotebookNode) -> str:
    for told in ("language_info", "kernelspec"):
        known = notebook.metadata.get(told, {})
        name = known.get("name" if told == "language_info" else "language")
        if isinstance(name, str):
            return name
    return "python"


def _source(notebook: NotebookNode, name: str, saved: float | None) -> str:
    """Where the page comes from, and what its file cannot tell."""
    when = ""
    if saved is not None:
        time = datetime.datetime.fromtimestamp(saved).astimezone()
        when = f", saved {time:%Y-%m-%d %H:%M}"
    told = f"Made from {plain(name)}{when}."
    if any(cell.get("outputs") for cell in notebook.cells):
        told += (
            " Nothing was run for this page. Results are as they were saved; the file "
            "does not tell whether a cell was edited after it ran."
        )
    return told


def _machines(found: Cited) -> Iterator[str]:
    """Each machine once, with the time of its run or how many runs there were."""
    runs = [
        (machine(f), plain(f.recorded[:16].replace("T", " "))) for f in found.findings
    ]
    times = dict[str, dict[str, None]]()
    for name, when in dict.fromkeys([*runs, *found.measured]):
        times.setdefault(name, {})[when] = None
    for name, known in times.items():
        first, last = min(known), max(known)
        runs_of = f"{len(known)} runs from {first} to {last}"
        yield f"{name}, {first if len(known) == 1 else runs_of}"


def _unsaved(folder: Path, saved: float | None) -> Iterator[str]:
    count = newer(folder, saved) if saved is not None else 0
    if count:
        are = "finding is" if count == 1 else "findings are"
        yield (
            f"{count} {are} newer than the notebook's file. If they are from this "
            "notebook, it was not saved since: save it and export it again."
        )
