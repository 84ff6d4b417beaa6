"""The tables of a profile as DataFrames; seconds, bytes, and shares from 0 to 1."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from perfkit.findings.frames import frame
from perfkit.findings.profile import Held, Kernel, Op, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from perfkit.findings.profile import Profile


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
