"""How does each variant learn: its loss against examples, and against seconds?

A line is the mean over all trials, each from another seed unless the training sets its
own; the thin ones are the trials themselves. Trials stand still between their turns, so
the seconds are worked out: those until the first step, then examples at the rate.
"""

import itertools
import math
from collections import Counter, defaultdict
from statistics import fmean, median
from typing import Any

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, scale
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import Figure
from perfkit.findings.reading import losses, note_as
from perfkit.findings.record import Finding
from perfkit.findings.standing import SIDES
from perfkit.findings.text import plain
from perfkit.measure.trial import FIRST_STEP_S, Trial

Points = list[tuple[float, float]]
_LOOKS = ((BLUE, "-"), (RED, "--"), (GREEN, "-."), (GREY, ":"))
_MOST_POINTS = 200
# A file may say anything; what no training has is not drawn.
_LARGEST = 1e12


def has_losses(finding: Finding) -> bool:
    """Whether its trials tell how they learnt."""
    return bool(_learnt(finding, in_seconds=False))


def learning(finding: Finding) -> Figure:
    """Draw the loss of each variant against the examples that it has seen."""
    return _draw(finding, in_seconds=False)


def learning_time(finding: Finding) -> Figure:
    """Draw the loss of each variant against the seconds that it has trained."""
    return _draw(finding, in_seconds=True)


def _draw(finding: Finding, *, in_seconds: bool) -> Figure:
    along = "seconds" if in_seconds else "examples"
    title = f"{plain(finding.experiment, 40)}: the loss against {along}"
    trials, broken = _learnt(finding, in_seconds=in_seconds), _broken(finding)
    if not trials:
        known = "; ".join(f"{plain(name, 40)}: {how}" for name, how in broken.items())
        return canvas.message(title, f"{known or 'No loss is known'}.")
    means = {name: _mean(of) for name, of in trials.items()}
    looks = dict(zip(means, _LOOKS * len(means), strict=False))

    def fill(axes: Axes) -> None:
        every = [point for of in trials.values() for one in of for point in one]
        places, losses = zip(*every, strict=True)
        if in_seconds:
            what = "seconds of training, its start included"
            curves.along(axes, max(places), _short, what)
        else:
            axes.set_xscale("log")
            axes.set_xlim(min(places) / 1.1, max(places))
            curves.put(axes, scale.log_ticks(min(places), max(places)), _short)
            axes.set_xlabel("examples of training (logarithmic)")
        room = (max(losses) - min(losses)) / 8 or abs(max(losses)) / 8 or 1.0
        low, high = min(losses) - room, max(losses) + room
        axes.set_ylim(low, high)
        curves.ticks(axes, scale.even_ticks(low, high), units.significant)
        for name, of in trials.items():
            colour, style = looks[name]
            for one in of:
                axes.plot(*zip(*one, strict=True), color=colour, lw=0.7, alpha=0.35)
            axes.plot(*zip(*means[name], strict=True), style, color=colour, lw=2)
        _name(axes, means, looks, broken)

    words = [
        f"{plain(name, 60)}: {units.significant(mean[-1][1])} after "
        f"{_short(mean[-1][0])} {along}" + f", {broken.get(name)}" * (name in broken)
        for name, mean in means.items()
    ]
    gone = [f"{plain(name, 60)}: {broken[name]}" for name in broken.keys() - means]
    caption = ("thick: the mean over trials", "thin: a trial", *sorted(gone))
    right = 18 + canvas.text_width(
        [*map(_label, means), *broken.values()], canvas.SMALL
    )
    every = [*words, *sorted(gone)]
    return curves.picture(title, "loss", caption, every, fill, right=right)


def _name(
    axes: Axes, means: dict[str, Points], looks: dict[str, Any], broken: dict[str, str]
) -> None:
    """Write the names at the ends of their lines, none over another."""
    bottom, top = axes.get_ylim()
    least, taken = (top - bottom) / 16, -math.inf
    for name in sorted(means, key=lambda name: means[name][-1][1]):
        right = axes.get_xlim()[1]
        for words in (broken.get(name), _label(name)):
            if words:
                taken = max(means[name][-1][1], taken + least)
                curves.label(axes, words, right, taken, colour=looks[name][0])


def _label(name: str) -> str:
    return plain(name, 24)


def _learnt(finding: Finding, *, in_seconds: bool) -> dict[str, list[Points]]:
    """The losses of each variant that was compared, or is the baseline, by trial."""
    rates = {timing.variant: timing.rate for timing in finding.timings}
    began = {name: _first_step_s(finding, name) for name in rates}
    found: dict[str, list[Points]] = defaultdict(list)
    for trial in finding.trials:
        points = _points(trial)
        if trial.variant in rates and len(points) > 1:
            if in_seconds:
                first_s, rate = began[trial.variant], rates[trial.variant]
                points = _over_time(points, first_s, rate)
            found[trial.variant] += [points] * bool(points)
    sides = _sides(finding)
    return {name: of for name, of in found.items() if name in sides}


def _sides(finding: Finding) -> set[str]:
    """What learns something that matters: not what leaves a part out."""
    first, sides = finding.baseline, finding.parameters.get(SIDES)
    if isinstance(sides, list | tuple):
        return {str(one) for one in sides}
    return {first, *(c.variant for c in finding.comparisons if c.baseline == first)}


def _broken(finding: Finding) -> dict[str, str]:
    """The variants whose loss became no number, in how many trials and how soon."""
    first, sides = defaultdict[str, list[float]](list), _sides(finding)
    count = Counter(trial.variant for trial in finding.trials if losses(trial))
    for trial in finding.trials:
        told = (x for x, y in losses(trial) if x < _LARGEST and not math.isfinite(y))
        if trial.variant in sides and (x := next(told, 0.0)):
            first[trial.variant].append(x)
    return {
        name: f"no number after {_short(min(of))}"
        + f" ({len(of)} of {count[name]} trials)" * (len(of) < count[name])
        for name, of in first.items()
    }


def _points(trial: Trial) -> Points:
    """Examples and the mean loss up to there, as far as they can be drawn."""
    told = losses(trial)[:_MOST_POINTS]
    drawn = itertools.takewhile(
        lambda one: one[0] < _LARGEST and abs(one[1]) < _LARGEST, told
    )
    return list(drawn)


def _first_step_s(finding: Finding, variant: str) -> float:
    """Seconds until the first step of its trials was done, the median; 0.0 if none."""
    trials = (trial for trial in finding.trials if trial.variant == variant)
    told = (note_as(float, trial.notes.get(FIRST_STEP_S)) or 0.0 for trial in trials)
    return median([one for one in told if 0 < one < _LARGEST] or [0.0])


def _over_time(points: Points, first_s: float, rate: float) -> Points:
    if not (first_s > 0 and rate > 0):
        return []
    first = points[0][0]
    return [(first_s + (x - first) / rate, y) for x, y in points]


def _mean(trials: list[Points]) -> Points:
    """The mean at each place that all of them reach: none may leave it on the way."""
    columns = zip(*trials, strict=False)
    return [(fmean(x for x, _ in of), fmean(y for _, y in of)) for of in columns]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else units.significant(value, 2)
