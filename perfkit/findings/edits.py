"""Lines of the user's code to change: where they stand, the old and the new ones."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Lines of the user's code, and what to write in their place.

    Attributes:
        file: Its name, without a folder; "" for a cell that was run.
        cell: Of a notebook: which of its cells of code, from 1, and ``line`` counts in
            it; 0 for all else.
        line: The first of the old lines, from 1.
        old: What stands there; where lines are only added, the one that they follow.
        new: What to write there; "" where lines are only deleted, and None where the
            place is known and what to write is not.
    """

    file: str
    cell: int = 0
    line: int
    old: str
    new: str | None

    @property
    def lines(self) -> range:
        """The numbers of the old lines."""
        return range(self.line, self.line + self.old.count("\n") + 1)

    @property
    def where(self) -> str:
        """The place in words: ``"train.py, line 12"``."""
        cell = cell_in_words(self.cell) or ("" if self.file else "cell")
        last = self.line + self.old.count("\n")
        lines = (
            f"line {self.line}" if last == self.line else f"lines {self.line}-{last}"
        )
        return ", ".join(filter(None, [self.file, cell, lines]))

    def __str__(self) -> str:
        """The place, and under it what stands there and what to write."""
        old, new = self.old.split("\n"), (self.new or "").split("\n")
        # Deeply nested code keeps its shape, not its distance from the margin.
        shown = textwrap.dedent("\n".join([*old, *new])).split("\n")
        first = "now" if self.new is None else "old"
        rows = [f"  {first}: {line}" for line in shown[: len(old)]]
        if self.new:
            rows += [f"  new: {line}" for line in shown[len(old) :]]
        deleted = ", delete" if self.new == "" else ""
        return "\n".join([f"{self.where}{deleted}", *rows])


def cell_in_words(cell: int) -> str:
    """Which cell of a notebook it is; "" for what is none."""
    return f"code cell {cell}" if cell else ""
