"""The numbers of a finding as tables: what was measured, before what, how often."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.rungs import rungs
from perfkit.findings.standing import of_limit, rate, standings
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.findings.record import Finding
    from perfkit.findings.standing import Standing

_NAME = 80
_PLACES = {"fastest": "the fastest here", "tied": "among the fastest here", "": ""}


@dataclass(frozen=True)
class Table:
    """Cells as text; the first of each row is its name.

    Attributes:
        caption: What it is about.
        headings: Of the columns.
        rows: One tuple each, as long as ``headings``.
        strong: The row that stands out; -1 for none.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: int = -1


def tables(finding: Finding) -> Iterator[Table]:
    """The tables that there is something to say in."""
    stood = standings(finding)
    if rungs(finding.notes):
        yield _rungs(finding, stood)
    elif stood:
        yield _rates(stood)
    if finding.timings:
        yield _before(stood)
    if finding.trials:
        yield _trials(finding)


def _rungs(finding: Finding, stood: tuple[Standing, ...]) -> Table:
    """Rates that count something else each, and the most that is possible of it."""
    told = rungs(finding.notes)
    rows = []
    for s in stood:
        rung = told.get(s.variant)
        limit = units.rate(s.limit, s.unit) if s.limit else "not known"
        rows.append(
            (
                plain(s.variant, _NAME),
                plain(s.problem) or rate(s),
                of_limit(s),
                limit if rung else "",
                rung.what if rung else "",
                rung.limit_from if rung else "",
            )
        )
    return Table(
        "Steady rates with their 95 % intervals, and the limits in theory",
        ("rung", "rate", "share", "limit", "what is done", "where the limit is from"),
        tuple(rows),
    )


def _rates(stood: tuple[Standing, ...]) -> Table:
    strong = [row for row, s in enumerate(stood) if s.place == "fastest"]
    return Table(
        "Steady rates, and their ratios to what each variant is compared with",
        (
            *("variant", "examples/s", "95 % interval"),
            *("compared with", "ratio", "95 % interval of it", "verdict"),
        ),
        tuple(map(_rate, stood)),
        strong[0] if strong else -1,
    )


def _rate(standing: Standing) -> tuple[str, ...]:
    timing, compared = standing.timing, standing.comparison
    rate = ("not timed", "")
    if timing:
        rate = _apart(timing.rate, timing.low, timing.high, units.significant)
    ratio = ("baseline" if standing.is_baseline else "", "", "")
    if compared:
        found = _apart(compared.ratio, compared.low, compared.high, units.ratio)
        ratio = (plain(compared.baseline, _NAME), *found)
    said = (compared.judgement if compared else "", _PLACES[standing.place])
    words = "; ".join(filter(None, (*said, plain(standing.problem))))
    return (plain(standing.variant, _NAME), *rate, *ratio, words)


def _before(stood: tuple[Standing, ...]) -> Table:
    """What is told apart from the steady rate."""
    rows = tuple(
        (
            plain(s.variant, _NAME),
            units.seconds(s.timing.setup_s),
            units.seconds(s.timing.first_call_s),
            units.seconds(s.timing.warm_up_s),
            units.percent(s.timing.drift) if s.timing.drift else "none shown",
            units.percent(s.timing.cv) if s.timing.trials > 1 else "one trial",
        )
        for s in stood
        if s.timing
    )
    return Table(
        "Before the steady rate, and how it varied",
        (
            *("variant", "set-up", "first call", "until steady"),
            *("drift within a trial", "spread between trials"),
        ),
        rows,
    )


def _trials(finding: Finding) -> Table:
    ended = collections.Counter((t.variant, t.outcome) for t in finding.trials)
    variants = dict.fromkeys(t.variant for t in finding.trials)
    # In the order of the record's own definition, completed first.
    outcomes = sorted({t.outcome for t in finding.trials}, key=_badness)
    rows = tuple(
        (plain(variant, _NAME), *(str(ended[variant, outcome]) for outcome in outcomes))
        for variant in variants
    )
    return Table("Trials by their outcome", ("variant", *outcomes), rows)


def _badness(outcome: str) -> int:
    known = ("completed", "stopped", "timed-out", "out-of-memory", "crashed")
    return known.index(outcome)


def _apart(
    value: float, low: float, high: float, write: Callable[[float], str]
) -> tuple[str, str]:
    """A value and its interval as two cells."""
    if not units.is_known(low, high):
        return units.UNKNOWN, units.UNKNOWN
    return write(value), f"{write(low)} to {write(high)}"
