"""A class: the machines of a folder of passports, and what they have in common."""

from __future__ import annotations

import functools
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.classroom.able import held_back, unable
from perfkit.classroom.measures import Measure, measures
from perfkit.findings.frames import frame
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

    from perfkit.charts.figure import Figure
    from perfkit.passports.record import Passport

COLUMNS = (
    *("machine", "what", "recorded", "speed", "slowest", "its_speed", "measured"),
    *("cannot_run", "because", "fails", "path", "problem"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Classroom:
    """Many machines, each with its passport.

    Attributes:
        passports: Of the machines, by label.
        problems: Why a file could not be read, by its path.
        you: The place of the reader's own machine among them; None if unknown.
    """

    passports: tuple[Passport, ...]
    problems: dict[Path, str]
    you: int | None = None

    @functools.cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The reference trainings and rungs, each over all machines."""
        return measures(self.passports)

    @functools.cached_property
    def chart(self) -> Figure:
        """Every machine on every rung, relative to the median machine."""
        from perfkit.classroom.picture import picture

        return picture(self)

    def table(self) -> DataFrame:
        """One row per file; ``speed`` is the median ratio to the median machine.

        A file that is no passport has a row too; the last column says what is wrong.
        """
        rows = [self._row(place) for place in range(len(self.passports))]
        rows += [{"path": p, "problem": why} for p, why in self.problems.items()]
        return frame(rows, COLUMNS)

    def export(self, path: str | Path) -> Path:
        """Write all of it as one HTML page that needs no network.

        Raises:
            BadFileError: It cannot be written.
            BadParameterError: ``path`` is no place for a page.
        """
        from perfkit.classroom.page import write

        return write(self, path)

    def ratios(self, place: int) -> dict[str, float]:
        """A machine's rates over those of the median machine, by name."""
        found = {one.name: one.ratio(place) for one in self.measures}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def _row(self, place: int) -> dict[str, Any]:
        passport, ratios = self.passports[place], self.ratios(place)
        slowest = min(ratios, key=ratios.__getitem__, default="")
        cannot = unable(passport)
        return {
            "machine": self.name(place),
            "what": plain(passport.machine.summary),
            "recorded": plain(passport.recorded[:16].replace("T", " ")),
            "speed": statistics.median(ratios.values()) if ratios else None,
            "slowest": slowest,
            "its_speed": ratios.get(slowest),
            "measured": len(ratios),
            "cannot_run": ", ".join(cannot),
            "because": "; ".join(dict.fromkeys(cannot.values())),
            "fails": "; ".join(held_back(passport)),
            "path": passport.path,
            "problem": "",
        }

    def name(self, place: int) -> str:
        """What a machine is called: its label, or its file."""
        passport = self.passports[place]
        file = passport.path.stem if passport.path else f"machine {place + 1}"
        return plain(passport.label, 60) or plain(file, 60)

    def __repr__(self) -> str:
        lines = [f"A class of {_count(len(self.passports), 'machine')}."]
        for measure in self.measures:
            low, high = measure.ratios[0], measure.ratios[-1]
            lines.append(
                f"  {measure.name}: {units.rate(measure.median, measure.unit)}, from "
                f"{units.ratio(low)} to {units.ratio(high)}"
            )
        lines += [f"Not read: {why}" for why in self.problems.values()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from perfkit.classroom.page import in_notebook

        return in_notebook(self)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
