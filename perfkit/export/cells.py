"""A notebook as a page shows it: texts and pictures, ready to be laid out."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from perfkit.errors import BadFileError
from perfkit.export.clean import Outline, clean, printable, shows_something
from perfkit.export.code import highlighted, terminal
from perfkit.export.finding import ShownFinding, machine, shown
from perfkit.export.markdown import markdown, mathml, without_dollars
from perfkit.export.pictures import beside, encoded
from perfkit.findings.store import FOLDER, load
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from nbformat import NotebookNode

    from perfkit.export.pictures import Pictures
    from perfkit.findings.store import Recorded


# As a finding's card ends: where it is saved, what it was measured on.
_SAVED = re.compile(r"Saved as ((?:[^\s/<>\"]{1,80}/)?[a-z0-9-]{1,90}\.json)")
_MEASURED = re.compile(r"Measured on ([^<>\n]{1,600}?), (\d{4}-\d\d-\d\d \d\d:\d\d)\.")
_MOST = 20
# File systems keep times no better than this.
_SAME_S = 2.0


@dataclass(frozen=True)
class Cited:
    """What a notebook's outputs say of the findings behind them.

    Attributes:
        findings: Those whose files lie beside it.
        missing: The names of the others.
        measured: What its outputs say they were measured on, and when.
    """

    findings: tuple[Recorded, ...] = ()
    missing: tuple[str, ...] = ()
    measured: tuple[tuple[str, str], ...] = ()


def cited(notebook: NotebookNode, folder: Path) -> Cited:
    """Find the findings that a notebook shows.

    Args:
        notebook: With its outputs.
        folder: The notebook's; findings are looked for in and below it only.
    """
    texts = [printable(unescape(text)) for text in _texts(notebook)]
    names = dict.fromkeys(name for text in texts for name in _SAVED.findall(text))
    findings: list[Recorded] = []
    missing: list[str] = []
    for name in list(names)[:_MOST]:
        found = _read(folder, name)
        if found:
            findings.append(found)
        else:
            missing.append(plain(name))
    said = (found for text in texts for found in _MEASURED.findall(text))
    measured = dict.fromkeys((plain(on, 600), when) for on, when in said)
    return Cited(tuple(findings), tuple(missing), tuple(measured)[:_MOST])


def newer(folder: Path, saved: float) -> int:
    """How many findings beside a notebook were saved after it was."""
    try:
        times = [path.stat().st_mtime for path in (folder / FOLDER).glob("*.json")]
    except OSError:
        return 0
    return sum(time > saved + _SAME_S for time in times)


def _texts(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                yield output.text
            data = output.get("data", {})
            yield from (
                data[form]
                for form in ("text/html", "text/plain")
                if isinstance(data.get(form), str)
            )


def _read(folder: Path, name: str) -> Recorded | None:
    """A finding by the last two parts of its path; None where it is not there."""
    for path in (folder / name, folder / FOLDER / name.rpartition("/")[2]):
        if not path.resolve().is_relative_to(folder.resolve()):
            continue
        try:
            return load(path)
        except BadFileError:
            continue
    return None


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
            return _outputs_text(given.text, kind)
        case "error":
            lines = given.traceback or [f"{given.ename}: {given.evalue}"]
            return _outputs_text("\n".join(lines), "error")
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
            return _outputs_text(value, "out")
    picture = encoded(value, vectors=False)
    if picture.missing:
        return Markup('<p class="missing">{} ({})</p>').format(alt, picture.missing)
    return Markup('<img src="{}" alt="{}">').format(picture.uri, alt)


def _outputs_text(text: str, kind: str) -> Markup:
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


def notices(notebook: NotebookNode) -> Iterator[str]:
    """What a reader has to know before they trust the outputs, a sentence each."""
    code = [cell for cell in notebook.cells if _is_work(cell)]
    run = [cell for cell in code if was_run(cell)]
    if not code:
        return
    if not run:
        yield (
            "This notebook was never run, or its outputs were cleared: the page shows "
            "its text and its code, and no result."
        )
        return
    if len(run) < len(code):
        missing = len(code) - len(run)
        yield (
            f"{missing} of its {len(code)} code cells {_were(missing)} not run: what "
            "they would show is missing."
        )
    counts = [cell.execution_count for cell in run if cell.execution_count]
    if counts != sorted(counts):
        yield (
            "Its cells were not run from top to bottom: a result may come from code "
            "that has changed since."
        )
    failed = sum(any(o.output_type == "error" for o in cell.outputs) for cell in run)
    if failed:
        yield f"{failed} of its code cells ended in an error."


def was_run(cell: NotebookNode) -> bool:
    """Whether a code cell has been run since its outputs were last cleared."""
    return cell.execution_count is not None or bool(cell.outputs)


def _is_work(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.source.strip())


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


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
        html = _cells_text(first, folder, outline)
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
            yield ShownCell(text=_cells_text(cell, folder, outline))
        elif cell.cell_type == "raw":
            text = Markup("<pre>{}</pre>").format(printable(cell.source))
            yield ShownCell(text=text)
        elif cell.source.strip() or cell.outputs:
            yield _code(cell, language, folder, outline)


def _cells_text(cell: NotebookNode, folder: Path, outline: Outline) -> Markup:
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
