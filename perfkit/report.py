"""A finding for a terminal: verdict, reasons, what to do next, table, machine.

Everything fits 60 columns. What is piped keeps its lines whole, so that it can be
searched.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Protocol

from perfkit import units
from perfkit.findings.card import lines
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.standing import heading, of_limit, rate, standings, unknowns
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from perfkit.findings.record import Finding
    from perfkit.findings.standing import Standing
    from perfkit.findings.store import Recorded

# A sentence is never this long; what is comes from a broken or hostile file.
_LONGEST = 2000


class Say(Protocol):
    """Prints lines of text."""

    def __call__(self, text: str = "", style: str = "", *, whole: bool = False) -> None:
        """Print it, an empty line if it is empty; ``whole`` breaks no line."""


def sayer(console: Console) -> Say:
    """Give what prints text as it is, without markup or anything a terminal obeys."""

    def say(text: str = "", style: str = "", *, whole: bool = False) -> None:
        console.print(
            "\n".join(_line(line) for line in text.split("\n")),
            style=style,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=whole or not console.is_terminal,
        )

    return say


def write(finding: Recorded, console: Console) -> None:
    """Write a finding, or a diagnosis, out in full."""
    say = sayer(console)
    if isinstance(finding, Diagnosis):
        _write_diagnosis(finding, say)
        return
    if finding.replayed:
        say(finding.stamp, style="bold")
    say(finding.question)
    say(finding.verdict.headline, style="bold")
    if finding.verdict.because:
        say("\nBecause")
        for reason in finding.verdict.because:
            say(f"- {reason}")
    if finding.verdict.next:
        say("\nNext")
        say(finding.verdict.next)
    for group, rows in itertools.groupby(standings(finding), key=lambda s: s.group):
        say()
        console.print(_table(group, list(rows)))
    say()
    for line in _footnotes(finding):
        say(line)
    if finding.path:
        # What is to be copied stays in one piece.
        say(f"Saved as: {_short(finding.path)}", whole=True)


def _write_diagnosis(found: Diagnosis, say: Say) -> None:
    if found.replayed:
        say(found.finding.stamp, style="bold")
    say(found.finding.question)
    say(found.verdict, style="bold")
    for line in lines(found):
        say(line)
    if found.path:
        say(f"Saved as: {_short(found.path)}", whole=True)


def _line(text: str) -> str:
    # Code keeps its indentation.
    indent = len(text) - len(text.lstrip(" "))
    return " " * indent + plain(text, _LONGEST)


def _table(group: str, rows: list[Standing]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for text in _headings(group, rows):
        table.add_column(Text(plain(text)), overflow="fold")
    for row in rows:
        cells = (row.variant, rate(row), _ratio(row), _verdict(row))
        style = "bold" if row.place == "fastest" else ""
        table.add_row(*(Text(plain(cell)) for cell in cells), style=style)
    return table


def _headings(group: str, rows: list[Standing]) -> tuple[str, str, str, str]:
    counted = heading(tuple(rows))
    if counted == "rate":
        return group, counted, "", ""
    return "variant", counted, f"against {group}" if group else "", ""


def _ratio(row: Standing) -> str:
    found = row.comparison
    if found is None:
        return of_limit(row)
    of = f" of {found.baseline}" if found.baseline != row.group else ""
    return f"{found.interval}{of}"


def _verdict(row: Standing) -> str:
    said = row.comparison.judgement if row.comparison else ""
    alone = "baseline" if row.is_baseline else ""
    place = "the fastest" if row.place == "fastest" else ""
    return "; ".join(part for part in (said or alone, place, row.problem) if part)


def _footnotes(finding: Finding) -> Iterator[str]:
    floor = "unknown, the run was too short to measure it"
    if finding.noise_floor is not None:
        share = units.percent(abs(finding.noise_floor - 1))
        floor = f"{share}, no smaller difference is claimed"
    yield "Ranges: 95 % intervals."
    yield from unknowns(finding)
    yield f"Noise floor: {floor}."
    tensorflow = finding.machine.versions.get("tensorflow", "not installed")
    yield f"Machine: {finding.machine.summary}, TensorFlow {tensorflow}."
    budget = f"with a budget of {units.seconds(finding.budget_s)}"
    yield f"Recorded: {finding.recorded[:16].replace('T', ' ')}, {budget}."
    if finding.ended_early:
        yield finding.ended_early


def _short(path: Path) -> str:
    """The path as one would type it here."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        # Another drive.
        return str(path)
    return str(path) if relative.startswith("..") else relative
