"""What the GPU, its memory and the way to it are given to do."""

import contextlib
import ctypes
import functools
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from perfkit.engine.tick import Yielded
from perfkit.errors import RunError
from perfkit.questions.microbenchmarks import peaks, work
from perfkit.questions.microbenchmarks.work import Benchmark
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.benchmark import repeated
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.loops import wait

_ROWS = 8192
_MEMORY = 1 << 30
_KINDS = ("float32", "TF32", "float16", "bfloat16")
PRODUCTS = tuple(f"GPU product, {kind}" for kind in _KINDS)
MEMORY = "GPU memory"


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
        yield from repeated(lambda: add(block), 2 * _MEMORY, wait)


def product(kind: str) -> Iterator[Yielded]:
    """Multiply two large matrices on the GPU."""
    with on_gpu():
        tf.config.experimental.enable_tensor_float_32_execution(kind == "TF32")
        plain = "float32" if kind == "TF32" else kind
        sides = (_ROWS, _ROWS)
        one, other = (tf.cast(tf.random.uniform(sides), plain) for _ in range(2))
    yield from repeated(lambda: tf.matmul(one, other), work.flop(_ROWS), wait)


def on_gpu() -> AbstractContextManager[Any]:
    """Work on the first GPU; ``RunError`` if TensorFlow can use none."""
    if not benchmark.sees_gpu():
        raise RunError("TensorFlow cannot use a GPU here.")
    # An operation that cannot run there fails, instead of running on the CPU.
    tf.config.set_soft_device_placement(False)
    return cast("AbstractContextManager[Any]", tf.device("GPU:0"))


# Large enough that starting a copy does not show.
_SIZE = 1 << 28
# From CUDA's cudaMemcpyKind.
_TO_GPU, _FROM_GPU = 1, 2


def pageable(*, to_gpu: bool) -> Iterator[Yielded]:
    """Copy as TensorFlow does, between ordinary memory and the GPU."""
    source, target = ("CPU:0", "GPU:0") if to_gpu else ("GPU:0", "CPU:0")
    with on_gpu():
        with tf.device(source):
            block = tf.zeros([_SIZE], tf.uint8)

        # Outside of a graph the first copy is kept, and no later call makes one.
        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def copy(given: tf.Tensor) -> tf.Tensor:
            with tf.device(target):
                return tf.identity(given)

        yield from repeated(lambda: copy(block), _SIZE, wait)


def pinned(*, to_gpu: bool) -> Iterator[Yielded]:
    """Copy between pinned memory and the GPU, by CUDA itself."""
    cuda, size = _cuda(), ctypes.c_size_t(_SIZE)
    host, device = ctypes.c_void_p(), ctypes.c_void_p()
    _ask(cuda.cudaMallocHost, ctypes.byref(host), size)
    _ask(cuda.cudaMalloc, ctypes.byref(device), size)
    target, source = (device, host) if to_gpu else (host, device)
    kind = ctypes.c_int(_TO_GPU if to_gpu else _FROM_GPU)
    copy = functools.partial(_ask, cuda.cudaMemcpy, target, source, size, kind)
    yield from repeated(copy, _SIZE, lambda: _ask(cuda.cudaDeviceSynchronize))


def _ask(call: Callable[..., int], *arguments: Any) -> None:
    code = call(*arguments)
    if code:
        raise RunError(f"CUDA refused to copy to the GPU (its error {code}).")


def _cuda() -> ctypes.CDLL:
    """CUDA's runtime library: from its package, or where the system has it."""
    package = importlib.util.find_spec("nvidia")
    folders = list(package.submodule_search_locations or ()) if package else []
    places = (Path(f) / "cuda_runtime/lib" for f in folders)
    packaged = [str(p) for place in places for p in place.glob("libcudart.so*")]
    for name in (*packaged, "libcudart.so.12", "libcudart.so"):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise RunError(
        "CUDA's runtime library is not here; install it with "
        "`pip install tensorflow[and-cuda]`."
    )


_benchmark = functools.partial(Benchmark, "GPU", tensorflow=True)


def _transfer(name: str, *, to_gpu: bool, is_pinned: bool) -> Benchmark:
    # On the way back TensorFlow takes pinned memory of its own: 47 GB/s on an H200.
    kind = "ordinary memory" if to_gpu else "memory of TensorFlow's choice"
    memory = "pinned memory, by CUDA itself" if is_pinned else kind
    return _benchmark(
        *(name, "B"),
        f"copying {_SIZE >> 20} MB {'from' if to_gpu else 'to'} {memory}",
        functools.partial(pinned if is_pinned else pageable, to_gpu=to_gpu),
        peaks.link,
    )


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
        )
        for name, kind in zip(PRODUCTS, _KINDS, strict=True)
    ),
    *(
        _transfer(f"{way} the GPU{pin}", to_gpu=way == "to", is_pinned=bool(pin))
        for way in ("to", "from")
        for pin in ("", ", pinned")
    ),
)
PINNED = ("to the GPU, pinned", "from the GPU, pinned")
