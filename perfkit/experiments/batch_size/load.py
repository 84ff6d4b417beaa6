"""Who keeps the machine busy? The load while each variant had its turns.

A turn is about as long as the time between two samples, so a sample shows a mixture of
variants. What each of them adds to the mixture is found by least squares.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perfkit.measure.trial import Trial

Span = tuple[float, float]

# A sample counts where turns fill so much of its time.
_FILLED = 0.9
# Less of a variant than this shows nothing of it.
_LEAST_S = 1.0


def load(
    trials: Sequence[Trial],
    samples: Mapping[str, Sequence[float | None]],
    reading: str,
) -> dict[str, float]:
    """The mean of a reading during the turns of each variant, where it is known.

    Args:
        trials: All that ran.
        samples: As ``Finding.samples`` holds them.
        reading: One of their names, such as ``"cpu_trial"`` in cores.
    """
    worked = _worked(trials)
    rows, values = _mixtures(worked, samples, reading)
    if len(rows) < 2 * len(worked) or not worked:
        return {}
    from scipy.optimize import nnls

    found, _ = nnls(rows, values)
    lasted = {name: sum(e - s for s, e in spans) for name, spans in worked.items()}
    known = zip(worked, found, strict=True)
    return {name: float(v) for name, v in known if lasted[name] >= _LEAST_S}


def _worked(trials: Sequence[Trial]) -> dict[str, list[Span]]:
    """When each variant was at work, on the run's clock."""
    spans = dict[str, list[Span]]()
    for trial in trials:
        if not trial.is_try and trial.outcome == "completed":
            spans.setdefault(trial.variant, []).extend(_turns(trial))
    return {name: found for name, found in spans.items() if found}


def _turns(trial: Trial) -> Iterator[Span]:
    times = np.array([at for at, _ in trial.ticks])
    begins = trial.turns or (times[:1].tolist())
    for start, after in itertools.pairwise([*begins, np.inf]):
        inside = times[(times > start) & (times < after)]
        if len(inside):
            yield trial.started_s + start, trial.started_s + float(inside[-1])


def _mixtures(
    worked: Mapping[str, list[Span]],
    samples: Mapping[str, Sequence[float | None]],
    reading: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each sample that turns fill: the share of each variant, and the reading."""
    rows, values = [], list[float]()
    read = zip(samples.get("t", ()), samples.get(reading, ()), strict=False)
    for (begin, _), (end, value) in itertools.pairwise(read):
        if begin is None or end is None or value is None or end <= begin:
            continue
        shares = np.array([_overlap(s, begin, end) for s in worked.values()])
        if shares.sum() / (end - begin) >= _FILLED:
            rows.append(shares / shares.sum())
            values.append(value)
    return np.array(rows).reshape(len(rows), len(worked)), np.array(values)


def _overlap(spans: Sequence[Span], begin: float, end: float) -> float:
    return sum(max(0.0, min(end, e) - max(begin, s)) for s, e in spans)
