"""What each part of the machine is given to do."""

import contextlib
import ctypes
import functools
import importlib.util
import mmap
import platform
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from perfkit.engine.tick import Note, Yielded
from perfkit.errors import RunError
from perfkit.questions.shared import cache, decoding, images, peaks
from perfkit.questions.shared.benchmark import (
    Benchmark,
    on_one_core,
    repeated,
    without_gpus,
)
from perfkit.questions.shared.benchmark_gpu import on_gpu, syncing
from perfkit.questions.shared.images import HEIGHT, WIDTH, Images, look_at, recall
from perfkit.questions.shared.later import tf

_ADDITIONS, _ROUNDS = 64, 20_000
_TRIES = 40
# add rax, rax
_ADD = bytes.fromhex("4801c0")
# dec rdi; then a jump back, if that is not 0, by so many bytes; ret
_CLOCK_COUNT, _JUMP, _RETURN = bytes.fromhex("48ffcf"), bytes.fromhex("0f85"), b"\xc3"


def hertz() -> float | None:
    """The highest clock of some tries, in hertz; None where it cannot be counted."""
    code = _code()
    if code is None:
        return None
    try:
        rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=rights)
    except (OSError, AttributeError):
        # Some systems let no memory be written and run.
        return None
    memory.write(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    chain = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(start)
    return max(_speed(chain) for _ in range(_TRIES))


def _code() -> bytes | None:
    """The chain as a function of how often to run it; None for other processors."""
    # Windows hands arguments over in another register.
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() == "Windows":
        return None
    body = _ADD * _ADDITIONS + _CLOCK_COUNT
    back = -(len(body) + len(_JUMP) + 4)
    return body + _JUMP + back.to_bytes(4, "little", signed=True) + _RETURN


def _speed(chain: "ctypes._FuncPointer") -> float:
    began = time.perf_counter()
    chain(_ROUNDS)
    return _ADDITIONS * _ROUNDS / (time.perf_counter() - began)


_OPERATIONS = 1000


def eager() -> Iterator[Yielded]:
    """Add two numbers, an operation at a time."""
    # What is timed is so short that looking up a name of ``later`` would show.
    import tensorflow as tf

    without_gpus()
    one = tf.constant(1.0)
    yield from repeated(lambda: tf.add(one, one), 1)


def graph_call() -> Iterator[Yielded]:
    """Call a function that adds two numbers."""
    without_gpus()
    one = tf.constant(1.0)
    add = tf.function(lambda number: tf.add(number, one))
    yield from repeated(lambda: add(one), 1)


def in_a_graph() -> Iterator[Yielded]:
    """Run a graph of a thousand additions, each waiting for the one before."""
    without_gpus()
    # It would make one operation of all of them.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    one = tf.constant(1.0)

    def chain(number: "tf.Tensor") -> "tf.Tensor":
        for _ in range(_OPERATIONS):
            number = tf.add(number, one)
        return number

    graph = tf.function(chain, autograph=False)
    yield from repeated(lambda: graph(one), _OPERATIONS)


GRAPH_CALL = "graph call"
DISPATCH = tuple(
    Benchmark("TensorFlow", name, "calls", description, work, tensorflow=True)
    for name, description, work in (
        ("eager operation", "adding two numbers, called from Python", eager),
        (GRAPH_CALL, "calling a tf.function that adds two numbers", graph_call),
        ("operation in a graph", "additions in a graph, one by one", in_a_graph),
    )
)


_SOURCE, _IMAGES_COUNT, _SIDE = "photographs", 32, 224


def make() -> Generator[Note, None, Images]:
    """Draw the photographs on first use, and check them."""
    folder = yield from images.image_folder(_SOURCE, _IMAGES_COUNT)
    return (yield from look_at(folder, count=_IMAGES_COUNT, side=_SIDE))


def decode(*, one_core: bool) -> Iterator[Yielded]:
    """Decode them from memory, a process for each core."""
    if one_core:
        on_one_core()
    folder = cache.folder() / images.folder_name(_SOURCE, _IMAGES_COUNT)
    yield from decoding.limit(recall(folder, count=_IMAGES_COUNT, side=_SIDE))


ONE_CORE, ALL_CORES = "JPEG decode, 1 core", "JPEG decode"
NAMES = (ONE_CORE, ALL_CORES)
_WHAT = f"decoding JPEG files of {WIDTH} by {HEIGHT} px from memory"
IMAGES = tuple(
    Benchmark(
        *("images", name, "images", _WHAT),
        functools.partial(decode, one_core=one_core),
        tensorflow=True,
        one_core=one_core,
        sources=(decoding.with_tensorflow,),
    )
    for name, one_core in ((ONE_CORE, True), (ALL_CORES, False))
)


_STEPS = 10_000
_ELEMENTS = 100_000


def loop() -> Iterator[Yielded]:
    """Add numbers up in a loop of Python."""
    yield from repeated(_add_up, _STEPS)


def element_loop() -> Iterator[Yielded]:
    """Square and add the elements of an array in a loop of Python."""
    array = np.linspace(0, 1, _ELEMENTS // 10, dtype="float32")

    def call() -> float:
        total = 0.0
        for value in array:
            total += value * value
        return total

    yield from repeated(call, len(array))


def vectorised() -> Iterator[Yielded]:
    """Square and add the same elements in one call."""
    array = np.linspace(0, 1, _ELEMENTS, dtype="float32")
    squares = np.empty_like(array)

    def call() -> object:
        return np.multiply(array, array, out=squares).sum()

    yield from repeated(call, len(array))


def _add_up() -> int:
    total = 0
    for number in range(_STEPS):
        total += number
    return total


_ADDING = "adding up integers, one step at a time"
_SQUARING = "squaring and adding float32 in"
INTERPRETER = (
    Benchmark("interpreter", "Python loop", "steps", _ADDING, loop, sources=(_add_up,)),
)
ARRAYS = tuple(
    Benchmark("arrays", name, "elements", f"{_SQUARING} {manner}", work)
    for name, manner, work in (
        ("loop over an array", "Python", element_loop),
        ("the same in NumPy", "two calls", vectorised),
    )
)


_BATCH = 1000
_WITHOUT_END = 10**15


def map_elements() -> Iterator[Yielded]:
    """Take batches of numbers to each of which a map adds one."""
    without_gpus()
    options = tf.data.Options()
    # The default rewrites would map all numbers of a batch at once.
    options.experimental_optimization.apply_default_optimizations = False
    numbers = tf.data.Dataset.range(_WITHOUT_END).map(lambda number: number + 1)
    batches = iter(numbers.batch(_BATCH).with_options(options))
    yield from repeated(lambda: next(batches), _BATCH)


_MAPPING = "a map that adds 1, number by number"
PIPELINE = (
    Benchmark(
        *("pipeline", "tf.data map", "elements", _MAPPING),
        map_elements,
        tensorflow=True,
    ),
)


# Large enough that starting a copy does not show.
_SIZE = 1 << 28
# From CUDA's cudaMemcpyKind.
_TO_GPU, _FROM_GPU = 1, 2


def pageable(*, to_gpu: bool) -> Iterator[Yielded]:
    """Copy as TensorFlow does, between ordinary memory and the GPU."""
    with on_gpu():
        yield from repeated(_with_tensorflow(_SIZE, to_gpu), _SIZE, syncing())


def pinned(*, to_gpu: bool) -> Iterator[Yielded]:
    """Copy between pinned memory and the GPU.

    Raises:
        RunError: CUDA's library is missing, or refuses.
    """
    cuda = _cuda()
    copy = _with_cuda(cuda, _SIZE, to_gpu)
    yield from repeated(copy, _SIZE, lambda: _ask(cuda.cudaDeviceSynchronize))


def _with_tensorflow(size: int, to_gpu: bool) -> Callable[[], object]:
    places = ("CPU:0", "GPU:0") if to_gpu else ("GPU:0", "CPU:0")
    with tf.device(places[0]):
        block = tf.zeros([size], tf.uint8)
    return _copied(block, places[1])


def _copied(block: Any, place: str) -> Callable[[], object]:
    # Outside of a graph the first copy is kept, and no later call makes one.
    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def copy(given: tf.Tensor) -> tf.Tensor:
        with tf.device(place):
            return tf.identity(given)

    return lambda: copy(block)


def _with_cuda(cuda: Any, size: int, to_gpu: bool) -> Callable[[], object]:
    host, device = ctypes.c_void_p(), ctypes.c_void_p()
    _ask(cuda.cudaMallocHost, ctypes.byref(host), ctypes.c_size_t(size))
    _ask(cuda.cudaMalloc, ctypes.byref(device), ctypes.c_size_t(size))
    target, source = (device, host) if to_gpu else (host, device)
    kind = _TO_GPU if to_gpu else _FROM_GPU
    return lambda: _ask(
        cuda.cudaMemcpy, target, source, ctypes.c_size_t(size), ctypes.c_int(kind)
    )


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


def _benchmark(name: str, *, to_gpu: bool, is_pinned: bool) -> Benchmark:
    # On the way back TensorFlow takes pinned memory of its own: 47 GB/s on an H200.
    kind = "ordinary memory" if to_gpu else "memory of TensorFlow's choice"
    memory = "pinned memory, by CUDA itself" if is_pinned else kind
    return Benchmark(
        *("GPU", name, "B"),
        f"copying {_SIZE >> 20} MB {'from' if to_gpu else 'to'} {memory}",
        functools.partial(pinned if is_pinned else pageable, to_gpu=to_gpu),
        peaks.link,
        tensorflow=True,
        sources=(_with_cuda if is_pinned else _copied,),
    )


TRANSFERS = tuple(
    _benchmark(f"{way} the GPU{pin}", to_gpu=way == "to", is_pinned=bool(pin))
    for way in ("to", "from")
    for pin in ("", ", pinned")
)
PINNED = ("to the GPU, pinned", "from the GPU, pinned")
