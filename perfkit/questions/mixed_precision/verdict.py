"""What a run over precisions shows and means: its notes, losses in pairs, its verdict.

Notes may come from a file, so each is held against the type that it should have.
"""

import functools
import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import Estimate, student
from perfkit.engine.trial import Trial
from perfkit.findings.reading import note_as
from perfkit.findings.record import Verdict
from perfkit.questions.shared import models
from perfkit.questions.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    NO_TF32,
    PRECISIONS,
    Expectation,
)
from perfkit.questions.shared.race import Choice, Race
from perfkit.questions.shared.words import listed, quoted

# Notes of a training that learns, and of one that shows its loss scale ...
CURVE, SCALE = "curve", "loss scale"
# ... and of the whole run.
EXPECTED, LAYERS = "expected", "layers"
# More losses, or scales, than any run notes.
_MOST = 1000
# What is no number, or larger than this, was never seen.
_LARGEST = 1e300
BLOCK = 8
_HALVES = ("float16", "bfloat16")
# Keras doubles the scale after 2000 good steps, which is more than anybody waits for.
GROWTH = 8
# Half the distance between 1 and the next number: what one rounding changes at most.
_ROUNDING = {BFLOAT16: 2.0**-8, FLOAT16: 2.0**-11, NO_TF32: 2.0**-11}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of examples that were seen first fell in one training.

    Attributes:
        precision: What it computed in.
        seed: Of its weights and examples.
        every: Steps of which each loss is the mean.
        losses: What was seen; None where it was no number.
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
    def sound(self) -> list[float]:
        """The losses up to the first that was no number."""
        until = itertools.takewhile(lambda loss: loss is not None, self.losses)
        return [float(loss) for loss in until if loss is not None]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The loss scale of a training in float16.

    Attributes:
        model: The network that was trained.
        scales: After each step, the first before any.
    """

    model: str
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what no run notes."""
        sound = all(0 < scale < _LARGEST for scale in self.scales)
        if not 1 < len(self.scales) <= _MOST or not sound:
            raise ValueError("no loss scale")

    @property
    def skipped(self) -> tuple[int, ...]:
        """The steps that changed nothing, because a gradient overflowed."""
        pairs = itertools.pairwise(self.scales)
        return tuple(step for step, (old, new) in enumerate(pairs, 1) if new < old)


@dataclass(frozen=True)
class Layer:
    """A layer that multiplies.

    Attributes:
        name: In its network.
        computes: In which dtype.
        inputs: Numbers, or channels, that come in.
        outputs: Numbers, or channels, that go out.
        products: Multiplications for one example, forward.
    """

    name: str
    computes: str
    inputs: int
    outputs: int
    products: int

    def __post_init__(self) -> None:
        """Refuse what no network has."""
        if min(self.inputs, self.outputs, self.products) < 0:
            raise ValueError("no layer")

    @property
    def hindrance(self) -> str:
        """What keeps it from gaining, as a clause; "" for nothing."""
        if self.computes not in _HALVES:
            return f"computes in {self.computes}"
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        odd = [f"{count:,} {side}" for side, count in sides.items() if count % BLOCK]
        return f"has {' and '.join(odd)}, no multiple of {BLOCK}" if odd else ""


def curves(trials: Iterable[Trial]) -> tuple[Curve, ...]:
    """Each training that was run to learn, in the order they ran."""
    notes = (note_as(Curve, t.notes.get(CURVE)) for t in trials if t.is_try)
    return tuple(filter(None, notes))


def scale(trials: Iterable[Trial]) -> Scale | None:
    """The training that showed its loss scale, if one did."""
    notes = (note_as(Scale, t.notes.get(SCALE)) for t in trials if t.is_try)
    return next(filter(None, notes), None)


def memory(trials: Iterable[Trial]) -> dict[str, Estimate]:
    """Bytes above the start at the peak, by variant: the median, least and most.

    Of the GPU where there is one, else of the process.
    """
    peaks = dict[str, list[float]]()
    for trial in trials:
        note = note_as(dict[str, float], trial.notes.get("memory")) or {}
        peak = note.get("gpu_peak", note.get("resident", 0.0))
        if 0 < peak < _LARGEST and not trial.is_try:
            peaks.setdefault(trial.variant, []).append(peak)
    return {
        name: Estimate(value=statistics.median(sizes), low=min(sizes), high=max(sizes))
        for name, sizes in peaks.items()
    }


def expectations(notes: Mapping[str, Any]) -> dict[str, Expectation]:
    """What was expected of each precision."""
    return note_as(dict[str, Expectation], notes.get(EXPECTED)) or {}


def layers_of(notes: Mapping[str, Any]) -> tuple[Layer, ...]:
    """The layers of the network that was asked about."""
    return note_as(tuple[Layer, ...], notes.get(LAYERS)) or ()


def layers(network: Any) -> Iterator[Layer]:
    """Look at the layers of a built network that have a kernel."""
    for layer in network.layers:
        if products := models.products(layer):
            *_, inputs, outputs = map(int, layer.kernel.shape)
            yield Layer(layer.name, layer.compute_dtype, inputs, outputs, products)


def share(multiplying: tuple[Layer, ...]) -> float | None:
    """The share of all multiplications that can gain; None where there are none."""
    total = sum(layer.products for layer in multiplying)
    able = sum(layer.products for layer in multiplying if not layer.hindrance)
    return able / total if total else None


Alike = Literal[
    "equal within rounding",
    "less apart than two seeds",
    "differs",
    "too noisy to say",
    "too few trainings to say",
    "lost",
]


@dataclass(frozen=True)
class Pairs:
    """The trainings of one precision held against those of float32.

    Attributes:
        precision: Which.
        seeds: Of the trainings, one a pair.
        steps: Training steps at each loss that all of them reached.
        losses: One row a seed; each number is the mean of the steps since the last.
        usual: The same of float32, with the same seeds.
        lost: Whether the loss of any became something that is no number; one that was
            at once is no row.
    """

    precision: str
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    losses: NDArray[np.float64]
    usual: NDArray[np.float64]
    lost: bool = False

    @property
    def apart(self) -> NDArray[np.float64]:
        """What the precision adds to the loss, one row a seed."""
        return self.losses - self.usual

    @property
    def difference(self) -> float:
        """What the precision adds to the last loss, the mean over the seeds."""
        return float(self.apart[:, -1].mean())

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of ``difference``; None for one seed."""
        last = self.apart[:, -1]
        if len(last) < 2:
            return None
        return float(student(len(last) - 1) * last.std(ddof=1) / np.sqrt(len(last)))

    @property
    def seeds_differ(self) -> float:
        """What another seed changes in float32's last loss: its whole range."""
        return float(np.ptp(self.usual[:, -1]))

    @property
    def alike(self) -> Alike:
        """Whether it learns what float32 learns."""
        if self.lost:
            return "lost"
        largest = float(np.max(np.abs(self.apart) / np.abs(self.usual)))
        if largest <= _ROUNDING.get(self.precision, 0.0):
            return "equal within rounding"
        if self.half_width is None:
            return "too few trainings to say"
        if abs(self.difference) + self.half_width <= self.seeds_differ:
            return "less apart than two seeds"
        is_apart = abs(self.difference) > max(self.half_width, self.seeds_differ)
        return "differs" if is_apart else "too noisy to say"


def pairs(trials: Iterable[Trial]) -> tuple[Pairs, ...]:
    """Hold every precision against float32, in the order in which they learnt."""
    by_name: dict[str, dict[int, Curve]] = {}
    for curve in curves(trials):
        by_name.setdefault(curve.precision, {})[curve.seed] = curve
    usual = by_name.pop(FLOAT32, {})
    results = (_pairs(name, runs, usual) for name, runs in by_name.items())
    return tuple(filter(None, results))


def _pairs(name: str, runs: dict[int, Curve], usual: dict[int, Curve]) -> Pairs | None:
    common = sorted(runs.keys() & usual.keys())
    seeds = [seed for seed in common if runs[seed].every == usual[seed].every]
    lost = any(None in runs[seed].losses for seed in seeds)
    if lost:
        # One that is lost at once is no row, and hides no other.
        seeds = [seed for seed in seeds if len(runs[seed].sound) > 1]
    sides = [[side[seed].sound for seed in seeds] for side in (runs, usual)]
    count = min((len(losses) for side in sides for losses in side), default=0)
    if count < 2 and (seeds or not lost):
        return None
    mine, base = (np.array([losses[:count] for losses in side]) for side in sides)
    if not np.all(base > 0):
        return None
    interval = next((runs[seed].every for seed in seeds), 0)
    steps = tuple(interval * look for look in range(1, count + 1))
    return Pairs(name, tuple(seeds), steps, losses=mine, usual=base, lost=lost)


_PLAIN = {p.name: p for p in PRECISIONS.values() if p.kind == "precision"}
# What a precision is called where it is advised, and what to write for it.
_CALLED = {name: name.removeprefix("mixed_") for name in _PLAIN}
CHOICES = {
    name: Choice(f"Train with {_CALLED[name]}.", functools.partial(getattr, p, "line"))
    for name, p in _PLAIN.items()
}
_LAST_LAYER = (
    "The line stands before the model is built. Give its last layer "
    '`dtype="float32"`: a loss needs the precision.'
)
_UNKNOWN = "Whether it learns what float32 learns is not known yet."
_SPOILT: tuple[Alike, ...] = ("differs", "lost")
_ALIKE: dict[Alike, str] = {
    "equal within rounding": "it learns the same",
    "less apart than two seeds": "its losses differ less than two seeds do",
    "differs": "but its losses are others",
    "lost": "but its loss became NaN",
}


def judge(measured: Measurement) -> Verdict:
    """Say which precision trains fastest, and whether it learns what float32 learns."""
    learnt = pairs(measured.trials)
    alike = {pair.precision: pair.alike for pair in learnt}
    race = fastest = Race(measured, CHOICES, "examples")
    # The next one may learn what the fastest does not.
    remaining = dict(CHOICES)
    while race.won and alike.get(race.winner) in _SPOILT:
        del remaining[race.winner]
        race = Race(measured, remaining, "examples")
    if not race.won:
        race = fastest
    verdict = race.verdict(
        because=(
            *_expected_and_seen(measured),
            *_full_float32(measured),
            *_eligible(measured.notes),
            *map(_learnt, learnt),
            *_scale(measured),
            *_memory(measured),
        ),
        next=_LAST_LAYER if race.winner.startswith("mixed_") else "",
    )
    if not race.won:
        return verdict
    name, learns = _CALLED[race.winner], alike.get(race.winner)
    if learns is None or learns not in _ALIKE:
        return replace(verdict, warnings=(_UNKNOWN,))
    if learns not in _SPOILT:
        return replace(verdict, headline=f"Train with {name}: {_ALIKE[learns]}.")
    return replace(
        verdict,
        headline=f"Keep float32: {name} is faster, {_ALIKE[learns]}.",
        much=verdict.much.replace("This training then", f"With {name} it"),
        edits=(),
        next="Train longer with both, and compare the losses.",
    )


def beforehand(notes: Mapping[str, Any]) -> Verdict:
    """Say what to expect before a run, from the notes of its preparation."""
    expected = expectations(notes).items()
    faster = [name for name, outlook in expected if outlook.expect == "faster"]
    headline = "No precision is sure to be faster than float32 on this hardware."
    if faster:
        headline = f"Expect {listed(faster)} to be faster than float32 here."
    words = ", ".join(f"{quoted(name)} {outlook.expect}" for name, outlook in expected)
    reasons = (
        f"Of {quoted(name)} expect: {outlook.expect}, because {outlook.because}."
        for name, outlook in expected
    )
    return Verdict(
        headline=headline,
        much=f"By hardware alone: {words}.",
        because=(*reasons, *_eligible(notes)),
    )


def _eligible(notes: Mapping[str, Any]) -> Iterator[str]:
    """Which layers can gain from 16 bits, and why the others cannot."""
    multiplying = layers_of(notes)
    able = share(multiplying)
    if able is None:
        return
    hindered = [f"{quoted(a.name)} {a.hindrance}" for a in multiplying if a.hindrance]
    but = f"; {', '.join(hindered)}" if hindered else ""
    yield (
        f"By shapes, {units.percent(able)} of the multiplications are in layers that "
        f"compute in 16 bits with sides that are multiples of {BLOCK}{but}."
    )


def _learnt(pair: Pairs) -> str:
    """Whether a precision learnt what float32 learnt, with the numbers."""
    name, seeds = quoted(pair.precision), len(pair.losses)
    trainings = f"{seeds} pair{'s' if seeds > 1 else ''} of trainings"
    if pair.lost:
        where = f"In {trainings} the" if seeds else "The"
        return f"{where} loss of {name} became NaN."
    half, between = pair.half_width, ""
    if half is not None:
        low, high = pair.difference - half, pair.difference + half
        between = f" ({low:+.4f} to {high:+.4f})"
    usual = pair.usual[:, -1]
    return (
        f"Losses of {name} against {FLOAT32}: {pair.alike}. In {trainings} alike in "
        f"all else it adds {pair.difference:+.4f}{between} to the loss by step "
        f"{pair.steps[-1]}, which is {usual.min():.3f} to {usual.max():.3f} in "
        f"{FLOAT32} from seed to seed."
    )


def _expected_and_seen(measured: Measurement) -> Iterator[str]:
    compared = {c.variant: c for c in measured.comparisons}
    for name, expected in expectations(measured.notes).items():
        if name not in compared:
            continue
        ratio, end = compared[name], ""
        if expected.expect != "open" and ratio.verdict != "too noisy to say":
            is_expected = ratio.verdict.removesuffix(" shown") == expected.expect
            end = ", as expected" if is_expected else ", not as expected"
        yield (
            f"Expected of {quoted(name)}: {expected.expect}, because "
            f"{expected.because}. Seen: {ratio.judgement}{end}."
        )


def _full_float32(measured: Measurement) -> Iterator[str]:
    """What 16 bits gain against float32 without TF32, which hides a part of it."""
    for name in _PLAIN:
        pair = measured.compare(name, NO_TF32) if name.startswith("mixed_") else None
        if pair:
            yield (
                f"Against {quoted(NO_TF32)}, {quoted(name)} reaches {pair.interval} "
                f"the rate: {pair.judgement}. TF32 is on by default, in "
                f"{quoted(FLOAT32)} too."
            )


def _scale(measured: Measurement) -> Iterator[str]:
    course = scale(measured.trials)
    if course is None:
        return
    dots = ["…"] if len(course.skipped) > 4 else []
    steps = ", ".join([*map(str, course.skipped[:4]), *dots])
    at = f" (at step {steps})" if course.skipped else ""
    yield (
        f"The loss scale of float16, with {quoted(course.model)} and doubled every "
        f"{GROWTH} good steps instead of every 2,000, went from "
        f"{course.scales[0]:,.0f} up to {max(course.scales):,.0f}: "
        f"{len(course.skipped)} of {len(course.scales) - 1} steps were skipped{at}, "
        "and each halved it."
    )


def _memory(measured: Measurement) -> Iterator[str]:
    peaks = memory(measured.trials)
    usual = peaks.pop(FLOAT32, None)
    for name, peak in peaks.items():
        if usual is None or name not in _PLAIN:
            continue
        apart = peak.low > usual.high or peak.high < usual.low
        overlap = "" if apart else ", and the trials of the two overlap"
        yield (
            f"Memory at the peak, above the start: {units.size(peak.value)} in "
            f"{quoted(name)}, {units.times(peak.value / usual.value)} times the "
            f"{units.size(usual.value)} of {FLOAT32}{overlap}."
        )
