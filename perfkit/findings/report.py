"""A report: what to do, how much that brings, how sure that is; the rest folded away.

Whatever perfkit answers becomes one ``Report``: a finding, a diagnosis, a profile, an
examination, two machines, a class. It is laid out twice: by ``write`` for a terminal or
a log, by ``in_html`` for a notebook and for a page. What a report holds may come from a
file: here, and nowhere before, it is made printable and escaped.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Protocol

from perfkit import units
from perfkit.findings.text import as_sentence, plain, plain_lines, with_code
from perfkit.machine.environment import is_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table as RichTable

    from perfkit.findings.record import Edit, Verdict

# A sentence is never this long; what is comes from a broken or hostile file.
_LONGEST = 2000
_WIDTH = 120
# What begins a line that is to be copied, and so stays in one piece.
TO_TYPE = "  do: "
# A reader of a terminal sees this many rows; all of them with ``whole``.
_ROWS = 8
# Lines that are left out.
_GAP = '<tr class="perfkit-gap"><td colspan="3"></td><td>⋯ {}</td></tr>'
# Less of a bar is not seen.
_LEAST_DRAWN = 0.004
# What a page leaves out on paper.
_LISTING = ' class="perfkit-listing"'


@dataclass(frozen=True)
class Table:
    """Rows under a title; the first cell of a row is its name.

    Attributes:
        title: What they show.
        headings: Of the columns.
        rows: One tuple each, as long as ``headings``; a cell may have several lines.
        strong: The row that stands out; -1 for none.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: int = -1


@dataclass(frozen=True)
class Fold:
    """What stands one click away, under a title: sentences, tables, lines of code.

    Attributes:
        title: What is to be found there.
        sentences: What it says.
        tables: Its numbers.
        code: Names, each with its lines.
    """

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    code: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of code in a listing, or a heading above some.

    Attributes:
        heading: Of the lines below it: a file; "" for a line.
        number: Of the line.
        code: What stands there.
        share: Of all that the listing is about; None for a line that is only context.
        kinds: The same share, by what it went into.
        remark: What was seen there.
        strong: Whether it stands out.
    """

    heading: str = ""
    number: int = 0
    code: str = ""
    share: float | None = None
    kinds: tuple[float, ...] = ()
    remark: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Listing:
    """Lines of code with what each takes.

    Attributes:
        rows: In the order of the source.
        kinds: What the parts of a share went into, in the order of ``Row.kinds``.
        folded: What is left out, in a few words.
    """

    rows: tuple[Row, ...]
    kinds: tuple[str, ...]
    folded: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a person reads of an answer.

    Attributes:
        verdict: What to do, how much, how sure; stands first.
        question: What was asked; "" where the answer says it.
        stamp: Where and when a recording is from; "" for what was run here.
        table: The rows that the verdict chose from, seen at once.
        listing: The user's own lines with what each takes.
        besides: Sentences below it: what is in order, what is not known yet.
        charted: Whether its first chart shows the rows of the table.
        folds: Everything else; those that are empty are not shown.
        repeat: What to type for the same once more, in a sentence.
        foot: What it was measured on, and when.
        path: Where it is saved; None where it is not.
    """

    verdict: Verdict
    question: str = ""
    stamp: str = ""
    table: Table | None = None
    listing: Listing | None = None
    charted: bool = False
    besides: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()
    repeat: str = ""
    foot: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def saved(self) -> str:
        """Where it is, without the way there: a report may be sent to others."""
        if self.path is None:
            return ""
        named = is_named(self.path.absolute().parent)
        return f"Saved as {'/'.join(self.path.parts[-1 - named :])}"

    @property
    def small(self) -> Iterator[str]:
        """The small print: what was asked, on what."""
        if self.question:
            yield f"Asked: {self.question}"
        yield from self.foot

    @property
    def filled(self) -> Iterator[Fold]:
        """The folds that hold something, without their empty tables."""
        for fold in self.folds:
            tables = tuple(table for table in fold.tables if table.rows)
            if fold.sentences or tables or fold.code:
                yield replace(fold, tables=tables)


def how_sure(verdict: Verdict) -> str:
    """How sure it is, and of what: ``"sure: 1.5 to 2.0"``; "" where that is no word."""
    return ": ".join(filter(None, (verdict.sure, verdict.interval)))


class Shown:
    """What has a report and shows itself as one: in a log, in a notebook."""

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        raise NotImplementedError(f"{type(self).__name__} has no report")

    def __repr__(self) -> str:
        return in_text(self.report)

    def _repr_html_(self) -> str:
        return in_html(self.report)


class Saved(Shown):
    """What is kept in a file of its own, and knows where that lies."""

    @property
    def path(self) -> Path | None:
        """Where it is saved; None while it is not."""
        return getattr(self, "_path", None)


class Say(Protocol):
    """Prints lines of text."""

    def __call__(self, text: str = "", style: str = "", *, whole: bool = False) -> None:
        """Print it, an empty line if it is empty; ``whole`` breaks no line."""


def sayer(console: Console) -> Say:
    """Give what prints text as it is, without markup or anything a terminal obeys."""

    def say(text: str = "", style: str = "", *, whole: bool = False) -> None:
        for line in text.split("\n"):
            console.print(
                _line(line),
                style=style,
                markup=False,
                highlight=False,
                emoji=False,
                # What is to be copied stays in one piece.
                soft_wrap=whole or "`" in line or not console.is_terminal,
            )

    return say


def write(
    report: Report, console: Console, *, whole: bool = False, saved: str = ""
) -> None:
    """Write a report to a terminal or a file.

    Args:
        report: What to write.
        console: Where to.
        whole: With all that is folded away elsewhere.
        saved: Where it is saved, as it shall be said; "" for as in a page.
    """
    say, verdict = sayer(console), report.verdict
    if report.stamp:
        say(report.stamp, style="bold")
    say(verdict.headline, style="bold")
    sure = how_sure(verdict)
    if much := f"{verdict.much} {as_sentence(sure)}".strip():
        say(much)
    for line in _typed(verdict.edits):
        say(line, whole=True)
    for line in "\n".join(f"! {w}" for w in verdict.warnings).splitlines():
        say(line, whole=line.startswith(TO_TYPE))
    if report.table and report.table.rows:
        console.print(_rich(report.table, None if whole else _ROWS))
        left = len(report.table.rows) - _ROWS
        if left > 0 and not whole:
            say(f"{left} more with --all.")
    for line, strong in _listed(report.listing, whole=whole):
        # It is printable already, and its columns stand below each other.
        console.print(
            line,
            style="bold" if strong else "",
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=True,
        )
    if verdict.next:
        say(f"Next: {verdict.next}")
    for line in report.besides:
        say(line)
    for fold in report.filled if whole else ():
        say(f"\n{fold.title}", style="bold")
        for sentence in fold.sentences:
            say(f"- {sentence}")
        for table in fold.tables:
            if table.title != fold.title:
                say(table.title)
            console.print(_rich(table, None))
        for name, lines in fold.code:
            say(name)
            for line in plain_lines(lines).splitlines():
                say(f"    {line}", whole=True)
    for line in report.small:
        say(line, style="dim")
    if report.path:
        say(saved or report.saved, style="dim", whole=True)


def in_text(report: Report, *, whole: bool = False) -> str:
    """The report as text, for a log or a cell without HTML."""
    from rich.console import Console

    file = io.StringIO()
    # In a notebook a console shows what it is given, whatever file it writes to.
    console = Console(file=file, width=_WIDTH, color_system=None, force_jupyter=False)
    write(report, console, whole=whole)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _line(text: str) -> str:
    # Code keeps its indentation, and that stands behind a sign.
    words = text.lstrip(" +-")
    return text[: len(text) - len(words)] + plain(words, _LONGEST)


def _typed(edits: Iterable[Edit]) -> Iterator[str]:
    """Each place with what stands there and what to write."""
    for edit in edits:
        if edit.where:
            yield f"  {edit.where}"
        for sign, line in edit.signed():
            yield f"  {sign} {line}"


def _listed(listing: Listing | None, *, whole: bool) -> Iterator[tuple[str, bool]]:
    """The lines that take most, in the order of the source; all with ``whole``."""
    if listing is None:
        return
    taking = [(n, r.share) for n, r in enumerate(listing.rows) if r.share is not None]
    most = None if whole else _ROWS
    shown = {n for n, _ in sorted(taking, key=lambda one: -one[1])[:most]}
    several = sum(bool(row.heading) for row in listing.rows) > 1
    for number, row in enumerate(listing.rows):
        if row.heading:
            if several:
                yield plain(row.heading, 120), False
        elif number in shown and row.share is not None:
            first = max(range(len(row.kinds)), key=row.kinds.__getitem__, default=0)
            kind = listing.kinds[first] if row.kinds else ""
            share = units.percent(row.share)
            code = plain(row.code.strip(), 90)
            yield f"{share:>6}  {kind:<9} {row.number:>5}  {code}", row.strong
            if row.remark:
                yield f"{'':>25}{plain(row.remark, 200)}", False


def _rich(table: Table, most: int | None) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for text in table.headings:
        made.add_column(Text(plain(text)), overflow="fold")
    for number, row in enumerate(table.rows[:most]):
        cells = (Text(plain_lines(cell)) for cell in row)
        made.add_row(*cells, style="bold" if number == table.strong else "")
    return made


# No colour of its own but what shows on light and on dark: the theme of a notebook
# shows through. JupyterLab lays tables of numbers out to the right; these are words.
STYLE = """
.perfkit-report {max-width: 62em; line-height: 1.45; overflow-wrap: anywhere}
.perfkit-report p {margin: .35em 0}
.perfkit-report .perfkit-foot, .perfkit-report summary {opacity: .75; font-size: .92em}
.perfkit-report .perfkit-answer {font-size: 1.35em; font-weight: 650; line-height: 1.25}
.perfkit-report .perfkit-sure {border: 1px solid; border-radius: 99px;
  padding: 0 .55em; font-size: .9em; white-space: nowrap}
.perfkit-report .perfkit-warn {border-left: 4px solid #c80; padding-left: .7em}
.perfkit-report .perfkit-stamp {border: 1px solid; padding: 2px 8px; font-weight: 600}
.perfkit-report pre {background: #80808018 !important; border-radius: 8px;
  padding: .4em .8em; overflow-x: auto; margin: .7em 0}
.perfkit-report pre span {display: block; min-width: max-content}
.perfkit-report .perfkit-old {background: #e5534b30}
.perfkit-report .perfkit-new {background: #3fb95030}
.perfkit-report .perfkit-lines {white-space: pre-wrap}
.perfkit-report .perfkit-scroll {overflow-x: auto}
.perfkit-report table {color: inherit; border-collapse: collapse; margin: .6em 0;
  font-size: .95em; table-layout: auto !important}
.perfkit-report caption {text-align: left; font-weight: 600; caption-side: top}
.perfkit-report table th, .perfkit-report table td {text-align: left !important;
  padding: 3px 16px 3px 0; vertical-align: top; border-bottom: 1px solid #80808060;
  max-width: 30em; min-width: 5em}
.perfkit-report tr.perfkit-strong {font-weight: 600}
.perfkit-report details {border-top: 1px solid #80808060; padding: .4em 0}
.perfkit-report summary {cursor: pointer}
.perfkit-report .perfkit-profiled {opacity: .75; border-style: dashed}
.perfkit-report .perfkit-src table {font: 13px/1.5 ui-monospace, monospace;
  white-space: pre; margin: .7em 0 .2em; background: #80808012; width: 100%}
.perfkit-report .perfkit-src td {border: 0; padding: 0 .5em; min-width: 0;
  max-width: none; vertical-align: middle}
.perfkit-report .perfkit-src td:first-child, .perfkit-report .perfkit-src
  td:nth-child(3) {text-align: right !important; opacity: .8}
.perfkit-report .perfkit-src td:nth-child(2) {min-width: 0}
.perfkit-report .perfkit-src td:last-child {width: 100%}
.perfkit-report .perfkit-src code {background: none; padding: 0; color: inherit}
.perfkit-report .perfkit-say td {opacity: .8; white-space: normal}
.perfkit-report .perfkit-gap td {opacity: .6}
.perfkit-report .perfkit-bar {display: flex; height: .75em;
  width: clamp(3em, 12vw, 8em)}
.perfkit-report .perfkit-bar i, .perfkit-report .perfkit-key i {height: .75em}
.perfkit-report .perfkit-key {display: flex; flex-wrap: wrap; gap: 1em;
  font-size: .85em}
.perfkit-report .perfkit-key i {display: inline-block; width: 1.1em; margin-right: .3em}
.perfkit-report .perfkit-hidden {position: absolute; clip-path: inset(50%);
  height: 1px; width: 1px; overflow: hidden}
.perfkit-report .perfkit-k0 {background: #3b7dc4}
.perfkit-report .perfkit-k1 {background: repeating-linear-gradient(45deg, #1d9a63 0 3px,
  #1d9a6380 3px 6px)}
.perfkit-report .perfkit-k2 {background: repeating-linear-gradient(90deg,
  #d9661f 0 3px, #d9661f80 3px 5px)}
.perfkit-report .perfkit-k3 {background: repeating-linear-gradient(-45deg,
  #a8741a 0 2px, #a8741a70 2px 5px)}
.perfkit-report .perfkit-k4 {background: repeating-linear-gradient(0deg, #8a94a0 0 2px,
  #8a94a060 2px 4px)}
"""


def in_html(
    report: Report,
    *,
    figure: str = "",
    style: str = STYLE,
    answer: str = "p",
    below: str = "",
) -> str:
    """The report for a notebook or a page.

    Args:
        report: What to show.
        figure: Its chart, as HTML, above the folds.
        style: How it looks; a page holds that once.
        answer: The tag of its first sentence.
        below: What stands below how much and how sure, as HTML.
    """
    pieces, folds = [*_head(report, answer, below)], list(report.filled)
    if report.table and report.table.rows:
        if figure and report.charted:
            folds.insert(0, Fold(report.table.title, tables=(report.table,)))
        else:
            pieces.append(_table(report.table))
    if report.listing:
        pieces.append(_listing(report.listing))
    if report.verdict.next:
        pieces.append(f'<p class="perfkit-lines">{_code(report.verdict.next)}</p>')
    pieces += [f"<p>{_code(line)}</p>" for line in report.besides]
    pieces.append(figure)
    pieces += (
        f"<details><summary>{_text(fold.title)}</summary>{_inside(fold)}</details>"
        for fold in folds
    )
    foot = (
        f'<p class="perfkit-foot">{_code(line)}</p>'
        for line in filter(None, (*report.small, report.saved))
    )
    styled = f"<style>{style}</style>" if style else ""
    return f'<div class="perfkit-report">{styled}{"".join([*pieces, *foot])}</div>'


def folds_in_html(folds: Iterable[Fold], *, level: int) -> str:
    """Folds laid open under headings of a level, for the rest of a page."""
    return "".join(
        f"<div{_LISTING * bool(fold.code)}><h{level}>{_text(fold.title)}</h{level}>"
        f"{_inside(fold)}</div>"
        for fold in folds
    )


def _head(report: Report, answer: str, below: str) -> Iterator[str]:
    verdict = report.verdict
    if report.stamp:
        yield f'<p class="perfkit-stamp">{_text(report.stamp)}</p>'
    yield f'<{answer} class="perfkit-answer">{_code(verdict.headline)}</{answer}>'
    sure = how_sure(verdict)
    grey = " perfkit-profiled" if verdict.sure == "profiled" else ""
    pill = f' <span class="perfkit-sure{grey}">{_text(sure)}</span>' if sure else ""
    if verdict.much or pill:
        yield f'<p class="perfkit-much">{_code(verdict.much)}{pill}</p>'
    yield below
    for edit in verdict.edits:
        where = f"<span># {_text(edit.where)}</span>" if edit.where else ""
        kinds = {"-": "old", "+": "new", " ": "kept"}
        lines = (
            f'<span class="perfkit-{kinds[sign]}">{sign} {escape(plain_lines(line))}'
            "</span>"
            for sign, line in edit.signed()
        )
        yield f'<pre tabindex="0">{where}{"".join(lines)}</pre>'
    for warning in verdict.warnings:
        yield f'<p class="perfkit-warn perfkit-lines">{_code(warning)}</p>'


def _inside(fold: Fold) -> str:
    items = "".join(f"<li>{_code(sentence)}</li>" for sentence in fold.sentences)
    listed = f"<ul>{items}</ul>" if items else ""
    tables = (_table(t, named=t.title != fold.title) for t in fold.tables)
    code = (
        f'<p>{_text(name)}</p><pre tabindex="0">{escape(plain_lines(lines))}</pre>'
        for name, lines in fold.code
    )
    return f"{listed}{''.join((*tables, *code))}"


def _listing(listing: Listing) -> str:
    """Lines with a bar by kind, told apart by colour and by pattern, in a table."""
    used = [
        any(r.kinds[n : n + 1] != (0.0,) and r.kinds for r in listing.rows)
        for n in range(len(listing.kinds))
    ]
    rows, last = [], 0
    for row in listing.rows:
        if row.heading:
            last = 0
            rows.append(
                f'<tr><th colspan="4" scope="rowgroup">{_text(row.heading)}</th></tr>'
            )
            continue
        if last and row.number > last + 1:
            rows.append(_GAP.format(""))
        last = row.number
        rows.append(_line_row(row, listing.kinds))
    if listing.folded:
        rows.append(_GAP.format(_text(listing.folded)))
    key = "".join(
        f'<span><i class="perfkit-k{n}"></i>{_text(kind)}</span>'
        for n, kind in enumerate(listing.kinds)
        if used[n]
    )
    return (
        '<div class="perfkit-scroll perfkit-src" role="group" tabindex="0" '
        'aria-label="Where the time goes, line by line"><table>'
        '<thead class="perfkit-hidden"><tr><th scope="col">share</th>'
        '<th scope="col">kinds</th><th scope="col">line</th>'
        f'<th scope="col">code</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
        f'</div><p class="perfkit-key">{key}</p>'
    )


def _line_row(row: Row, kinds: tuple[str, ...]) -> str:
    share = "" if row.share is None else units.percent(row.share)
    parts = [(n, part) for n, part in enumerate(row.kinds) if part >= _LEAST_DRAWN]
    bars = "".join(
        f'<i class="perfkit-k{n}" style="width:{100 * part:.1f}%"></i>'
        for n, part in parts
    )
    said = ", ".join(f"{kinds[n]} {units.percent(part)}" for n, part in parts)
    bar = (
        f'<span class="perfkit-bar" role="img" aria-label="{_text(said)}" '
        f'title="{_text(said)}">{bars}</span>'
        if parts
        else ""
    )
    strength = ' class="perfkit-strong"' if row.strong else ""
    code = escape(plain_lines(row.code))
    remark = (
        '<tr class="perfkit-say"><td colspan="3"></td>'
        f"<td>{_code(row.remark)}</td></tr>"
        if row.remark
        else ""
    )
    return (
        f"<tr{strength}><td>{_kept_together(share)}</td><td>{bar}</td>"
        f"<td>{row.number}</td><td><code>{code}</code></td></tr>{remark}"
    )


def _table(table: Table, *, named: bool = True) -> str:
    head = "".join(f'<th scope="col">{_text(text)}</th>' for text in table.headings)
    body = "".join(
        _row(row, strong=number == table.strong)
        for number, row in enumerate(table.rows)
    )
    caption = f"<caption>{_text(table.title)}</caption>" if named else ""
    return (
        # What can be scrolled must be reached by keyboard as well.
        f'<div class="perfkit-scroll" role="group" aria-label="{_text(table.title)}" '
        f'tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


# A cell of numbers, and what no narrow column shall part in it: a number and its unit.
_NUMBERS = re.compile(r"(?:at most )?[0-9]")
_UNIT = re.compile(r"(?<=[0-9]) (?=(?:%|[nµm]?s)(?![A-Za-z]))")


def _row(cells: tuple[str, ...], *, strong: bool) -> str:
    name, *rest = map(_code, cells or ("",))
    texts = "".join(
        f'<td class="perfkit-lines">{_kept_together(text)}</td>' for text in rest
    )
    strength = ' class="perfkit-strong"' if strong else ""
    return f'<tr{strength}><th scope="row">{name}</th>{texts}</tr>'


def _kept_together(text: str) -> str:
    return _UNIT.sub("\N{NO-BREAK SPACE}", text) if _NUMBERS.match(text) else text


def _text(text: str) -> str:
    return escape(plain(text, _LONGEST))


def _code(text: str) -> str:
    """Escape a text of some lines and set what stands between backticks as code."""
    lines = plain_lines(text) if "\n" in text else plain(text, _LONGEST)
    return with_code(escape(lines))
