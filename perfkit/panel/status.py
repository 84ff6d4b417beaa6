"""The line that says what a panel does: the live chart's own, with nothing drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.displays import Display
from perfkit.panel.live_chart import LiveChart

if TYPE_CHECKING:
    from collections.abc import Callable

    from perfkit.progress import Board


class Status(Display):
    """A sentence and, while something is measured, how far it is.

    Attributes:
        widget: What is shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.widget = LiveChart()
        self._spent: Callable[[], float] = float
        self._budget = 0.0

    def say(self, state: str) -> None:
        """Tell the reader one sentence."""
        self.widget.state = state

    def begin(self, budget: float, spent: Callable[[], float]) -> None:
        """Count seconds from now on; ``spent`` says how many of the budget are gone."""
        self._budget, self._spent = budget, spent

    def end(self) -> None:
        """Take the bar away."""
        self.widget.doing = {}

    def _draw(self, board: Board) -> None:
        spent = self._spent()
        left = units.seconds(float(max(0, round(self._budget - spent))))
        self.widget.doing = {
            "said": board.doing,
            "left": f"{left} left",
            "share": min(1.0, spent / self._budget),
        }
