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
    Pictures,
    clean,
    printable,
    shows_something,
    to_img,
)
from perfkit.findings.report import render
from perfkit.findings.store import whole_file
from perfkit.findings.text import cut, plain

# With every picture that it holds.
_LARGEST = 256 * 10**6
_FORMAT, _NAMELESS = 4, 4
_LONGEST_TITLE = 300
# As a report begins, once it is cleaned.
_ANSWER = re.compile(
    r'<p class="perfkit-answer">(.*?)</p>(?:<p class="perfkit-much">(.*?)</p>)?'
)
# What stands above a report says what was compared.
_HEADING = re.compile(r"<h[2-6][^>]*>(.*?)</h[2-6]>", re.DOTALL)
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
    """The document as a notebook of the format that Jupyter has had since 2015."""
    major, minor = document.get("nbformat"), document.get("nbformat_minor")
    if major != _FORMAT:
        raise BadFileError(
            f"{name} is of notebook format {plain(str(major), 20)}; open it in "
            "JupyterLab and save it again."
        )
    if isinstance(minor, int):
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
        return nbformat.reader.reads(json.dumps(document))
    except RecursionError as error:
        raise BadFileError(f"{name} is nested too deeply to be shown.") from error


def notebook_page(path: Path) -> str:
    """Lay the notebook of a file out as a page; nothing outside its folder is read.

    Raises:
        BadFileError: It is no sound notebook.
    """
    document: Any = None
    name, data = plain(path.name), whole_file(path, _LARGEST)
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(data)
    if not isinstance(document, dict) or "nbformat" not in document:
        raise BadFileError(f"{name} is not a notebook, or its end is missing.")
    notebook, pictures = _sound(document, name), Pictures(path.parent)
    cells = [
        _cell(cell, pictures, f"cell-{n}") for n, cell in enumerate(notebook.cells)
    ]
    title = notebook.metadata.get("title")
    heading = escape(plain(title) if isinstance(title, str) else name)
    if cells and cells[0].text.startswith("<h1"):
        title, _, remainder = cells[0].text.partition("</h1>")
        heading = Markup(title.partition(">")[2])
        cells[0] = replace(cells[0], text=Markup(remainder))
    time = datetime.datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    return render(
        "notebook.html.j2",
        title=plain(heading.striptags(), _LONGEST_TITLE),
        heading=heading,
        source=f"Made from {name}, saved {time:%Y-%m-%d %H:%M}. The export "
        "runs nothing: results are as they were saved.",
        warnings=list(_warnings(notebook)),
        conclusions=_conclusions(cells),
        cells=cells,
    )


@dataclass(frozen=True)
class _Cell:
    """The prose of a cell, or its code in colour and what it gave out."""

    text: str = ""
    code: str = ""
    label: str = ""
    outputs: Sequence[Markup] = ()
    place: str = ""


def _conclusions(cells: Sequence[_Cell]) -> list[tuple[str, str, str, Markup]]:
    """What reports say first: place, heading above, answer, how much and how sure."""
    places, heading = dict[tuple[str, Markup], tuple[str, str]](), ""
    for cell in cells:
        for found in _HEADING.finditer(cell.text):
            heading = Markup(found[1]).striptags()
        for match in _ANSWER.finditer("".join(cell.outputs)):
            answer = Markup(match[1]).striptags(), Markup(match[2] or "")
            places.setdefault(answer, (cell.place, heading))
    return [(*place, *answer) for answer, place in places.items()]


def _cell(cell: NotebookNode, pictures: Pictures, place: str) -> _Cell:
    pictures.attached = cell.get("attachments", {})
    if cell.cell_type == "markdown":
        return _Cell(text=markdown(cell.source, pictures))
    if cell.cell_type == "raw":
        return _Cell(text=Markup("<pre>{}</pre>").format(printable(cell.source)))
    source = cell.source.strip("\n")
    return _Cell(
        code=highlighted(source, "python") if source.strip() else "",
        label="Code" if _was_run(cell) else "Code, not run",
        outputs=[html for html in outputs(cell.outputs, pictures) if html],
        place=place,
    )


def outputs(items: Iterable[NotebookNode], pictures: Pictures) -> Iterator[Markup]:
    """Show what a cell gave out."""
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
                alt = _alt(output.data, output.metadata)
                yield _display(output.data, alt, pictures)


def _display(data: Mapping[str, Any], alt: str, pictures: Pictures) -> Markup:
    # Below a panel, for those who load its notebook once the kernel is gone.
    if 'class="perfkit-lost"' in str(data.get("text/html", "")):
        return Markup("")
    is_live = any(
        kind.startswith("application/vnd.") or kind.endswith("javascript")
        for kind in data
    )
    for form in _FORMS:
        # The text form of what is live is its address in the kernel.
        if form in data and not (form == "text/plain" and is_live):
            markup = _form(form, str(data[form]), alt, pictures)
            if shows_something(markup):
                return markup
    if not is_live and "text/html" not in data:
        return Markup("")
    words = "A control or a script draws something here; only the notebook shows it."
    return Markup('<p class="missing">{}</p>').format(words)


def _form(form: str, value: str, alt: str, pictures: Pictures) -> Markup:
    match form:
        case "text/html" | "image/svg+xml":
            return clean(value, pictures, alt)
        case "text/markdown":
            return markdown(value, pictures)
        case "text/plain":
            return _text(value, "out")
    return to_img(pictures, f"data:{form};base64,{value}", alt)


def _alt(data: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """What a picture shows: as it says itself, or its form as text."""
    alt, words = about.get("alt"), str(data.get("text/plain", ""))
    if not isinstance(alt, str) or not alt:
        alt = "" if words.startswith("<") else words
    return plain(alt, _LONGEST_ALT) or "Figure"


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
    return "\n".join(cut(line, _LONGEST_LINE) for line in lines)


def _warnings(notebook: NotebookNode) -> Iterator[str]:
    """What a reader has to know before they trust the outputs, a sentence each."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    code = [cell for cell in cells if cell.source.strip()]
    run = [cell for cell in code if _was_run(cell)]
    if missing := len(code) - len(run):
        yield f"Not run: {missing} of its {len(code)} code cells. They have no results."
    counts = [cell.execution_count for cell in run if cell.execution_count]
    if counts != sorted(counts):
        yield (
            "Its cells were not run from top to bottom, so a result may come from code "
            "that has changed since."
        )


def _was_run(cell: NotebookNode) -> bool:
    """Whether a code cell has been run since its outputs were last cleared."""
    return cell.execution_count is not None or bool(cell.outputs)


# No cell that a person wrote is longer, and what is parsed slowly ends here.
_LONGEST_MARKDOWN = 50_000
_LONGEST_CODE = 20_000
# Whose colours are told by a short and quick lexer.
_LANGUAGES = {"python", "py", "bash", "sh"}


def markdown(text: str, pictures: Pictures) -> Markup:
    """Turn the Markdown of a notebook into HTML for a page, as ``clean`` leaves it."""
    if len(text) > _LONGEST_MARKDOWN:
        return Markup("<pre>{}</pre>").format(printable(text[:_LONGEST_MARKDOWN]))
    html = MarkdownWithMath(renderer=_Renderer(escape=False)).render(text)
    return clean(html, pictures, alt="Picture")


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


def highlighted(code: str, language: str = "") -> Markup:
    """Code with its words marked for the page's colours, if its language has any."""
    if language not in _LANGUAGES or len(code) > _LONGEST_CODE:
        return Markup("<pre><code>{}</code></pre>\n").format(printable(code))
    formatter = HtmlFormatter(nowrap=True, classprefix="t-")
    marked = highlight(printable(code), get_lexer_by_name(language), formatter)
    return Markup('<pre class="highlight"><code>{}</code></pre>\n').format(
        Markup(marked)
    )
