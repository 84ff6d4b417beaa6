"""What a run over precisions does: foresee, train without an end, learn for real."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perfkit import units
from perfkit.engine.tick import READY, REFUSED, Note, Yielded
from perfkit.questions.mixed_precision.verdict import (
    CURVE,
    EXPECTED,
    GROWTH,
    LAYERS,
    SCALE,
    look_at_layers,
)
from perfkit.questions.shared import batches, precision
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

# A step that takes longer than this, and than so many of float32, is not timed: a few
# of them would be the whole run.
_LONGEST_STEP_S, _TIMES = 0.5, 10.0
_NOT_HERE = "not here"
# A training that learns: examples in a batch, steps, and how many make up one loss.
LEARNT_BATCH, STEPS, BETWEEN = 16, 40, 5
SCALED_STEPS = 72
# A step that is only tried: its examples at first, seconds that leave no doubt, seconds
# that nobody waits for, and calls.
_FEW, _MOMENT_S, _TOO_LONG_S, _CALLS = 8, 0.2, 5.0, 4


def foreseen(
    model: str, batch: int, precisions: Sequence[Precision]
) -> Iterator[Yielded]:
    """Tell what is expected of each precision, and refuse those that take too long.

    Float32 is among them.
    """
    notes = notes_of(model, precisions)
    yield from (Note(name, value) for name, value in notes.items())
    yield Note("progress", "Trying one step of each precision that may be slow")
    expects = {name: note["expect"] for name, note in notes[EXPECTED].items()}
    slower = [n for n in (BFLOAT16, FLOAT16) if expects.get(n) == "slower"]
    doubtful = [p for p in precisions if p.name in (FLOAT32, *slower)]
    trying = [] if notes["gpu"] else doubtful
    step_s = {p.name: _seconds_of_step(model, p, batch) for p in trying}
    yield Note("step", step_s)
    yield Note(REFUSED, notes[_NOT_HERE] | too_slow(step_s))


def notes_of(model: str, precisions: Sequence[Precision]) -> dict[str, Any]:
    """Return the notes, by name, that need hardware and shapes but no step."""
    hardware = precision.seen_here()
    missing = {p.name: fault for p in precisions if (fault := unavailable(p, hardware))}
    able = [p for p in precisions if p.name not in missing]
    PRECISIONS[BFLOAT16].choose()
    network = MODELS[model].build()
    return {
        "gpu": hardware.gpu,
        _NOT_HERE: missing,
        EXPECTED: expectations(able, hardware),
        LAYERS: [asdict(layer) for layer in look_at_layers(network)],
    }


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
    wrappers = [precision.scaled] if choice.policy == FLOAT16 else []
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


def scaling(name: str, seed: int) -> Iterator[Yielded]:
    """Train in float16 and follow the loss scale, which grows soon here."""
    network, _ = _built(name, PRECISIONS[FLOAT16], seed)
    adam = keras.optimizers.Adam()
    optimizer = keras.optimizers.LossScaleOptimizer(adam, dynamic_growth_steps=GROWTH)
    optimizer.build(network.trainable_variables)
    scales = [float(optimizer.dynamic_scale)]
    yield READY
    for _ in _learn(name, seed, network, optimizer, SCALED_STEPS):
        scales.append(float(optimizer.dynamic_scale))
        yield LEARNT_BATCH
        if len(scales) % GROWTH == 1:
            yield Note(SCALE, {"model": name, "scales": list(scales)})


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
    """Time a step of a few examples, and one of all where that gives reason to doubt.

    Where that would take too long, the time is worked out from two small steps.
    """
    sample, double = min(batch, _FEW), min(batch, 2 * _FEW)
    once = _time_step(name, precision, sample)
    if (at_most := once * batch / sample) <= _MOMENT_S:
        return at_most
    added = max(0.0, _time_step(name, precision, double) - once)
    about = once + added / max(1, double - sample) * (batch - sample)
    return about if about > _TOO_LONG_S else _time_step(name, precision, batch)


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
