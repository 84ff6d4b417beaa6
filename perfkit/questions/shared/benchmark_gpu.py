"""How fast is the GPU, its memory, and the start of work on it?"""

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, cast

from perfkit.engine.tick import READY, Note, Yielded
from perfkit.errors import RunError
from perfkit.machine.nvml import GpuReader, gpus_here
from perfkit.machine.record import computing
from perfkit.questions.shared import benchmark, peaks
from perfkit.questions.shared.benchmark import Benchmark, repeated
from perfkit.questions.shared.later import tf

_ROWS = 8192
_MEMORY = 1 << 30
_IMAGES = 256
_HEAT_S = 20.0
_KINDS = ("float32", "TF32", "float16", "bfloat16")
PRODUCTS = tuple(f"GPU product, {kind}" for kind in _KINDS)
MEMORY, CLOCK = "GPU memory", "GPU clock under load"


def sees_one() -> bool:
    """Whether TensorFlow can use a GPU in this process."""
    return bool(tf.config.list_physical_devices("GPU"))


def launch() -> Iterator[Yielded]:
    """Add two numbers on the GPU and wait for it, one after another."""
    # What is timed is so short that looking up a name of ``later`` would show.
    import tensorflow as tf

    with on_gpu():
        one = tf.constant(1.0)
        yield from repeated(lambda: tf.add(one, one).numpy(), 1)


def memory() -> Iterator[Yielded]:
    """Write a block of the GPU's memory from another; both count."""
    with on_gpu():
        block = tf.zeros([_MEMORY // 4], tf.float32)
        add = tf.function(lambda numbers: numbers + 1.0)
        yield from repeated(lambda: add(block), 2 * _MEMORY, syncing())


def product(kind: str) -> Iterator[Yielded]:
    """Multiply two large matrices on the GPU."""
    yield from repeated(_product(kind), benchmark.flop(_ROWS), syncing())


def convolution(kind: str) -> Iterator[Yielded]:
    """Convolve a large batch on the GPU, forward only."""
    with on_gpu():
        layer = benchmark.layer(kind, _IMAGES)
        call = functools.partial(tf.nn.conv2d, *layer, 1, "SAME")
        yield from repeated(call, benchmark.convolution_flop(_IMAGES), syncing())


def heated() -> Iterator[Yielded]:
    """Multiply for 20 s, then count the ticks of the GPU's clock while it goes on.

    Raises:
        RunError: The driver does not tell the clock, or which of several it is.
    """
    call, sync, reader = _product("float16"), syncing(), GpuReader()
    number, _ = computing(gpus_here()[0], os.environ)
    if number is None:
        raise RunError(
            "perfkit cannot tell which GPU computes: set CUDA_DEVICE_ORDER=PCI_BUS_ID, "
            "and give CUDA_VISIBLE_DEVICES numbers, if you set it."
        )
    began = time.perf_counter()
    while (spent := time.perf_counter() - began) < _HEAT_S:
        call()
        sync()
        # A sign of life: nobody waits long for a process that gives none.
        yield Note("heated for", round(spent, 1))
    yield READY
    while True:
        before = time.perf_counter()
        while time.perf_counter() - before < 0.1:
            call()
            sync()
        clock = reader.sample().get(f"gpu{number}_sm_clock")
        if clock is None:
            raise RunError("The driver does not report the clock of this GPU.")
        yield round(clock * (time.perf_counter() - before))


def _product(kind: str) -> Callable[[], object]:
    with on_gpu():
        tf.config.experimental.enable_tensor_float_32_execution(kind == "TF32")
        plain = "float32" if kind == "TF32" else kind
        sides = (_ROWS, _ROWS)
        one, other = (tf.cast(tf.random.uniform(sides), plain) for _ in range(2))
    return lambda: tf.matmul(one, other)


def on_gpu() -> AbstractContextManager[Any]:
    """Work on the first GPU.

    Raises:
        RunError: TensorFlow can use none.
    """
    if not sees_one():
        raise RunError("TensorFlow cannot use a GPU here.")
    # An operation that cannot run there fails, instead of running on the CPU.
    tf.config.set_soft_device_placement(False)
    return cast("AbstractContextManager[Any]", tf.device("GPU:0"))


def syncing() -> Callable[[], object]:
    """Give what waits until the GPU has finished."""
    return cast("Callable[[], object]", tf.test.experimental.sync_devices)


_benchmark = functools.partial(Benchmark, "GPU", tensorflow=True)
BENCHMARKS = (
    _benchmark(
        "GPU launch", "calls", "adding two numbers and reading the result", launch
    ),
    _benchmark(
        *(MEMORY, "B"),
        "writing a block of 1 GB from another; bytes read and written count",
        *(memory, peaks.gpu_memory),
    ),
    *(
        _benchmark(
            *(name, "FLOP"),
            f"product of two matrices of {_ROWS:,} by {_ROWS:,}, {kind}",
            functools.partial(product, kind),
            functools.partial(peaks.on_gpu, kind=kind),
            sources=(functools.partial(_product, kind),),
        )
        for name, kind in zip(PRODUCTS, _KINDS, strict=True)
    ),
    *(
        _benchmark(
            *(f"GPU convolution, {kind}", "FLOP"),
            f"{_IMAGES} images of 56×56×64, 3×3 filters, {kind}",
            functools.partial(convolution, kind),
            functools.partial(peaks.on_gpu, kind="TF32" if kind == "float32" else kind),
        )
        for kind in ("float32", "float16")
    ),
)
HEAT = (
    _benchmark(
        *(CLOCK, "Hz"),
        "the clock of the multiprocessors after 20 s of float16 products",
        *(heated, peaks.gpu_clock),
        sources=(functools.partial(_product, "float16"),),
    ),
)
