"""Number formats: which there are, what a machine makes of them, what to expect."""

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from perfkit.machine.collect import processor
from perfkit.machine.nvml import gpus
from perfkit.machine.record import Gpu, visible_gpus
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import keras, tf

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
        kind: ``"imitation"`` where a part of the processor is left unused.
        tensor_float_32: Whether a GPU may round the factors of a float32 product.
        allowed: What oneDNN may use at most; "" for all.
        leaves_out: The instruction set that is then left unused.
    """

    name: str
    changes: str
    policy: str = FLOAT32
    against: str = FLOAT32
    kind: Kind = "precision"
    tensor_float_32: bool = True
    allowed: str = ""
    leaves_out: str = ""

    def choose(self) -> None:
        """Let all that this process builds from now on compute in this precision.

        It has to come before the first operation, which reads the settings.
        """
        if self.allowed:
            allow(self.allowed)
        use_tf32(self.tensor_float_32)
        use_policy(self.policy)

    @property
    def line(self) -> str:
        """What to write to have it."""
        if not self.tensor_float_32:
            return code_of(use_tf32, enabled=False)
        values = {"policy": self.policy, "instructions": self.allowed}
        before = [allow] if self.allowed else []
        return code_of(*before, use_policy, **values)

    def optimizer(self) -> "keras.Optimizer":
        """Adam, and around it what ``compile`` puts there for float16."""
        adam = keras.optimizers.Adam()
        return scaled(adam) if self.policy == FLOAT16 else adam


def allow(instructions: str) -> None:
    """Let oneDNN use these instructions at most."""
    os.environ[INSTRUCTIONS] = instructions


def use_tf32(enabled: bool) -> None:
    """Let a GPU round the factors of a float32 product, or not."""
    tf.config.experimental.enable_tensor_float_32_execution(enabled)


def use_policy(policy: str) -> None:
    """Let layers that are made from now on compute in a precision."""
    keras.config.set_dtype_policy(policy)


def scaled(optimizer: Any) -> Any:
    """Scale the loss, as float16 needs it."""
    optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def _imitations(end: str, allowed: str, leaves_out: str) -> Iterator[Precision]:
    """float32 and bfloat16 as on a lesser processor."""
    for policy in (FLOAT32, BFLOAT16):
        yield Precision(
            f"{policy} {end}",
            f"The same, with {leaves_out} left unused, as on a processor that has "
            "none.",
            policy=policy,
            against=FLOAT32 if policy == FLOAT32 else f"{FLOAT32} {end}",
            kind="imitation",
            allowed=allowed,
            leaves_out=leaves_out,
        )


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(
            FLOAT32,
            "Everything in float32, as TensorFlow runs it by default; a GPU that has "
            "TF32 uses it.",
        ),
        Precision(
            NO_TF32,
            "The same, with every product in full float32.",
            tensor_float_32=False,
        ),
        Precision(
            BFLOAT16,
            "Layers compute in bfloat16 and keep their weights in float32; the last "
            "one computes in float32.",
            policy=BFLOAT16,
        ),
        Precision(
            FLOAT16,
            "Layers compute in float16 and keep their weights in float32; the loss is "
            "scaled, and the last layer computes in float32.",
            policy=FLOAT16,
        ),
        Precision(
            FLOAT64,
            "All layers but the last compute in float64, as one mistaken setting has "
            "it.",
            policy=FLOAT64,
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
        *(p.name for p in PRECISIONS.values() if p.kind == "imitation"),
    ),
}


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
    capability: tuple[int, ...] | None = None
    allowed: str = ""


@functools.cache
def read_hardware() -> Hardware:
    """Read it from this machine, without TensorFlow."""
    return hardware_of(processor().instructions, gpus()[1], os.environ)


def seen_here() -> Hardware:
    """Read what computes here: a GPU only where TensorFlow sees it, for the last time.

    It is asked in preparing, which needs none.
    """
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    without_gpus()
    hardware = read_hardware()
    return hardware if has_gpu else replace(hardware, gpu="", capability=None)


def hardware_of(
    instructions: tuple[str, ...] | None,
    gpus: Sequence[Gpu],
    environment: Mapping[str, str],
) -> Hardware:
    """Say which of a machine's GPUs computes, if one does, by its environment."""
    visible = visible_gpus(gpus, environment)
    gpu = gpus[visible[0]] if visible else None
    version = gpu.compute_capability if gpu else None
    return Hardware(
        instructions=instructions,
        # Which of several unlike ones computes is not always known.
        gpu=gpu.name if gpu else "GPU" if visible is None else "",
        capability=tuple(map(int, version.split("."))) if version else None,
        allowed=environment.get(INSTRUCTIONS, ""),
    )


Expect = Literal["faster", "slower", "no difference", "open"]
# Compute capabilities from which on a GPU has ...
_TENSOR_CORES = (7, 0)
# Cards of 7.5 that were made without them.
_WITHOUT = "GTX 16"
_TF32_AND_BFLOAT16 = (8, 0)


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
    if precision.name == NO_TF32 and not hardware.gpu:
        cards = "NVIDIA GPUs from compute capability 8.0 on"
        return f"needs a GPU: TF32 is a format of {cards}"
    if precision.name == NO_TF32:
        if (hardware.capability or _TF32_AND_BFLOAT16) >= _TF32_AND_BFLOAT16:
            return ""
        lack = "has no TF32, which begins with compute capability 8.0"
        return f"is float32 as it is: {_gpu_name(hardware)} {lack}"
    if precision.kind != "imitation":
        return ""
    if hardware.gpu:
        return "limits the processor, and here the GPU computes"
    if precision.leaves_out not in (hardware.instructions or ()):
        reason = "which this processor is not known to have"
        return f"leaves out {precision.leaves_out}, {reason}"
    if hardware.allowed:
        return f"needs {INSTRUCTIONS} for itself, and it is set already"
    return ""


def expected(precision: Precision, hardware: Hardware) -> Expectation:
    """Say what to expect of a precision that can be had."""
    if precision.name == FLOAT64:
        reason = "a number takes twice the room, and the fast kernels are made for"
        return Expectation("slower", f"{reason} fewer bits")
    if precision.name == NO_TF32:
        return Expectation("slower", "the Tensor Cores are left out of float32")
    if hardware.gpu:
        return _on_gpu(precision, hardware)
    return _on_cpu(precision, hardware)


def _on_gpu(precision: Precision, hardware: Hardware) -> Expectation:
    capability, gpu = hardware.capability, _gpu_name(hardware)
    if capability is None:
        reason = "the compute capability of the GPU that computes is not known"
        return Expectation("open", reason)
    if capability < _TENSOR_CORES or _WITHOUT in hardware.gpu:
        without = f"{gpu} has no Tensor Cores"
        if precision.policy != FLOAT16:
            return Expectation("slower", f"{without}, nor units for bfloat16")
        spared = "memory is saved, and whether time is depends on the card"
        return Expectation("open", f"{without}: {spared}")
    if precision.policy == BFLOAT16 and capability < _TF32_AND_BFLOAT16:
        cores = "has Tensor Cores for float16 but none for bfloat16"
        return Expectation("slower", f"{gpu} {cores}")
    bits = precision.policy.removeprefix("mixed_")
    small = "a network whose steps are too small to fill it gains nothing"
    return Expectation("faster", f"{gpu} has Tensor Cores for {bits}; {small}")


def _gpu_name(hardware: Hardware) -> str:
    capability = ".".join(map(str, hardware.capability or ()))
    return f"the {hardware.gpu} (compute capability {capability or 'unknown'})"


def _on_cpu(precision: Precision, hardware: Hardware) -> Expectation:
    if precision.policy == FLOAT16:
        reason = "TensorFlow has no fast kernels to train in float16 on a processor"
        return Expectation("slower", reason)
    if precision.policy != BFLOAT16:
        reason = f"{precision.leaves_out} has no part in float32"
        return Expectation("no difference", reason)
    if hardware.instructions is None:
        return Expectation("open", "the processor's instruction sets are not known")
    if hardware.allowed:
        reason = f"{INSTRUCTIONS} is set, and leaves a part of the processor unused"
        return Expectation("open", reason)
    # Every imitation leaves out AMX.
    amx = {"amx_bf16"} if precision.leaves_out else set()
    instructions = set(hardware.instructions) - {precision.leaves_out} - amx
    if "amx_bf16" in instructions:
        reason = "the processor has amx_bf16, which multiplies whole tiles"
        return Expectation("faster", reason)
    for name in ("avx512_bf16", "bf16"):
        if name in instructions:
            costs = "products may be faster, and converting to and fro costs"
            reason = f"the processor has {name} but no amx_bf16: {costs}"
            return Expectation("open", reason)
    reason = "the processor has no instructions for bfloat16, so each number is"
    return Expectation("slower", f"{reason} converted before it is used")
