"""Charts with a number along each axis, and one of them: how soon variants learn.

Of a loss against the seconds of training a thick line is the mean over all trials, each
from another seed unless the training sets its own; the thin lines are the trials.
Trials stand still between their turns, so the seconds are worked out: the examples so
far, over the variant's examples per second.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from perfkit import units
from perfkit.charts import canvas
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, SMALL, WIDTH, Figure
from perfkit.charts.layout import even_ticks, limits, log_ticks
from perfkit.engine.trial import Trial
from perfkit.findings.reading import losses
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import one_line, printable

# Pixels that a character of a tick's number takes.
_DIGIT = 6.8


def _with_room(
    axes: Axes, ticks: Iterable[float], write: Callable[[float], str]
) -> list[float]:
    """The ticks whose numbers have room beside those of the ticks before them."""
    placed = dict[float, tuple[float, float]]()
    for tick in ticks:
        middle = float(axes.transData.transform((tick, 0.0))[0])
        half = (len(write(tick)) + 1) * _DIGIT / 2
        if all(abs(middle - at) >= half + reach for at, reach in placed.values()):
            placed[tick] = middle, half
    return sorted(placed)


def _is_even(ticks: list[float]) -> bool:
    """Whether they stand at equal steps, and so should those that are left of them."""
    steps = [after - before for before, after in itertools.pairwise(ticks)]
    return all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)


def put(axes: Axes, ticks: list[float], write: Callable[[float], str]) -> None:
    """Let these ticks stand on the horizontal axis, the first of any that would meet.

    The limits and the scale of the axis must be set.
    """
    fitting = _with_room(axes, ticks, write)
    if len(fitting) < len(ticks) and _is_even(ticks):
        thinner = (ticks[::step] for step in range(2, len(ticks)))
        fitting = next((t for t in thinner if t == _with_room(axes, t, write)), fitting)
    axes.xaxis.set_major_locator(FixedLocator(fitting))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


HEIGHT = 260
_LEFT = 96
# Room for words at the end of a curve.
RIGHT = 150
_MOST_SIZES = 8
_AROUND = 1.35


def axes(
    drawing: Drawing,
    quantity: str,
    *,
    left: float = _LEFT,
    right: float = RIGHT,
    inner: float = HEIGHT,
) -> Axes:
    """Axes so high, with what is measured above and so many pixels on both sides."""
    top = canvas.TOP + 18
    panel = canvas.place(drawing, left, top, WIDTH - left - right, inner)
    panel.grid(axis="y", alpha=0.15, lw=0.8)
    panel.tick_params(axis="y", labelsize=SMALL)
    canvas.note(panel, quantity, (0, 1), (-left + 12, 12), fontsize=SMALL)
    return panel


def picture(
    title: str,
    quantity: str,
    caption: Iterable[str],
    words: Iterable[str],
    fill: Callable[[Axes], None],
    *,
    right: float = RIGHT,
    inner: float = HEIGHT,
) -> Figure:
    """A picture of one such pair of axes.

    Args:
        title: What it shows.
        quantity: What is measured, with its unit.
        caption: What the marks mean, in pieces.
        words: What it shows, for who cannot see it: sentences without full stops.
        fill: Draws what is in the axes.
        right: Pixels to the right of them.
        inner: Their height.
    """
    lines = canvas.caption_lines(list(caption))

    def draw(drawing: Drawing) -> None:
        fill(axes(drawing, quantity, right=right, inner=inner))

    alt = f"{'. '.join([title, *words])}."
    return canvas.paint(title, lines, height(lines, inner), alt, draw)


def height(lines: Sequence[str], inner: float = HEIGHT) -> float:
    """Of a picture with such axes and a caption."""
    return canvas.height(18 + inner, lines, 44)


@dataclass(frozen=True)
class Mark:
    """A value at a size.

    Attributes:
        size: Where it stands.
        value: What was measured there.
        ends: Of its 95 % interval; None where it has none.
        colour: Of the mark and its interval.
        shape: As Matplotlib calls it.
        words: What stands beside it.
        hollow: Whether only its outline is drawn.
    """

    size: float
    value: float
    ends: tuple[float, float] | None = None
    colour: str = BLUE
    shape: str = "o"
    words: str = ""
    hollow: bool = False


# Words stand so many points above their mark, clear of a curve through it.
_LIFT = 8.0


def over_sizes(
    finding: Finding,
    topic: str,
    quantity: str,
    marks: Sequence[Mark],
    write: Callable[[float], str],
    caption: Iterable[str],
    behind: Callable[[Axes], None],
    *,
    sizes: Iterable[float] = (),
    values: Iterable[float] = (),
    below: str = "examples in a batch",
) -> Figure:
    """A picture of values over a size, both on logarithmic axes.

    Args:
        finding: Whose they are.
        topic: What it shows.
        quantity: What is measured.
        marks: The values.
        write: Writes one of them.
        caption: What the marks mean, in pieces; who cannot see it is told these, too.
        behind: Draws what is behind the marks.
        sizes: Those that have a number below, if not those of all marks.
        values: More of them that the axis holds.
        below: What the sizes count.
    """
    title = f"{one_line(finding.experiment, 40)}: {topic}"
    if not marks:
        return canvas.message(title, "Too few sizes were measured.")

    def fill(axes: Axes) -> None:
        along = [*sizes] or [mark.size for mark in marks]
        axes.set(xscale="log", xlim=(min(along) / _AROUND, max(along) * _AROUND))
        axes.set_xlabel(f"{below} (logarithmic)")
        put(axes, _readable(along), lambda size: f"{size:,.0f}")
        # Ends of intervals are cut where they are far away.
        ends = [end for mark in marks for end in mark.ends or ()]
        low, high = limits([*(mark.value for mark in marks), *values], ends)
        axes.set(yscale="log", ylim=(low / _AROUND, high * _AROUND))
        ticks(axes, log_ticks(low / _AROUND, high * _AROUND), write)
        behind(axes)
        for mark in marks:
            if mark.ends:
                between(axes, mark.size, *mark.ends, mark.colour)
            inside = "none" if mark.hollow else mark.colour
            style: Any = {"color": mark.colour, "mfc": inside, "ms": 8, "mew": 1.8}
            axes.plot(mark.size, mark.value, mark.shape, **style)
            if mark.words:
                label(axes, mark.words, mark.size, mark.value, lift=_LIFT)

    pieces = ["bar: 95 % interval", *caption]
    spoken = [f"Over {below}", *(_spoken(mark, write) for mark in marks), *pieces]
    return picture(title, f"{quantity} (logarithmic)", pieces, spoken, fill)


def _spoken(mark: Mark, write: Callable[[float], str]) -> str:
    """A mark for who cannot see it: ``"64, enough: 12 ms (11 ms to 13 ms)"``."""
    low, high = mark.ends or (mark.value, mark.value)
    name = ", ".join(filter(None, (f"{mark.size:,.0f}", mark.words)))
    return f"{name}: {units.between(mark.value, low, high, write)}"


_DASHED: Any = {"lw": 1.2, "ls": (0, (4, 3)), "alpha": 0.7}


def level(axes: Axes, value: float, words: str) -> None:
    """A dashed line across at a value, if the axes hold it, and words at its end."""
    bottom, top = axes.get_ylim()
    if bottom <= value <= top:
        axes.axhline(value, color=INK, **_DASHED)
        label(axes, words, axes.get_xlim()[1], value)


def upright(axes: Axes, size: float, words: str = "", *, colour: str = INK) -> None:
    """A dashed line up at a size, and words at its foot."""
    axes.axvline(size, color=colour, **_DASHED)
    if words:
        label(axes, words, size, axes.get_ylim()[0], lift=_LIFT)


def _readable(values: Sequence[float]) -> list[float]:
    """The values whose numbers have room; the last is always there to be read."""
    low, high = min(values), max(values)
    gap = max((high / low) ** (1 / _MOST_SIZES), _AROUND)
    readable = list[float]()
    for value in sorted(values, reverse=True):
        if not readable or readable[-1] / value >= gap * 0.999:
            readable.append(float(value))
    return readable


def along(axes: Axes, high: float, write: Callable[[float], str], name: str) -> None:
    """Label the axis below with ``name`` and let it go from 0 to ``high``."""
    axes.set_xlim(0, high)
    put(axes, even_ticks(0, high), write)
    axes.set_xlabel(name)


def ticks(axes: Axes, ticks: list[float], write: Callable[[float], str]) -> None:
    """Let exactly these ticks stand on the axis at the left."""
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def between(axes: Axes, x: float, low: float, high: float, colour: str) -> None:
    """A 95 % interval, as far as it lies within the axes."""
    bottom, top = axes.get_ylim()
    axes.vlines(x, max(low, bottom), min(high, top), colors=colour, lw=2.2)


def key(
    axes: Axes,
    names: Iterable[str],
    looks: Iterable[tuple[str, Any]],
    reach: tuple[float, float],
) -> None:
    """A name for each curve in the margin, each beside its colour and dashes.

    These reach from where to where is said, in fractions of the axes.
    """
    for row, (name, (colour, dashes)) in enumerate(zip(names, looks, strict=False)):
        high = 0.95 - 0.1 * row
        style: Any = {"color": colour, "ls": dashes, "lw": 1.8, "clip_on": False}
        axes.plot(reach, [high, high], transform=axes.transAxes, **style)
        canvas.note(axes, name, (reach[1], high), (6, 0))


def label(
    axes: Axes, words: str, x: float, y: float, *, colour: str = INK, lift: float = 0.0
) -> None:
    """Words to the right of a point, and so many points above it."""
    axes.annotate(
        printable(words),
        (x, y),
        xytext=(9, lift),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=colour,
        annotation_clip=False,
    )


def spread(levels: list[float], apart: float) -> list[float]:
    """Rising levels moved as little as keeps them apart and below 1."""
    spread = list[float]()
    for level in levels:
        spread.append(max(level, spread[-1] + apart) if spread else level)
    top = 1.0
    for number in reversed(range(len(spread))):
        spread[number] = min(spread[number], top)
        top = spread[number] - apart
    return spread


Points = Sequence[tuple[float, float]]
_LOOKS: tuple[tuple[str, Any], ...] = (
    *((BLUE, "-"), (RED, "--"), (GREEN, "-."), (GREY, ":")),
    (INK, (0, (8, 3))),
)
_MOST_POINTS = 200
# A file may say anything; numbers that no training has are not drawn.
_LARGEST = 1e12


def has_losses(finding: Finding) -> bool:
    """Whether its trials noted how they learnt."""
    return bool(_curves(finding))


def learning_time(finding: Finding) -> Figure:
    """Draw the loss of each variant against the seconds that it has trained."""
    title = f"{finding.experiment}: the loss against seconds"
    trials = _curves(finding)
    if not trials:
        return canvas.message(title, "No loss is known.")
    caption = ("thick: the mean over trials", "thin: a trial")
    return bundles(title, "seconds of training", trials, units.seconds, caption)


def bundles(
    title: str,
    along_axis: str,
    curves: Mapping[str, Sequence[Points]],
    write: Callable[[float], str],
    caption: Iterable[str],
    words: Iterable[str] = (),
) -> Figure:
    """Draw the losses of several trainings of each name, thin, and their mean, thick.

    Args:
        title: What it shows.
        along_axis: What the losses are drawn against, from 0 on.
        curves: The trainings of each name: points against that, in order.
        write: Writes a number of that axis with its unit.
        caption: What the lines mean, in pieces.
        words: More of what it shows, for who cannot see it.
    """
    # The mean ends where the first trial does: none may leave it on the way.
    means = {
        name: [
            tuple(map(fmean, zip(*at, strict=True))) for at in zip(*lines, strict=False)
        ]
        for name, lines in curves.items()
    }

    def fill(axes: Axes) -> None:
        points = [p for lines in curves.values() for line in lines for p in line]
        places, values = zip(*points, strict=True)
        along(axes, max(places), units.significant, along_axis)
        room = (max(values) - min(values)) / 8 or abs(max(values)) / 8 or 1.0
        low, high = min(values) - room, max(values) + room
        axes.set_ylim(low, high)
        ticks(axes, even_ticks(low, high), units.significant)
        for (name, mean), (colour, dashes) in zip(means.items(), looks, strict=False):
            for line in curves[name]:
                axes.plot(*zip(*line, strict=True), color=colour, lw=0.7, alpha=0.35)
            axes.plot(*zip(*mean, strict=True), color=colour, ls=dashes, lw=2)
        key(axes, names, looks, (1.02, 1.1))

    looks, names = _LOOKS * len(means), [one_line(name, 24) for name in means]
    ends = [
        f"{name}: {units.significant(loss)} after {write(place)}"
        for name, mean in means.items()
        for place, loss in mean[-1:]
    ]
    right = 60 + canvas.text_width(names, canvas.SMALL)
    return picture(title, "loss", caption, [*ends, *words], fill, right=right)


def _curves(finding: Finding) -> dict[str, list[Points]]:
    """Seconds and losses of each trial, of the variants that somebody may choose."""
    rates = {
        standing.variant: standing.timing.rate
        for standing in standings(finding)
        if standing.timing and not standing.is_limit
    }
    curves: dict[str, list[Points]] = {}
    for trial in finding.trials:
        points = _points(trial)
        if trial.variant in rates and len(points) > 1:
            rate = rates[trial.variant]
            curve = [(examples / rate, loss) for examples, loss in points]
            curves.setdefault(trial.variant, []).append(curve)
    return curves


def _points(trial: Trial) -> Points:
    """Examples and the mean loss up to there, as far as they can be drawn."""
    drawable = itertools.takewhile(
        lambda point: point[0] < _LARGEST and abs(point[1]) < _LARGEST, losses(trial)
    )
    return list(itertools.islice(drawable, _MOST_POINTS))
