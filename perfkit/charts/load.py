"""The machine's load during a run, in panels below the variants' lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.charts import canvas, scales
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED, SMALL
from perfkit.charts.svg import INK
from perfkit.findings.rungs import is_ladder
from perfkit.machine.throttling import throttle_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.axes import Axes

    from perfkit.findings.record import Finding

HEIGHT, GAP = 74, 16
_CPU = {
    "cpu_trial": ("the trial", BLUE, ""),
    "cpu_other": ("other programs", RED, "////"),
    "cpu_perfkit": ("perfkit", GREY, ""),
}
# As many as can be told apart in a picture of this width.
_POINTS = 150
_DASHES = (("dashed", "--"), ("dotted", ":"))
_GPUS = 16

Point = tuple[float, float]
Line = tuple[str, list[Point], str, str]


def panels(finding: Finding) -> list[str]:
    """Which panels there is something to draw in: ``"cores"``, ``"speed"``."""
    cores = any(_known(finding, name) for name in _CPU)
    return ["cores"] * cores + ["speed"] * bool(_speeds(finding))


def draw(axes: Axes, finding: Finding, panel: str) -> None:
    """Fill one panel."""
    if panel == "cores":
        _draw_cores(axes, finding)
    else:
        _draw_speeds(axes, finding)


def times(finding: Finding) -> tuple[float, ...]:
    """When the machine was sampled, in seconds since the start of the run."""
    return tuple(t for t in finding.samples.get("t", ()) if t is not None)


def in_words(finding: Finding) -> Iterator[str]:
    """The load as sentences without their full stops."""
    for name in _CPU:
        if _known(finding, name):
            kept = _mean_cores(finding, name)
            yield f"{_whose(finding, name)} kept {kept} busy on average"
    pulse = [value for _, value in _known(finding, "pulse")]
    if pulse:
        yield f"The machine's speed fell to {units.percent(min(pulse))} of its best"
    for number, reasons in _throttled(finding).items():
        yield f"GPU {number} was slowed: {', '.join(reasons)}"


def _draw_cores(axes: Axes, finding: Finding) -> None:
    bottom, cores = [0.0] * len(times(finding)), _cores(finding)
    for place, (name, (_, colour, hatch)) in enumerate(_CPU.items()):
        values = [v or 0.0 for v in finding.samples.get(name, ())]
        if not any(values):
            continue
        # Counters are not all read at one moment: no sum is above all cores.
        top = [
            min(cores, low + max(0.0, v)) for low, v in zip(bottom, values, strict=True)
        ]
        x, low, high = _thinned(times(finding), bottom, top)
        axes.fill_between(
            x, low, high, facecolor=colour, alpha=0.75, hatch=hatch, edgecolor=INK, lw=0
        )
        said = f"{_whose(finding, name)} {_mean_cores(finding, name)}"
        _name(axes, place, said, colour)
        bottom = top
    most = max([min(finding.machine.cores_granted, cores), *bottom])
    _set_height(axes, most, scales.even_ticks(0, most)[:: 1 if most <= 4 else 2])
    _title(axes, "cores busy")


def _draw_speeds(axes: Axes, finding: Finding) -> None:
    lines, throttled = _speeds(finding), _throttled(finding)
    for place, (words, points, colour, dashes) in enumerate(lines):
        x, y = _thinned(*zip(*points, strict=True))
        axes.plot(x, y, color=colour, lw=1.6, linestyle=dashes)
        _name(axes, place, words, colour)
    for number in throttled:
        masks = _known(finding, f"gpu{number}_throttle")
        slowed = [t for t, mask in masks if _reasons(mask)]
        axes.plot(slowed, [1.0] * len(slowed), "v", color=RED, ms=5, clip_on=False)
    if throttled:
        _name(axes, len(lines), "▼ GPU slowed", RED)
    _set_height(axes, 1.0, [0.0, 0.5, 1.0])
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    _title(axes, "speed and use")


def _speeds(finding: Finding) -> list[Line]:
    """Words, points, colour and dashes of each line that runs from 0 to 1."""
    lines = list[Line]()
    if pulse := _known(finding, "pulse"):
        lines.append(("the machine's speed", pulse, GREEN, "-"))
    busy = {f"GPU {n} busy": _known(finding, f"gpu{n}_busy") for n in range(_GPUS)}
    busy = {words: points for words, points in busy.items() if points}
    if len(busy) > len(_DASHES):
        busy = {f"{len(busy)} GPUs busy, mean": _means(busy.values())}
    for (words, points), (dashed, dashes) in zip(busy.items(), _DASHES, strict=False):
        lines.append((f"{words} ({dashed})", points, BLUE, dashes))
    return lines


def _means(of: Iterable[list[Point]]) -> list[Point]:
    """The mean at each time over all that have a value then."""
    at = dict[float, list[float]]()
    for points in of:
        for t, value in points:
            at.setdefault(t, []).append(value)
    return [(t, sum(values) / len(values)) for t, values in sorted(at.items())]


def _throttled(finding: Finding) -> dict[int, list[str]]:
    """Why each GPU was slowed during the run, by its number; those that were."""
    found = dict[int, list[str]]()
    for number in range(_GPUS):
        masks = {mask for _, mask in _known(finding, f"gpu{number}_throttle")}
        reasons = [reason for mask in sorted(masks) for reason in _reasons(mask)]
        if reasons:
            found[number] = list(dict.fromkeys(reasons))
    return found


def _reasons(mask: float) -> tuple[str, ...]:
    return throttle_reasons(mask) if 0 <= mask < 2**53 else ()


def _whose(finding: Finding, name: str) -> str:
    """Who kept the cores busy; the rungs of a ladder train nothing."""
    trains = name == "cpu_trial" and not is_ladder(finding)
    return "the training" if trains else _CPU[name][0]


def _known(finding: Finding, name: str) -> list[Point]:
    """When and what, for the samples that hold this reading."""
    pairs = zip(times(finding), finding.samples.get(name, ()), strict=False)
    return [(t, value) for t, value in pairs if value is not None]


def _cores(finding: Finding) -> float:
    """All cores that there are; a trial may use those that are granted."""
    return max(1.0, float(finding.machine.cores))


def _mean_cores(finding: Finding, name: str) -> str:
    cores = _cores(finding)
    values = [min(cores, value) for _, value in _known(finding, name)]
    mean = sum(values) / len(values)
    return f"{units.significant(mean, 2)} core{'s' if mean != 1 else ''}"


def _thinned(*columns: Sequence[float]) -> list[list[float]]:
    """Means of so many values that the picture of a long run is no larger."""
    step = -(-len(columns[0]) // _POINTS)
    return [
        [sum(column[i : i + step]) / len(column[i : i + step]) for i in starts]
        for column in columns
        for starts in [range(0, len(column), step)]
    ]


def _name(axes: Axes, place: int, words: str, colour: str) -> None:
    """Name an area or a line at the right, a patch of its colour before it."""
    down = -12 - 17 * place
    canvas.note(axes, "■", (1, 1), (12, down), color=colour)
    canvas.note(axes, words, (1, 1), (27, down))


def _set_height(axes: Axes, most: float, ticks: list[float]) -> None:
    axes.set_ylim(0, most * 1.02)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.tick_params(axis="y", labelsize=SMALL)


def _title(axes: Axes, words: str) -> None:
    axes.set_ylabel("")
    canvas.note(axes, words, (0, 0.5), (-44, 0), ha="right")
