"""A page for a colleague: the report, then an appendix with all that it rests on."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from perfkit import __version__
from perfkit.errors import BadParameterError
from perfkit.findings import reports
from perfkit.findings.account import Account
from perfkit.findings.report import STYLE, Fold, Report, folds_in_html, in_html
from perfkit.findings.shown import Picture, pictures
from perfkit.findings.store import Recorded, finding_of, write_as
from perfkit.findings.text import plain, printable, templates

_ENDS = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report as a page holds it.

    Attributes:
        title: What it says, as text.
        report: What a colleague reads first, with its chart: one sheet of paper.
        appendix: The other charts and all that a notebook folds away, laid open.
        about: What it was measured on, and when.
    """

    title: str
    report: Markup
    appendix: Markup
    about: str = ""


def page_of(report: Report, figures: Iterable[Picture], *, level: int = 1) -> Page:
    """Prepare a report for a page, the chart that stands with it first.

    Its heading is of that level.
    """
    svgs = (figure.in_page(f"f{number}-") for number, figure in enumerate(figures, 1))
    first, *later = [f"<figure>{svg}</figure>" for svg in svgs] or [""]
    summary = replace(report, folds=(), foot=(report.repeat,))
    folds, table = report.filled, report.table
    if first and report.charted and table and table.rows:
        # The chart has its rows.
        summary = replace(summary, table=None)
        folds = itertools.chain([Fold(table.title, tables=(table,))], folds)
    charts = f"<h{level + 1}>Charts</h{level + 1}>" if later else ""
    appendix = [charts, *later, folds_in_html(folds, level=level + 1)]
    line = Markup('<p class="machine">{}</p>')
    below = Markup().join(line.format(printable(text)) for text in report.foot)
    html = in_html(summary, figure=first, style="", answer=f"h{level}", below=below)
    return Page(
        title=report.verdict.headline.replace("`", ""),
        report=Markup(html),
        appendix=Markup("".join(appendix)),
        about=" ".join(report.foot),
    )


def of_finding(document: Recorded | Account, *, level: int = 1) -> Page:
    """Prepare a finding, a diagnosis or an account for a page as ``page_of`` does."""
    if isinstance(document, Account):
        return page_of(document.report, (), level=level)
    finding = finding_of(document)
    report = document.report
    report = replace(report, folds=(*report.folds, reports.facts(finding)))
    return page_of(report, pictures(document), level=level)


def laid_out(pages: Sequence[Page], title: str = "") -> str:
    """Lay one report or several out as a page."""
    return render("reports.html.j2", pages=pages, title=title or pages[0].title)


def findings_page(findings: Sequence[Recorded | Account]) -> str:
    """Lay one or several of what ``of_finding`` takes out as a page."""
    if len(findings) == 1:
        return laid_out([of_finding(findings[0])])
    pages = [of_finding(finding, level=2) for finding in findings]
    return laid_out(pages, f"{len(pages)} findings")


def render(template: str, **values: Any) -> str:
    """Lay a page out; whatever is put into its template is escaped."""
    values |= {"version": __version__, "style": Markup(STYLE)}
    return templates().get_template(template).render(values)


def save(
    path: str | Path, make: Callable[[], str], sources: Iterable[Path] = ()
) -> Path:
    """Make a page and write it; what was there before stays until it is whole.

    Args:
        path: Where to.
        make: Makes it, once it is known that it can go there.
        sources: The files that it is made from.

    Raises:
        BadFileError: It cannot be written.
        BadParameterError: The name is not one of a page, there is no such folder, or
            it is one of the sources.
    """
    path = Path(os.path.expanduser(path))
    _check(path, sources)
    return write_as(path, make().encode(), "page")


def _check(path: Path, sources: Iterable[Path]) -> None:
    name = plain(str(path))
    if any(_is_same_file(path, source) for source in sources):
        raise BadParameterError(f"{name} is the page's source; give another name.")
    if path.is_dir() or path.suffix.lower() not in _ENDS:
        raise BadParameterError(
            f"{name} is not a page's name; give one that ends in .html."
        )
    if not path.parent.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(path.parent))} to write {name} into."
        )


def _is_same_file(path: Path, source: Path) -> bool:
    try:
        return path.samefile(source)
    except OSError:
        return path.absolute() == source.absolute()
