"""A class as one page."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas
from perfkit.charts.canvas import BLUE, RED
from perfkit.charts.figure import INK
from perfkit.export.page import laid_out, page_of
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.text import plain
from perfkit.machines.class_claims import table
from perfkit.machines.classroom import can_run, held_back, listed, unable
from perfkit.machines.comparison_charts import ratio_scale, row_chart, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from perfkit.charts.figure import Figure
    from perfkit.machines.classroom import Classroom, Measure
    from perfkit.machines.room import Answer


_TITLE = "Every machine against the median one"
_HEIGHT = 0.75
_NONE = "No passport lies there: `perfkit passport -o NAME.json` makes a machine's."
# Dots that the eye cannot tell apart are one: so many fit between 1 and e.
_APART = 80


@canvas.fitting
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
            axes.plot(dots, [row] * len(dots), "o", color=BLUE, ms=6, alpha=0.7, mew=0)
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
    slow, stands = _standing(room)
    # Who cannot work comes before who is slow, and that before what all may change.
    said = [*_cannot_work(room, checked), *[stands] * slow, *_change(room), stands]
    first = said[0].headline, said[0].much
    return Report(
        verdict=said[0],
        table=filled[0] if filled else None,
        charted=bool(room.passports),
        besides=tuple(one for one in checked if one not in first),
        folds=tuple(Fold(table.title, tables=(table,)) for table in filled[1:]),
    )


def _checked(room: Classroom) -> tuple[str, ...]:
    """How many machines can run the notebooks, which cannot, and who is to be asked."""
    well = sum(not unable(machine) for _, machine in room.machines)
    silent = [one.name for one in room.unanswered if not one.problem]
    wrong = [one for one in room.unanswered if one.problem]
    mistyped = [f"{one.name} (line {one.line})" for one in wrong]
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


def _cannot_work(room: Classroom, checked: tuple[str, ...]) -> Iterator[Verdict]:
    """Whom to help first; with a machine of the reader's own only that one counts."""
    held = dict[str, list[str]]()
    for place, one in enumerate(room.passports):
        for said in held_back(one.checks):
            held.setdefault(said, []).append(room.name(place))
    mine = None if room.you is None else room.name(room.you)
    for what, names in (room.unable | held).items():
        if mine is None or mine in names:
            see = f"your machine, {mine}," if mine else listed(names)
            it = "" if what in held else f"{listed(names)} "
            much = f"{it}{what.rstrip('.')}."
            yield Verdict(headline=f"See to {see} first.", much=much, sure="sure")
    if checked and not room.passports:
        silent = listed([one.name for one in room.unanswered])
        yield Verdict(headline=f"Ask {silent} for a code." if silent else checked[0])


def _standing(room: Classroom) -> tuple[bool, Verdict]:
    """Whether a machine is slow, and how far it is from the median one.

    It is the reader's own, else the slowest.
    """
    rows = [room.row(place) for place in range(len(room.passports))]
    known = sorted((row["speed"], at) for at, row in enumerate(rows) if row["speed"])
    count = f"{len(rows):,} machine{'' if len(rows) == 1 else 's'}"
    if len(known) < 2:
        return False, Verdict(
            headline=f"A class of {count}", next="" if rows else _NONE
        )
    (_, last), (_, first) = known[0], known[-1]
    mine = room.you if room.you in {at for _, at in known} else None
    at = last if mine is None else mine
    speed, (low, high) = rows[at]["speed"], room.speed_ends(at)
    is_slow, name = high < 1, rows[at]["machine"]
    called = name if mine is None else f"your machine, {name},"
    headline = f"Leave {called} as it is."
    if is_slow:
        headline = f"Look at {called} first."
    elif mine is None:
        headline = "Leave the machines as they are: none is shown to be slower."
    does = f"runs {units.times(speed)} times as fast"
    if speed < 1:
        does = f"takes {units.times(1 / speed)} times as long"
        low, high = 1 / high, 1 / low if low else math.inf
    sure = units.is_known(low, high)
    order = f"{room.name(first)} is the fastest, {room.name(last)} the slowest."
    return is_slow, Verdict(
        headline=headline,
        much=f"{name} {does} as the median of {count}.",
        sure="sure" if sure else "not known yet",
        interval=f"{units.times(low)} to {units.times(high)}" if sure else "",
        next=f"{_compared(room, at, known)} {order}" if is_slow else order,
    )


def _compared(room: Classroom, at: int, known: Sequence[tuple[float, int]]) -> str:
    """What a machine is slowest at, and what to type to know why."""
    # One of the middle: what the fastest has cannot always be had.
    _, other = min((abs(math.log(s)), place) for s, place in known if place != at)
    paths = [room.passports[place].path for place in (other, at)]
    files = " ".join(shlex.quote(plain(path.name)) for path in paths if path)
    told = f" `perfkit compare {files}` says what to do about it." * all(paths)
    return f"Its slowest part is {room.row(at)['slowest']}.{told}"


def _change(room: Classroom) -> Iterator[Verdict]:
    """What most machines that tried it found to be faster."""
    if not room.claims:
        return
    by_count = max(room.claims.items(), key=lambda held: held[1]["faster"])
    (_, one, other), said = by_count
    faster, asked = said["faster"], said.total()
    if 2 * faster > asked:
        yield Verdict(
            headline=f'Take "{one}" in place of "{other}".',
            much=f"It is faster on {faster} of {asked} machines that tried it.",
            sure="likely" if said["slower"] else "sure",
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
