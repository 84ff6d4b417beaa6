"""What each part of the machine is given to do, the GPU and the way to it last."""

import ctypes
import functools
import mmap
import platform
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfkit import units
from perfkit.engine.trial import READY, Note, Yielded, every
from perfkit.errors import RunError
from perfkit.questions.microbenchmarks import peaks
from perfkit.questions.microbenchmarks.peaks import Hardware, Peak
from perfkit.questions.shared import benchmark, cache, decoding, images, tf
from perfkit.questions.shared.benchmark import (
    forget,
    on_one_core,
    repeated,
    without_gpus,
)
from perfkit.questions.shared.images import HEIGHT, WIDTH, Images, look_at, recall
from perfkit.questions.shared.loops import wait

# What the verdict and the checks ask for by name.
BASELINE, NUMPY_ONE = "NumPy product, float32", "NumPy product, 1 core"
TENSORFLOW, TENSORFLOW_ONE = "TensorFlow product, float32", "TensorFlow product, 1 core"
ALL_CORES, ONE_CORE = JPEGS = "JPEG decode", "JPEG decode, 1 core"
DATA_DISK, GRAPH_CALL = "data disk", "graph call"
# How the files of a disk were read, added to its description once that is known.
COLD = "from the disk: memory had forgotten it"
CACHED = "maybe from memory: it does not forget here"


@dataclass(frozen=True)
class Benchmark:
    """One piece of work of a known size, which a fresh process does.

    Its examples are ``unit``. The peak is the most that is possible in theory; None
    where nobody knows.
    """

    group: str
    name: str
    unit: str
    description: str
    work: Callable[[], Iterator[Yielded]]
    peak: Callable[[Hardware], Peak | None] = lambda hardware: None
    tensorflow: bool = False
    one_core: bool = False


_ADDITIONS, _ROUNDS = 64, 20_000
_TRIES = 40
# add rax, rax
_ADD = bytes.fromhex("4801c0")
# dec rdi; then a jump back, if that is not 0, by so many bytes; ret
_CLOCK_COUNT, _JUMP, _RETURN = bytes.fromhex("48ffcf"), bytes.fromhex("0f85"), b"\xc3"


def hertz() -> float | None:
    """The highest clock of some tries, in hertz; None where it cannot be counted."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    # The chain of additions as a function of how often to run it.
    body = _ADD * _ADDITIONS + _CLOCK_COUNT
    back = -(len(body) + len(_JUMP) + 4)
    code = body + _JUMP + back.to_bytes(4, "little", signed=True) + _RETURN
    try:
        rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=rights)
    except (OSError, AttributeError):
        # Some systems let no memory be written and run.
        return None
    memory.write(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    chain, seconds = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(start), list[float]()
    for _ in range(_TRIES):
        began = time.perf_counter()
        chain(_ROUNDS)
        seconds.append(time.perf_counter() - began)
    return _ADDITIONS * _ROUNDS / min(seconds)


def graph_call() -> Iterator[Yielded]:
    """Call a function that adds two numbers."""
    without_gpus()
    one = tf.constant(1.0)
    add = tf.function(lambda number: tf.add(number, one))
    yield from repeated(lambda: add(one), 1)


_IMAGES_COUNT, _SIDE = 32, 224


def make() -> Generator[Note, None, Images]:
    """Draw the photographs on first use, and check them."""
    folder = yield from images.image_folder(_IMAGES_COUNT)
    return (yield from look_at(folder, count=_IMAGES_COUNT, side=_SIDE))


def decode(*, one_core: bool) -> Iterator[Yielded]:
    """Decode them from memory, on one core or on all."""
    if one_core:
        on_one_core()
    folder = cache.folder() / images.folder_name(_IMAGES_COUNT)
    yield from decoding.limit(recall(folder, count=_IMAGES_COUNT, side=_SIDE))


def flop(rows: int) -> int:
    """Multiplications and additions in the product of two square matrices."""
    return 2 * rows**3


def product(*, numpy: bool, one_core: bool) -> Iterator[Yielded]:
    """Multiply two matrices on the CPU, over and over."""
    if one_core:
        on_one_core()
    # Rows of a square that keeps all cores busy for some milliseconds.
    rows = 4096 if not one_core and benchmark.granted() > 16 else 1024
    if numpy:
        draw = np.random.default_rng(0)
        one, other = draw.random((2, rows, rows)).astype("float32")
        call = functools.partial(np.matmul, one, other, out=np.empty_like(one))
    else:
        without_gpus()
        pair = (tf.random.uniform((rows, rows)) for _ in range(2))
        call = functools.partial(tf.matmul, *pair)
    yield from repeated(call, flop(rows))


def copy() -> Iterator[Yielded]:
    """Copy one array onto another; what is read and what is written both count."""
    workers = benchmark.granted()
    # What is available changes from moment to moment, and both must be as long. They
    # are written once, so that the pages are there before anything is timed.
    size = benchmark.array_bytes()
    source, target = (np.full(size, n, np.uint8) for n in (1, 2))
    halves = (np.array_split(array, workers) for array in (target, source))
    parts = list(zip(*halves, strict=True))
    with ThreadPoolExecutor(workers) as pool:

        def copy_parts() -> None:
            # NumPy lets other threads run while it copies.
            list(pool.map(lambda part: np.copyto(*part), parts))

        yield from repeated(copy_parts, 2 * len(source))


_CHUNK = 1 << 20


def read(folder: str) -> Iterator[Yielded]:
    """Read the files from begin to end, over and over, each time forgotten before."""
    paths, buffer = benchmark.files(folder), bytearray(_CHUNK)

    def passes() -> Iterator[Any]:
        while True:
            yield forget(paths)
            for path in paths:
                with open(path, "rb", buffering=0) as file:
                    while count := file.readinto(buffer):
                        yield count

    yield READY
    yield from every(passes())


def benchmarks(folder: str) -> tuple[Benchmark, ...]:
    """All but those of a GPU; the data to read lie in ``folder``, "" for some made."""
    size = units.size(benchmark.array_bytes())
    return (
        _product(NUMPY_ONE, one_core=True, numpy=True),
        _product(BASELINE, numpy=True),
        Benchmark(
            *("memory", "memory copy", "B"),
            f"copying {size}; bytes read and written count",
            copy,
        ),
        Benchmark(
            *("disk", DATA_DISK, "B", "reading"), functools.partial(read, folder)
        ),
        _decode(ONE_CORE, one_core=True),
        _decode(ALL_CORES),
        Benchmark(
            *("TensorFlow", GRAPH_CALL, "calls"),
            "calling a tf.function that adds two numbers",
            graph_call,
            tensorflow=True,
        ),
        _product(TENSORFLOW_ONE, one_core=True),
        _product(TENSORFLOW),
    )


def _product(name: str, *, one_core: bool = False, numpy: bool = False) -> Benchmark:
    description = f"square matrices{' in NumPy' if numpy else ''}, float32, "
    return Benchmark(
        *("arrays" if numpy else "TensorFlow", name, "FLOP"),
        description + ("one core" if one_core else "all cores"),
        functools.partial(product, numpy=numpy, one_core=one_core),
        functools.partial(peaks.on_cpu, one_core=one_core),
        tensorflow=not numpy,
        one_core=one_core,
    )


def _decode(name: str, *, one_core: bool = False) -> Benchmark:
    return Benchmark(
        *("images", name, "images"),
        f"decoding JPEG files of {WIDTH} by {HEIGHT} px from memory",
        functools.partial(decode, one_core=one_core),
        tensorflow=True,
        one_core=one_core,
    )


_ROWS = 8192
_BLOCK = 1 << 30
_KINDS = ("float32", "TF32", "float16", "bfloat16")
PRODUCTS = tuple(f"GPU product, {kind}" for kind in _KINDS)
GPU_MEMORY = "GPU memory"


def gpu_memory() -> Iterator[Yielded]:
    """Write a block of the GPU's memory from another; both count."""
    with on_gpu():
        block = tf.zeros([_BLOCK // 4], tf.float32)
        add = tf.function(lambda numbers: numbers + 1.0)
        yield from repeated(lambda: add(block), 2 * _BLOCK, wait)


def product_on_gpu(kind: str) -> Iterator[Yielded]:
    """Multiply two large matrices on the GPU."""
    with on_gpu():
        tf.config.experimental.enable_tensor_float_32_execution(kind == "TF32")
        plain = "float32" if kind == "TF32" else kind
        sides = (_ROWS, _ROWS)
        one, other = (tf.cast(tf.random.uniform(sides), plain) for _ in range(2))
    yield from repeated(lambda: tf.matmul(one, other), flop(_ROWS), wait)


def on_gpu() -> Any:
    """Work on the first GPU; ``RunError`` if TensorFlow can use none."""
    if not benchmark.sees_gpu():
        raise RunError("TensorFlow cannot use a GPU here.")
    # An operation that cannot run there fails, instead of running on the CPU.
    tf.config.set_soft_device_placement(False)
    return tf.device("GPU:0")


# Large enough that starting a copy does not show.
_SIZE = 1 << 28


def transfer(source: str, target: str) -> Iterator[Yielded]:
    """Copy as TensorFlow does, between the machine's memory and the GPU."""
    with on_gpu():
        with tf.device(source):
            block = tf.zeros([_SIZE], tf.uint8)

        # Outside of a graph the first copy is kept, and no later call makes one.
        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def copy(given: tf.Tensor) -> tf.Tensor:
            with tf.device(target):
                return tf.identity(given)

        yield from repeated(lambda: copy(block), _SIZE, wait)


_benchmark = functools.partial(Benchmark, "GPU", tensorflow=True)
GPU_BENCHMARKS = (
    _benchmark(
        *(GPU_MEMORY, "B"),
        "writing a block of 1 GB from another; bytes read and written count",
        *(gpu_memory, peaks.gpu_memory),
    ),
    *(
        _benchmark(
            *(name, "FLOP"),
            f"product of two matrices of {_ROWS:,} by {_ROWS:,}, {kind}",
            functools.partial(product_on_gpu, kind),
            functools.partial(peaks.on_gpu, kind=kind),
        )
        for name, kind in zip(PRODUCTS, _KINDS, strict=True)
    ),
    _benchmark(
        *("to the GPU", "B"),
        f"copying {_SIZE >> 20} MB from ordinary memory",
        *(functools.partial(transfer, "CPU:0", "GPU:0"), peaks.link),
    ),
    # On the way back TensorFlow takes pinned memory of its own: 47 GB/s on an H200.
    _benchmark(
        *("from the GPU", "B"),
        f"copying {_SIZE >> 20} MB to memory of TensorFlow's choice",
        *(functools.partial(transfer, "GPU:0", "CPU:0"), peaks.link),
    ),
)
