"""A diagnosis as a DataFrame, one row per swap that was tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.findings.table import COLUMNS
from perfkit.findings.table import table as of_variants

if TYPE_CHECKING:
    from pandas import DataFrame

    from perfkit.findings.diagnosis import Diagnosis

_OF_CAUSE = ("cause", "kind", "fix", "grade")


def table(found: Diagnosis) -> DataFrame:
    """One row per swap, the largest gain first; "" for the cause of what is unclaimed.

    The training as given has its row too: its ratio is empty.
    """
    made = of_variants(found.finding)
    causes = {cause.swap: cause for cause in found.causes}
    for name in _OF_CAUSE:
        made[name] = [getattr(causes.get(swap), name, "") for swap in made["variant"]]
    columns = ["variant", *_OF_CAUSE, *COLUMNS[1:]]
    return made[columns].rename(columns={"variant": "swap"})
