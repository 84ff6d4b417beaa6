"""Findings, or a notebook, as one HTML file that can be sent to anybody.

The file needs no network and no script. It is made from finished results: nothing is
run for it.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from perfkit.errors import BadFileError, BadParameterError, need
from perfkit.findings.account import Account
from perfkit.findings.page import page
from perfkit.findings.store import RECORDED, Recorded, read, whole_file
from perfkit.findings.text import plain

Code = Literal["folded", "shown", "hidden"]
CODE: tuple[str, ...] = get_args(Code)
# With every picture that a notebook holds.
_LARGEST = 256 * 10**6


@dataclass(frozen=True)
class Notebook:
    """The file of a notebook and what it holds, as JSON reads it."""

    path: Path
    document: dict[str, Any]


def export(
    sources: Recorded
    | Account
    | str
    | Path
    | Iterable[Recorded | Account | str | Path],
    path: str | Path | None = None,
    *,
    code: Code = "folded",
) -> Path:
    """Make a page of one notebook, or of one or several findings.

    Args:
        sources: A finding, a diagnosis or an account, the file of one, or of a
            notebook; several findings make one page.
        path: The page's file; None for the source's name, in its folder.
        code: Whether the code of a notebook is folded, shown or hidden.

    Returns:
        Where the page is.

    Raises:
        BadFileError: A source is neither a finding nor a notebook, or the page cannot
            be written.
        BadParameterError: The sources do not go together, or ``path`` is not a name
            for a page.
        MissingPartError: The extra "lab", which a notebook needs, is not installed.
    """
    if code not in CODE:
        raise BadParameterError(f"code is {code!r}; choose from {', '.join(CODE)}.")
    documents = [_read(source) for source in _listed(sources)]
    files = [source.path for source in documents if source.path is not None]
    place = _beside(files, len(documents)) if path is None else path
    return page.save(place, lambda: _page(documents, code), files)


def _listed(sources: Any) -> list[Any]:
    """One source as a list of one."""
    if isinstance(sources, str | Path) or not hasattr(sources, "__iter__"):
        return [sources]
    return list(sources)


def _read(source: Any) -> Recorded | Account | Notebook:
    if isinstance(source, Recorded | Account):
        return source
    if not isinstance(source, str | Path):
        raise BadParameterError(
            f"{plain(repr(source), 80)} cannot be exported; give a finding, or the "
            "file of a finding or of a notebook."
        )
    path = Path(os.path.expanduser(source))
    try:
        document = json.loads(whole_file(path, _LARGEST))
    except (BadFileError, ValueError, RecursionError):
        # What is no JSON at all is told by who reads findings.
        document = {"kind": ""}
    if isinstance(document, dict) and "nbformat" in document:
        return Notebook(path, document)
    if isinstance(document, dict) and "kind" in document:
        types: tuple[type[Recorded | Account], ...] = *RECORDED, Account
        return read(path, *types)
    raise BadFileError(f"{plain(path.name)} is neither a notebook nor a finding.")


def _beside(files: Sequence[Path], count: int) -> Path:
    if count != 1:
        raise BadParameterError("A page of several findings needs a name; give one.")
    if not files:
        raise BadParameterError("This finding is not saved; give the page a name.")
    return files[0].with_suffix(".html")


def _page(sources: Sequence[Recorded | Account | Notebook], code: str) -> str:
    if not sources:
        raise BadParameterError("There is nothing to export; give a finding.")
    findings = [source for source in sources if not isinstance(source, Notebook)]
    if len(findings) == len(sources):
        return page.findings_page(findings)
    if len(sources) > 1:
        raise BadParameterError("A page holds findings, or exactly one notebook.")
    for module in ("nbconvert", "latex2mathml"):
        need(module, "A notebook as a page", "lab")
    from perfkit.findings.page.notebook import notebook_page

    (notebook,) = (source for source in sources if isinstance(source, Notebook))
    return notebook_page(notebook.path, notebook.document, code)
