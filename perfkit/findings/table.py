"""A finding as a DataFrame, one row per variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.findings.frames import frame
from perfkit.findings.rungs import is_ladder
from perfkit.findings.standing import Standing, standings

if TYPE_CHECKING:
    from pandas import DataFrame

    from perfkit.findings.record import Finding

_TIMING = ("rate", "low", "high", "trials", "cv", "drift")
_SECONDS = ("setup_s", "first_call_s", "warm_up_s")
COLUMNS = (
    *("variant", "rate", "low", "high"),
    *("against", "ratio", "ratio_low", "ratio_high", "verdict"),
    *("trials", "cv", "drift", *_SECONDS, "problem"),
)

_RUNG = ("unit", "limit")


def table(finding: Finding) -> DataFrame:
    """One row per variant, the fastest first; rates in examples per second.

    A ladder's rungs count something else each: two more columns say what, and the
    limit in theory.
    """
    rows = [_row(standing) for standing in standings(finding)]
    more = _RUNG if is_ladder(finding) else ()
    return frame(rows, (*COLUMNS, *more))


def _row(standing: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {"variant": standing.variant, "problem": standing.problem}
    row |= {"unit": standing.unit, "limit": standing.limit}
    if standing.timing:
        row |= {name: getattr(standing.timing, name) for name in (*_TIMING, *_SECONDS)}
        row["verdict"] = "baseline" if standing.is_baseline else ""
    if standing.comparison:
        compared = standing.comparison
        row |= {
            "against": compared.baseline,
            "verdict": compared.judgement,
        }
        # What is not known is no number here either.
        if units.is_known(compared.low, compared.high):
            row["ratio"] = compared.ratio
            row |= {"ratio_low": compared.low, "ratio_high": compared.high}
    return row
