"""Number formats: which there are, what a machine makes of them, what to expect."""

from __future__ import annotations

import functools
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perfkit.experiments.shared import batches
from perfkit.experiments.shared.batches import fitted, forecast
from perfkit.experiments.shared.models import MODELS, learnable
from perfkit.machine import cards
from perfkit.machine.processor import processor
from perfkit.measure.tick import READY, Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import keras
    import tensorflow as tf

    from perfkit.machine.record import Machine
    from perfkit.measure.tick import Yielded

    Step = Callable[[Any, Any], tf.Tensor]

FLOAT32, NO_TF32 = "float32", "float32 without TF32"
BFLOAT16, FLOAT16, FLOAT64 = "mixed_bfloat16", "mixed_float16", "float64"
# What tells oneDNN, before its first operation, how much of a processor it may use.
INSTRUCTIONS = "ONEDNN_MAX_CPU_ISA"
Kind = Literal["precision", "imitation"]


@dataclass(frozen=True)
class Precision:
    """What one variant computes in.

    Attributes:
        name: In charts, files and on the command line.
        changes: The one thing it changes, in a sentence.
        policy: Keras's name for the dtypes of the layers.
        against: The precision that it changes one thing of.
        line: What to write to have it.
        kind: ``"imitation"`` where a part of the processor is left unused.
        tensor_float_32: Whether a GPU may round the factors of a float32 product.
        allowed: What oneDNN may use at most; "" for all.
        leaves_out: The instruction set that is then left unused.
    """

    name: str
    changes: str
    policy: str = FLOAT32
    against: str = FLOAT32
    line: str = ""
    kind: Kind = "precision"
    tensor_float_32: bool = True
    allowed: str = ""
    leaves_out: str = ""

    def choose(self) -> None:
        """Let all that this process builds from now on compute in this precision.

        It has to come before the first operation, which reads the settings.
        """
        import keras
        import tensorflow as tf

        if self.allowed:
            os.environ[INSTRUCTIONS] = self.allowed
        tf.config.experimental.enable_tensor_float_32_execution(self.tensor_float_32)
        keras.config.set_dtype_policy(self.policy)

    def optimizer(self) -> keras.Optimizer:
        """Adam, and around it what ``compile`` puts there for float16."""
        import keras

        adam = keras.optimizers.Adam()
        if self.policy != FLOAT16:
            return adam
        return keras.optimizers.LossScaleOptimizer(adam)


_LINE = 'keras.config.set_dtype_policy("{}")'
_WITHOUT = "The same, with {} left unused, as on a processor that has none."


def _imitations(end: str, allowed: str, leaves_out: str) -> tuple[Precision, ...]:
    """float32 and bfloat16 as on a lesser processor."""
    changes = _WITHOUT.format(leaves_out)
    base = f"{FLOAT32} {end}"
    return (
        Precision(
            base,
            changes,
            kind="imitation",
            allowed=allowed,
            leaves_out=leaves_out,
        ),
        Precision(
            f"{BFLOAT16} {end}",
            changes,
            policy=BFLOAT16,
            against=base,
            kind="imitation",
            allowed=allowed,
            leaves_out=leaves_out,
        ),
    )


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(
            FLOAT32,
            "Everything in float32, as TensorFlow runs it by default; a GPU that has "
            "TF32 uses it.",
            line=_LINE.format(FLOAT32),
        ),
        Precision(
            NO_TF32,
            "The same, with every product in full float32.",
            tensor_float_32=False,
            line="tf.config.experimental.enable_tensor_float_32_execution(False)",
        ),
        Precision(
            BFLOAT16,
            "Layers compute in bfloat16 and keep their weights in float32; the last "
            "one computes in float32.",
            policy=BFLOAT16,
            line=_LINE.format(BFLOAT16),
        ),
        Precision(
            FLOAT16,
            "Layers compute in float16 and keep their weights in float32; the loss is "
            "scaled, and the last layer computes in float32.",
            policy=FLOAT16,
            line=_LINE.format(FLOAT16),
        ),
        Precision(
            FLOAT64,
            "All layers but the last compute in float64, as one mistaken setting has "
            "it.",
            policy=FLOAT64,
            line=_LINE.format(FLOAT64),
        ),
        *_imitations("without AMX", "AVX512_CORE_BF16", "amx_bf16"),
        *_imitations("on plain AVX-512", "AVX512_CORE", "avx512_bf16"),
    )
}
# What is asked together, by the question that it answers.
GROUPS = {
    "precisions": (FLOAT32, NO_TF32, BFLOAT16, FLOAT16, FLOAT64),
    "lesser machine": (
        *(FLOAT32, BFLOAT16),
        *(one.name for one in PRECISIONS.values() if one.kind == "imitation"),
    ),
}


Capability = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What decides which precision is fast.

    Attributes:
        instructions: Of the processor; None where they are not known.
        gpu: The name of the GPU that computes; "" for none.
        capability: Its compute capability; None where it is not known.
        allowed: The most that oneDNN may use of the processor, where somebody set it.
    """

    instructions: tuple[str, ...] | None = None
    gpu: str = ""
    capability: Capability | None = None
    allowed: str = ""


def of(machine: Machine) -> Hardware:
    """Read it from a machine's record; of several GPUs the first computes."""
    gpu = next(iter(machine.gpus), None)
    return Hardware(
        instructions=machine.processor.instructions if machine.processor else None,
        gpu=gpu.name if gpu else "",
        capability=parsed(gpu.compute_capability) if gpu else None,
        allowed=machine.environment.get(INSTRUCTIONS, ""),
    )


@functools.cache
def here() -> Hardware:
    """Read it from this machine, without TensorFlow."""
    import psutil

    _, found, _ = cards.gpus()
    gpu = next(iter(found), None)
    return Hardware(
        instructions=processor(Path("/"), psutil).instructions,
        gpu=gpu.name if gpu else "",
        capability=parsed(gpu.compute_capability) if gpu else None,
        allowed=os.environ.get(INSTRUCTIONS, ""),
    )


def parsed(capability: str | None) -> Capability | None:
    """A compute capability such as ``"8.9"`` as two numbers."""
    major, _, minor = (capability or "").partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        return None
    return int(major), int(minor)


Expect = Literal["faster", "slower", "no difference", "open"]
# Compute capabilities from which on a GPU has ...
_TENSOR_CORES: Capability = (7, 0)
_TF32_AND_BFLOAT16: Capability = (8, 0)


@dataclass(frozen=True)
class Expectation:
    """What is expected of a precision, against the one that it changes.

    Attributes:
        expect: In a word; ``"open"`` where only measuring tells.
        because: Why, as a clause.
    """

    expect: Expect
    because: str


def unavailable(precision: Precision, hardware: Hardware) -> str:
    """Say why a precision cannot be had; "" where it can."""
    if precision.name == NO_TF32:
        return _no_tf32(hardware)
    if precision.kind != "imitation":
        return ""
    if hardware.gpu:
        return "limits the processor, and here the GPU computes"
    if precision.leaves_out not in (hardware.instructions or ()):
        what = precision.leaves_out
        return f"leaves out {what}, which this processor is not known to have"
    if hardware.allowed:
        return f"needs {INSTRUCTIONS} for itself, and it is set already"
    return ""


def expected(precision: Precision, hardware: Hardware) -> Expectation:
    """Say what to expect of a precision that can be had."""
    if precision.name == FLOAT64:
        return Expectation(
            "slower",
            "a number takes twice the room, and the fast kernels are made for fewer "
            "bits",
        )
    if precision.name == NO_TF32:
        return Expectation("slower", "the Tensor Cores are left out of float32")
    if hardware.gpu:
        return _on_gpu(precision, hardware)
    return _on_cpu(precision, hardware)


def _no_tf32(hardware: Hardware) -> str:
    if not hardware.gpu:
        return (
            "needs a GPU: TF32 is a format of NVIDIA GPUs from compute capability 8.0 "
            "on"
        )
    if hardware.capability and hardware.capability < _TF32_AND_BFLOAT16:
        return (
            f"is float32 as it is: {_named(hardware)} has no TF32, which begins with "
            "compute capability 8.0"
        )
    return ""


def _on_gpu(precision: Precision, hardware: Hardware) -> Expectation:
    capability, gpu = hardware.capability, _named(hardware)
    if capability is None:
        return Expectation("open", "the GPU does not tell its compute capability")
    if capability < _TENSOR_CORES:
        halves = "memory is saved, but its arithmetic is not made for 16 bits"
        return Expectation(
            "open" if precision.policy == FLOAT16 else "slower",
            f"{gpu} has no Tensor Cores, which begin with 7.0: {halves}",
        )
    if precision.policy == BFLOAT16 and capability < _TF32_AND_BFLOAT16:
        return Expectation(
            "slower", f"{gpu} has Tensor Cores for float16 but none for bfloat16"
        )
    return Expectation(
        "faster",
        f"{gpu} has Tensor Cores for {_bits(precision)}; a network whose steps are "
        "too small to fill it gains nothing",
    )


def _named(hardware: Hardware) -> str:
    capability = ".".join(map(str, hardware.capability or ()))
    return f"the {hardware.gpu} (compute capability {capability or 'unknown'})"


def _bits(precision: Precision) -> str:
    return precision.policy.removeprefix("mixed_")


def _on_cpu(precision: Precision, hardware: Hardware) -> Expectation:
    if precision.policy == FLOAT16:
        return Expectation(
            "slower",
            "TensorFlow has no fast kernels to train in float16 on a processor",
        )
    if precision.policy != BFLOAT16:
        return Expectation(
            "no difference", f"{precision.leaves_out} has no part in float32"
        )
    if hardware.instructions is None:
        return Expectation("open", "the processor's instruction sets are not known")
    if hardware.allowed:
        return Expectation(
            "open", f"{INSTRUCTIONS} is set, and leaves a part of the processor unused"
        )
    return _of_bfloat16(_left(precision, hardware.instructions))


def _left(precision: Precision, instructions: tuple[str, ...]) -> set[str]:
    """What is left of the instructions in an imitation."""
    without = {"amx_bf16"} if precision.leaves_out else set[str]()
    return set(instructions) - without - {precision.leaves_out}


def _of_bfloat16(instructions: set[str]) -> Expectation:
    if "amx_bf16" in instructions:
        return Expectation(
            "faster", "the processor has amx_bf16, which multiplies whole tiles"
        )
    if instructions & {"avx512_bf16", "bf16"}:
        own = "avx512_bf16" if "avx512_bf16" in instructions else "bf16"
        return Expectation(
            "open",
            f"the processor has {own} but no amx_bf16: products may be faster, and "
            "converting to and fro costs",
        )
    return Expectation(
        "slower",
        "the processor has no instructions for bfloat16, so each number is converted "
        "before it is used",
    )


# Notes of a training that learns, and of one that shows its loss scale.
CURVE, SCALE = "curve", "loss scale"
# A training that learns: examples in a batch, steps, and how many make up one loss.
LEARNT_BATCH, STEPS, BETWEEN = 16, 40, 5
# Keras doubles the scale after 2000 good steps, which is more than anybody waits for.
GROWTH, SCALED_STEPS = 8, 72
# A step that is only tried: with so few examples first, and with all of them where
# that gives reason to doubt and is not far too long itself.
_FEW, _MOMENT_S, _TOO_LONG_S = 8, 0.2, 5.0
_CALLS = 4


def training(name: str, precision: str, batch: int) -> Iterator[Yielded]:
    """Train a fresh network on one batch, which is in memory, without an end."""
    import tensorflow as tf

    at_start = batches.start()
    network, optimizer = _built(name, PRECISIONS[precision])
    examples, labels = map(tf.constant, MODELS[name].batch(batch))
    yield from fitted(network, optimizer, (examples, labels), at_start)


def learning(name: str, precision: str, seed: int) -> Iterator[Yielded]:
    """Train for real, and keep the loss of examples when they are seen first.

    All precisions begin with the same weights and see the same examples.
    """
    weights = _built(name, PRECISIONS[FLOAT32], seed)[0].get_weights()
    network, optimizer = _built(name, PRECISIONS[precision], seed)
    # Another precision draws other weights from the same seed.
    network.set_weights(weights)
    step = step_of(network, optimizer)
    losses: list[float] = []
    yield READY
    for examples, labels in _to_learn(name, seed, STEPS):
        losses.append(float(step(examples, labels)))
        yield LEARNT_BATCH
        if len(losses) % BETWEEN == 0:
            told = {"precision": precision, "seed": seed, "every": BETWEEN}
            yield Note(CURVE, told | {"losses": _means(losses)})


def scaling(name: str, seed: int) -> Iterator[Yielded]:
    """Train in float16 and follow the loss scale, which grows soon here."""
    import keras

    PRECISIONS[FLOAT16].choose()
    keras.utils.set_random_seed(seed)
    network = MODELS[name].build()
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(), dynamic_growth_steps=GROWTH
    )
    optimizer.build(network.trainable_variables)
    step = step_of(network, optimizer)
    scales = [float(optimizer.dynamic_scale)]
    yield READY
    for examples, labels in _to_learn(name, seed, SCALED_STEPS):
        step(examples, labels)
        scales.append(float(optimizer.dynamic_scale))
        yield LEARNT_BATCH
        if len(scales) % GROWTH == 1:
            made = int(optimizer.iterations)
            told = {"model": name, "scales": list(scales), "updates": made}
            yield Note(SCALE, told)


def step_of(network: keras.Model, optimizer: keras.Optimizer) -> Step:
    """Give a function that trains on one batch; it does not wait for the device."""
    import keras
    import tensorflow as tf

    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    weights = network.trainable_variables

    def step(examples: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(examples, training=True))
            # ``fit`` does this by itself; what divides by the scale always does.
            scaled = optimizer.scale_loss(loss)
        optimizer.apply(tape.gradient(scaled, weights), weights)
        return loss

    compiled: Step = tf.function(step, autograph=False)
    return compiled


def seconds_of_step(name: str, precision: Precision, batch: int) -> float:
    """Time one step, so far as that takes no longer than a moment.

    Args:
        name: Of the network.
        precision: To train it in.
        batch: Examples in the step. Where a few of them take long already, the time
            is worked out from those.
    """
    few = min(batch, _FEW)
    about = _timed(name, precision, few) * batch / few
    if about <= _MOMENT_S or about > _TOO_LONG_S:
        return about
    return _timed(name, precision, batch)


def bytes_of_step(name: str, precision: Precision, batch: int) -> int:
    """What a step of so many examples holds, from the network's shapes alone."""
    return forecast(*_built(name, precision)).of(batch)


def _timed(name: str, precision: Precision, batch: int) -> float:
    import tensorflow as tf

    step = step_of(*_built(name, precision))
    examples, labels = map(tf.constant, MODELS[name].batch(batch))
    taken: list[float] = []
    # The first call traces as well, and says nothing where another can be afforded.
    while len(taken) < _CALLS and sum(taken) < _TOO_LONG_S:
        began = time.perf_counter()
        float(step(examples, labels))
        taken.append(time.perf_counter() - began)
    return min(taken)


def _built(
    name: str, precision: Precision, seed: int = 0
) -> tuple[keras.Model, keras.Optimizer]:
    """A fresh network in a precision, and what updates it."""
    import keras

    precision.choose()
    keras.utils.set_random_seed(seed)
    network, optimizer = MODELS[name].build(), precision.optimizer()
    optimizer.build(network.trainable_variables)
    return network, optimizer


def _to_learn(
    name: str, seed: int, steps: int
) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    """Batches of examples that are seen once each."""
    import tensorflow as tf

    examples, labels = learnable(MODELS[name], steps * LEARNT_BATCH, seed)
    for start in range(0, len(labels), LEARNT_BATCH):
        part = slice(start, start + LEARNT_BATCH)
        yield tf.constant(examples[part]), tf.constant(labels[part])


def _means(losses: list[float]) -> list[float | None]:
    """The mean of every few losses; None where it is no number."""
    groups = [losses[at : at + BETWEEN] for at in range(0, len(losses), BETWEEN)]
    means = [sum(group) / len(group) for group in groups]
    return [mean if math.isfinite(mean) else None for mean in means]
