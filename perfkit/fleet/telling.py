"""A fleet in words: a line per member while it runs, a table when it is over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import plain
from perfkit.fleet import outcome as fleet_outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.fleet.outcome import Gathered, Outcome, Row

HEADINGS = ("host", "outcome", "fastest", "took", "what it found, or why not")
_WAITING = "waiting for its turn"


def state(row: Row) -> str:
    """What a member does now, in a few words."""
    if row.outcome:
        return f"{row.outcome.how}: {row.outcome.said}"
    if row.began is None:
        return _WAITING
    told = (plain(row.doing), plain(row.left), row.silent, row.behind)
    return ", ".join(part for part in told if part)


def brief(row: Row) -> str:
    """A line that says only what changes seldom, for where lines cannot be redrawn."""
    if row.outcome:
        doing = f"{row.outcome.how}: {plain(row.outcome.said, 200)}"
    elif row.began is None:
        doing = _WAITING
    # The numbers of the evidence change all the time.
    elif row.silent:
        doing = "nothing is heard of it"
    else:
        doing = "measuring" if row.share else "getting ready"
        doing += ", behind the others" if row.behind else ""
    return f"{row.member.name}: {doing}"


def summary(rows: Sequence[Row]) -> str:
    """How many are where, as ``"3 running, 1 completed"``."""
    found = Counter(
        row.outcome.how if row.outcome else "running" if row.running else "waiting"
        for row in rows
    )
    return ", ".join(f"{count} {how}" for how, count in found.items())


def cells(outcome: Outcome) -> tuple[str, str, str, str, str]:
    """The row of a member in the closing table."""
    took = units.seconds(round(outcome.seconds)) if outcome.seconds else ""
    said = plain(outcome.said, 600)
    return outcome.member.name, outcome.how, _fastest(outcome), took, said


def closing(gathered: Gathered) -> Iterator[str]:
    """What is to be said of all of them together, a sentence each."""
    kept = sum(1 for outcome in gathered.outcomes if outcome.document)
    of = len(gathered.outcomes)
    took = units.seconds(round(gathered.seconds))
    early = " It was stopped." if gathered.stopped else ""
    yield f"{kept} of {of} sent what they measured, in {took}.{early}"
    yield from fleet_outcome.slow(gathered)
    yield from _versions(gathered)


def saved(gathered: Gathered) -> Iterator[str]:
    """Where what each sent lies."""
    for outcome in gathered.outcomes:
        if outcome.path:
            yield f"{outcome.member.name}: {outcome.path}"


def in_text(gathered: Gathered) -> str:
    """The closing table for a log or a notebook without HTML."""
    rows = [HEADINGS, *map(cells, gathered.outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [f"A fleet was asked: {gathered.asked}"]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, *closing(gathered), *saved(gathered)])


def _fastest(outcome: Outcome) -> str:
    """The variant that is fastest on that machine, with its rate."""
    if not isinstance(outcome.document, Finding):
        return ""
    places = {s.variant: s.place for s in standings(outcome.document)}
    best = [t for t in outcome.document.timings if places.get(t.variant) == "fastest"]
    return f"{plain(best[0].variant)}, {units.rate(best[0].rate)}" if best else ""


def _versions(gathered: Gathered) -> Iterator[str]:
    documents = (outcome.document for outcome in gathered.outcomes)
    found = Counter(
        plain(document.machine.versions.get("tensorflow", "none"), 40)
        for document in documents
        if document
    )
    if len(found) > 1:
        told = ", ".join(f"{version} on {count}" for version, count in found.items())
        yield f"They do not have the same TensorFlow: {told}."
