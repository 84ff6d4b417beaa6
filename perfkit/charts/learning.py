"""How soon does each variant learn: its loss against the seconds of its training.

A thick line is the mean over all trials, each from another seed unless the training
sets its own; the thin lines are the trials. Trials stand still between their turns, so
the seconds are worked out: the examples so far, over the variant's examples per second.
"""

import itertools
from statistics import fmean

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, curves, scale
from perfkit.charts.canvas import BLUE, GREEN, GREY, RED
from perfkit.charts.figure import Figure
from perfkit.findings.reading import losses
from perfkit.findings.record import Finding
from perfkit.findings.standing import standings
from perfkit.findings.text import plain
from perfkit.measure.trial import Trial

Points = list[tuple[float, float]]
_LOOKS = ((BLUE, "-"), (RED, "--"), (GREEN, "-."), (GREY, ":"))
_MOST_POINTS = 200
# A file may say anything; numbers that no training has are not drawn.
_LARGEST = 1e12


def has_losses(finding: Finding) -> bool:
    """Whether its trials noted how they learnt."""
    return bool(_curves(finding))


def learning_time(finding: Finding) -> Figure:
    """Draw the loss of each variant against the seconds that it has trained."""
    title = f"{plain(finding.experiment, 40)}: the loss against seconds"
    trials = _curves(finding)
    if not trials:
        return canvas.message(title, "No loss is known.")
    # The mean ends where the first trial does: none may leave it on the way.
    means = {
        name: [
            tuple(map(fmean, zip(*at, strict=True))) for at in zip(*of, strict=False)
        ]
        for name, of in trials.items()
    }

    def fill(axes: Axes) -> None:
        points = [point for of in trials.values() for curve in of for point in curve]
        seconds, values = zip(*points, strict=True)
        curves.along(axes, max(seconds), units.significant, "seconds of training")
        room = (max(values) - min(values)) / 8 or abs(max(values)) / 8 or 1.0
        low, high = min(values) - room, max(values) + room
        axes.set_ylim(low, high)
        curves.ticks(axes, scale.even_ticks(low, high), units.significant)
        for (name, mean), look in zip(means.items(), looks, strict=False):
            colour, dashes = look
            for curve in trials[name]:
                axes.plot(*zip(*curve, strict=True), color=colour, lw=0.7, alpha=0.35)
            axes.plot(*zip(*mean, strict=True), dashes, color=colour, lw=2)
        curves.key(axes, names, looks, (1.02, 1.1))

    looks, names = _LOOKS * len(means), [plain(name, 24) for name in means]
    words = [
        f"{plain(name, 60)}: {units.significant(mean[-1][1])} after "
        f"{units.seconds(mean[-1][0])}"
        for name, mean in means.items()
    ]
    caption = ("thick: the mean over trials", "thin: a trial")
    right = 60 + canvas.text_width(names, canvas.SMALL)
    return curves.picture(title, "loss", caption, words, fill, right=right)


def _curves(finding: Finding) -> dict[str, list[Points]]:
    """Seconds and losses of each trial, of the variants that somebody may choose."""
    rates = {
        standing.variant: standing.timing.rate
        for standing in standings(finding)
        if standing.timing and not standing.is_limit
    }
    drawn: dict[str, list[Points]] = {}
    for trial in finding.trials:
        points = _points(trial)
        if trial.variant in rates and len(points) > 1:
            rate = rates[trial.variant]
            curve = [(examples / rate, loss) for examples, loss in points]
            drawn.setdefault(trial.variant, []).append(curve)
    return drawn


def _points(trial: Trial) -> Points:
    """Examples and the mean loss up to there, as far as they can be drawn."""
    known = itertools.takewhile(
        lambda point: point[0] < _LARGEST and abs(point[1]) < _LARGEST, losses(trial)
    )
    return list(itertools.islice(known, _MOST_POINTS))
