"""What the trials of a run over precisions told: losses, the loss scale, memory.

Notes may come from a file, so nothing is taken for granted.
"""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from perfkit.experiments.shared.precision_work import CURVE, SCALE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perfkit.measure.trial import Trial

_MOST = 1000


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of examples that were seen first fell in one training.

    Attributes:
        precision: What it computed in.
        seed: Of its weights and examples.
        every: Steps of which each loss is the mean.
        losses: What was seen, up to the first that was no number.
        lost: Whether it ever became something that is no number.
    """

    precision: str
    seed: int
    every: int
    losses: tuple[float, ...]
    lost: bool = False


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The loss scale of a training in float16.

    Attributes:
        model: The network that was trained.
        scales: After each step, the first before any.
        updates: Steps that changed the weights.
    """

    model: str
    scales: tuple[float, ...]
    updates: int

    @property
    def skipped(self) -> tuple[int, ...]:
        """The steps that changed nothing, because a gradient overflowed."""
        pairs = itertools.pairwise(self.scales)
        return tuple(step for step, (old, new) in enumerate(pairs, 1) if new < old)


def curves(trials: Iterable[Trial]) -> tuple[Curve, ...]:
    """Each training that was run to learn, in the order they ran."""
    found = (_curve(trial.notes.get(CURVE)) for trial in trials if trial.is_try)
    return tuple(curve for curve in found if curve is not None)


def _curve(note: Any) -> Curve | None:
    if not isinstance(note, dict) or not isinstance(note.get("precision"), str):
        return None
    seed, every, losses = note.get("seed"), note.get("every"), note.get("losses")
    if not _count(seed) or not _count(every) or not isinstance(losses, list | tuple):
        return None
    sound = tuple(itertools.takewhile(_number, losses[:_MOST]))
    return Curve(
        precision=note["precision"],
        seed=seed,
        every=every,
        losses=tuple(float(loss) for loss in sound),
        lost=len(sound) < len(losses[:_MOST]),
    )


def scale(trials: Iterable[Trial]) -> Scale | None:
    """The training that showed its loss scale, if one did."""
    for trial in trials:
        note = trial.notes.get(SCALE)
        if not trial.is_try or not isinstance(note, dict):
            continue
        scales, updates = note.get("scales"), note.get("updates")
        if not isinstance(scales, list | tuple) or type(updates) is not int:
            continue
        sound = [float(s) for s in scales[:_MOST] if _number(s) and s > 0]
        if len(sound) == len(scales) > 1:
            model = str(note.get("model", ""))
            return Scale(model=model, scales=tuple(sound), updates=updates)
    return None


def memory(trials: Iterable[Trial]) -> dict[str, tuple[float, float, float]]:
    """Bytes above the start at the peak, by variant: the median, least and most.

    Of the GPU where there is one, else of the process.
    """
    found = dict[str, list[float]]()
    for trial in trials:
        note = trial.notes.get("memory")
        if trial.is_try or not isinstance(note, dict):
            continue
        held = note.get("gpu_peak", note.get("resident"))
        if _number(held) and held > 0:
            found.setdefault(trial.variant, []).append(float(held))
    return {
        name: (statistics.median(held), min(held), max(held))
        for name, held in found.items()
    }


def numbers(notes: Mapping[str, Any], name: str) -> dict[str, float]:
    """A note that holds a positive number for each of several names."""
    note = notes.get(name)
    if not isinstance(note, dict):
        return {}
    return {
        str(key): float(value)
        for key, value in note.items()
        if _number(value) and value > 0
    }


def expectations(notes: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What was expected of each precision and why."""
    note = notes.get("expected")
    if not isinstance(note, dict):
        return {}
    return {
        str(name): (str(said["expect"]), str(said["because"]))
        for name, said in note.items()
        if isinstance(said, dict) and {"expect", "because"} <= said.keys()
    }


def _number(value: Any) -> TypeGuard[float]:
    sound = isinstance(value, int | float) and not isinstance(value, bool)
    return sound and abs(value) < 1e300 and math.isfinite(value)


def _count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 < value < 10**9
