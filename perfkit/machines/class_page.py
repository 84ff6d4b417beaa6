"""A class as one page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas
from perfkit.charts.canvas import BLUE, RED
from perfkit.charts.figure import INK
from perfkit.export.page import laid_out, page_of
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.machines.class_claims import table
from perfkit.machines.classroom import can_run, held_back, listed, unable
from perfkit.machines.comparison_charts import ratio_scale, row_chart, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from perfkit.charts.figure import Figure
    from perfkit.machines.classroom import Classroom, Measure
    from perfkit.machines.room import Answer


_TITLE = "Every machine, relative to the median one"
_HEIGHT = 0.75
_NONE = "No passport lies there: `perfkit passport -o NAME.json` makes a machine's."
# Dots that the eye cannot tell apart are one: so many fit between 1 and e.
_APART = 80


def picture(room: Classroom) -> Figure:
    """Draw each machine's rates over the median machine's, a row per microbenchmark."""
    shown = room.measures
    if not shown:
        return canvas.message(_TITLE, "No passport holds a rate.")
    legend = [
        "dot: a machine, or several at the same place",
        "dashed line: the median machine, whose rate is to the right",
        *(["\u25c6 you are here"] if room.you is not None else []),
    ]

    def draw(axes: Axes) -> None:
        ends = [within(end) for m in shown for end in (m.ratios[0], m.ratios[-1])]
        ratio_scale(axes, min(ends), max(ends), "rate over that of the median machine")
        for row, measure in enumerate(shown):
            dots = _told_apart(measure.ratios)
            axes.plot(dots, [row] * len(dots), "o", color=BLUE, ms=5, alpha=0.45, mew=0)
            yours = measure.ratio(room.you)
            if yours is not None:
                axes.plot(
                    [within(yours)], [row], "D", color=RED, ms=8, mec=INK, mew=0.8
                )

    return row_chart(
        _TITLE,
        # Two may share a name where they count different things.
        [(measure.name, (_median(measure), "")) for measure in shown],
        canvas.caption_lines(legend),
        draw,
        alt=". ".join(_sentence(measure, room.you) for measure in shown) + ".",
        height=_HEIGHT,
    )


def _told_apart(ratios: Sequence[float]) -> list[float]:
    places = {round(math.log(within(ratio)) * _APART) for ratio in ratios}
    return [math.exp(place / _APART) for place in sorted(places)]


def _median(measure: Measure) -> str:
    return units.rate(measure.median, measure.unit)


def _sentence(measure: Measure, you: int | None) -> str:
    low, high = (units.ratio(measure.ratios[end]) for end in (0, -1))
    yours = measure.ratio(you)
    return (
        f"{measure.name}: {len(measure.rates)} machines from {low} to {high} of "
        f"{_median(measure)}"
    ) + ("" if yours is None else f", you at {units.ratio(yours)}")


def page(room: Classroom) -> str:
    """Lay a class out as a page."""
    return laid_out([page_of(report(room), [room.chart])])


def report(room: Classroom) -> Report:
    """What a person reads of it."""
    filled = [one for one in _tables(room) if one.rows]
    checked = _checked(room) if room.answers else ()
    verdict = _verdict(room)
    if checked and not room.passports:
        verdict = Verdict(headline=checked[0], much=" ".join(checked[1:]))
    return Report(
        verdict=verdict,
        table=filled[0] if filled else None,
        charted=bool(room.passports),
        besides=checked if room.passports else (),
        folds=tuple(Fold(table.title, tables=(table,)) for table in filled[1:]),
    )


def _checked(room: Classroom) -> tuple[str, ...]:
    """How many machines can run the notebooks, which cannot, and who is to be asked."""
    well = sum(not unable(machine) for _, machine in room.machines)
    silent = [one.name for one in room.unanswered if not one.problem]
    mistyped = [one.name for one in room.unanswered if one.problem]
    count = len(room.machines) + len(room.unanswered)
    return (
        f"{well} of {count} machine{'s' * (count > 1)} can run every notebook.",
        *room.cannot,
        *[f"Not answered: {listed(silent)}."] * bool(silent),
        *[f"Mistyped, ask again: {listed(mistyped)}."] * bool(mistyped),
    )


def _answer(room: Classroom, answer: Answer) -> tuple[str, str, str]:
    """A line of the class's list, as a row."""
    if answer.laptop:
        return answer.name, str(answer.laptop), can_run(answer.laptop.machine)
    if answer in room.unanswered:
        return answer.name, answer.problem or "has not answered", "not known yet"
    return answer.name, "sent a passport", "see its passport"


def _verdict(room: Classroom) -> Verdict:
    """Where the reader's machine stands, else how far the machines lie apart."""
    rows = [room.row(place) for place in range(len(room.passports))]
    known = sorted((row["speed"], row["machine"]) for row in rows if row["speed"])
    count = f"{len(rows):,} machine{'' if len(rows) == 1 else 's'}"
    if len(known) < 2:
        return Verdict(headline=f"A class of {count}", next="" if rows else _NONE)
    (slow, slowest), (fast, fastest) = known[0], known[-1]
    much = f"{fastest} is the fastest of {count}, {slowest} the slowest."
    if room.you is None or not (speed := rows[room.you]["speed"]):
        times = units.times(fast / slow)
        return Verdict(headline=f"The machines lie {times} times apart.", much=much)
    you = rows[room.you]
    times = f"runs {units.times(speed)} times as fast"
    if speed < 1:
        times = f"takes {units.times(1 / speed)} times as long"
    return Verdict(
        headline=f"Your machine, {you['machine']}, {times} as the median machine.",
        much=f"Its slowest part is {you['slowest']}. {much}",
    )


def _tables(room: Classroom) -> Iterator[Table]:
    """The spread of each rate, the machines, their answers, what they cannot run."""
    machines = [(room.name(at), one) for at, one in enumerate(room.passports)]
    yield Table(
        "How far the machines lie apart",
        (
            *("measured", "part", "machines", "median machine"),
            *("slowest", "fastest", "nine in ten over one in ten"),
        ),
        tuple(
            (
                *(measure.name, measure.group, str(len(measure.rates))),
                _median(measure),
                *(units.ratio(measure.ratios[end]) for end in (0, -1)),
                units.ratio(measure.spread) if measure.spread else "too few to say",
            )
            for measure in room.measures
        ),
    )
    answers = sorted(room.answers, key=lambda one: bool(one.laptop))
    yield Table(
        "The room check",
        ("who", "what the code says", "notebooks"),
        tuple(_answer(room, one) for one in answers),
    )
    yield Table(
        "The machines; speed is the median of their ratios to the median machine",
        ("machine", "what it is", "recorded", "speed", "its slowest part", "measured"),
        tuple(_machine(room, place) for place in range(len(machines))),
        -1 if room.you is None else room.you,
    )
    yield table(room.claims)
    yield Table(
        "Who cannot run which notebook",
        ("machine", "notebook", "why"),
        tuple(
            (name, *why) for name, one in room.machines for why in unable(one).items()
        ),
    )
    yield Table(
        "What fails, and what to do",
        ("machine", "what"),
        tuple((name, said) for name, one in machines for said in held_back(one.checks)),
    )
    yield Table(
        "Files that are no passport",
        ("file", "why"),
        tuple((path.name, why) for path, why in room.problems.items()),
    )


def _machine(room: Classroom, place: int) -> tuple[str, ...]:
    row = room.row(place)
    speed, slowest = row["speed"], row["slowest"]
    return (
        f"{row['machine']}{' (you are here)' * (place == room.you)}",
        row["what"],
        row["recorded"],
        "not measured" if speed is None else units.ratio(speed),
        f"{slowest}, {units.ratio(row['its_speed'])}" if slowest else "",
        f"{row['measured']} of {len(room.measures)}",
    )
