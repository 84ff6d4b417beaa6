"""How does each variant learn: its loss against examples, and against seconds?

A line is the mean over all trials, each with another seed; the thin ones are the trials
themselves. Trials stand still between their turns, so the seconds are worked out: those
until the first step, then examples at the variant's rate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.charts import canvas, curves
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.findings.text import plain
from perfkit.measure.trial import FIRST_STEP_S, LOSSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from perfkit.charts.figure import Figure
    from perfkit.findings.record import Finding
    from perfkit.measure.trial import Trial

    Points = list[tuple[float, float]]

_LOOKS = ((BLUE, "-"), (RED, "--"), (GREEN, "-."), (GREY, ":"))
_MOST_POINTS = 200


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
    trials = _learnt(finding, in_seconds=in_seconds)
    if not trials:
        return canvas.message(title, "No loss is known.")
    means = {name: _mean(of) for name, of in trials.items()}
    looks = dict(zip(means, _LOOKS * len(means), strict=False))

    def fill(axes: Axes) -> None:
        every = [point for of in trials.values() for one in of for point in one]
        places = [x for x, _ in every]
        axes.set_xscale("log")
        axes.set_xlim(min(places) / 1.2, max(places) * 1.2)
        curves.put(axes, curves.log_ticks(min(places), max(places)), _short)
        axes.set_xlabel(f"{along} of training (logarithmic)")
        curves.even(axes, max(y for _, y in every), units.significant)
        for name, of in trials.items():
            colour, style = looks[name]
            for one in of:
                axes.plot(*zip(*one, strict=True), color=colour, lw=0.7, alpha=0.35)
            axes.plot(*zip(*means[name], strict=True), style, color=colour, lw=2)
        _name(axes, means, looks)

    words = [
        f"{plain(name, 60)}: {units.significant(mean[-1][1])} after "
        f"{_short(mean[-1][0])} {along}"
        for name, mean in means.items()
    ]
    caption = ("thick: the mean over trials, each with another seed", "thin: a trial")
    return curves.picture(title, "loss", caption, words, fill)


def _name(axes: Axes, means: dict[str, Points], looks: dict[str, Any]) -> None:
    """Write the names at the ends of their lines, none over another."""
    bottom, top = axes.get_ylim()
    least, taken = (top - bottom) / 16, -math.inf
    for name in sorted(means, key=lambda name: means[name][-1][1]):
        taken = max(means[name][-1][1], taken + least)
        x = max(mean[-1][0] for mean in means.values())
        curves.label(axes, plain(name, 24), x, taken, colour=looks[name][0])


def _learnt(finding: Finding, *, in_seconds: bool) -> dict[str, list[Points]]:
    """The losses of each variant that was compared, or is the baseline, by trial."""
    rates = {timing.variant: timing.rate for timing in finding.timings}
    found: dict[str, list[Points]] = defaultdict(list)
    for trial in finding.trials:
        points = _points(trial)
        if trial.variant in rates and len(points) > 1:
            if in_seconds:
                points = _over_time(trial, points, rates[trial.variant])
            found[trial.variant] += [points] * bool(points)
    # What leaves a part out learns nothing that matters.
    sides = {finding.baseline, *_against(finding)}
    return {name: of for name, of in found.items() if name in sides}


def _against(finding: Finding) -> Iterator[str]:
    return (c.variant for c in finding.comparisons if c.baseline == finding.baseline)


def _points(trial: Trial) -> Points:
    """Examples and the mean loss up to there; a file may say anything."""
    told = trial.notes.get(LOSSES)
    pairs = told[:_MOST_POINTS] if isinstance(told, list | tuple) else ()
    known = [p for p in pairs if isinstance(p, list | tuple) and len(p) == 2]
    return [(float(x), float(y)) for x, y in known if _is_number(x) and _is_number(y)]


def _is_number(value: Any) -> bool:
    sound = isinstance(value, int | float) and not isinstance(value, bool)
    return sound and math.isfinite(value) and 0 < value < 1e12


def _over_time(trial: Trial, points: Points, rate: float) -> Points:
    began = trial.notes.get(FIRST_STEP_S)
    if not _is_number(began) or not rate > 0:
        return []
    first = points[0][0]
    return [(float(began) + (x - first) / rate, y) for x, y in points]  # type: ignore[arg-type]


def _mean(trials: list[Points]) -> Points:
    """The mean at each place, of as many trials as have come so far."""
    least = min(len(one) for one in trials)
    columns = zip(*(one[:least] for one in trials), strict=True)
    return [(fmean(x for x, _ in of), fmean(y for _, y in of)) for of in columns]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else units.significant(value, 2)
