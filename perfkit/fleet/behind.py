"""Which members are well behind the others, and what shows it?"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perfkit.fleet.outcome import Gathered, Outcome
    from perfkit.fleet.row import Row
    from perfkit.measure.statistics import Timing

# Fewer others say nothing of what is usual.
_OTHERS = 2
# Of a run: a quarter is more than hosts differ by in getting ready.
_SHARE = 0.25
# And a delay that is worth a word.
_DELAY_S = 5.0
# A member tells something every second.
SILENT_S = 5.0
# Of the others' rate: what is less is worth a look at the machine.
_RATE = 0.8


def mark(rows: Sequence[Row], now: float) -> None:
    """Mark who is silent, or well behind those that have the same turn.

    Args:
        rows: All members.
        now: Seconds since the fleet began.
    """
    for row in rows:
        if row.running:
            others = (_done(o) for o in rows if o.turn == row.turn and o is not row)
            known = [share for share in others if share is not None]
            row.silent = _silent(row, now)
            row.behind = _behind(row, known)


def slow(gathered: Gathered) -> Iterator[str]:
    """A sentence on each machine that is well behind, from rates with intervals."""
    rates = [(o, t) for o in gathered.outcomes if (t := _of_baseline(o))]
    for outcome, timing in rates:
        others = [t for other, t in rates if other is not outcome]
        if len(others) < _OTHERS or timing.high >= _RATE * _median(others):
            continue
        low, high = min(t.rate for t in others), max(t.rate for t in others)
        yield (
            f"{outcome.member.name} is well behind: {timing.variant!r} ran at "
            f"{units.rate_between(timing.rate, timing.low, timing.high)}, on the "
            f"{len(others)} others at {units.rate(low)} to {units.rate(high)}."
        )


def _silent(row: Row, now: float) -> str:
    silent = now - row.heard if row.heard is not None else 0.0
    if silent <= SILENT_S:
        return ""
    return f"nothing heard for {units.seconds(round(silent))}"


def _behind(row: Row, others: list[float]) -> str:
    if len(others) < _OTHERS or row.task is None:
        return ""
    usual = statistics.median(others)
    late = usual - row.share
    if late <= _SHARE or late * row.task.budget < _DELAY_S:
        return ""
    return (
        f"behind: {units.percent(row.share)} done, half of the others "
        f"{units.percent(usual)} or more"
    )


def _done(row: Row) -> float | None:
    """Which share of its run is done; None where nothing can be said."""
    if row.running:
        return row.share
    return 1.0 if row.outcome and row.outcome.how == "completed" else None


def _of_baseline(outcome: Outcome) -> Timing | None:
    found = outcome.document
    if not isinstance(found, Finding):
        return None
    return next((t for t in found.timings if t.variant == found.baseline), None)


def _median(timings: Iterable[Timing]) -> float:
    return statistics.median(timing.rate for timing in timings)
