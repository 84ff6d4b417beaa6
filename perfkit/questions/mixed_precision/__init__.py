"""Which precision trains fastest on this machine, and does it learn the same?

The suspect: float32 carries more bits than a network needs, and moves them all.
The test: train fresh networks of one kind in several precisions and compare examples
per second. The hardware says before what to expect. Then each precision learns for
real, from the same weights and examples.
"""

import functools
import itertools
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries, Try
from perfkit.engine.statistics import Estimate, student
from perfkit.engine.trial import READY, REFUSED, Note, Yielded
from perfkit.findings.reading import note_as
from perfkit.findings.record import Fact, Verdict
from perfkit.questions.base import Choice, Experiment, Range, select
from perfkit.questions.shared import batches, tf
from perfkit.questions.shared import precision as formats
from perfkit.questions.shared.loops import compiled, step_of
from perfkit.questions.shared.models import MODELS, learnable
from perfkit.questions.shared.precision import BFLOAT16, FLOAT16, FLOAT32, PRECISIONS
from perfkit.questions.shared.verdicts import Choice as Way
from perfkit.questions.shared.verdicts import Race, between, quoted

_ALL = "precisions"
# A training that learns is ended after so long, with the losses it has reached.
_LEARNING_S = 5.0
# A step that takes longer than this, and than so many of float32, is not timed: a few
# of them would be the whole run.
_LONGEST_STEP_S, _TIMES = 0.5, 10.0
# A training that learns: examples in a batch, steps, and how many make up one loss.
LEARNT_BATCH, STEPS, BETWEEN = 16, 40, 5
# Of a step that is tried: its examples, the seconds after which no other call is made,
# and the calls at most.
_FEW, _TOO_LONG_S, _CALLS = 8, 5.0, 4


# What a precision is called where it is advised, and what to write for it.
_CALLED = {name: p.dtype if p.is_mixed else name for name, p in PRECISIONS.items()}
CHOICES = {
    name: Way(f"Train with {_CALLED[name]}.", functools.partial(getattr, p, "line"))
    for name, p in PRECISIONS.items()
}
# The note of a training that learns, and that of the whole run.
CURVE, EXPECTED = "curve", "expected"


@dataclass(frozen=True, kw_only=True)
class MixedPrecision(Experiment):
    """Which precision trains fastest on this machine, and does it learn the same?"""

    model: Annotated[str, Choice(tuple(MODELS), help="The network to train")] = (
        "small-cnn"
    )
    batch: Annotated[int, Range(8, 1024, unit="examples", help="In a batch")] = 64
    variants: Annotated[
        str, Choice((_ALL, *PRECISIONS), many=True, help="Precisions")
    ] = _ALL
    seeds: Annotated[
        int, Range(0, 8, help="How often each precision learns, to compare losses")
    ] = 3

    name = "mixed-precision"
    baseline = FLOAT32
    choices = CHOICES

    def make_variants(self) -> Mapping[str, Variant]:
        """The precisions that ``variants`` asks for, float32 always first."""
        hardware = formats.read_hardware()
        trained = functools.partial(batches.training, self.model, self.batch)
        return {
            name: Variant(
                name,
                functools.partial(trained, precision=name),
                precision.changes,
                FLOAT32,
                # Whether TensorFlow can use a GPU, only preparing finds out.
                "" if hardware.gpu else formats.unavailable(precision, hardware),
                code=code_of_training(precision),
            )
            for name, precision in self._precisions.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Say what to expect, and refuse what would take the whole run for itself."""
        precisions, hardware = self._precisions.values(), formats.seen_here()
        reasons = {p.name: formats.unavailable(p, hardware) for p in precisions}
        able = [p for p in precisions if not reasons[p.name]]
        expects = expectations(able, hardware)
        yield Note(EXPECTED, expects)
        yield Note("progress", "Trying one step of each precision that may be slow")
        slower = {name for name, note in expects.items() if note["expect"] == "slower"}
        trying = {FLOAT32} | slower & {BFLOAT16, FLOAT16}
        step_s = {
            p.name: _seconds_of_step(self.model, p, self.batch)
            for p in able
            if p.name in trying and not hardware.gpu
        }
        missing = {name: reason for name, reason in reasons.items() if reason}
        yield Note(REFUSED, missing | too_slow(step_s))

    def tries(self, measured: Measurement) -> Tries:
        """Let each precision that was timed learn."""
        names = {timing.variant for timing in measured.timings}
        able = [name for name in self._precisions if name in names]
        for seed in range(1, self.seeds + 1):
            for name in able:
                learnt = functools.partial(learning, self.model, name, seed)
                title = f"learning in {name}, seed {seed}"
                yield Try(name=title, work=learnt, seconds=_LEARNING_S)

    def result(self, measured: Measurement) -> "PrecisionResult":
        """The losses in pairs, and the memory, from the notes of trials."""
        tries = [trial.notes for trial in measured.trials if trial.is_try]
        curves = filter(None, (note_as(Curve, notes.get(CURVE)) for notes in tries))
        memory = {
            name: Estimate(
                value=statistics.median(peaks), low=min(peaks), high=max(peaks)
            )
            for name in PRECISIONS
            if (peaks := batches.peaks(measured.trials_of(name)))
        }
        return PrecisionResult(pairs=tuple(_pairs(curves)), memory=memory)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which precision is fastest, whether it learns the same, what to write."""
        result = self.result(measured)
        alike = {pair.precision: pair.alike for pair in result.pairs}
        race = fastest = Race(measured, CHOICES, "examples")
        # The next one may learn what the fastest does not.
        remaining = dict(CHOICES)
        while race.won and alike.get(race.winner) in _SPOILT:
            del remaining[race.winner]
            race = Race(measured, remaining, "examples")
        if not race.won:
            race = fastest
        note = measured.notes.get(EXPECTED)
        expected = note_as(dict[str, formats.Expectation], note) or {}
        because = tuple(
            f"Expected of {quoted(name)}: {outlook.expect}, because {outlook.because}."
            for name, outlook in expected.items()
        )
        facts = tuple(_facts(result))
        if not race.won:
            return race.verdict(because=because, facts=facts)
        name = _CALLED[race.winner]
        learns: Alike = alike.get(race.winner, "too few trainings to say")
        if learns in _SPOILT:
            verdict = replace(race, subject=f"With {name} this training").verdict(
                because=because,
                facts=facts,
                next="Train longer with both, then compare the losses.",
            )
            headline = f"Keep float32: {name} is faster, {_ALIKE[learns]}."
            return replace(verdict, headline=headline, edits=())
        advice = _LAST_LAYER if PRECISIONS[race.winner].is_mixed else ""
        verdict = race.verdict(because=because, facts=facts, next=advice)
        if learns not in _ALIKE:
            return replace(verdict, warnings=(_UNKNOWN,))
        return replace(verdict, headline=f"Train with {name}: {_ALIKE[learns]}.")

    @property
    def _precisions(self) -> dict[str, formats.Precision]:
        return select(self.variants, {_ALL: tuple(PRECISIONS)}, PRECISIONS, FLOAT32)


def expectations(
    precisions: Sequence[formats.Precision], hardware: formats.Hardware
) -> dict[str, Any]:
    """What is expected of each precision but float32, as a note has it."""
    others = (p for p in precisions if p.name != FLOAT32)
    return {p.name: asdict(formats.expected(p, hardware)) for p in others}


def too_slow(step_s: Mapping[str, float]) -> dict[str, str]:
    """Say of each precision whose steps would be the whole run why it is not timed.

    What was tried has taken so many seconds a step, float32 among it.
    """
    usual = step_s.get(FLOAT32, 0.0)
    return {
        name: (
            f"takes about {units.seconds(seconds)} a step, where {FLOAT32} takes "
            f"{units.seconds(usual)}: a few of them would be the whole run"
        )
        for name, seconds in step_s.items()
        if seconds > max(_LONGEST_STEP_S, _TIMES * usual)
    }


def code_of_training(choice: formats.Precision) -> str:
    """The lines of a training in a precision, as a reader types them."""
    wrappers = [formats.scaled] if choice.policy == FLOAT16 else []
    return f"{choice.line}\n{batches.code_of_fit(*wrappers)}"


def learning(name: str, precision: str, seed: int) -> Iterator[Yielded]:
    """Train for real, and keep the loss of examples when they are seen first.

    All precisions begin with the same weights and see the same examples.
    """
    weights = PRECISIONS[FLOAT32].build(MODELS[name], seed)[0].get_weights()
    network, optimizer = PRECISIONS[precision].build(MODELS[name], seed)
    # Another precision draws other weights from the same seed.
    network.set_weights(weights)
    step = compiled(step_of(network, optimizer), autograph=False)
    examples, labels = learnable(MODELS[name], STEPS * LEARNT_BATCH, seed)
    losses: list[float] = []
    means: list[float | None] = []
    yield READY
    for start in range(0, len(labels), LEARNT_BATCH):
        part = slice(start, start + LEARNT_BATCH)
        loss = step(tf.constant(examples[part]), tf.constant(labels[part]))
        losses.append(float(loss))
        yield LEARNT_BATCH
        if len(losses) % BETWEEN == 0:
            mean = sum(losses[-BETWEEN:]) / BETWEEN
            # JSON has no NaN.
            means.append(mean if math.isfinite(mean) else None)
            curve = {"precision": precision, "seed": seed, "every": BETWEEN}
            yield Note(CURVE, curve | {"losses": list(means)})


def _seconds_of_step(name: str, precision: formats.Precision, batch: int) -> float:
    """About how long a step takes at most, worked out from one of a few examples."""
    few = min(batch, _FEW)
    step = compiled(step_of(*precision.build(MODELS[name])), autograph=False)
    examples, labels = map(tf.constant, MODELS[name].batch(few))
    durations: list[float] = []
    # The first call traces as well, and says nothing where another can be afforded.
    while len(durations) < _CALLS and sum(durations) < _TOO_LONG_S:
        began = time.perf_counter()
        float(step(examples, labels))
        durations.append(time.perf_counter() - began)
    return min(durations) * batch / few


# No run notes more losses than this, or larger ones.
_MOST, _LARGEST = 1000, 1e300
# Half the distance between 1 and the next number: what one rounding changes at most.
_ROUNDING = {BFLOAT16: 2.0**-8, FLOAT16: 2.0**-11, formats.NO_TF32: 2.0**-11}
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

    The memory is in bytes above the start at the peak, by precision: the median of the
    trials, the least and the most. It is the GPU's where there is one.
    """

    pairs: tuple[Pairs, ...]
    memory: dict[str, Estimate]


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


def _facts(result: PrecisionResult) -> Iterator[Fact]:
    for pair in result.pairs:
        label = f"Loss of {pair.precision}, minus that of {FLOAT32}"
        if pair.lost:
            yield Fact(label, "became NaN")
            continue
        difference, half = pair.difference, pair.half_width
        ends = f"{difference - half:+.4f} to {difference + half:+.4f}"
        value = f"{difference:+.4f} by step {pair.steps[-1]}: {pair.alike}"
        yield Fact(label, value, ends if math.isfinite(half) else "")
    if last := [row[-1] for pair in result.pairs[:1] for row in pair.usual]:
        ends = f"{min(last):.3f} to {max(last):.3f}"
        yield Fact(f"Loss of {FLOAT32}, from seed to seed", ends)
    for name, peak in result.memory.items():
        yield Fact(f"Memory at the peak, {name}", between(peak, units.size))
