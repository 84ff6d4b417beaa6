"""What a run over precisions shows: its losses in pairs, its facts, its verdict.

Notes may come from a file, so each is checked against its type.
"""

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Estimate, student
from perfkit.engine.trial import Trial
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    NO_TF32,
    PRECISIONS,
    Expectation,
)
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import between, quoted

# The note of a training that learns, and that of the whole run.
CURVE, EXPECTED = "curve", "expected"
# No run notes more losses than this, or larger ones.
_MOST, _LARGEST = 1000, 1e300
# Half the distance between 1 and the next number: what one rounding changes at most.
_ROUNDING = {BFLOAT16: 2.0**-8, FLOAT16: 2.0**-11, NO_TF32: 2.0**-11}
Alike = Literal[
    "equal within rounding",
    "less apart than two seeds",
    "differs",
    "too noisy to say",
    "too few trainings to say",
    "lost",
]
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of examples that were seen first fell in one training.

    Each loss is the mean of ``every`` steps, and None for NaN.
    """

    precision: str
    seed: int
    every: int
    losses: tuple[float | None, ...]

    def __post_init__(self) -> None:
        """Refuse what no run notes."""
        sound = all(abs(loss or 0.0) < _LARGEST for loss in self.losses)
        if not 0 < self.every < 10**9 or len(self.losses) > _MOST or not sound:
            raise ValueError("no curve")

    @property
    def sound(self) -> tuple[float, ...]:
        """The losses before the first NaN."""
        until = itertools.takewhile(lambda loss: loss is not None, self.losses)
        return tuple(float(loss) for loss in until if loss is not None)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The trainings of one precision, each beside that of float32 with its seed.

    The losses have a row for each seed, and a mean for each of the steps that all of
    them reached; ``usual`` are those of float32. Where any loss became NaN, they are
    ``lost``, and a training whose first did is no row.
    """

    precision: str
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    losses: Rows
    usual: Rows
    lost: bool = False

    @property
    def apart(self) -> NDArray[np.float64]:
        """What the precision adds to the loss, one row a seed."""
        return np.array(self.losses, np.float64) - np.array(self.usual, np.float64)

    @property
    def difference(self) -> float:
        """What the precision adds to the last loss, the mean over the seeds."""
        return float(self.apart[:, -1].mean())

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of ``difference``; infinite for one seed."""
        last = self.apart[:, -1]
        if len(last) < 2:
            return math.inf
        return float(student(len(last) - 1) * last.std(ddof=1) / np.sqrt(len(last)))

    @property
    def seeds_differ(self) -> float:
        """What another seed changes in float32's last loss: its whole range."""
        return float(np.ptp([row[-1] for row in self.usual]))

    @property
    def alike(self) -> Alike:
        """Whether it learns what float32 learns."""
        if self.lost:
            return "lost"
        largest = float(np.max(np.abs(self.apart) / np.array(self.usual, np.float64)))
        if largest <= _ROUNDING.get(self.precision, 0.0):
            return "equal within rounding"
        if len(self.seeds) < 2:
            return "too few trainings to say"
        if abs(self.difference) + self.half_width <= self.seeds_differ:
            return "less apart than two seeds"
        is_apart = abs(self.difference) > max(self.half_width, self.seeds_differ)
        return "differs" if is_apart else "too noisy to say"


@dataclass(frozen=True, kw_only=True)
class PrecisionResult:
    """What a run over precisions shows besides rates.

    Attributes:
        pairs: The losses of each precision beside those of float32.
        memory: Bytes above the start at the peak, by precision: the median of the
            trials, the least and the most. Of the GPU where there is one.
    """

    pairs: tuple[Pairs, ...]
    memory: dict[str, Estimate]


def read_result(measured: Measurement) -> PrecisionResult:
    """Read from the notes of a run what its trainings showed."""
    tries = [trial.notes for trial in measured.trials if trial.is_try]
    curves = filter(None, (note_as(Curve, notes.get(CURVE)) for notes in tries))
    return PrecisionResult(
        pairs=tuple(_pairs(curves)),
        memory=_memory(measured.trials),
    )


def _pairs(curves: Iterable[Curve]) -> Iterator[Pairs]:
    by_name: dict[str, dict[int, Curve]] = {}
    for curve in curves:
        by_name.setdefault(curve.precision, {})[curve.seed] = curve
    usual = by_name.pop(FLOAT32, {})
    for name, runs in by_name.items():
        common = [
            (runs[seed], usual[seed])
            for seed in sorted(runs.keys() & usual.keys())
            if runs[seed].every == usual[seed].every
        ]
        lost = any(None in run.losses for run, _ in common)
        rows = [
            (run, base)
            for run, base in common
            if min(len(run.sound), len(base.sound)) > 1 and min(base.sound) > 0
        ]
        if not rows and not lost:
            continue
        count = min((len(curve.sound) for row in rows for curve in row), default=0)
        yield Pairs(
            precision=name,
            seeds=tuple(run.seed for run, _ in rows),
            steps=tuple(rows[0][0].every * n for n in range(1, count + 1)),
            losses=tuple(run.sound[:count] for run, _ in rows),
            usual=tuple(base.sound[:count] for _, base in rows),
            lost=lost,
        )


def _memory(trials: Iterable[Trial]) -> dict[str, Estimate]:
    peaks = dict[str, list[float]]()
    for trial in trials:
        note = note_as(dict[str, float], trial.notes.get("memory")) or {}
        peak = note.get("gpu_peak", note.get("resident", 0.0))
        if 0 < peak < _LARGEST and trial.variant in PRECISIONS:
            peaks.setdefault(trial.variant, []).append(peak)
    return {
        name: Estimate(value=statistics.median(sizes), low=min(sizes), high=max(sizes))
        for name, sizes in peaks.items()
    }


# What a precision is called where it is advised, and what to write for it.
_CALLED = {name: p.dtype if p.is_mixed else name for name, p in PRECISIONS.items()}
CHOICES = {
    name: Choice(f"Train with {_CALLED[name]}.", functools.partial(getattr, p, "line"))
    for name, p in PRECISIONS.items()
}
_LAST_LAYER = (
    "Write the line before you build the model, and give its last layer "
    '`dtype="float32"`, because the loss needs the digits.'
)
_UNKNOWN = "This run does not show whether it learns what float32 learns."
_SPOILT: tuple[Alike, ...] = ("differs", "lost")
_ALIKE: dict[Alike, str] = {
    "equal within rounding": "it learns the same",
    "less apart than two seeds": "its losses differ less than two seeds do",
    "differs": "but its losses differ",
    "lost": "but its loss became NaN",
}


def judge(measured: Measurement, result: PrecisionResult) -> Verdict:
    """Say which precision trains fastest, and whether it learns what float32 learns."""
    alike = {pair.precision: pair.alike for pair in result.pairs}
    race = fastest = Race(measured, CHOICES, "examples")
    # The next one may learn what the fastest does not.
    remaining = dict(CHOICES)
    while race.won and alike.get(race.winner) in _SPOILT:
        del remaining[race.winner]
        race = Race(measured, remaining, "examples")
    if not race.won:
        race = fastest
    expected = note_as(dict[str, Expectation], measured.notes.get(EXPECTED)) or {}
    because = tuple(
        f"Expected of {quoted(name)}: {outlook.expect}, because {outlook.because}."
        for name, outlook in expected.items()
    )
    facts = tuple(_facts(measured, result, expected))
    if not race.won:
        return replace(race.verdict(because=because), facts=facts)
    name = _CALLED[race.winner]
    learns: Alike = alike.get(race.winner, "too few trainings to say")
    if learns in _SPOILT:
        verdict = replace(race, subject=f"With {name} this training").verdict(
            because=because, next="Train longer with both, then compare the losses."
        )
        headline = f"Keep float32: {name} is faster, {_ALIKE[learns]}."
        return replace(verdict, headline=headline, edits=(), facts=facts)
    advice = _LAST_LAYER if PRECISIONS[race.winner].is_mixed else ""
    verdict = replace(race.verdict(because=because, next=advice), facts=facts)
    if learns not in _ALIKE:
        return replace(verdict, warnings=(_UNKNOWN,))
    return replace(verdict, headline=f"Train with {name}: {_ALIKE[learns]}.")


def _facts(
    measured: Measurement, result: PrecisionResult, expected: Mapping[str, Expectation]
) -> Iterator[Fact]:
    compared = {c.variant: c for c in measured.comparisons}
    for name, outlook in expected.items():
        if ratio := compared.get(name):
            label = f"{name}: expected, then seen"
            yield Fact(label, f"{outlook.expect}, {ratio.judgement}", ratio.ends)
    # TF32, on by default, hides a part of what 16 bits gain.
    for name in (name for name, p in PRECISIONS.items() if p.is_mixed):
        if pair := measured.compare(name, NO_TF32):
            yield Fact(f"{name} against {NO_TF32}", pair.judgement, pair.ends)
    yield from map(_loss_fact, result.pairs)
    if last := [row[-1] for pair in result.pairs[:1] for row in pair.usual]:
        ends = f"{min(last):.3f} to {max(last):.3f}"
        yield Fact(f"Loss of {FLOAT32}, from seed to seed", ends)
    for name, peak in result.memory.items():
        yield Fact(f"Memory at the peak, {name}", between(peak, units.size))


def _loss_fact(pair: Pairs) -> Fact:
    label = f"Loss of {pair.precision}, minus that of {FLOAT32}"
    if pair.lost:
        return Fact(label, "became NaN")
    difference, half = pair.difference, pair.half_width
    ends = f"{difference - half:+.4f} to {difference + half:+.4f}"
    return Fact(
        label,
        f"{difference:+.4f} by step {pair.steps[-1]}: {pair.alike}",
        ends if math.isfinite(half) else "",
    )
