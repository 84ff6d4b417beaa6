"""Number formats: which there are, what a machine makes of them, what to expect."""

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from perfkit.machine.collect import processor
from perfkit.machine.nvml import gpus
from perfkit.machine.record import Gpu, visible_gpus
from perfkit.questions.shared import keras, tf
from perfkit.questions.shared.benchmark import without_gpus
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.models import Model

FLOAT32, NO_TF32 = "float32", "float32 without TF32"
BFLOAT16, FLOAT16, FLOAT64 = "mixed_bfloat16", "mixed_float16", "float64"
# The policies whose layers compute in another dtype than they keep their weights in.
_MIXED = {BFLOAT16: "bfloat16", FLOAT16: "float16"}


@dataclass(frozen=True)
class Precision:
    """The number format of one variant.

    The policy is Keras's name for the dtypes of the layers. With TF32 a GPU may round
    the factors of a float32 product.
    """

    name: str
    changes: str
    policy: str = FLOAT32
    tensor_float_32: bool = True

    @property
    def is_mixed(self) -> bool:
        """Whether layers compute in 16 bits and keep their weights in float32."""
        return self.policy in _MIXED

    @property
    def dtype(self) -> str:
        """The dtype that layers compute in, such as ``"bfloat16"``."""
        return _MIXED.get(self.policy, self.policy)

    @property
    def line(self) -> str:
        """The line that chooses it."""
        if not self.tensor_float_32:
            return code_of(use_tf32, enabled=False)
        return code_of(use_policy, policy=self.policy)

    def build(
        self, model: Model, seed: int = 0
    ) -> "tuple[keras.Model, keras.Optimizer]":
        """A fresh network, and Adam with everything it needs.

        Let it come before the first operation, which reads the settings. All that this
        process builds later computes in this precision, too.
        """
        use_tf32(self.tensor_float_32)
        use_policy(self.policy)
        keras.utils.set_random_seed(seed)
        network, optimizer = model.build(), keras.optimizers.Adam()
        if self.policy == FLOAT16:
            # As ``compile`` does.
            optimizer = scaled(optimizer)
        optimizer.build(network.trainable_variables)
        return network, optimizer


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


_FULL = "The same, with every product in full float32."
_SCALED = "Layers but the last compute in float16; the loss is scaled."
PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(FLOAT32, "All in float32; a GPU that has TF32 uses it."),
        Precision(NO_TF32, _FULL, tensor_float_32=False),
        Precision(BFLOAT16, "Layers but the last compute in bfloat16.", BFLOAT16),
        Precision(FLOAT16, _SCALED, FLOAT16),
        Precision(FLOAT64, "Layers but the last compute in float64.", FLOAT64),
    )
}


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What decides which precision is fast; None where it is not known.

    ``gpu`` is the name of the one that computes, "" for none.
    """

    instructions: tuple[str, ...] | None = None
    gpu: str = ""
    capability: tuple[int, ...] | None = None

    @property
    def gpu_name(self) -> str:
        """The GPU with its compute capability, as in a sentence."""
        capability = ".".join(map(str, self.capability or ()))
        return f"the {self.gpu} (compute capability {capability or 'unknown'})"


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
    )


Expect = Literal["faster", "slower", "open"]
# Compute capabilities from which on a GPU has Tensor Cores, and those for the others.
_TENSOR_CORES, _TF32_AND_BFLOAT16 = (7, 0), (8, 0)
# Cards of compute capability 7.5 that were made without Tensor Cores.
_WITHOUT = "GTX 16"


@dataclass(frozen=True)
class Expectation:
    """What is expected of a precision, against the one that it changes, and why.

    It is ``"open"`` where only measuring tells.
    """

    expect: Expect
    because: str


def unavailable(precision: Precision, hardware: Hardware) -> str:
    """Say why a precision cannot be had; "" where it can."""
    if precision.name != NO_TF32:
        return ""
    if not hardware.gpu:
        return "needs an NVIDIA GPU with TF32, so compute capability 8.0 or higher"
    if (hardware.capability or _TF32_AND_BFLOAT16) >= _TF32_AND_BFLOAT16:
        return ""
    return f"equals float32, because {hardware.gpu_name} is older than TF32 (8.0)"


def expected(precision: Precision, hardware: Hardware) -> Expectation:
    """Say what to expect of a precision that can be had."""
    return Expectation(*(_on_gpu if hardware.gpu else _on_cpu)(precision, hardware))


def _on_gpu(precision: Precision, hardware: Hardware) -> tuple[Expect, str]:
    capability, gpu = hardware.capability, hardware.gpu_name
    if not precision.is_mixed:
        return _with_more_bits(precision)
    if capability is None:
        return "open", "the GPU's compute capability is not known"
    if capability < _TENSOR_CORES or _WITHOUT in hardware.gpu:
        if precision.policy == FLOAT16:
            return "open", f"{gpu} has no Tensor Cores, but fewer bytes may save time"
        return "slower", f"{gpu} has no Tensor Cores, nor units for bfloat16"
    if precision.policy == BFLOAT16 and capability < _TF32_AND_BFLOAT16:
        return "slower", f"{gpu} has Tensor Cores only for float16"
    small = "only steps too small to fill it gain nothing"
    return "faster", f"{gpu} has Tensor Cores for {precision.dtype}; {small}"


def _on_cpu(precision: Precision, hardware: Hardware) -> tuple[Expect, str]:
    if precision.policy == FLOAT16:
        return "slower", "TensorFlow trains in float16 without fast kernels on a CPU"
    if not precision.is_mixed:
        return _with_more_bits(precision)
    if hardware.instructions is None:
        return "open", "the processor's instruction sets are not known"
    if "amx_bf16" in hardware.instructions:
        return "faster", "the processor has amx_bf16, which multiplies whole tiles"
    for name in ("avx512_bf16", "bf16"):
        if name in hardware.instructions:
            cost = "its products may be faster, but converting takes time"
            return "open", f"the processor has {name} but no amx_bf16: {cost}"
    cost = "so it converts each number before it computes"
    return "slower", f"the processor has no instructions for bfloat16, {cost}"


def _with_more_bits(precision: Precision) -> tuple[Expect, str]:
    if precision.name == NO_TF32:
        return "slower", "float32 then runs without the Tensor Cores"
    return "slower", "each number takes twice the memory and more time to multiply"
