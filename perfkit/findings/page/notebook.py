"""A notebook as one page: its text, code and finished results, without a script.

Its Markdown becomes HTML below: formulas as they are typed, code in colour, and of raw
HTML what is harmless.
"""

import contextlib
import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
from markupsafe import Markup, escape
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode, validator
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

from perfkit.errors import BadFileError
from perfkit.findings.page.clean import (
    Outline,
    Pictures,
    Room,
    beside,
    clean,
    encoded,
    inline_only,
    printable,
    shows_something,
)
from perfkit.findings.report import render
from perfkit.findings.store import FOLDER
from perfkit.findings.text import plain

_NEWEST, _NAMELESS = 4, 4
_LONGEST_TITLE = 300
# As a report begins, once it is cleaned.
_ANSWER = re.compile(
    r'<p class="perfkit-answer">(.*?)</p>(?:<p class="perfkit-much">(.*?)</p>)?'
)
# File systems keep times no better than this.
_SAME_S = 2.0
_WIDGET = "application/vnd.jupyter.widget-view+json"
# Of several forms of the same thing, the first that shows anything.
_FORMS = (
    *("text/html", "image/svg+xml", "image/png", "image/jpeg", "image/gif"),
    *("image/webp", "text/markdown", "text/plain"),
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


def _sound(document: dict[str, Any], name: str) -> NotebookNode:
    """The document as a notebook of the format's present version."""
    major, minor = document.get("nbformat"), document.get("nbformat_minor")
    if not isinstance(major, int) or not 3 <= major <= _NEWEST:
        raise BadFileError(
            f"{name} is of notebook format {plain(str(major), 20)}; open it in "
            "JupyterLab and save it again."
        )
    if major == _NEWEST and isinstance(minor, int):
        # Later ones ask for a name of every cell, which some tools leave out.
        document = document | {"nbformat_minor": min(minor, _NAMELESS)}
    try:
        faults = validator.iter_validate(document, relax_add_props=True)
        fault = next(faults, None)
    except (TypeError, KeyError):
        # What the validator would say begins with the kind of the cell.
        fault = "a cell has an unknown kind"
    if fault is not None:
        reason = plain(str(fault).partition("\n")[0], 200)
        raise BadFileError(f"{name} is not a valid notebook: {reason}.")
    try:
        return nbformat.convert(nbformat.reader.reads(json.dumps(document)), _NEWEST)
    except RecursionError as error:
        raise BadFileError(f"{name} is nested too deeply to be shown.") from error


def notebook_page(path: Path, document: dict[str, Any], code: str) -> str:
    """Lay the notebook of a file out as a page; nothing outside its folder is read.

    Raises:
        BadFileError: It is no sound notebook.
    """
    notebook, saved = _sound(document, plain(path.name)), path.stat().st_mtime
    folder, outline, room = path.parent, Outline(), Room()
    heading, opening, later = _title(notebook, path, outline, room)
    language = _language(notebook)
    cells = [
        replace(_cell(cell, language, folder, outline, room), place=f"cell-{number}")
        for number, cell in enumerate(later, 1)
    ]
    return render(
        "notebook.html.j2",
        title=plain(heading.striptags(), _LONGEST_TITLE),
        heading=heading,
        source=_source(notebook, path.name, saved),
        warnings=[*_warnings(notebook), *_unsaved(folder, saved)],
        conclusions=_conclusions(cells),
        cells=[_Cell(text=opening), *cells],
        code=code,
    )


@dataclass(frozen=True)
class _Cell:
    """The prose of a cell, or its code in colour and what it gave out."""

    text: str = ""
    code: str = ""
    label: str = ""
    outputs: Sequence[Markup] = ()
    place: str = ""


def _conclusions(cells: Sequence[_Cell]) -> list[tuple[str, str, Markup]]:
    """What its reports say first: the place, the answer, how much and how sure."""
    places = dict[tuple[str, Markup], str]()
    for cell in cells:
        for match in _ANSWER.finditer("".join(cell.outputs)):
            answer = Markup(match[1]).striptags(), Markup(match[2] or "")
            places.setdefault(answer, cell.place)
    return [(place, *answer) for answer, place in places.items()]


def _title(
    notebook: NotebookNode, path: Path, outline: Outline, room: Room
) -> tuple[Markup, Markup, list[NotebookNode]]:
    """The title as it is set, the rest of its cell, and the cells after that."""
    cells = notebook.cells
    if cells and cells[0].cell_type == "markdown":
        html = _prose(cells[0], path.parent, outline, room)
        if html.startswith("<h1"):
            title, _, remainder = html.partition("</h1>")
            return Markup(title.partition(">")[2]), Markup(remainder), cells[1:]
    outline.last = 1
    # What was tried as a title is set again, below one.
    outline.names.clear()
    room.bytes_left = Room().bytes_left
    name = notebook.metadata.get("title")
    title_text = plain(name, _LONGEST_TITLE) if isinstance(name, str) else ""
    return escape(title_text or plain(path.name)), Markup(), cells


def _prose(cell: NotebookNode, folder: Path, outline: Outline, room: Room) -> Markup:
    pictures = beside(folder, cell.get("attachments", {}), room)
    return markdown(cell.source, outline=outline, pictures=pictures)


def _cell(
    cell: NotebookNode, language: str, folder: Path, outline: Outline, room: Room
) -> _Cell:
    if cell.cell_type == "markdown":
        return _Cell(text=_prose(cell, folder, outline, room))
    if cell.cell_type == "raw":
        return _Cell(text=Markup("<pre>{}</pre>").format(printable(cell.source)))
    source = cell.source.strip("\n")
    pictures = beside(folder, {}, room)
    contents = outputs(cell.outputs, plain(outline.text), pictures)
    return _Cell(
        code=highlighted(source, language) if source.strip() else "",
        label="Code" if _was_run(cell) else "Code, not run",
        outputs=[html for html in contents if html],
    )


def outputs(
    items: Iterable[NotebookNode], under: str, pictures: Pictures
) -> Iterator[Markup]:
    """Show what a cell gave out.

    The heading that it stands ``under`` says what a picture without words is about.
    """
    kinds = groupby(items, lambda output: (output.output_type, output.get("name")))
    for (kind, name), group in kinds:
        if kind == "stream":
            # What was printed in a row is one text.
            text = "".join(output.text for output in group)
            yield _text(text, "err" if name == "stderr" else "out")
            continue
        for output in group:
            if kind == "error":
                lines = output.traceback or [f"{output.ename}: {output.evalue}"]
                yield _text("\n".join(lines), "error")
            else:
                alt = _alt(output.data, output.metadata, under)
                yield _display(output.data, alt, pictures)


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
        markup = _form(form, str(data[form]), alt, pictures)
        if shows_something(markup):
            return markup
    if not live and "text/html" not in data:
        return Markup("")
    name = str(data.get("text/plain", "")).partition("(")[0].strip()
    label = f" ({name})" if name.isidentifier() and len(name) <= 40 else ""
    words = f"A script draws something{label} here; only the notebook shows it."
    if live[:1] == [_WIDGET]:
        words = f"A control{label} is here in the notebook, where it works."
    return Markup('<p class="missing">{}</p>').format(words)


def _form(form: str, value: str, alt: str, pictures: Pictures) -> Markup:
    match form:
        case "text/html" | "image/svg+xml":
            return clean(value, alt=alt)
        case "text/markdown":
            return markdown(value, pictures=pictures)
        case "text/plain":
            return _text(value, "out")
    return encoded(value, vectors=False).element(alt)


def _alt(data: Mapping[str, Any], about: Mapping[str, Any], under: str) -> str:
    """What a picture shows: as it says itself, else what it stands under."""
    alt = about.get("alt") or data.get("alt")
    words = str(data.get("text/plain", ""))
    if not isinstance(alt, str) or not alt:
        alt = "" if words.startswith("<") else words
    return plain(alt, _LONGEST_ALT) or (f"Figure: {under}" if under else "Figure")


def _text(text: str, kind: str) -> Markup:
    content = terminal(text)
    shape = Markup('<pre class="{}" tabindex="0">{}</pre>')
    return shape.format(kind, content) if content else Markup("")


def terminal(text: str) -> str:
    """What a terminal would show in the end, without its colours, cut if it is long."""
    raw_lines = _ESCAPES.sub("", text[:_LARGEST_TEXT]).split("\n")
    # What stands before a carriage return was written over.
    last = (line.rstrip("\r").rpartition("\r")[2] for line in raw_lines)
    lines = printable("\n".join(last)).rstrip().split("\n")
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = f"… {len(lines) - 2 * half:,} lines are left out here …"
        lines = [*lines[:half], left_out, *lines[-half:]]
    return "\n".join(
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
        for line in lines
    )


def _language(notebook: NotebookNode) -> str:
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        name = notebook.metadata.get(section, {}).get(key)
        if isinstance(name, str):
            return name
    return "python"


def _source(notebook: NotebookNode, name: str, saved: float) -> str:
    """Where the page comes from, and what its file cannot tell."""
    time = datetime.datetime.fromtimestamp(saved).astimezone()
    source = f"Made from {plain(name)}, saved {time:%Y-%m-%d %H:%M}."
    if any(cell.get("outputs") for cell in notebook.cells):
        source += (
            " The export runs nothing: results are as they were saved. The file does "
            "not show whether a cell was edited after it ran."
        )
    return source


def _warnings(notebook: NotebookNode) -> Iterator[str]:
    """What a reader has to know before they trust the outputs, a sentence each."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    code = [cell for cell in cells if cell.source.strip()]
    run = [cell for cell in code if _was_run(cell)]
    missing = len(code) - len(run)
    if code and not run:
        yield (
            "This notebook was never run, or its outputs were cleared, so the page "
            "shows its text and its code, but no results."
        )
    elif missing:
        yield (
            f"{missing} of its {len(code)} code cells "
            f"{'was' if missing == 1 else 'were'} not run, so their results are "
            "missing."
        )
    counts = [cell.execution_count for cell in run if cell.execution_count]
    if counts != sorted(counts):
        yield (
            "Its cells were not run from top to bottom, so a result may come from code "
            "that has changed since."
        )
    failed = sum(any(o.output_type == "error" for o in cell.outputs) for cell in run)
    if failed:
        yield f"{failed} of its code cells ended in an error."


def _was_run(cell: NotebookNode) -> bool:
    """Whether a code cell has been run since its outputs were last cleared."""
    return cell.execution_count is not None or bool(cell.outputs)


def _unsaved(folder: Path, saved: float) -> Iterator[str]:
    """Whether findings beside a notebook were saved after it was."""
    count = 0
    with contextlib.suppress(OSError):
        times = [path.stat().st_mtime for path in (folder / FOLDER).glob("*.json")]
        count = sum(time > saved + _SAME_S for time in times)
    if count:
        are = "finding is" if count == 1 else "findings are"
        yield (
            f"{count} {are} newer than the notebook's file. If they are from this "
            "notebook, save it and export it again."
        )


# No cell that a person wrote is longer, and what is parsed slowly ends here.
_LONGEST_MARKDOWN = 50_000
_LONGEST_CODE = 20_000
# Whose colours are told by a short and quick lexer.
_LANGUAGES = {
    *("python", "python3", "py", "ipython", "ipython3"),
    *("bash", "sh", "json", "toml", "yaml"),
}


def markdown(
    text: str, *, outline: Outline | None = None, pictures: Pictures = inline_only
) -> Markup:
    """Turn the Markdown of a notebook into HTML for a page, as ``clean`` leaves it."""
    if len(text) > _LONGEST_MARKDOWN:
        return Markup("<pre>{}</pre>").format(text[:_LONGEST_MARKDOWN])
    html = MarkdownWithMath(renderer=_Renderer(escape=False)).render(text)
    return clean(html, alt="Picture", pictures=pictures, outline=outline)


class _Renderer(IPythonRenderer):
    """What nbconvert's own makes of Markdown, without its scripts and anchors."""

    def heading(self, text: str, level: int, **_: Any) -> str:
        """A heading that links within the notebook find."""
        name = re.sub(r"\s+", "-", Markup(text).striptags())
        return f'<h{level} id="{escape(name)}">{text}</h{level}>'

    def block_code(self, code: str, info: str | None = None) -> str:
        """Code between fences."""
        return highlighted(code, *(info or "").split()[:1])

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture; cleaning finds what is at its address."""
        return f'<img src="{escape(url)}" alt="{text}">'

    def inline_math(self, body: str) -> str:
        """A formula within a line, as it is typed."""
        return Markup("<code>{}</code>").format(printable(body))

    def block_math(self, body: str) -> str:
        """A formula on a line of its own."""
        return Markup("<pre>{}</pre>").format(printable(body.strip()))

    def latex_environment(self, name: str, body: str) -> str:
        r"""A formula between \begin and \end."""
        return self.block_math(rf"\begin{{{name}}}{body}\end{{{name}}}")


def highlighted(code: str, language: str = "") -> Markup:
    """Code with its words marked for the page's colours, if its language has any."""
    name = language.lower()
    if name not in _LANGUAGES or len(code) > _LONGEST_CODE:
        return Markup("<pre><code>{}</code></pre>\n").format(printable(code))
    formatter = HtmlFormatter(nowrap=True, classprefix="t-")
    marked = Markup(highlight(printable(code), get_lexer_by_name(name), formatter))
    return Markup('<pre class="highlight"><code>{}</code></pre>\n').format(marked)
