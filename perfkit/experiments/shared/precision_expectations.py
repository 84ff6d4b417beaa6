"""What is to be expected of a precision on a machine, and which cannot be had there.

It is said before anything runs, from what the hardware has. Where the hardware does not
decide it, that is said too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfkit.experiments.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT64,
    INSTRUCTIONS,
    NO_TF32,
)

if TYPE_CHECKING:
    from perfkit.experiments.shared.precision import Precision
    from perfkit.experiments.shared.precision_hardware import Capability, Hardware

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
