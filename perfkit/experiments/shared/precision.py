"""The precisions that are compared, and the lesser machines that can be imitated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import keras

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
