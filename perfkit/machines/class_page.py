"""A class as one page."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, rows
from perfkit.charts.canvas import BLUE, RED
from perfkit.charts.figure import INK, Figure
from perfkit.export.page import laid_out, page_of
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.text import plain
from perfkit.machines.classroom import (
    MEDIAN_FROM,
    SPEED_FROM,
    Classroom,
    Measure,
    can_run,
    held_back,
    listed,
    unable,
)
from perfkit.machines.comparison_charts import ratio_scale, within
from perfkit.machines.room import END, LIST, Answer
from perfkit.passports.words import too_short

_TITLE = "Every machine against the median one"
_HEIGHT = 0.75
_FEW = "too few to say"
_NO_SPEED = (
    f"No machine is called slow: that takes {SPEED_FROM} parts that {MEDIAN_FROM} "
    "machines measured."
)
_NOBODY = (
    "Leave the machines as they are: none is shown to be slower than the median one."
)
_NONE = "No passport lies there: `perfkit passport -o NAME.json` makes a machine's."
# Dots that the eye cannot tell apart are one: so many fit between 1 and e.
_APART = 80
_SAID = ("faster", "slower", "no difference shown", "too noisy to say")


def picture(room: Classroom) -> Figure:
    """Draw each machine's rates over the median machine's, a row per microbenchmark."""
    shown = [one for one in room.measures if one.median]
    if not room.measures:
        return canvas.message(_TITLE, "No passport holds a rate.")
    if not shown:
        few = f"No part was measured on {MEDIAN_FROM} machines, which a median takes."
        return canvas.message(_TITLE, few)
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

    return rows.picture(
        _TITLE,
        # Two may share a name where they count different things.
        [(measure.name, (_median(measure), "")) for measure in shown],
        canvas.caption_lines(legend),
        draw,
        alt=". ".join([_TITLE, *(_sentence(one, room.you) for one in shown)]) + ".",
        height=_HEIGHT,
    )


def _told_apart(ratios: Sequence[float]) -> list[float]:
    places = {round(math.log(within(ratio)) * _APART) for ratio in ratios}
    return [math.exp(place / _APART) for place in sorted(places)]


def _median(measure: Measure) -> str:
    return units.rate(measure.median, measure.unit) if measure.median else _FEW


def _ends(room: Classroom, measure: Measure) -> Iterator[str]:
    """The lowest and the highest and whose, as ratios where there is a median."""
    rates = [(rate, place) for place, rate in measure.rates.items()]
    for rate, place in (min(rates), max(rates)):
        ratio = measure.ratio(place)
        said = units.ratio(ratio) if ratio else units.rate(rate, measure.unit)
        yield f"{said} {room.name(place)}"


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
        besides=tuple(one for one in (*checked, *_short(room)) if one not in first),
        folds=tuple(Fold(table.title, tables=(table,)) for table in filled[1:]),
    )


def _checked(room: Classroom) -> tuple[str, ...]:
    """How many machines can run the notebooks, which cannot, and who is to be asked."""
    well = sum(not unable(machine) for _, machine in room.machines)
    silent = [one.name for one in room.unanswered if not one.problem]
    wrong = [one for one in room.unanswered if one.problem]
    mistyped = [f"{one.name} (line {one.line})" for one in wrong]
    count = len(room.machines) + len(room.unanswered)
    busy = [one.name for one in room.answers if one.laptop and one.laptop.busy]
    twice = [one.name for one in room.answers if one.is_again]
    names = [room.name(at) for at in range(len(room.passports)) if at != room.you]
    others = [name for name in names if not room.is_listed(name)]
    return (
        f"{well} of {count} machine{'s' * (count > 1)} can run every notebook.",
        *room.cannot,
        *[f"Busy with other programs: {listed(busy)}; {END}."] * bool(busy),
        *[f"Not in {LIST}: {listed(others)}."] * bool(others),
        *[f"Not answered: {listed(silent)}."] * bool(silent),
        *[f"Mistyped, ask again: {listed(mistyped)}."] * bool(mistyped),
        *[f"In more than one line, the last counts: {listed(twice)}."] * bool(twice),
    )


def _short(room: Classroom) -> Iterator[str]:
    """Whose passports hold no training for want of seconds, and what to type."""
    names = dict[str, list[str]]()
    for place, one in enumerate(room.passports):
        if why := too_short(one):
            names.setdefault(why[0].lower() + why[1:], []).append(room.name(place))
    yield from (f"{listed(some)}: {why}" for why, some in names.items())


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
    machines = [room.row(place) for place in range(len(room.passports))]
    known = sorted(
        (row["speed"], at) for at, row in enumerate(machines) if row["speed"]
    )
    if not machines:
        return False, Verdict(headline="A class of 0 machines", next=_NONE)
    if len(known) < 2:
        return False, Verdict(headline=_NO_SPEED)
    ends = {at: room.speed_ends(at) for _, at in known}
    order = _order(room, [at for _, at in known], ends)
    mine = room.you if room.you in ends else None
    slow = [at for _, at in known if ends[at][1] < 1 and mine in (None, at)]
    if mine is None and not slow:
        lowest, highest = (units.times(known[end][0]) for end in (0, -1))
        vague = not all(units.is_known(*both) for both in ends.values())
        much = f"Their speeds are {lowest} to {highest} times the median machine's."
        return False, Verdict(
            headline=_NOBODY,
            much="How far they are from it is not known yet." if vague else much,
            sure="not known yet" if vague else "",
            next=order,
        )
    at = slow[0] if mine is None else mine
    speed, (low, high), name = machines[at]["speed"], ends[at], machines[at]["machine"]
    called = name if mine is None else f"your machine, {name},"
    headline = f"Look at {called} first." if slow else f"Leave {called} as it is."
    does = f"runs {units.times(speed)} times as fast"
    if speed < 1:
        does = f"takes {units.times(1 / speed)} times as long"
        low, high = 1 / high, 1 / low if low else math.inf
    sure = units.is_known(low, high)
    median = f"the median of {len(known)} machines"
    much = f"{name} {does} as {median}."
    if not sure:
        much = f"How far {name} is from {median} is not known yet."
    elif low <= 1 <= high:
        much = f"{name} is not shown to differ from {median}."
        sure = False
    return bool(slow), Verdict(
        headline=headline,
        much=much,
        sure="sure" if sure else "not known yet",
        interval=f"{units.times(low)} to {units.times(high)}" if sure else "",
        next=f"{_compared(room, at, known)} {order}".strip() if slow else order,
    )


def _order(
    room: Classroom, places: Sequence[int], ends: Mapping[int, tuple[float, float]]
) -> str:
    """Who is the fastest and who the slowest, where their intervals show it.

    ``places`` are those of the machines, the lowest speed first; ``ends`` those of the
    speeds. Who is not shown to differ from the median one differs from nobody.
    """
    last, *_, first = places
    told = list[str]()
    if ends[first][0] > max(1, *(ends[at][1] for at in places[:-1])):
        told.append(f"{room.name(first)} is the fastest")
    if ends[last][1] < min(1, *(ends[at][0] for at in places[1:])):
        told.append(f"{room.name(last)} {'' if told else 'is '}the slowest")
    return f"{', '.join(told)}." if told else ""


def _compared(room: Classroom, at: int, known: Sequence[tuple[float, int]]) -> str:
    """What a machine is slowest at, and what to type to know why."""
    # One of the middle: what the fastest has cannot always be had.
    _, other = min((abs(math.log(s)), place) for s, place in known if place != at)
    paths = [room.passports[place].path for place in (other, at)]
    files = " ".join(shlex.quote(plain(path.name)) for path in paths if path)
    told = f" `perfkit compare {files}` says what to do about it." * all(paths)
    slowest = room.row(at)["slowest"]
    return f"{f'Its slowest part is {slowest}.' if slowest else ''}{told}".strip()


def _change(room: Classroom) -> Iterator[Verdict]:
    """What most machines that tried it found to be faster."""
    chosen = [
        (claim, said) for claim, said in room.claims.items() if claim in room.chosen
    ]
    if not chosen:
        return
    (_, one, other), said = max(chosen, key=lambda held: held[1]["faster"])
    faster, asked = said["faster"], said.total()
    if 2 * faster > asked:
        yield Verdict(
            headline=f'Take "{one}" in place of "{other}".',
            much=f"It is faster on {faster} of {asked} machines that tried it.",
            sure="likely" if said["slower"] or asked < MEDIAN_FROM else "sure",
        )


def _tables(room: Classroom) -> Iterator[Table]:
    """The spread of each rate, the machines, their answers, what they cannot run."""
    machines = [(room.name(at), one) for at, one in enumerate(room.passports)]
    yield Table(
        "How far the machines lie apart",
        (
            *("measured", "part", "machines", "median machine"),
            *("lowest", "highest", "nine in ten over one in ten"),
        ),
        tuple(
            (
                *(measure.name, measure.group, str(len(measure.rates))),
                _median(measure),
                *_ends(room, measure),
                units.ratio(measure.spread) if measure.spread else _FEW,
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
    yield Table(
        "What the machines answered",
        (
            *("asked", "is this", "faster than this?"),
            *("yes, faster", "no, slower", "no difference", "not known"),
        ),
        tuple(
            (*claim, *(str(said[answer]) for answer in _SAID))
            for claim, said in room.claims.items()
        ),
    )
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
    unknown = _FEW if row["measured"] else "not measured"
    none = "none is shown" if speed else ""
    trained = any(one.rate for one in room.passports[place].trainings)
    return (
        f"{row['machine']}{' (you are here)' * (place == room.you)}",
        row["what"],
        row["recorded"],
        unknown if speed is None else units.ratio(speed),
        f"{slowest}, {units.ratio(row['its_speed'])}" if slowest else none,
        f"{row['measured']} of {len(room.measures)}{', no trainings' * (not trained)}",
    )
