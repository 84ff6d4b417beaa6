"""A class as one page, and as an output of a notebook."""

from __future__ import annotations

import os
import statistics
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from perfkit import units
from perfkit.classroom.able import held_back, unable
from perfkit.export.clean import clean
from perfkit.export.compact import compact
from perfkit.export.numbers import Table
from perfkit.export.page import environment
from perfkit.export.writing import check
from perfkit.export.writing import write as write_page
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.classroom.record import Classroom


def write(room: Classroom, path: str | Path) -> Path:
    """Write the page of a class; it is whole or not there at all."""
    target = Path(os.path.expanduser(path))
    files = (passport.path for passport in room.passports)
    check(target, [file for file in files if file is not None])
    write_page(target, page(room))
    return target


def page(room: Classroom) -> str:
    """Lay a class out as a page."""
    template = environment().get_template("class.html.j2")
    figure = clean(room.chart.svg, alt=room.chart.alt)
    return compact(
        template.render(
            title=title(room), figure=figure, tables=tuple(tables(room)), you=_you(room)
        )
    )


def in_notebook(room: Classroom) -> str:
    """The chart and the tables, for the output of a cell."""
    told = "".join(map(_table, tables(room)))
    return f"<p><b>{escape(title(room))}</b></p>{room.chart.in_page()}{told}"


def title(room: Classroom) -> str:
    """How many machines there are."""
    count = len(room.passports)
    return f"A class of {count:,} machine{'' if count == 1 else 's'}"


def tables(room: Classroom) -> Iterator[Table]:
    """The spread of each answer, the machines, what they cannot run, other files."""
    about = (_spread, _machines, _unable, _fails, _problems)
    yield from (table for table in (tell(room) for tell in about) if table.rows)


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


def _you(room: Classroom) -> str:
    return "" if room.you is None else room.name(room.you)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>"
        for row in table.rows
    )
    caption = Markup.escape(table.caption)
    return (
        f"<details><summary>{caption}</summary><div tabindex='0' "
        f"style='overflow-x:auto'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></details>"
    )
