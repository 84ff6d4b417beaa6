"""The members of a fleet: how each stands, what it sent, and all of them together.

They are shown, while they run and afterwards, in words, a terminal and a notebook.
"""

import contextlib
import datetime
import secrets
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from perfkit import documents, units
from perfkit.errors import BadFileError, PerfkitError
from perfkit.findings import reading, store
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.report import (
    STYLE,
    Report,
    Shown,
    Table,
    in_html,
    in_text,
    sayer,
    write,
)
from perfkit.findings.standing import standings, unit_of
from perfkit.findings.text import plain
from perfkit.fleet.process import Task
from perfkit.passports import passport as passports
from perfkit.passports.passport import Passport
from perfkit.passports.words import headline

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PASSPORTS = "perfkit-passports"
# A member tells something every second.
SILENT_S = 5.0
_LONGEST = 400
# A text within a text may be twice as long.
_LARGEST_BYTES = 2 * reading.LARGEST_BYTES
_WHAT = "what it sent"
# Fewer others say nothing of what is usual.
_OTHERS = 2
# Of a run: a quarter is more than hosts differ by in getting ready. And a delay that is
# worth a word.
_SHARE, _DELAY_S = 0.25, 5.0
# Of the others' rate: what is less is worth a look at the machine.
_RATE = 0.8
_HEADINGS = ("host", "outcome", "fastest", "took", "what it found, or why not")
_WAITING = "waiting for its turn"

How = Literal["completed", "stopped", "failed", "left", "cut off", "timed out"]


@dataclass(kw_only=True)
class Member:
    """A machine that is asked or, where each is asked, one of its workers.

    Attributes:
        key: What the cluster calls it, such as a worker's address.
        host: The machine's address or name; members of one host take turns.
        name: What a reader is shown.
        turn: Which of its host's members it is, from 0.
        task: What it does; None before its turn.
        began: When its turn began, in seconds since the fleet did; None before.
        until: When its turn is over at the latest.
        heard: When it was last heard of; None where it was not yet.
        doing: What it told last, so ``share`` of the run and ``left``.
        silent: For how long nothing was heard of it; "" while it tells something.
        behind: That it is well behind the others, with the evidence; "" if not.
        how: How it ended, in a word or two; "" before.
        said: The finding's headline, or the sentence that says why there is none.
        seconds: From its begin to its end; 0 where it never began.
        document: What it sent; None where it sent nothing that can be read.
    """

    key: str
    host: str
    name: str
    turn: int = 0
    task: Task | None = None
    began: float | None = None
    until: float = 0.0
    heard: float | None = None
    doing: str = ""
    share: float = 0.0
    left: str = ""
    silent: str = ""
    behind: str = ""
    how: How | Literal[""] = ""
    said: str = ""
    seconds: float = 0.0
    document: Finding | Passport | None = None

    @property
    def running(self) -> bool:
        """Whether its turn has begun and is not over."""
        return self.began is not None and not self.how

    @property
    def path(self) -> Path | None:
        """Where what it sent is saved."""
        return self.document.path if self.document else None

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row in the closing table."""
        took = units.seconds(round(self.seconds)) if self.seconds else ""
        return self.name, self.how, self._fastest, took, self.said

    @property
    def _fastest(self) -> str:
        """The variant that is fastest on that machine, with its rate."""
        if not isinstance(self.document, Finding):
            return ""
        places = {s.variant: s.place for s in standings(self.document)}
        best = [t for t in self.document.timings if places.get(t.variant) == "fastest"]
        return f"{plain(best[0].variant)}, {best[0].in_words()}" if best else ""

    def end(self, how: How, said: str, now: float) -> None:
        """Note how it ended."""
        self.how, self.said = how, said
        self.seconds = 0.0 if self.began is None else now - self.began

    def mark(self, members: Sequence[Self], now: float) -> None:
        """Note that it is silent, or well behind those that have the same turn."""
        silent = now - (now if self.heard is None else self.heard)
        told = f"nothing heard for {units.seconds(round(silent))}"
        self.silent = told if silent > SILENT_S else ""
        others = [
            other.share if other.running else 1.0
            for other in members
            if other.turn == self.turn and other is not self
            if other.running or other.how == "completed"
        ]
        usual = statistics.median(others) if len(others) >= _OTHERS else 0.0
        late = usual - self.share
        told = (
            f"behind: {units.percent(self.share)} done, half of the others "
            f"{units.percent(usual)} or more"
        )
        budget = self.task.budget if self.task else 0.0
        self.behind = told if late > _SHARE and late * budget >= _DELAY_S else ""

    def receive(self, data: bytes, task: Task, folder: Path | None, now: float) -> None:
        """Read what it sent, which is not trusted, save it, and note how it ended."""
        try:
            sent = _Sent.parsed(data)
            if sent.document:
                self.document = _kept(sent.document.encode(), task, folder)
            self.end(sent.how, _said(sent, self.document, task), now)
        except PerfkitError as error:
            self.end("failed", f"What it sent was not kept: {error}", now)


class _Sent(msgspec.Struct):
    """What a member sends: how it ended, why, and the document as a text."""

    how: How
    why: str
    document: str

    @classmethod
    def parsed(cls, data: bytes) -> Self:
        try:
            if len(data) <= _LARGEST_BYTES:
                return msgspec.json.decode(data, type=cls)
        except (ValueError, RecursionError):
            pass
        raise BadFileError(f"{_WHAT} is nothing that perfkit sends.")


def _kept(data: bytes, task: Task, folder: Path | None) -> Finding | Passport:
    """What it holds, saved.

    Raises:
        BadFileError: It is no answer to what was asked.
        PerfkitError: It cannot be saved.
    """
    found = documents.parse(data, _WHAT)
    if isinstance(found, Passport) and not task.experiment:
        now = datetime.datetime.now().astimezone()
        name = f"passport-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.json"
        passports.save(found, (folder or Path(PASSPORTS)) / name)
        return found
    if not isinstance(found, Finding) or found.experiment != task.experiment:
        raise BadFileError(f"{_WHAT} answers another question than was asked.")
    # No machine of a fleet shows recordings, whatever the document says of itself.
    found = replace(found, replayed=False)
    store.save(found, folder)
    return found


def _said(sent: _Sent, found: Finding | Passport | None, task: Task) -> str:
    why = plain(sent.why, _LONGEST)
    if found is None:
        return why or "It ended without a word and without a finding."
    # Its headline alone: a whole report takes long, and a run goes on meanwhile.
    if isinstance(found, Finding):
        said = plain(found.verdict.headline, _LONGEST)
    else:
        said = plain(headline(found), _LONGEST)
        ours = task.tensorflow
        theirs = plain(found.machine.versions.get("tensorflow", ""), 40)
        if theirs and ours and theirs != ours:
            said += f"; it has TensorFlow {theirs}, the asking machine {ours}"
    if sent.how == "completed":
        return said
    return f"{why or 'It was stopped.'} What it measured by then: {said}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Gathered(Shown):
    """What came home from a fleet.

    Attributes:
        asked: What was asked.
        outcomes: How each member ended, in the order of hosts.
        seconds: That all of it took.
        stopped: Whether Stop ended it.
    """

    asked: str
    outcomes: tuple[Member, ...]
    seconds: float
    stopped: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding that came home."""
        found = (outcome.document for outcome in self.outcomes)
        return tuple(document for document in found if isinstance(document, Finding))

    @property
    def passports(self) -> tuple[Passport, ...]:
        """Every passport that came home."""
        found = (outcome.document for outcome in self.outcomes)
        return tuple(document for document in found if isinstance(document, Passport))

    def slow(self) -> Iterator[str]:
        """A sentence on each machine well behind, from rates with intervals."""
        rates = [
            (outcome.name, timing, unit_of(outcome.document, timing.variant))
            for outcome in self.outcomes
            if isinstance(outcome.document, Finding)
            for timing in outcome.document.timings
            if timing.variant == outcome.document.baseline
        ]
        for name, timing, unit in rates:
            others = [other.rate for _, other, _ in rates if other is not timing]
            usual = statistics.median(others) if len(others) >= _OTHERS else 0.0
            if timing.high < _RATE * usual:
                yield (
                    f"{name} is well behind: {timing.variant!r} ran at "
                    f"{units.rate_between(timing.rate, timing.low, timing.high, unit)}"
                    f", on the {len(others)} others at "
                    f"{units.rate(min(others), unit)} to "
                    f"{units.rate(max(others), unit)}."
                )

    def closing(self) -> Iterator[str]:
        """What is to be said of all of them together, a sentence each."""
        kept = [outcome.document for outcome in self.outcomes if outcome.document]
        took = units.seconds(round(self.seconds))
        early = " It was stopped." if self.stopped else ""
        of = len(self.outcomes)
        yield f"{len(kept)} of {of} sent what they measured, in {took}.{early}"
        yield from self.slow()
        found = Counter(
            plain(document.machine.versions.get("tensorflow", "none"), 40)
            for document in kept
        )
        if len(found) > 1:
            told = ", ".join(
                f"{version} on {count}" for version, count in found.items()
            )
            yield f"They do not have the same TensorFlow: {told}."

    @property
    def report(self) -> Report:
        """What a person reads: how many sent something, each, what stands out."""
        headline, *besides = self.closing()
        cells = tuple(outcome.cells for outcome in self.outcomes)
        return Report(
            verdict=Verdict(headline=headline),
            question=self.asked,
            table=Table("Every machine", _HEADINGS, cells),
            besides=tuple(besides),
        )

    def __repr__(self) -> str:
        return in_text(self.report, whole=True)

    def _repr_html_(self) -> str:
        """The report, with each finding folded away below."""
        folded = "".join(
            f"<details><summary>{escape(outcome.name)}</summary>"
            f"{outcome.document._repr_html_()}</details>"
            for outcome in self.outcomes
            if outcome.document
        )
        return in_html(self.report, figure=folded)

    def write(self, console: "Console") -> None:
        """Write it to a terminal or a file, and where each finding is saved."""
        write(self.report, console, whole=True)
        say = sayer(console)
        for outcome in self.outcomes:
            if outcome.path:
                say(f"Saved, {outcome.name}: {outcome.path}", whole=True)


# How they are shown while they run.


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
