"""A fleet shown, while it runs and afterwards: in words, a terminal, a notebook."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings import report as reports
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.report import STYLE, Report, Table
from perfkit.findings.standing import standings
from perfkit.findings.text import plain
from perfkit.fleet.members import Gathered, Member

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

HEADINGS = ("host", "outcome", "fastest", "took", "what it found, or why not")
_WAITING = "waiting for its turn"


def state(member: Member) -> str:
    """What a member does now, in a few words."""
    if member.how:
        return f"{member.how}: {plain(member.said)}"
    if member.began is None:
        return _WAITING
    told = (member.doing, member.left, member.silent, member.behind)
    return ", ".join(filter(None, told))


def brief(member: Member) -> str:
    """A line that says only what changes seldom, for where lines cannot be redrawn."""
    doing = "measuring" if member.share else "getting ready"
    # The numbers of the evidence change all the time.
    doing += ", behind the others" if member.behind else ""
    if member.how:
        doing = f"{member.how}: {plain(member.said, 200)}"
    elif member.began is None:
        doing = _WAITING
    elif member.silent:
        doing = "nothing is heard of it"
    return f"{member.name}: {doing}"


def summary(members: Sequence[Member]) -> str:
    """How many are where, as ``"3 running, 1 completed"``."""
    found = Counter(
        member.how or ("running" if member.running else "waiting") for member in members
    )
    return ", ".join(f"{count} {how}" for how, count in found.items())


@contextlib.contextmanager
def drawn_on(console: "Console") -> Iterator[Callable[[Sequence[Member]], None]]:
    """Give what draws the members anew or, where that cannot be, a line for what is."""
    if not console.is_terminal:
        drawn: dict[str, str] = {}

        def draw(members: Sequence[Member]) -> None:
            for member in members:
                line = brief(member)
                if drawn.get(member.key) != line:
                    drawn[member.key] = line
                    print(line, file=console.file, flush=True)

        yield draw
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda members: live.update(_in_terminal(members), refresh=True)


def rows_in_html(members: Sequence[Member]) -> str:
    """The members while they run, for a notebook."""
    lines = "".join(
        f"<tr><th scope='row'>{escape(member.name)}</th>"
        f"<td><progress max='1' value='{_share(member):.3f}' aria-label="
        f"'Share of the run of {escape(member.name, quote=True)} that is done'>"
        f"</progress></td><td>{escape(plain(state(member)))}</td></tr>"
        for member in members
    )
    table = f"<table><caption>{escape(summary(members))}</caption>{lines}</table>"
    return f"<style>{STYLE}</style><div class='perfkit-report'>{table}</div>"


def _in_terminal(members: Sequence[Member]) -> "RenderableType":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for member in members:
        said = Text(plain(state(member)), overflow="ellipsis", no_wrap=True)
        bar = ProgressBar(total=1.0, completed=_share(member), width=20)
        name = Text(member.name, no_wrap=True)
        table.add_row(name, bar, Text(units.percent(_share(member))), said)
    return Group(table, Text(summary(members), style="dim"))


def _share(member: Member) -> float:
    return 1.0 if member.how else member.share


def report(gathered: Gathered) -> Report:
    """What a person reads of it: how many sent something, each, what stands out."""
    headline, *besides = closing(gathered)
    return Report(
        verdict=Verdict(headline=headline),
        question=gathered.asked,
        table=Table("Every machine", HEADINGS, tuple(map(cells, gathered.outcomes))),
        besides=tuple(besides),
    )


def cells(outcome: Member) -> tuple[str, str, str, str, str]:
    """The row of a member in the closing table."""
    took = units.seconds(round(outcome.seconds)) if outcome.seconds else ""
    return outcome.name, outcome.how, _fastest(outcome), took, outcome.said


def _fastest(outcome: Member) -> str:
    """The variant that is fastest on that machine, with its rate."""
    if not isinstance(outcome.document, Finding):
        return ""
    places = {s.variant: s.place for s in standings(outcome.document)}
    best = [t for t in outcome.document.timings if places.get(t.variant) == "fastest"]
    return f"{plain(best[0].variant)}, {best[0].in_words()}" if best else ""


def closing(gathered: Gathered) -> Iterator[str]:
    """What is to be said of all of them together, a sentence each."""
    kept = [outcome.document for outcome in gathered.outcomes if outcome.document]
    took = units.seconds(round(gathered.seconds))
    early = " It was stopped." if gathered.stopped else ""
    of = len(gathered.outcomes)
    yield f"{len(kept)} of {of} sent what they measured, in {took}.{early}"
    yield from gathered.slow()
    found = Counter(
        plain(document.machine.versions.get("tensorflow", "none"), 40)
        for document in kept
    )
    if len(found) > 1:
        told = ", ".join(f"{version} on {count}" for version, count in found.items())
        yield f"They do not have the same TensorFlow: {told}."


def write(gathered: Gathered, console: "Console") -> None:
    """Write the closing table to a terminal or a file."""
    reports.write(report(gathered), console, whole=True)
    say = reports.sayer(console)
    for outcome in gathered.outcomes:
        if outcome.path:
            say(f"Saved, {outcome.name}: {outcome.path}", whole=True)


def in_html(gathered: Gathered) -> str:
    """The same for a notebook, with each finding folded away below."""
    folded = "".join(
        f"<details><summary>{escape(outcome.name)}</summary>"
        f"{outcome.document._repr_html_()}</details>"
        for outcome in gathered.outcomes
        if outcome.document
    )
    return reports.in_html(report(gathered), figure=folded)
