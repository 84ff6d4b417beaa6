"""What the trials of a run over batch sizes told: memory, the usual loop, the losses.

Notes may come from a file, so nothing is taken for granted.
"""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.experiments.batch_size.numbers import size_of
from perfkit.experiments.shared.memory_forecast import Forecast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perfkit.measure.trial import Trial

_PARTS = ("weights", "gradients", "slots", "activations")
_MOST = 1000


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of held-out examples fell in one training.

    Attributes:
        batch: Its batch size.
        samples: Examples learnt from at each look, the first being 0.
        seconds: Seconds of training by then.
        losses: What was seen.
    """

    batch: int
    samples: tuple[int, ...]
    seconds: tuple[float, ...]
    losses: tuple[float, ...]

    def after_samples(self, count: float) -> float | None:
        """The loss once so many examples were learnt from; None if none was by then."""
        return _at(self.samples, self.losses, count)

    def after_seconds(self, seconds: float) -> float | None:
        """The loss once so many seconds had passed; None if no step was done yet."""
        return _at(self.seconds, self.losses, seconds)


def forecast(notes: Mapping[str, Any]) -> Forecast | None:
    """What was forecast from shapes."""
    note = notes.get("forecast")
    if not isinstance(note, dict):
        return None
    parts = {name: _count(note.get(name)) for name in _PARTS}
    if any(part is None for part in parts.values()):
        return None
    return Forecast(**{name: part or 0 for name, part in parts.items()})


def memory(trials: Iterable[Trial], what: str = "resident") -> dict[int, float]:
    """Bytes above the start at each batch size, the median over its trials."""
    told = dict[int, list[int]]()
    for trial in trials:
        note, size = trial.notes.get("memory"), size_of(trial.variant)
        value = _count(note.get(what)) if isinstance(note, dict) else None
        if size and value is not None:
            told.setdefault(size, []).append(value)
    return {size: statistics.median(told[size]) for size in sorted(told)}


def asked_for(trials: Iterable[Trial], size: int) -> int | None:
    """Bytes that a try with a batch of ``size`` had asked for; None if none told."""
    for trial in trials:
        note = trial.notes.get("memory")
        if trial.is_try and trial.notes.get("batch") == size and isinstance(note, dict):
            held = _count(note.get("gpu_peak", note.get("data")))
            if held is not None:
                return held
    return None


def usual_loop(trials: Iterable[Trial], name: str) -> dict[int, float]:
    """Examples per second by batch size, as the loop in circulation has them."""
    notes = [t.notes.get("told") for t in trials if t.variant == name]
    listed = next((note for note in notes if isinstance(note, list | tuple)), ())
    return dict(itertools.islice(_pairs(listed), _MOST))


def _pairs(listed: Iterable[Any]) -> Iterator[tuple[int, float]]:
    for pair in listed:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            continue
        size, rate = _count(pair[0]), pair[1]
        if size and isinstance(rate, int | float) and rate > 0:
            yield size, float(rate)


def curves(trials: Iterable[Trial]) -> tuple[Curve, ...]:
    """The trainings that were run to learn, in the order of their batch sizes."""
    found = [curve for trial in trials if (curve := _curve(trial)) is not None]
    return tuple(sorted(found, key=lambda curve: curve.batch))


def _curve(trial: Trial) -> Curve | None:
    losses, batch = trial.notes.get("losses"), _count(trial.notes.get("batch"))
    if not batch or not isinstance(losses, list | tuple):
        return None
    worked = [
        (now - before, examples)
        for (before, _), (now, examples) in itertools.pairwise(trial.ticks)
        if examples
    ]
    seconds = itertools.accumulate((spent for spent, _ in worked), initial=0.0)
    samples = itertools.accumulate((count for _, count in worked), initial=0)
    # A training may be ended between a tick and the look that belongs to it.
    looks = [
        look
        for look in zip(samples, seconds, losses, strict=False)
        if isinstance(look[2], int | float) and math.isfinite(look[2])
    ][:_MOST]
    if len(looks) < 2:
        return None
    told = zip(*looks, strict=True)
    samples_, seconds_, losses_ = (tuple(column) for column in told)
    return Curve(batch=batch, samples=samples_, seconds=seconds_, losses=losses_)


def _at(places: Sequence[float], losses: Sequence[float], end: float) -> float | None:
    """The last loss up to there; the first look came before any step."""
    looks = list(zip(places, losses, strict=True))[1:]
    known = [loss for place, loss in looks if place <= end]
    return known[-1] if known else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None
