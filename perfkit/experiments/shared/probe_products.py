"""How fast are matrices multiplied? The work that processors and GPUs are built for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.experiments.shared import peaks
from perfkit.experiments.shared.probe import (
    Probe,
    on_one_core,
    repeated,
    side,
    without_gpus,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.tick import Yielded

BASELINE = "NumPy product, float32"
NUMPY_ONE = "NumPy product, 1 core"
TENSORFLOW = "TensorFlow product, float32"
TENSORFLOW_ONE = "TensorFlow product, 1 core"
BFLOAT16 = "TensorFlow product, bfloat16"


def flop(rows: int) -> int:
    """Multiplications and additions in the product of two square matrices."""
    return 2 * rows**3


def numpy_product(bits: int, *, one_core: bool = False) -> Iterator[Yielded]:
    """Multiply two matrices of NumPy, over and over."""
    import numpy as np

    if one_core:
        on_one_core()
    rows = 1024 if one_core else side(bits)
    draw = np.random.default_rng(0)
    one, other = draw.random((2, rows, rows)).astype(f"float{bits}")
    result = np.empty_like(one)
    yield from repeated(lambda: np.matmul(one, other, out=result), flop(rows))


def tensorflow_product(kind: str, *, one_core: bool = False) -> Iterator[Yielded]:
    """Multiply two matrices of TensorFlow on the CPU, over and over."""
    import tensorflow as tf

    if one_core:
        on_one_core()
    without_gpus()
    rows = 1024 if one_core else side()
    one, other = (tf.cast(tf.random.uniform((rows, rows)), kind) for _ in range(2))
    yield from repeated(lambda: tf.matmul(one, other), flop(rows))


def _numpy(name: str, bits: int, *, one_core: bool) -> Probe:
    where = "one core" if one_core else "all cores"
    return Probe(
        name=name,
        group="arrays",
        unit="FLOP",
        what=f"square matrices in NumPy, float{bits}, {where}",
        work=functools.partial(numpy_product, bits, one_core=one_core),
        peak=functools.partial(peaks.arithmetic, bits=bits, one_core=one_core),
        one_core=one_core,
    )


def _tensorflow(name: str, kind: str, *, one_core: bool = False) -> Probe:
    where = "one core" if one_core else "all cores"
    return Probe(
        name=name,
        group="TensorFlow",
        unit="FLOP",
        what=f"square matrices, {kind}, {where}",
        work=functools.partial(tensorflow_product, kind, one_core=one_core),
        peak=functools.partial(peaks.of_kind, kind=kind, one_core=one_core),
        tensorflow=True,
        one_core=one_core,
    )


NUMPY = (
    _numpy(NUMPY_ONE, 32, one_core=True),
    _numpy(BASELINE, 32, one_core=False),
    _numpy("NumPy float64, 1 core", 64, one_core=True),
    _numpy("NumPy product, float64", 64, one_core=False),
)
CPU = (
    _tensorflow(TENSORFLOW_ONE, "float32", one_core=True),
    _tensorflow(TENSORFLOW, "float32"),
    _tensorflow(BFLOAT16, "bfloat16"),
    _tensorflow("TensorFlow product, float16", "float16"),
)
