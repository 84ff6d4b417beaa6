"""An examination for a terminal: the parts, what is wrong with them, what to type.

Everything but a command fits 60 columns; what is piped keeps its lines whole, so that
it can be searched.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from perfkit import report
from perfkit.doctor.parts import parts
from perfkit.findings.text import plain
from perfkit.machine.checks.started import meaning
from perfkit.machine.record import Start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from perfkit.doctor.examination import Examination
    from perfkit.machine.check import Check
    from perfkit.machine.record import Machine

_WIDTH = 100
_LONGEST = 2000
_STYLES = {"fail": "bold red", "warn": "bold yellow"}
_WEIGHTS = ("fatal", "matters", "unexplained")


def write(examination: Examination, console: Console) -> None:
    """Write an examination out in full."""
    say = report.sayer(console)
    say("This machine", style="bold")
    _rows(parts(examination.machine), console)
    say()
    say(examination.answer(), style="bold")
    for check in examination.wrong:
        say()
        _write_check(check, console)
    say()
    if not examination.wrong:
        say("Nothing was found here that costs speed.", style="bold")
    say(examination.summary())
    if examination.well:
        say(f"ok: {'; '.join(examination.well)}")
    if examination.machine.start and examination.machine.start.said:
        _write_log(examination.machine, console)
    if examination.ladder:
        say()
        report.write(examination.ladder, console)
    for sentence in _notes(examination):
        say()
        say(sentence)


def in_text(examination: Examination) -> str:
    """The page as text, for a terminal or a log."""
    from rich.console import Console

    file = io.StringIO()
    # In a notebook a console shows what it is given, whatever file it writes to.
    console = Console(file=file, width=_WIDTH, color_system=None, force_jupyter=False)
    write(examination, console)
    return file.getvalue().rstrip("\n")


def log_of(machine: Machine) -> tuple[tuple[tuple[str, str], ...], str]:
    """What TensorFlow said that is not harmless, and a word on the rest."""
    start = machine.start or Start()
    told = [one for one in start.said if one.weight in _WEIGHTS]
    told.sort(key=lambda one: _WEIGHTS.index(one.weight))
    # A card for the screen may be left out beside one that computes.
    left_out = bool(start.devices) and not any("GPU" in d for d in start.devices)
    words = {"fatal": "no GPU" if left_out else "noted", "matters": "may be slower"}
    rows = tuple(
        (
            words.get(one.weight, one.weight),
            f'"{one.line}" {meaning(machine, one)}'.rstrip(),
        )
        for one in told
    )
    count = len(start.said) - len(told)
    other = "other " if rows else ""
    return rows, f"{count} {other}{'line is' if count == 1 else 'lines are'} harmless."


def _write_check(check: Check, console: Console) -> None:
    say = report.sayer(console)
    say(f"{check.status.upper()}: {check.title}", style=_STYLES[check.status])
    rows = (("seen", check.evidence), ("why", check.why))
    _rows([(name, line) for name, line in rows if line], console, indent=2)
    if check.remedy:
        # What is to be copied stays in one piece.
        say(f"  do: {check.remedy}", whole=True)


def _write_log(machine: Machine, console: Console) -> None:
    say = report.sayer(console)
    rows, rest = log_of(machine)
    say()
    say("What TensorFlow said as it started", style="bold")
    _rows(rows, console)
    say(rest)


def _notes(examination: Examination) -> Iterator[str]:
    yield from examination.missed
    if examination.stopped:
        yield "It was stopped before everything had been looked at."


def _rows(
    rows: Iterable[tuple[str, str]], console: Console, *, indent: int = 0
) -> None:
    """Write names with their lines; in a terminal the lines stand beside the names."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    clean = [(plain(name), plain(line, _LONGEST)) for name, line in rows]
    if not console.is_terminal:
        say = report.sayer(console)
        for name, line in clean:
            say(f"{' ' * indent}{name}: {line}")
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold" if not indent else "")
    table.add_column(overflow="fold")
    for name, line in clean:
        table.add_row(Text(name), Text(line))
    console.print(Padding(table, (0, 0, 0, indent)))
