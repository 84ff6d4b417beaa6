"""A notebook as one page: an exporter for nbconvert, with a template of its own.

``jupyter nbconvert --to perfkit.export.notebook.PageExporter`` makes the same page.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbconvert.exporters import Exporter, TemplateExporter
from nbformat import validator
from traitlets import Any as Anything
from traitlets import Enum, List, default

import perfkit
from perfkit.errors import BadFileError, BadParameterError
from perfkit.export.cells import prepared
from perfkit.export.finding import shown
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Environment
    from nbformat import NotebookNode

    from perfkit.findings.store import Recorded


# Only in tags of drawings: in a text "<" is escaped. Nothing that a style sheet could
# take for more than the values of a rule.
_STYLED = re.compile(
    r"(<(?:circle|ellipse|g|line|path|polygon|polyline|rect|text|tspan|use)\b"
    r'(?:[^<>"]|"[^"]*")*?) style="([\w:;#%., -]+)"'
)
_SHEET_ENDS = "</style>"


def compact(html: str) -> str:
    """Give styles that are used more than twice a name."""
    used = collections.Counter(style for _, style in _STYLED.findall(html))
    often = [style for style, count in used.most_common() if count > 2]
    names = {style: f"d{number}" for number, style in enumerate(often)}

    def named(found: re.Match[str]) -> str:
        name = names.get(found[2])
        return f'{found[1]} class="{name}"' if name else found[0]

    rules = "".join(f".{name} {{ {style} }}\n" for style, name in names.items())
    head, end, body = html.partition(_SHEET_ENDS)
    return f"{head}{rules}{end}{_STYLED.sub(named, body)}"


TEMPLATES = Path(__file__).parent / "templates"
NAME = "perfkit"


@functools.cache
def environment() -> Environment:
    """The templates; whatever is put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES / NAME),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["version"] = perfkit.__version__
    return made


def findings_page(findings: Sequence[Recorded]) -> str:
    """Lay one or several findings or diagnoses out as a page."""
    template = environment().get_template("findings.html.j2")
    return compact(template.render(findings=[shown(finding) for finding in findings]))


_ENDS = (".html", ".htm")


def check(path: Path, sources: Iterable[Path]) -> None:
    """Refuse to write where a page cannot or should not be.

    Raises:
        BadParameterError: The name is not one of a page, there is no such folder, or
            it is one of the sources.
    """
    name = plain(str(path))
    if any(_same(path, source) for source in sources):
        raise BadParameterError(f"{name} is what the page is made from; give another.")
    if path.is_dir() or path.suffix.lower() not in _ENDS:
        raise BadParameterError(
            f"{name} is no name for a page; give one that ends in .html."
        )
    if not path.parent.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(path.parent))} to write {name} into."
        )


def write(path: Path, text: str) -> None:
    """Write a page; what was there before stays until the new one is whole.

    Raises:
        BadFileError: It cannot be written.
    """
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        try:
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        reason = error.strerror or error
        raise BadFileError(f"Cannot write {plain(str(path))} ({reason}).") from error


def _same(path: Path, source: Path) -> bool:
    try:
        return path.samefile(source)
    except OSError:
        return path.absolute() == source.absolute()


_NEWEST, _NAMELESS = 4, 4


class PageExporter(TemplateExporter):
    """A notebook's text, code and finished results, as one file without a script."""

    export_from_notebook = "One HTML page (perfkit)"
    output_mimetype = "text/html"
    code = Enum(
        ["folded", "shown", "hidden"],
        default_value="folded",
        help="What to do with code: fold it, show it, or leave it out.",
    ).tag(config=True)
    # None: one of them runs cells, if it is configured to.
    default_preprocessors = List(Anything(), [])

    @default("file_extension")
    def _file_extension(self) -> str:
        return ".html"

    @default("template_name")
    def _template_name(self) -> str:
        return NAME

    @default("extra_template_basedirs")
    def _extra_template_basedirs(self) -> list[str]:
        return [str(TEMPLATES)]

    def _create_environment(self) -> Environment:
        return environment()

    def from_notebook_node(  # type: ignore[override]
        self, nb: NotebookNode, resources: Any = None, **_: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert a notebook; ``resources`` says which file it is from."""
        nb, resources = Exporter.from_notebook_node(self, nb, resources)
        about = resources["metadata"]
        shown = prepared(
            nb,
            Path(about.get("path") or "."),
            about.get("file") or f"{about['name']}.ipynb",
            about.get("saved"),
        )
        made = self.template.render(notebook=shown, code=self.code)
        return compact(made), resources


def notebook_page(path: Path, document: Any, code: str) -> str:
    """Lay a notebook out as a page.

    Args:
        path: Its file.
        document: What the file holds, as JSON reads it.
        code: ``"folded"``, ``"shown"`` or ``"hidden"``.

    Raises:
        BadFileError: It is no sound notebook.
    """
    about = {
        "name": path.stem,
        "file": path.name,
        "path": str(path.parent),
        "saved": path.stat().st_mtime,
    }
    exporter = PageExporter(code=code)  # type: ignore[no-untyped-call]
    made, _ = exporter.from_notebook_node(
        _sound(document, plain(path.name)), {"metadata": about}
    )
    return str(made)


def _sound(document: Any, name: str) -> NotebookNode:
    """The document as a notebook of the format's present version."""
    major = document.get("nbformat")
    if not isinstance(major, int) or not 3 <= major <= _NEWEST:
        raise BadFileError(
            f"{name} is of notebook format {plain(str(major), 20)}; open it in "
            "JupyterLab and save it again."
        )
    minor = document.get("nbformat_minor")
    if major == _NEWEST and isinstance(minor, int):
        # Later ones ask for a name of every cell, which some tools leave out.
        document = document | {"nbformat_minor": min(minor, _NAMELESS)}
    fault = _fault(document)
    if fault:
        raise BadFileError(f"{name} is not a sound notebook: {fault}.")
    read = nbformat.reader.reads(  # type: ignore[no-untyped-call]
        json.dumps(document)
    )
    made: NotebookNode = nbformat.convert(  # type: ignore[no-untyped-call]
        read, _NEWEST
    )
    return made


def _fault(document: dict[str, Any]) -> str:
    """What is wrong with a document, in a line; "" if nothing."""
    faults = validator.iter_validate(  # type: ignore[no-untyped-call]
        document, relax_add_props=True
    )
    try:
        fault = next(faults, None)
    except (TypeError, KeyError):
        # What the validator would say begins with the kind of the cell.
        return "a cell is of no known kind"
    return plain(str(fault).partition("\n")[0], 200) if fault is not None else ""
