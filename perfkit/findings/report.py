"""A report: what to do, how much that brings, how sure that is; the rest folded away.

Whatever perfkit answers becomes one ``Report``: a finding, a diagnosis, a profile, an
examination, two machines, a class. It is laid out twice: by ``write`` for a terminal or
a log, by ``in_html`` for a notebook and for a page.
"""

import difflib
import functools
import io
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from perfkit import __version__, units
from perfkit.engine.statistics import Sure
from perfkit.findings.text import (
    as_sentence,
    one_line,
    place_in_words,
    printable,
    templates,
)
from perfkit.machine.environment import is_named

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

_WIDTH = 120
# What begins a line that is to be copied, and so stays in one piece.
TO_TYPE = "  do: "
# A reader of a terminal sees this many rows; all of them with ``in_full``.
_ROWS = 8
# Less of a bar is not seen.
_LEAST_DRAWN = 0.004


@dataclass(frozen=True)
class Table:
    """Rows under a title; the first cell of a row is its name.

    A row is as long as ``headings``, and a cell may have several lines. The row of
    number ``strong`` stands out.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: int = -1


@dataclass(frozen=True)
class Fold:
    """What stands one click away, under a title; ``code`` is names with their lines."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    code: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of code in a listing, or a heading above some.

    Its share is of all that the listing is about; None for a line that is only context.
    ``kinds`` is the same share, by what it went into.
    """

    heading: str = ""
    number: int = 0
    code: str = ""
    share: float | None = None
    kinds: tuple[float, ...] = ()
    remark: str = ""
    strong: bool = False

    @property
    def bar_parts(self) -> list[tuple[int, float]]:
        """The kinds that its bar shows, by number, each with its share."""
        return [(n, part) for n, part in enumerate(self.kinds) if part >= _LEAST_DRAWN]


@dataclass(frozen=True)
class Listing:
    """Lines of code with what each takes, and in a few words what is left out.

    ``kinds`` are what the parts of a share went into, in the order of ``Row.kinds``.
    """

    rows: tuple[Row, ...]
    kinds: tuple[str, ...]
    folded: str = ""

    @property
    def shown_kinds(self) -> list[int]:
        """The numbers of the kinds that any line has a share of."""
        shares = list(zip(*(row.kinds for row in self.rows if row.kinds), strict=False))
        return [number for number, share in enumerate(shares) if any(share)]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Lines of code, and what to write in their place.

    Attributes:
        file: Its name, without a folder; "" for a cell that was run.
        cell: Of a notebook: which of its cells of code, from 1, and ``line`` counts in
            it; 0 for all else.
        line: The first of the old lines, from 1; 0 for code that is an example.
        old: What stands there; where lines are only added, the one that they follow.
        new: What to write there; "" where lines are only deleted, and None where the
            place is known and what to write is not.
    """

    file: str = ""
    cell: int = 0
    line: int = 0
    old: str
    new: str | None

    @property
    def lines(self) -> range:
        """The numbers of the old lines."""
        return range(self.line, self.line + self.old.count("\n") + 1)

    @property
    def where(self) -> str:
        """The place in words: ``"train.py, line 12"``; "" for an example."""
        if not self.line:
            return ""
        first, last = self.line, self.lines[-1]
        lines = f"lines {first}-{last}" if last > first else f"line {first}"
        return place_in_words(self.file, self.cell, lines)

    def signed(self) -> Iterator[tuple[str, str]]:
        """Each line after ``"-"`` if it goes, ``"+"`` if it comes, else ``" "``."""
        # Deeply nested code keeps its shape, not its distance from the margin.
        lines = textwrap.dedent("\n".join([self.old, self.new or ""])).split("\n")
        before, after = lines[: len(self.lines)], lines[len(self.lines) :]
        if self.new is None:
            yield from ((" ", line) for line in before)
            return
        after = after if self.new else []
        diff = difflib.unified_diff(before, after, n=len(before))
        yield from ((line[0], line[1:]) for line in list(diff)[3:])

    def __str__(self) -> str:
        """The place, and under it what goes and what comes."""
        lines = [f"  {sign} {line}" for sign, line in self.signed()]
        return "\n".join([self.where, *lines] if self.where else lines)


@dataclass(frozen=True)
class Fact:
    """A number that a verdict rests on, with its unit and its 95 % interval if any."""

    label: str
    value: str
    interval: str = ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the timings mean, in words: what to do, how much, how sure.

    Attributes:
        headline: One sentence: what to do, or what is so.
        much: What that brings, in a sentence: one ratio, two absolute numbers.
        sure: How sure that is.
        interval: The 95 % interval of the ratio, as ``"1.5 to 2.0"``; "" for none.
        edits: The code as it is, and as it should be.
        warnings: What could change the reader's decision, at most two sentences.
        facts: The numbers it rests on.
        because: What else it rests on that no number says, a sentence each.
        next: What to do after that, or what to measure now.
        winner: The variant the headline names as fastest; "" where none is claimed.
        stamp: Where and when a recording is from; "" for what was run here.
        folds: More of it, as sentences and tables that a reader may unfold.
    """

    headline: str
    much: str = ""
    sure: Sure = ""
    interval: str = ""
    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    because: tuple[str, ...] = ()
    next: str = ""
    winner: str = ""
    stamp: str = ""
    folds: tuple[Fold, ...] = ()

    @property
    def facts_table(self) -> Table:
        """Its facts, a row each."""
        rows = tuple((fact.label, fact.value, fact.interval) for fact in self.facts)
        return Table("What was measured", ("number", "value", "95 % interval"), rows)

    def _repr_html_(self) -> str:
        fold = Fold("How sure is this?", self.because, (self.facts_table,))
        return in_html(Report(verdict=self, stamp=self.stamp, folds=(fold,)))


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a person reads of an answer.

    Attributes:
        verdict: What to do, how much, how sure; stands first.
        question: What was asked; "" where the answer says it.
        stamp: Where and when a recording is from; "" for what was run here.
        table: The rows that the verdict chose from, seen at once.
        besides: Sentences below it: what is in order, what is not known yet.
        charted: Whether its first chart shows the rows of the table.
        folds: Everything else; those that are empty are not shown.
        repeat: What to type for the same once more, in a sentence.
        foot: What it was measured on, and when.
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
        has_named_folder = is_named(self.path.absolute().parent)
        return f"Saved as {'/'.join(self.path.parts[-1 - has_named_folder :])}"

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


def sayer(console: "Console") -> Callable[..., None]:
    """Give what prints text as it is, without markup or anything a terminal obeys."""
    from rich.text import Text

    def say(text: str = "", style: str = "", *, unbroken: bool = False) -> None:
        for line in text.split("\n"):
            # What is to be copied stays in one piece.
            whole_line = unbroken or "`" in line or not console.is_terminal
            console.print(Text(printable(line), style), soft_wrap=whole_line)

    return say


def write(
    report: Report, console: "Console", *, in_full: bool = False, saved: str = ""
) -> None:
    """Write a report to a terminal or a file.

    ``in_full`` writes all that is folded away elsewhere. ``saved`` says where it is
    saved; "" for as in a page.
    """
    from rich.text import Text

    say, verdict = sayer(console), report.verdict
    if report.stamp:
        say(report.stamp, style="bold")
    say(verdict.headline, style="bold")
    sure = how_sure(verdict)
    if effect := f"{verdict.much} {as_sentence(sure)}".strip():
        say(effect)
    for edit in verdict.edits:
        say(str(edit), unbroken=True)
    for line in "\n".join(f"! {w}" for w in verdict.warnings).splitlines():
        say(line, unbroken=line.startswith(TO_TYPE))
    if report.table and report.table.rows:
        console.print(_rich(report.table, None if in_full else _ROWS))
        omitted = len(report.table.rows) - _ROWS
        if omitted > 0 and not in_full:
            say(f"{omitted} more with --all.")
    for line, strong in _listed(report.listing, in_full=in_full):
        # Its columns stand below each other.
        console.print(Text(printable(line), "bold" if strong else ""), soft_wrap=True)
    if verdict.next:
        say(f"Next: {verdict.next}")
    for line in report.besides:
        say(line)
    for fold in report.filled if in_full else ():
        say(f"\n{fold.title}", style="bold")
        for sentence in fold.sentences:
            say(f"- {sentence}")
        for table in fold.tables:
            if table.title != fold.title:
                say(table.title)
            console.print(_rich(table, None))
        for name, lines in fold.code:
            say(name)
            for line in lines.splitlines():
                say(f"    {line}", unbroken=True)
    for line in report.small:
        say(line, style="dim")
    if report.path:
        say(saved or report.saved, style="dim", unbroken=True)


def in_text(report: Report, *, in_full: bool = False) -> str:
    """The report as text, for a log or a cell without HTML."""
    from rich.console import Console

    file = io.StringIO()
    # In a notebook a console shows what it is given, whatever file it writes to.
    console = Console(file=file, width=_WIDTH, color_system=None, force_jupyter=False)
    write(report, console, in_full=in_full)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _listed(listing: Listing | None, *, in_full: bool) -> Iterator[tuple[str, bool]]:
    """The lines that take most, in the order of the source; all with ``in_full``."""
    if listing is None:
        return
    taking = [(n, r.share) for n, r in enumerate(listing.rows) if r.share is not None]
    limit = None if in_full else _ROWS
    numbers = {n for n, _ in sorted(taking, key=lambda pair: -pair[1])[:limit]}
    several = sum(bool(row.heading) for row in listing.rows) > 1
    for number, row in enumerate(listing.rows):
        if row.heading:
            if several:
                yield row.heading, False
        elif number in numbers and row.share is not None:
            first = max(range(len(row.kinds)), key=row.kinds.__getitem__, default=0)
            kind = listing.kinds[first] if row.kinds else ""
            share = units.percent(row.share)
            code = one_line(row.code, 90)
            yield f"{share:>6}  {kind:<9} {row.number:>5}  {code}", row.strong
            if row.remark:
                yield f"{'':>25}{row.remark}", False


def _rich(table: Table, limit: int | None) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rich_table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for text in table.headings:
        rich_table.add_column(Text(printable(text)), overflow="fold")
    for number, row in enumerate(table.rows[:limit]):
        cells = (Text(printable(cell)) for cell in row)
        rich_table.add_row(*cells, style="bold" if number == table.strong else "")
    return rich_table


# No colour of its own but what shows on light and on dark: the theme of a notebook
# shows through. JupyterLab lays tables of numbers out to the right; these are words.
STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def beside_chart(report: Report) -> Report:
    """The report with its table among the folds, if its chart has the same rows."""
    table = report.table
    if not (report.charted and table and table.rows):
        return report
    fold = Fold(table.title, tables=(table,))
    return replace(report, table=None, folds=(fold, *report.folds))


def in_html(
    report: Report,
    *,
    figure: str = "",
    style: str = STYLE,
    answer: str = "p",
    below: str = "",
) -> str:
    """The report for a notebook or a page.

    ``figure`` is its chart, as HTML. A page holds the ``style`` once, and gives the
    first sentence the tag ``answer``. What is ``below`` stands below how sure it is.
    """
    if figure:
        report = beside_chart(report)
    card = _macros().card(
        report=report,
        sure=how_sure(report.verdict),
        foot=list(filter(None, (*report.small, report.saved))),
        figure=Markup(figure),
        style=Markup(style),
        answer=answer,
        below=Markup(below),
    )
    return str(card)


def folds_in_html(folds: Iterable[Fold], *, level: int) -> str:
    """Folds laid open under headings of a level, for the rest of a page."""
    return str(_macros().opened(folds=folds, level=level))


@functools.cache
def _macros() -> Any:
    """The macros of a report, with nothing between two tags."""
    text = Path(__file__).with_name("report.html.j2").read_text(encoding="utf-8")
    return templates().from_string("".join(map(str.strip, text.splitlines()))).module


def render(template: str, **values: Any) -> str:
    """Lay a page out; whatever is put into its template is escaped."""
    values |= {"version": __version__, "style": Markup(STYLE)}
    return templates().get_template(template).render(values)
