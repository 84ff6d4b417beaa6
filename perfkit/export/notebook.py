"""A notebook as one page: an exporter for nbconvert, with a template of its own.

``jupyter nbconvert --to perfkit.export.notebook.PageExporter`` makes the same page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbconvert.exporters import Exporter, TemplateExporter
from nbformat import validator
from traitlets import Any as Anything
from traitlets import Enum, List, default

from perfkit.errors import BadFileError
from perfkit.export.cells import prepared
from perfkit.export.page import NAME, TEMPLATES, compact, environment
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from jinja2 import Environment
    from nbformat import NotebookNode


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
        notebook = prepared(
            nb,
            Path(about.get("path") or "."),
            about.get("file") or f"{about['name']}.ipynb",
            about.get("saved"),
        )
        made = self.template.render(notebook=notebook, code=self.code)
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
