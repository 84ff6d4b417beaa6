"""Lines of a user's code, and what to write in their place."""

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Lines of code, and what to write in their place.

    Attributes:
        file: Its name, without a folder; "" for a cell that was run.
        cell: Of a notebook: which of its cells of code, from 1, and ``line`` counts in
            it; 0 for all else.
        line: The first of the old lines, from 1; 0 for code that is an example.
        old: What stands there; where lines are only added, the one that they follow.
        new: What to write there; "" where lines are only deleted, and None where the
            place is known and what to write is not.
    """

    file: str = ""
    cell: int = 0
    line: int = 0
    old: str
    new: str | None

    @property
    def lines(self) -> range:
        """The numbers of the old lines."""
        return range(self.line, self.line + self.old.count("\n") + 1)

    @property
    def where(self) -> str:
        """The place in words: ``"train.py, line 12"``; "" for an example."""
        if not self.line:
            return ""
        last = self.line + self.old.count("\n")
        several = f"lines {self.line}-{last}"
        lines = several if last > self.line else f"line {self.line}"
        return place_in_words(self.file, self.cell, lines)

    def signed(self) -> Iterator[tuple[str, str]]:
        """Each line after ``"-"`` if it goes, ``"+"`` if it comes, else ``" "``."""
        old, new = self.old.split("\n"), (self.new or "").split("\n")
        # Deeply nested code keeps its shape, not its distance from the margin.
        lines = textwrap.dedent("\n".join([*old, *new])).split("\n")
        before, after = lines[: len(old)], lines[len(old) :] if self.new else []
        leading = _alike(before, after)
        behind = _alike(before[leading:][::-1], after[leading:][::-1])
        end, last = len(before) - behind, len(after) - behind
        yield from ((" ", line) for line in before[:leading])
        gone = " " if self.new is None else "-"
        yield from ((gone, line) for line in before[leading:end])
        yield from (("+", line) for line in after[leading:last])
        yield from ((" ", line) for line in before[end:])

    def __str__(self) -> str:
        """The place, and under it what goes and what comes."""
        lines = [f"  {sign} {line}" for sign, line in self.signed()]
        return "\n".join([self.where, *lines] if self.where else lines)


def _alike(lines: Sequence[str], other_lines: Sequence[str]) -> int:
    """How many lines are the same before the first that is not."""
    matches = (a == b for a, b in zip(lines, other_lines, strict=False))
    return len(list(itertools.takewhile(bool, matches)))


def place_in_words(file: str, cell: int, lines: str) -> str:
    """Lines of a file, of a cell of a notebook, or of a cell that was just run."""
    where = f"code cell {cell}" if cell else "" if file else "cell"
    return ", ".join(filter(None, (file, where, lines)))
