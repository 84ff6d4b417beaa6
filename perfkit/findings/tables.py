"""Findings and diagnoses as tables of pandas."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import need
from perfkit.findings import shown
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.standing import Standing, has_microbenchmarks, standings

if TYPE_CHECKING:
    from pandas import DataFrame


def frame(rows: Sequence[dict[str, Any]], columns: Iterable[str]) -> "DataFrame":
    """Make a DataFrame of these rows.

    Raises:
        MissingPartError: pandas is not installed.
    """
    need("pandas", "A DataFrame", "tables")
    from pandas import DataFrame

    return DataFrame(rows, columns=list(columns))


_TIMING = ("rate", "low", "high", "trials", "cv", "drift")
_SECONDS = ("setup_s", "first_call_s", "warm_up_s")
COLUMNS = (
    *("variant", "rate", "low", "high"),
    *("against", "ratio", "ratio_low", "ratio_high", "verdict"),
    *("trials", "cv", "drift", *_SECONDS, "problem"),
)

_BENCHMARK = ("unit", "limit")


@shown.table.register(Finding)
def table(finding: Finding) -> "DataFrame":
    """One row per variant, the fastest first; rates in examples per second.

    Microbenchmarks count something else each: two more columns say what, and the
    limit in theory.
    """
    rows = [_row(standing) for standing in standings(finding)]
    extra = _BENCHMARK if has_microbenchmarks(finding) else ()
    return frame(rows, (*COLUMNS, *extra))


def _row(standing: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {"variant": standing.variant, "problem": standing.problem}
    row |= {"unit": standing.unit, "limit": standing.limit}
    if standing.timing:
        row |= {name: getattr(standing.timing, name) for name in (*_TIMING, *_SECONDS)}
        row["verdict"] = "baseline" if standing.is_baseline else ""
    if standing.comparison:
        compared = standing.comparison
        row |= {"against": compared.baseline, "verdict": compared.judgement}
        # What is not known is no number here either.
        if units.is_known(compared.low, compared.high):
            row["ratio"] = compared.ratio
            row |= {"ratio_low": compared.low, "ratio_high": compared.high}
    return row


_OF_CAUSE = ("cause", "kind", "fix", "grade")


@shown.table.register(Diagnosis)
def diagnosis_table(diagnosis: Diagnosis) -> "DataFrame":
    """One row per change, the largest gain first; its cause is "" where unclaimed.

    The training as given has its row too: its ratio is empty.
    """
    data = table(diagnosis.finding)
    causes = {cause.change: cause for cause in diagnosis.causes}
    for name in _OF_CAUSE:
        data[name] = [
            getattr(causes.get(variant), name, "") for variant in data["variant"]
        ]
    columns = ["variant", *_OF_CAUSE, *COLUMNS[1:]]
    return data[columns].rename(columns={"variant": "change"})
