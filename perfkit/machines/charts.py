"""The charts of two machines and of a class: a row for each step and each part."""

import math
from collections.abc import Iterable

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, rates, rows
from perfkit.charts.canvas import BLUE, INK, RED, Figure
from perfkit.charts.layout import limits
from perfkit.machines.classroom import Classroom, ClassRow
from perfkit.machines.compare import TwoMachines, chart
from perfkit.machines.report import speed_in_words

_HEIGHT = 0.8
# Longer charts are read by nobody; the table has all rows.
_MOST = 60
# Beyond, a ratio stands at the edge: one broken file must not flatten all others.
_FARTHEST = 1000.0
# Dots that the eye cannot tell apart are one: so many fit between 1 and e.
_APART = 80


@chart.register
def speeds(two: TwoMachines) -> Figure:
    """Draw B's speed over A's with its interval; 1 is neither faster nor slower."""
    title, main = "How fast B is, against A", two.main.training if two.main else ""
    speed_rows = [row for row in two.rows if row.is_step or row.training in ("", main)]
    speed_rows = [row for row in speed_rows if row.speed][:_MOST]
    if not speed_rows:
        return canvas.message(title, "Nothing was measured on both machines.")
    guess = [f"your guess: {two.guess}"] if two.guess else []
    legend = ["bar: 95 % interval", "arrow: faster or slower is shown"]
    legend = canvas.caption_lines([*legend, "ring: too noisy to say", *guess])

    def draw(axes: Axes) -> None:
        ratios = [1.0, *(_within(row.speed or 1.0) for row in speed_rows)]
        ends = limits(ratios, [row.low for row in speed_rows])
        _draw_axis(axes, *ends, "B's speed over A's")
        for place, row in enumerate(speed_rows):
            if row.speed is not None and row.verdict:
                rates.draw_ratio(
                    axes, place, row.verdict, row.speed, (row.low, row.high)
                )

    words = [(row.title, (speed_in_words(row), "")) for row in speed_rows]
    alt = "; ".join(
        f"{row.title} {speed_in_words(row)}, {row.verdict}" for row in speed_rows
    )
    alt = f"{'. '.join([title, alt, *guess])}."
    return rows.picture(title, words, legend, draw, alt=alt, height=_HEIGHT)


@chart.register
def strips(room: Classroom) -> Figure:
    """Draw a dot for each machine in the row of each step and part."""
    title, class_rows = "Every machine against the median one", room.rows[:_MOST]
    if not class_rows:
        return canvas.message(title, "Nothing was measured on three machines.")
    legend = [
        "dot: a machine, or several at the same place",
        "dashed line: the median machine, whose value is to the right",
        *(["\u25c6 you are here"] if room.you is not None else []),
    ]

    def draw(axes: Axes) -> None:
        ratios = [_within(ratio) for row in class_rows for ratio in row.speeds.values()]
        _draw_axis(axes, min(ratios), max(ratios), "speed over the median machine's")
        for place, row in enumerate(class_rows):
            dots = _told_apart(row.speeds.values())
            axes.plot(
                dots, [place] * len(dots), "o", color=BLUE, ms=6, alpha=0.7, mew=0
            )
            if room.you in row.speeds:
                yours = _within(row.speeds[room.you])
                axes.plot(yours, place, "D", color=RED, ms=8, mec=INK, mew=0.8)

    words = [(name, (amount, "")) for name, amount in (row.words for row in class_rows)]
    alt = f"{'. '.join([title, *(_sentence(row, room.you) for row in class_rows)])}."
    lines = canvas.caption_lines(legend)
    return rows.picture(title, words, lines, draw, alt=alt, height=_HEIGHT)


def _told_apart(ratios: Iterable[float]) -> list[float]:
    places = {round(math.log(_within(ratio)) * _APART) for ratio in ratios}
    return [math.exp(place / _APART) for place in sorted(places)]


def _sentence(row: ClassRow, you: int | None) -> str:
    ratios = [units.ratio(speed) for speed in row.speeds.values()]
    suffix = f", you at {units.ratio(row.speeds[you])}" if you in row.speeds else ""
    spread = f"from {ratios[0]} to {ratios[-1]}"
    return f"{row.words[0]}: {len(ratios)} machines {spread}{suffix}"


def _draw_axis(axes: Axes, low: float, high: float, label: str) -> None:
    # Machines that are alike shall look alike.
    rates.draw_ratio_axis(axes, min(0.5, low), max(2.0, high), label)


def _within(ratio: float) -> float:
    """A ratio as far away as an axis shows it."""
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)
