"""Findings, or a notebook, as one HTML file that can be sent to anybody.

The file needs no network and no script. It is made from finished results: nothing is
run for it.

This module lays reports out. ``notebook`` converts a notebook, and ``clean`` removes
whatever its outputs hold that could act.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from perfkit.errors import BadParameterError, need
from perfkit.findings import reports
from perfkit.findings.account import Account
from perfkit.findings.record import Picture, pictures
from perfkit.findings.report import Report, beside_chart, folds_in_html, in_html, render
from perfkit.findings.store import RECORDED, Recorded, finding_of, read, write_as
from perfkit.findings.text import plain, printable

_ENDS = (".html", ".htm")
Source = Recorded | Account | str | Path


def export(sources: Source | Iterable[Source], path: str | Path | None = None) -> Path:
    """Make a page of one notebook, or of one or several findings.

    Args:
        sources: A finding, a diagnosis or an account, the file of one, or of a
            notebook; several findings make one page.
        path: The page's file; None for the source's name, in its folder.

    Returns:
        Where the page is.

    Raises:
        BadFileError: A source is neither a finding nor a notebook, or the page cannot
            be written.
        BadParameterError: The sources do not go together, or ``path`` is not a name
            for a page.
        MissingPartError: The extra "lab", which a notebook needs, is not installed.
    """
    is_one = isinstance(sources, str | Path) or not isinstance(sources, Iterable)
    items: Any = [sources] if is_one else sources
    documents = [_read(source) for source in items]
    places = (d if isinstance(d, Path) else d.path for d in documents)
    files = [place for place in places if place is not None]
    if path is None and len(documents) != 1:
        raise BadParameterError("A page of several findings needs a name; give one.")
    if path is None and not files:
        raise BadParameterError("This finding is not saved; give the page a name.")
    place = files[0].with_suffix(".html") if path is None else path
    return save(place, lambda: _page(documents), files)


def _read(source: Any) -> Recorded | Account | Path:
    """What a file holds; of a notebook only the path."""
    if isinstance(source, Recorded | Account):
        return source
    if not isinstance(source, str | Path):
        raise BadParameterError(
            f"{plain(repr(source), 80)} cannot be exported; give a finding, or the "
            "file of a finding or of a notebook."
        )
    path = Path(os.path.expanduser(source))
    if path.suffix == ".ipynb":
        return path
    types: tuple[type[Recorded | Account], ...] = *RECORDED, Account
    return read(path, *types)


def _page(sources: Sequence[Recorded | Account | Path]) -> str:
    if not sources:
        raise BadParameterError("There is nothing to export; give a finding.")
    findings = [source for source in sources if not isinstance(source, Path)]
    if len(findings) == len(sources):
        return findings_page(findings)
    if len(sources) > 1:
        raise BadParameterError("A page holds findings, or exactly one notebook.")
    need("nbconvert", "A notebook as a page", "lab")
    from perfkit.findings.page.notebook import notebook_page

    (path,) = (source for source in sources if isinstance(source, Path))
    return notebook_page(path)


def laid_out(sheets: Sequence[tuple[Report, Iterable[Picture]]]) -> str:
    """Lay one report or several out as a page, each with its charts."""
    level = 1 if len(sheets) == 1 else 2
    pages = [_sheet(report, figures, level) for report, figures in sheets]
    title = pages[0]["title"] if level == 1 else f"{len(pages)} findings"
    return render("reports.html.j2", pages=pages, title=title)


def _sheet(report: Report, figures: Iterable[Picture], level: int) -> dict[str, str]:
    """One sheet of paper: a report with its first chart, under a heading of this level.

    The appendix holds the other charts and all that a notebook folds away, laid open.
    """
    svgs = (figure.in_page(f"f{number}-") for number, figure in enumerate(figures, 1))
    first, *later = [f"<figure>{svg}</figure>" for svg in svgs] or [""]
    folded = beside_chart(report) if first else report
    summary = replace(folded, folds=(), foot=(report.repeat,))
    charts = f"<h{level + 1}>Charts</h{level + 1}>" if later else ""
    appendix = [charts, *later, folds_in_html(folded.filled, level=level + 1)]
    line = Markup('<p class="machine">{}</p>')
    below = Markup().join(line.format(printable(text)) for text in report.foot)
    html = in_html(summary, figure=first, style="", answer=f"h{level}", below=below)
    return {
        "title": report.verdict.headline.replace("`", ""),
        "report": Markup(html),
        "appendix": Markup("".join(appendix)),
        "about": " ".join(report.foot),
    }


def findings_page(findings: Iterable[Recorded | Account]) -> str:
    """Lay one or several findings, diagnoses or accounts out as a page."""
    return laid_out([_shown(finding) for finding in findings])


def _shown(document: Recorded | Account) -> tuple[Report, Iterable[Picture]]:
    """What a page shows of a document, with what that was measured on."""
    report = document.report
    if isinstance(document, Account):
        return report, ()
    folds = (*report.folds, reports.facts(finding_of(document)))
    return replace(report, folds=folds), pictures(document)


def save(
    path: str | Path, make: Callable[[], str], sources: Iterable[Path] = ()
) -> Path:
    """Write a page, made once it is known that it can go there, of these files.

    What was there before stays until the page is whole.

    Raises:
        BadFileError: It cannot be written.
        BadParameterError: The name is not one of a page, there is no such folder, or
            it is one of the sources.
    """
    path = Path(os.path.expanduser(path))
    name = plain(str(path))
    if os.path.realpath(path) in map(os.path.realpath, sources):
        raise BadParameterError(f"{name} is the page's source; give another name.")
    if path.is_dir() or path.suffix.lower() not in _ENDS:
        raise BadParameterError(
            f"{name} is not a page's name; give one that ends in .html."
        )
    if not path.parent.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(path.parent))} to write {name} into."
        )
    return write_as(path, make().encode(), "page")
