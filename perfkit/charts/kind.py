"""One kind of chart: what it draws, and whether there is anything to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from perfkit.charts.figure import Figure

Drawn = TypeVar("Drawn")


@dataclass(frozen=True)
class Kind(Generic[Drawn]):
    """One kind of chart.

    Attributes:
        draw: Draws it.
        title: What it shows, for the line that it folds out from.
        fits: Whether a finding holds what it draws.
        leads: Whether it comes before the charts that every finding has.
    """

    draw: Callable[[Drawn], Figure]
    title: str
    fits: Callable[[Drawn], bool]
    leads: bool = False
