"""How near does each variant come to what this machine can do?

An experiment whose variants do a known amount of arithmetic leaves the note
``"roofline"``: an object with ``"work"``, which gives for each variant the ``"flops"``
and the ``"bytes"`` of an example, with ``"arithmetic"``, the variants whose speed is a
flat roof, and with ``"memory"``, the variant whose speed is the slanted one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, Figure
from perfkit.charts.layout import log_ticks
from perfkit.engine.statistics import Timing
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding

_RIGHT, _HEIGHT, _LABEL = 250, 300, 19
# Beyond this a number of a file is no speed and no amount of work.
_SOUND = 1e18
_DASHES = ("-", "--", ":")


@dataclass(frozen=True)
class Point:
    """A variant in the plane of a roofline.

    Attributes:
        name: The variant.
        intensity: Arithmetic per byte.
        low: Lower end of the interval of ``speed``.
        speed: Arithmetic per second.
        high: Upper end of it.
    """

    name: str
    intensity: float
    low: float
    speed: float
    high: float


@dataclass(frozen=True)
class Roofline:
    """What the machine can do, and what variants do below it.

    Attributes:
        flat: Arithmetic per second, by the variant that showed it.
        memory: Bytes per second.
        points: The variants, the fastest first.
    """

    flat: dict[str, float]
    memory: float
    points: list[Point]

    def above(self, point: Point) -> float:
        """The most that there can be at a point's intensity, in main memory."""
        return min(next(iter(self.flat.values())), self.memory * point.intensity)


def roofline(finding: Finding) -> Figure:
    """Draw each variant's arithmetic per second under the roofs of the machine."""
    title = f"{finding.experiment}: how near to the machine's limits"
    plane = _read(finding)
    if plane is None:
        return canvas.message(title, "No variant reports its arithmetic and its bytes.")
    inner = max(_HEIGHT, _LABEL * (len(plane.points) + len(plane.flat)))

    def fill(axes: Axes) -> None:
        _set_scales(axes, plane)
        _draw_roofs(axes, plane)
        for point in plane.points:
            _draw_point(axes, point, finding)
        _name_all(axes, plane, _LABEL / inner)

    return curves.picture(
        title,
        "GFLOP/s (logarithmic)",
        list(_caption(plane)),
        _in_words(plane),
        fill,
        right=_RIGHT,
        inner=inner,
    )


def has_roofline(finding: Finding) -> bool:
    """Whether a finding holds both roofs and something to put under them."""
    return _read(finding) is not None


@dataclass(frozen=True)
class _Work:
    """Arithmetic and bytes of one example of a variant."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class _Note:
    """The note of a finding; a file may hold anything."""

    work: dict[str, _Work]
    arithmetic: list[str]
    memory: str


def _read(finding: Finding) -> Roofline | None:
    """What can be drawn; None where a roof is missing, or all that is under them."""
    note = note_as(_Note, finding.notes.get("roofline"))
    if note is None:
        return None
    work = {n: w for n, w in note.work.items() if _is_sound(w.flops, w.bytes)}
    timed = {t.variant: t for t in finding.timings if t.variant in work}
    speeds = {name: timing.rate * work[name].flops for name, timing in timed.items()}
    flat = {name: speeds[name] for name in note.arithmetic if name in speeds}
    wide = 0.0
    if note.memory in timed:
        wide = timed[note.memory].rate * work[note.memory].bytes
    points = [
        _point(timing, work[name])
        for name, timing in timed.items()
        if name not in (*note.arithmetic, note.memory)
    ]
    points = [point for point in points if _is_sound(point.intensity, point.speed)]
    if not points or not flat or not _is_sound(wide, *flat.values()):
        return None
    return Roofline(flat, wide, sorted(points, key=lambda point: -point.speed))


def _point(timing: Timing, work: _Work) -> Point:
    speed = timing.rate * work.flops
    # An interval that reaches further says no more than this in a picture.
    low = min(speed, max(timing.low * work.flops, speed / 10))
    high = min(timing.high * work.flops, 10 * speed)
    return Point(timing.variant, work.flops / work.bytes, low, speed, high)


def _is_sound(*values: float) -> bool:
    return all(1 / _SOUND < value < _SOUND for value in values)


def _set_scales(axes: Axes, plane: Roofline) -> None:
    ridges = [flat / plane.memory for flat in plane.flat.values()]
    x = [*(point.intensity for point in plane.points), *ridges]
    y = [end for point in plane.points for end in (point.low, point.high)]
    y += plane.flat.values()
    left, right, bottom, top = min(x) / 4, max(x) * 4, min(y) / 1.5, max(y) * 1.5
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    curves.put(axes, log_ticks(left, right), units.significant)
    axes.set_xlabel("multiplications and additions per byte (logarithmic)")
    ticks = log_ticks(bottom, top)
    curves.ticks(axes, ticks, lambda speed: units.significant(speed / 1e9))


def _draw_roofs(axes: Axes, plane: Roofline) -> None:
    left, right = axes.get_xlim()
    for flat, dashes in zip(plane.flat.values(), _DASHES, strict=False):
        ridge = min(max(flat / plane.memory, left), right)
        x, y = [left, ridge, right], [plane.memory * left, flat, flat]
        axes.plot(x, y, color=INK, lw=1.6, ls=dashes, alpha=0.8)


def _draw_point(axes: Axes, point: Point, finding: Finding) -> None:
    winner = point.name == finding.verdict.winner
    colour = GREEN if winner else BLUE
    mark = "D" if winner else "s" if point.name == finding.baseline else "o"
    axes.vlines(point.intensity, point.low, point.high, colors=colour, lw=2.4)
    axes.plot(point.intensity, point.speed, mark, color=colour, ms=8, clip_on=False)


def _name_all(axes: Axes, plane: Roofline, apart: float) -> None:
    """Names beside the axes, as high as what they name or a little off.

    They stand ``apart`` at least, in fractions of the axes' height.
    """
    right = axes.get_xlim()[1]
    labels = [(name, right, flat) for name, flat in plane.flat.items()]
    labels += [(point.name, point.intensity, point.speed) for point in plane.points]
    labels.sort(key=lambda entry: entry[2])
    inside = axes.transScale + axes.transLimits
    places = [tuple(inside.transform((x, y))) for _, x, y in labels]
    for (name, *_, speed), (x, y), level in zip(
        labels, places, spread([y for _, y in places], apart), strict=True
    ):
        if x < 1:
            style: Any = {"color": GREY, "lw": 0.8, "alpha": 0.6, "zorder": 1}
            style |= {"transform": axes.transAxes, "clip_on": False}
            axes.plot([x, 1.0, 1.015], [y, level, level], **style)
        words = f"{rows.name(name)}  {units.significant(speed / 1e9)}"
        canvas.note(axes, words, (1.0, level), (10, 0))


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


def _caption(plane: Roofline) -> Iterator[str]:
    yield "number: GFLOP/s"
    yield "level line: a large matrix product"
    if len(plane.flat) > 1:
        yield "dashed: on shorter numbers"
    yield f"slanted line: main memory, {units.size(plane.memory)}/s"
    yield "what stays in the caches may lie above it"
    yield "counted are direct sums: Winograd and FFT need fewer operations"
    yield "bar: 95 % interval"
    yield "■ baseline"


def _in_words(plane: Roofline) -> Iterator[str]:
    for name, flat in plane.flat.items():
        yield f"{name} {units.significant(flat / 1e9)} GFLOP/s"
    yield f"Memory {units.size(plane.memory)}/s"
    for point in plane.points:
        share = units.percent(point.speed / plane.above(point))
        yield (
            f"{point.name} {units.significant(point.speed / 1e9)} GFLOP/s "
            f"at {units.significant(point.intensity)} per byte, {share} of what the "
            "roofs allow"
        )
