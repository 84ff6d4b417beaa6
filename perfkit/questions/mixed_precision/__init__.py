"""Which precision trains fastest on this machine, and does it learn the same?

The suspect: float32 carries more bits than a network needs, and moves them all.
The test: train fresh networks of one kind in several precisions and compare examples
per second. The hardware says before what to expect. Then each precision learns for
real, from the same weights and examples.
"""

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.plan import Tries, Try
from perfkit.engine.tick import READY, REFUSED, Note, Yielded
from perfkit.findings.record import Verdict
from perfkit.questions.base import Experiment
from perfkit.questions.mixed_precision.verdict import (
    CHOICES,
    CURVE,
    EXPECTED,
    PrecisionResult,
    judge,
    read_result,
)
from perfkit.questions.parameters import Choice, Range, select
from perfkit.questions.shared import batches
from perfkit.questions.shared import precision as formats
from perfkit.questions.shared.batches import code_of_fit, fitted
from perfkit.questions.shared.later import keras, tf
from perfkit.questions.shared.loops import compiled, step_of
from perfkit.questions.shared.models import MODELS, learnable
from perfkit.questions.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    PRECISIONS,
    Hardware,
    Precision,
    expected,
    unavailable,
)

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


@dataclass(frozen=True, kw_only=True)
class MixedPrecision(Experiment):
    """Which precision trains fastest on this machine, and does it learn the same?"""

    model: Annotated[str, Choice(tuple(MODELS), help="The network to train")] = (
        "small-cnn"
    )
    batch: Annotated[int, Range(8, 1024, unit="examples", help="In a batch")] = 64
    variants: Annotated[
        str,
        Choice((_ALL, *PRECISIONS), many=True, help="Precisions"),
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
        return {
            name: Variant(
                name,
                functools.partial(training, self.model, name, self.batch),
                precision.changes,
                FLOAT32,
                # Whether TensorFlow can use a GPU, only preparing finds out.
                "" if hardware.gpu else unavailable(precision, hardware),
                code=code_of_training(precision),
            )
            for name, precision in self._precisions.items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Say what to expect, and refuse what would take the whole run for itself."""
        precisions, hardware = self._precisions.values(), formats.seen_here()
        reasons = {p.name: unavailable(p, hardware) for p in precisions}
        missing = {name: reason for name, reason in reasons.items() if reason}
        able = [p for p in precisions if p.name not in missing]
        expects = expectations(able, hardware)
        yield Note("gpu", hardware.gpu)
        yield Note("not here", missing)
        yield Note(EXPECTED, expects)
        yield Note("progress", "Trying one step of each precision that may be slow")
        slower = {name for name, note in expects.items() if note["expect"] == "slower"}
        trying = {FLOAT32} | slower & {BFLOAT16, FLOAT16}
        step_s = {
            p.name: _seconds_of_step(self.model, p, self.batch)
            for p in able
            if p.name in trying and not hardware.gpu
        }
        yield Note("step", step_s)
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

    def result(self, measured: Measurement) -> PrecisionResult:
        """The losses in pairs, and the memory."""
        return read_result(measured)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say which precision is fastest, whether it learns the same, what to write."""
        return judge(measured, self.result(measured))

    @property
    def _precisions(self) -> dict[str, Precision]:
        return select(self.variants, {_ALL: tuple(PRECISIONS)}, PRECISIONS, FLOAT32)


def expectations(precisions: Sequence[Precision], hardware: Hardware) -> dict[str, Any]:
    """What is expected of each precision but float32, as a note has it."""
    return {
        p.name: asdict(expected(p, hardware)) for p in precisions if p.name != FLOAT32
    }


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


def training(name: str, precision: str, batch: int) -> Iterator[Yielded]:
    """Train a fresh network on one batch, which is in memory, without an end."""
    at_start = batches.start()
    network, optimizer = _built(name, PRECISIONS[precision])
    examples, labels = map(tf.constant, MODELS[name].batch(batch))
    yield from fitted(network, optimizer, (examples, labels), at_start)


def code_of_training(choice: Precision) -> str:
    """The lines of a training in a precision, as a reader types them."""
    wrappers = [formats.scaled] if choice.policy == FLOAT16 else []
    return f"{choice.line}\n{code_of_fit(*wrappers)}"


def learning(name: str, precision: str, seed: int) -> Iterator[Yielded]:
    """Train for real, and keep the loss of examples when they are seen first.

    All precisions begin with the same weights and see the same examples.
    """
    weights = _built(name, PRECISIONS[FLOAT32], seed)[0].get_weights()
    network, optimizer = _built(name, PRECISIONS[precision], seed)
    # Another precision draws other weights from the same seed.
    network.set_weights(weights)
    losses: list[float] = []
    means: list[float | None] = []
    yield READY
    for loss in _learn(name, seed, network, optimizer, STEPS):
        losses.append(loss)
        yield LEARNT_BATCH
        if len(losses) % BETWEEN == 0:
            mean = sum(losses[-BETWEEN:]) / BETWEEN
            # JSON has no NaN.
            means.append(mean if math.isfinite(mean) else None)
            curve = {"precision": precision, "seed": seed, "every": BETWEEN}
            yield Note(CURVE, curve | {"losses": list(means)})


def _learn(
    name: str,
    seed: int,
    network: "keras.Model",
    optimizer: "keras.Optimizer",
    steps: int,
) -> Iterator[float]:
    """Train on batches of examples that are seen once each; yields each loss."""
    step = compiled(step_of(network, optimizer), autograph=False)
    examples, labels = learnable(MODELS[name], steps * LEARNT_BATCH, seed)
    for start in range(0, len(labels), LEARNT_BATCH):
        part = slice(start, start + LEARNT_BATCH)
        yield float(step(tf.constant(examples[part]), tf.constant(labels[part])))


def _seconds_of_step(name: str, precision: Precision, batch: int) -> float:
    """About how long a step takes at most, worked out from one of a few examples."""
    few = min(batch, _FEW)
    return _time_step(name, precision, few) * batch / few


def _time_step(name: str, precision: Precision, batch: int) -> float:
    step = compiled(step_of(*_built(name, precision)), autograph=False)
    examples, labels = map(tf.constant, MODELS[name].batch(batch))
    durations: list[float] = []
    # The first call traces as well, and says nothing where another can be afforded.
    while len(durations) < _CALLS and sum(durations) < _TOO_LONG_S:
        began = time.perf_counter()
        float(step(examples, labels))
        durations.append(time.perf_counter() - began)
    return min(durations)


def _built(
    name: str, precision: Precision, seed: int = 0
) -> "tuple[keras.Model, keras.Optimizer]":
    """A fresh network in a precision, and what updates it."""
    precision.choose()
    keras.utils.set_random_seed(seed)
    network, optimizer = MODELS[name].build(), precision.optimizer()
    optimizer.build(network.trainable_variables)
    return network, optimizer
