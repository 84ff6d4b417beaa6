"""Rows as a DataFrame, where pandas is installed: nothing else here needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.errors import need

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pandas import DataFrame


def frame(rows: Sequence[dict[str, Any]], columns: Iterable[str]) -> DataFrame:
    """Make a DataFrame of these rows.

    Raises:
        MissingPartError: pandas is not installed.
    """
    need("pandas", "A DataFrame", "tables")
    from pandas import DataFrame

    return DataFrame(rows, columns=list(columns))
