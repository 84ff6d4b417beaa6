"""Findings, diagnoses and profiles as tables of pandas."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import need
from perfkit.findings.profile import Held, Kernel, Op, Stage
from perfkit.findings.standing import Standing, is_ladder, standings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pandas import DataFrame

    from perfkit.findings.diagnosis import Diagnosis
    from perfkit.findings.profile import Profile
    from perfkit.findings.record import Finding


def frame(rows: Sequence[dict[str, Any]], columns: Iterable[str]) -> DataFrame:
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


_OF_CAUSE = ("cause", "kind", "fix", "grade")


def diagnosis_table(found: Diagnosis) -> DataFrame:
    """One row per swap, the largest gain first; "" for the cause of what is unclaimed.

    The training as given has its row too: its ratio is empty.
    """
    made = table(found.finding)
    causes = {cause.swap: cause for cause in found.causes}
    for name in _OF_CAUSE:
        made[name] = [getattr(causes.get(swap), name, "") for swap in made["variant"]]
    columns = ["variant", *_OF_CAUSE, *COLUMNS[1:]]
    return made[columns].rename(columns={"variant": "swap"})


def ops(profile: Profile) -> DataFrame:
    """One row per operation; ``share`` is that of all work on its kind of device."""
    table = _table(Op, profile.table)
    whole = table.groupby("device")["self_s"].transform("sum")
    table["share"] = (table["self_s"] / whole.where(whole > 0)).fillna(0.0)
    return table


def steps(profile: Profile) -> DataFrame:
    """One row per step, with a column for each of its parts."""
    names = list(profile.parts)
    rows = [
        {"step": step.name, "seconds": step.seconds}
        | {name: step.parts.get(name, 0.0) for name in names}
        for step in profile.steps
    ]
    return frame(rows, ("step", "seconds", *names))


def stages(profile: Profile) -> DataFrame:
    """One row per stage of the input."""
    return _table(Stage, profile.stages)


def kernels(profile: Profile) -> DataFrame:
    """One row per kernel; ``share`` is that of all kernels."""
    table = _table(Kernel, profile.launched)
    whole = table["total_s"].sum()
    table["share"] = table["total_s"] / whole if whole else 0.0
    return table


def memory(profile: Profile) -> DataFrame:
    """One row per allocator."""
    return _table(Held, profile.held)


def _table(of: type[Any], rows: Sequence[Any]) -> DataFrame:
    columns = (field.name for field in fields(of))
    return frame([asdict(row) for row in rows], columns)
