"""What happened when? Each variant's rate over the run's clock, the load below it.

A slow stretch that coincides with other programs at work, or with a slower core, is
the machine's and not the training's.
"""

import math
from collections.abc import Callable, Iterator
from statistics import fmean, median_high

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from perfkit import units
from perfkit.charts import canvas, curves, rows
from perfkit.charts.canvas import BLUE, GREEN, GREY, INK, RED, SMALL, WIDTH, Figure
from perfkit.charts.layout import even_ticks, thinned
from perfkit.engine.measurement import CONTROL
from perfkit.engine.trial import Trial
from perfkit.findings import load
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings

HEIGHT, GAP = 74, 16
_LOOKS = {
    "cpu_trial": (BLUE, ""),
    "cpu_other": (RED, "////"),
    "cpu_perfkit": (GREY, ""),
}

Line = tuple[str, list[load.Point], str]


def _draw_cores(axes: Axes, finding: Finding) -> None:
    names = [name for name in _LOOKS if load.readings_of(finding, name)]
    when, *columns = load.together(finding, names)
    bottom, cores = [0.0] * len(when), finding.machine.cores
    for place, (name, values) in enumerate(zip(names, columns, strict=True)):
        if not any(values):
            continue
        colour, hatch = _LOOKS[name]
        # Counters are not all read at one moment: no sum is above all cores.
        top = [
            min(cores, low + max(0.0, v)) for low, v in zip(bottom, values, strict=True)
        ]
        x, low, high = thinned(when, bottom, top)
        axes.fill_between(
            x, low, high, facecolor=colour, alpha=0.75, hatch=hatch, edgecolor=INK, lw=0
        )
        words = f"{load.name_programs(finding, name)} {load.mean_cores(finding, name)}"
        _name(axes, place, words, colour)
        bottom = top
    height = max([min(finding.machine.cores_granted, cores), *bottom])
    _set_height(axes, height, even_ticks(0, height)[:: 1 if height <= 4 else 2])
    _title(axes, "cores\nbusy")


def _draw_speeds(axes: Axes, finding: Finding) -> None:
    for place, (words, points, colour) in enumerate(_speeds(finding)):
        x, y = thinned(*zip(*points, strict=True))
        axes.plot(x, y, color=colour, lw=1.6)
        _name(axes, place, words, colour)
    _set_height(axes, 1.0, [0.0, 0.5, 1.0])
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    _title(axes, "speed\nand use")


def _speeds(finding: Finding) -> list[Line]:
    """Words, points and colour of each line that runs from 0 to 1."""
    core_speed = load.readings_of(finding, "core_speed")
    # The mean at each time over all GPUs that have a value then.
    busy = dict[float, list[float]]()
    for number in range(load.GPUS):
        for t, value in load.readings_of(finding, f"gpu{number}_busy"):
            busy.setdefault(t, []).append(value)
    gpus = [(t, fmean(values)) for t, values in sorted(busy.items())]
    lines = [("the machine's speed", core_speed, GREEN), ("GPU busy", gpus, BLUE)]
    return [line for line in lines if line[1]]


def _name(axes: Axes, place: int, words: str, colour: str) -> None:
    """Name an area or a line at the right, a patch of its colour before it."""
    down = -12 - 17 * place
    canvas.note(axes, "■", (1, 1), (12, down), color=colour)
    canvas.note(axes, words, (1, 1), (27, down))


def _set_height(axes: Axes, height: float, ticks: list[float]) -> None:
    axes.set_ylim(0, height * 1.02)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.tick_params(axis="y", labelsize=SMALL)


def _title(axes: Axes, words: str) -> None:
    # Beside the numbers of its ticks, however narrow the names of the lanes are.
    canvas.note(axes, words, (0, 0.5), (-44, 0), ha="right")


_LANE = 30
_RIGHT = 205
# A lane reaches from this much below a variant's usual rate to as much above it.
_REACH = 0.5
# Steps that a picture of this width can show, for all variants together.
_STEPS = 1200

Step = tuple[float, float, float]


def timeline(finding: Finding) -> Figure:
    """Draw each variant's rate in a lane of its own, and the machine's load below."""
    title = f"{finding.experiment}: what happened when"
    lanes = _lanes(finding)
    if not lanes:
        return canvas.message(title, "No variant has been tried.")
    panels: list[Callable[[Axes, Finding], None]] = []
    if any(load.readings_of(finding, name) for name in load.CPU):
        panels.append(_draw_cores)
    if _speeds(finding):
        panels.append(_draw_speeds)
    low, high = units.percent(1 - _REACH), units.percent(1 + _REACH)
    rate = f"blue: the rate; a lane spans {low} to {high} of the variant's usual rate"
    marks = ["grey bar: set-up and first call", "✕: the trial failed"]
    lines = canvas.caption_lines([rate, *marks])
    inner = len(lanes) * _LANE
    height = canvas.height(inner + len(panels) * (HEIGHT + GAP), lines)

    def draw(drawing: Drawing) -> None:
        names = [rows.name(lane) for lane in lanes]
        axes = rows.axes(drawing, names, inner, right=_RIGHT)
        all_axes = [axes]
        _draw_lanes(axes, finding, lanes)
        left = rows.margin(names)
        for number, fill in enumerate(panels):
            top = canvas.TOP + inner + GAP + number * (HEIGHT + GAP)
            under = canvas.place(drawing, left, top, WIDTH - left - _RIGHT, HEIGHT)
            fill(under, finding)
            all_axes.append(under)
        end = _span(finding)
        for axes in all_axes:
            axes.set_xlim(0, end)
            curves.put(axes, even_ticks(0, end), lambda value: f"{value:g}")
            axes.tick_params(axis="x", labelbottom=axes is all_axes[-1])
        axes.set_xlabel("seconds since the start of the run")

    trials = len(finding.trials)
    sentences = [f"{title}. {trials} trials in {units.seconds(_span(finding))}"]
    for lane in lanes:
        count = sum(trial.variant == lane for trial in finding.trials)
        sentences.append(f"{lane}: {units.count(count, 'trial')}")
    alt = f"{'. '.join([*sentences, *load.in_words(finding)])}."
    return canvas.paint(title, lines, height, alt, draw)


def _steps(trial: Trial, longest: float) -> Iterator[Step]:
    """The trial's rate as steps: from when to when on the run's clock, how fast.

    The first tick of what counts examples is left out: it is the first call and no
    rate. Ticks in a row are joined to steps of about ``longest`` seconds; no step spans
    a pause.
    """
    joined = list[tuple[float, float, int]]()
    for start, end, examples in _worked(trial)[trial.unit == "examples" :]:
        began, ended, so_far = joined[-1] if joined else (0.0, math.nan, 0)
        if start == ended and start - began < longest:
            joined[-1] = began, end, so_far + examples
        else:
            joined.append((start, end, examples))
    for start, end, examples in joined:
        yield start + trial.started_s, end + trial.started_s, examples / (end - start)


def _worked(trial: Trial) -> list[tuple[float, float, int]]:
    """From when to when each tick worked; a file may hold some that took no time."""
    return [tick for tick in trial.worked if tick[1] > tick[0]]


def _lanes(finding: Finding) -> list[str]:
    """The variants that ran, in the order of the other charts; the control last."""
    ran = {trial.variant for trial in finding.trials}
    lanes = [s.variant for s in standings(finding) if s.variant in ran]
    return lanes + [CONTROL] * (CONTROL in ran)


def _draw_lanes(axes: Axes, finding: Finding, lanes: list[str]) -> None:
    longest = _span(finding) * len(lanes) / _STEPS
    rates = {timing.variant: timing.rate for timing in finding.timings}
    counted = {standing.variant: standing.unit for standing in standings(finding)}
    for row, variant in enumerate(lanes):
        trials = [t for t in finding.trials if t.variant == variant]
        steps = [step for trial in trials for step in _steps(trial, longest)]
        # Where no rate is told, none is written: the middle of its steps is none.
        rate = rates.get(variant)
        axes.axhline(row, color=INK, alpha=0.2, lw=0.8)
        # Set-up and first call, which are no steady work; no wait between.
        spans = [
            (trial.started_s + start, end - start)
            for trial in trials
            for start, end in _before_steady(trial)
        ]
        axes.broken_barh(spans, (row - 0.09, 0.18), facecolor=GREY, lw=0)
        if usual := rate or median_high([speed for *_, speed in steps] or [0.0]):
            _draw_steps(axes, row, steps, usual)
        if rate:
            # The control counts what the baseline does.
            unit = counted.get(variant) or counted.get(finding.baseline, "examples")
            rows.beside(axes, row, units.rate(rate, unit))
        for trial in trials:
            if trial.outcome not in ("completed", "stopped"):
                end = trial.started_s + trial.wall_s
                axes.plot(end, row, "x", color=canvas.RED, ms=7, mew=2, clip_on=False)


def _draw_steps(axes: Axes, row: int, steps: list[Step], usual: float) -> None:
    x, y = list[float](), list[float]()
    for start, end, rate in steps:
        off = min(max(rate / usual - 1, -_REACH), _REACH)
        level = row - off / _REACH * 0.42
        joined = bool(x) and abs(start - x[-1]) < 1e-6
        x += [start, end] if joined else [float("nan"), start, end]
        y += [level, level] if joined else [float("nan"), level, level]
    axes.plot(x, y, color=BLUE, lw=1.6, solid_joinstyle="miter")


def _before_steady(trial: Trial) -> Iterator[tuple[float, float]]:
    """From when to when it was set up, and worked on its first tick."""
    if not trial.ticks:
        return
    # In a process that others share it was set up when its first turn came.
    ready = trial.ticks[0][0]
    yield max(0.0, ready - (trial.setup_s or ready)), ready
    yield from ((start, end) for start, end, _ in _worked(trial)[:1])


def _span(finding: Finding) -> float:
    ends = [trial.started_s + trial.wall_s for trial in finding.trials]
    return max([*ends, *load.times(finding)[-1:], 1e-3])
