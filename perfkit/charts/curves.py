"""Charts with a number along each axis, and one of them: how soon variants learn.

Of a loss against the seconds of training a thick line is the mean over all trials, each
from another seed unless the training sets its own; the thin lines are the trials.
Trials stand still between their turns, so the seconds are worked out: the examples so
far, over the variant's examples per second.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, SMALL, WIDTH, Figure
from perfkit.charts.layout import even_ticks, limits, log_ticks
from perfkit.findings.reading import losses
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import one_line

# Pixels that a character of a tick's number takes.
_DIGIT = 6.8


def put(axes: Axes, ticks: Sequence[float], write: Callable[[float], str]) -> None:
    """Let these ticks stand on the horizontal axis, the first of any that would meet.

    The limits and the scale of the axis must be set.
    """
    # All count as wide as the widest: of even steps even ones are left.
    width = (max((len(write(tick)) for tick in ticks), default=0) + 1) * _DIGIT
    places = dict[float, float]()
    for tick in ticks:
        middle = float(axes.transData.transform((tick, 0.0))[0])
        if all(abs(middle - place) >= width for place in places.values()):
            places[tick] = middle
    fitting = sorted(places)
    axes.set_xticks(fitting, [write(tick) for tick in fitting])
    axes.set_xticks([], minor=True)


_HEIGHT, _LEFT = 260, 96
# Room for words at the end of a curve.
_RIGHT = 150
_AROUND = 1.35


def picture(
    title: str,
    quantity: str,
    caption: Iterable[str],
    words: Iterable[str],
    fill: Callable[[Axes], None],
    right: float = _RIGHT,
) -> Figure:
    """A picture of one pair of axes, which ``fill`` draws into.

    ``quantity`` is what is measured, with its unit, and ``caption`` what the marks
    mean, in pieces. Who cannot see it is told ``words``: sentences without full stops.
    """
    lines = canvas.caption_lines(list(caption))

    def draw(drawing: Drawing) -> None:
        wide, top = WIDTH - _LEFT - right, canvas.TOP + 18
        axes = canvas.place(drawing, _LEFT, top, wide, _HEIGHT)
        axes.grid(axis="y", alpha=0.15, lw=0.8)
        axes.tick_params(axis="y", labelsize=SMALL)
        canvas.note(axes, quantity, (0, 1), (-_LEFT + 12, 12))
        fill(axes)

    alt = f"{'. '.join([title, *words])}."
    return canvas.paint(title, lines, canvas.height(18 + _HEIGHT, lines, 44), alt, draw)


@dataclass(frozen=True)
class Mark:
    """A value at a size, with the ends of its 95 % interval and words beside it.

    The shape is called as Matplotlib does; if ``hollow`` only its outline is drawn.
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

    ``write`` writes a value, and ``behind`` draws what is behind the marks. Who cannot
    see it is told the caption, too. The axis below counts ``below``, and has numbers at
    ``sizes`` if not at all marks; the other one holds these ``values`` besides.
    """
    title = f"{one_line(finding.experiment, 40)}: {topic}"
    if not marks:
        return canvas.message(title, "Too few sizes were measured.")

    def fill(axes: Axes) -> None:
        along = [*sizes] or [mark.size for mark in marks]
        axes.set(xscale="log", xlim=(min(along) / _AROUND, max(along) * _AROUND))
        axes.set_xlabel(f"{below} (logarithmic)")
        # The last is always there to be read.
        put(axes, sorted(along, reverse=True), lambda size: f"{size:,.0f}")
        # Ends of intervals are cut where they are far away.
        ends = [end for mark in marks for end in mark.ends or ()]
        low, high = limits([*(mark.value for mark in marks), *values], ends)
        axes.set(yscale="log", ylim=(low / _AROUND, high * _AROUND))
        _ticks(axes, log_ticks(low / _AROUND, high * _AROUND), write)
        behind(axes)
        for mark in marks:
            if mark.ends:
                bottom, top = axes.get_ylim()
                visible = max(mark.ends[0], bottom), min(mark.ends[1], top)
                axes.vlines(mark.size, *visible, colors=mark.colour, lw=2.2)
            inside = "none" if mark.hollow else mark.colour
            style: Any = {"color": mark.colour, "mfc": inside, "ms": 8, "mew": 1.8}
            axes.plot(mark.size, mark.value, mark.shape, **style)
            if mark.words:
                label(axes, mark.words, mark.size, mark.value, lift=_LIFT)

    pieces = ["bar: 95 % interval", *caption]
    spoken = [f"Over {below}"]
    for mark in marks:
        # Such as "64, enough: 12 ms (11 ms to 13 ms)".
        name = ", ".join(filter(None, (f"{mark.size:,.0f}", mark.words)))
        ends = mark.ends or (mark.value, mark.value)
        spoken.append(f"{name}: {units.between(mark.value, *ends, write)}")
    spoken += pieces
    return picture(title, f"{quantity} (logarithmic)", pieces, spoken, fill)


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


def _ticks(axes: Axes, ticks: list[float], write: Callable[[float], str]) -> None:
    """Let exactly these ticks stand on the axis at the left."""
    axes.set_yticks(ticks, [write(tick) for tick in ticks])
    axes.set_yticks([], minor=True)


def label(axes: Axes, words: str, x: float, y: float, *, lift: float = 0.0) -> None:
    """Words to the right of a point, and so many points above it."""
    at, clear = (x, y), (9, lift)
    canvas.note(axes, words, at, clear, xycoords="data", annotation_clip=False)


Points = Sequence[tuple[float, float]]
_LOOKS: tuple[tuple[str, Any], ...] = (
    *((BLUE, "-"), (RED, "--"), (GREEN, "-."), (GREY, ":")),
    (INK, (0, (8, 3))),
)
_MOST_POINTS = 200
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

    They are points in order against ``along_axis``, which begins at 0; ``write`` writes
    a number of it with its unit. ``words`` is more for who cannot see the picture.
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
        axes.set(xlim=(0, max(places)), xlabel=along_axis)
        put(axes, even_ticks(0, max(places)), units.significant)
        room = (max(values) - min(values)) / 8 or abs(max(values)) / 8 or 1.0
        low, high = min(values) - room, max(values) + room
        axes.set_ylim(low, high)
        _ticks(axes, even_ticks(low, high), units.significant)
        for row, (name, mean) in enumerate(means.items()):
            colour, dashes = _LOOKS[row % len(_LOOKS)]
            for line in curves[name]:
                axes.plot(*zip(*line, strict=True), color=colour, lw=0.7, alpha=0.35)
            style: Any = {"color": colour, "ls": dashes}
            axes.plot(*zip(*mean, strict=True), lw=2, **style)
            # Its name stands in the margin, beside its colour and dashes.
            level, place = 0.95 - 0.1 * row, axes.transAxes
            ends = (1.02, 1.1), (level, level)
            axes.plot(*ends, lw=1.8, clip_on=False, transform=place, **style)
            canvas.note(axes, names[row], (1.1, level), (6, 0))

    names = [one_line(name, 24) for name in means]
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
        # Only numbers that some training has; a file may say anything.
        drawable = itertools.takewhile(
            lambda point: point[0] < _LARGEST and abs(point[1]) < _LARGEST,
            losses(trial),
        )
        points = list(itertools.islice(drawable, _MOST_POINTS))
        if trial.variant in rates and len(points) > 1:
            rate = rates[trial.variant]
            curve = [(examples / rate, loss) for examples, loss in points]
            curves.setdefault(trial.variant, []).append(curve)
    return curves
