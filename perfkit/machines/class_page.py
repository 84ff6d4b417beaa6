"""A class as one page."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, RED
from perfkit.charts.figure import INK
from perfkit.export.page import laid_out, page_of, save
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.text import plain
from perfkit.machines.classroom import held_back, unable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from perfkit.charts.figure import Figure
    from perfkit.machines.classroom import Classroom, Measure


_TITLE = "Every machine, relative to the median one"
_HEIGHT = 0.75
# Dots that the eye cannot tell apart are one: so many fit between 1 and e.
_APART = 80
# Beyond, a machine stands at the edge: one broken file must not flatten all others.
_FARTHEST = 1000.0


def picture(room: Classroom) -> Figure:
    """Draw every machine's rates over those of the median machine, a row per rung."""
    shown = room.measures
    if not shown:
        return canvas.message(_TITLE, "No passport holds a rate.")
    lines = canvas.caption_lines(list(_caption(room)))
    inner, height = canvas.frame(_HEIGHT * len(shown), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(measure.name) for measure in shown]
        said = [(_beside(measure), "") for measure in shown]
        axes = rows.axes(drawing, names, inner, right=rows.room(said))
        _set_scale(axes, shown)
        for row, measure in enumerate(shown):
            _draw_row(axes, row, measure, room.you)
            rows.beside(axes, row, said[row][0])
        canvas.heading(drawing, _TITLE)
        canvas.caption(drawing, lines)

    return canvas.drawn(height, f"{_TITLE}. {_in_words(room)}", draw)


def _set_scale(axes: Axes, shown: Sequence[Measure]) -> None:
    ends = [_within(end) for m in shown for end in (m.ratios[0], m.ratios[-1])]
    # Machines that are alike shall look alike.
    low, high = min(0.5, *ends) / 1.15, max(2.0, *ends) * 1.15
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    curves.put(axes, curves.log_ticks(low, high), units.ratio)
    axes.set_xlabel("rate over that of the median machine (logarithmic)")
    axes.axvline(1, color=INK, lw=1, linestyle=(0, (4, 3)), alpha=0.7)


def _draw_row(axes: Axes, row: int, measure: Measure, you: int | None) -> None:
    dots = _told_apart(measure.ratios)
    axes.plot(dots, [row] * len(dots), "o", color=BLUE, ms=5, alpha=0.45, mew=0)
    yours = None if you is None else measure.ratio(you)
    if yours is not None:
        axes.plot([_within(yours)], [row], "D", color=RED, ms=8, mec=INK, mew=0.8)


def _told_apart(ratios: Sequence[float]) -> list[float]:
    places = {round(math.log(_within(ratio)) * _APART) for ratio in ratios}
    return [math.exp(place / _APART) for place in sorted(places)]


def _within(ratio: float) -> float:
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)


def _beside(measure: Measure) -> str:
    return units.rate(measure.median, measure.unit)


def _caption(room: Classroom) -> Iterator[str]:
    yield "dot: a machine, or several at the same place"
    yield "dashed line: the median machine, whose rate is to the right"
    if room.you is not None:
        yield "\u25c6 you are here"


def _in_words(room: Classroom) -> str:
    return ". ".join(_sentence(measure, room.you) for measure in room.measures) + "."


def _sentence(measure: Measure, you: int | None) -> str:
    low, high = measure.ratios[0], measure.ratios[-1]
    said = (
        f"{measure.name}: {len(measure.rates)} machines from {units.ratio(low)} to "
        f"{units.ratio(high)} of {_beside(measure)}"
    )
    yours = None if you is None else measure.ratio(you)
    return said if yours is None else f"{said}, you at {units.ratio(yours)}"


def write(room: Classroom, path: str | Path) -> Path:
    """Write the page of a class; it is whole or not there at all."""
    files = (passport.path for passport in room.passports)
    sources = [file for file in files if file is not None]
    return save(path, lambda: page(room), sources)


def page(room: Classroom) -> str:
    """Lay a class out as a page."""
    return laid_out([page_of(report(room), [room.chart])])


def report(room: Classroom) -> Report:
    """What a person reads of it."""
    first, *others = tables(room) or (None,)
    you = "" if room.you is None else f"You are here: {room.name(room.you)}"
    return Report(
        verdict=Verdict(headline=title(room), much=you),
        table=first,
        folds=tuple(Fold(table.title, tables=(table,)) for table in others),
    )


def title(room: Classroom) -> str:
    """How many machines there are."""
    count = len(room.passports)
    return f"A class of {count:,} machine{'' if count == 1 else 's'}"


def tables(room: Classroom) -> tuple[Table, ...]:
    """The spread of each answer, the machines, what they cannot run, other files."""
    about = (_spread, _machines, _unable, _fails, _problems)
    return tuple(table for table in (tell(room) for tell in about) if table.rows)


def _spread(room: Classroom) -> Table:
    rows = tuple(
        (
            measure.name,
            measure.group,
            str(len(measure.rates)),
            units.rate(measure.median, measure.unit),
            units.ratio(measure.ratios[0]),
            units.ratio(measure.ratios[-1]),
            units.ratio(measure.spread) if measure.spread else "too few to say",
        )
        for measure in room.measures
    )
    return Table(
        "How far the machines lie apart",
        (
            *("measured", "part", "machines", "median machine"),
            *("slowest", "fastest", "nine in ten over one in ten"),
        ),
        rows,
    )


def _machines(room: Classroom) -> Table:
    places = range(len(room.passports))
    return Table(
        "The machines; speed is the median of their ratios to the median machine",
        ("machine", "what it is", "recorded", "speed", "its slowest part", "measured"),
        tuple(_machine(room, place) for place in places),
        -1 if room.you is None else room.you,
    )


def _machine(room: Classroom, place: int) -> tuple[str, ...]:
    passport, ratios = room.passports[place], room.ratios(place)
    slowest = min(ratios, key=ratios.__getitem__, default="")
    return (
        f"{room.name(place)}{' (you are here)' * (place == room.you)}",
        plain(passport.machine.summary),
        plain(passport.recorded[:16].replace("T", " ")),
        units.ratio(statistics.median(ratios.values())) if ratios else "not measured",
        f"{slowest}, {units.ratio(ratios[slowest])}" if ratios else "",
        f"{len(ratios)} of {len(room.measures)}",
    )


def _unable(room: Classroom) -> Table:
    rows = tuple(
        (room.name(place), notebook, why)
        for place, passport in enumerate(room.passports)
        for notebook, why in unable(passport).items()
    )
    return Table("Who cannot run which notebook", ("machine", "notebook", "why"), rows)


def _fails(room: Classroom) -> Table:
    rows = tuple(
        (room.name(place), said)
        for place, passport in enumerate(room.passports)
        for said in held_back(passport)
    )
    return Table("What fails, and what to do", ("machine", "what"), rows)


def _problems(room: Classroom) -> Table:
    rows = tuple((plain(path.name, 80), why) for path, why in room.problems.items())
    return Table("Files that are no passport", ("file", "why"), rows)
