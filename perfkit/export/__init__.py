"""Findings, or a notebook, as one HTML file that can be sent to anybody.

The file needs no network and no script. It is made from finished results: nothing is
run for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from perfkit.errors import BadParameterError, need

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perfkit.export.markdown import Notebook
    from perfkit.findings.store import Recorded

__all__ = ["export"]

Code = Literal["folded", "shown", "hidden"]
CODE: tuple[str, ...] = get_args(Code)


def export(
    sources: Recorded | str | Path | Iterable[Recorded | str | Path],
    path: str | Path | None = None,
    *,
    code: Code = "folded",
) -> Path:
    """Make a page of one notebook, or of one or several findings.

    Args:
        sources: A finding or a diagnosis, the file of one, or of a notebook; several
            findings make one page.
        path: Where it goes; None for beside the one source, under its name.
        code: Whether the code of a notebook is folded, shown or hidden.

    Returns:
        Where the page is.

    Raises:
        BadFileError: A source is neither a finding nor a notebook, or the page cannot
            be written.
        BadParameterError: The sources do not go together, or ``path`` is no place for
            a page.
        MissingPartError: The extra "lab", which a notebook takes, is not installed.
    """
    from perfkit.export import markdown, page

    if code not in CODE:
        raise BadParameterError(f"code is {code!r}; choose from {', '.join(CODE)}.")
    read = [markdown.read(source) for source in markdown.listed(sources)]
    files = [source.path for source in read if source.path is not None]
    target = (
        Path(os.path.expanduser(path))
        if path is not None
        else _beside(files, len(read))
    )
    page.check(target, files)
    page.write(target, _page(read, code))
    return target


def _beside(files: Sequence[Path], count: int) -> Path:
    if count == 1 and files:
        return files[0].with_suffix(".html")
    if count == 1:
        raise BadParameterError("This finding is not saved; say where the page goes.")
    raise BadParameterError("A page of several findings needs a name; say where.")


def _page(sources: Sequence[Recorded | Notebook], code: str) -> str:
    from perfkit.export.markdown import Notebook
    from perfkit.export.page import findings_page

    findings = [source for source in sources if not isinstance(source, Notebook)]
    if not sources:
        raise BadParameterError("There is nothing to export; give a finding.")
    if len(findings) == len(sources):
        return findings_page(findings)
    if len(sources) > 1:
        raise BadParameterError("A page holds findings, or one notebook and no more.")
    need("nbconvert", "A notebook as a page", "lab")
    from perfkit.export.notebook import notebook_page

    (notebook,) = (source for source in sources if isinstance(source, Notebook))
    return notebook_page(notebook.path, notebook.document, code)
