"""What every microbenchmark is, and how it repeats its work until a tick is long."""

import contextlib
import ctypes
import functools
import itertools
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfkit import units
from perfkit.engine.tick import READY, TICK_S, Note, Pause, Yielded, every
from perfkit.errors import RunError
from perfkit.machine import limits
from perfkit.machine.collect import bytes_fetched, drop_cached_file
from perfkit.machine.limits import free_bytes, text_of
from perfkit.questions.shared import cache, peaks
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.peaks import Hardware, Peak


def granted() -> int:
    """Whole cores this process may use, at least 1; affinity and quota considered."""
    return max(1, round(limits.cores_granted(Path("/"), os.cpu_count() or 1)))


# What libraries of linear algebra call the function that sets their threads.
_SET_THREADS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
    "MKL_Set_Num_Threads",
)
_MOST_CALLS = 1 << 24


@dataclass(frozen=True)
class Benchmark:
    """One piece of work of a known size.

    Attributes:
        group: The part of the machine that it tries.
        name: Of the microbenchmark that it is.
        unit: What is counted.
        description: What is done, in a line.
        work: Does it, in a fresh process; its examples are ``unit``.
        peak: The most that is possible in theory; None where nobody knows.
        tensorflow: Whether it needs TensorFlow.
        one_core: Whether it keeps to one core.
        sources: The functions whose lines a reader is shown; none for ``work`` itself.
    """

    group: str
    name: str
    unit: str
    description: str
    work: Callable[[], Iterator[Yielded]]
    peak: Callable[[Hardware], Peak | None] = lambda hardware: None
    tensorflow: bool = False
    one_core: bool = False
    sources: tuple[Callable[..., Any], ...] = ()

    @property
    def code(self) -> str:
        """Its lines, as a reader types them."""
        alone = (bind,) if self.one_core else ()
        return code_of(*alone, *self.sources or (self.work,))


def repeated(
    call: Callable[[], object],
    examples: int,
    sync: Callable[[], object] = lambda: None,
) -> Iterator[Yielded]:
    """Call without an end; as many calls make a tick as take long enough together.

    Args:
        call: Does the work; called at least twice before it is ready.
        examples: What one call counts.
        sync: Waits for the device, once a tick.
    """
    count = calls_of_a_tick(call, sync)
    yield READY
    while True:
        for _ in range(count):
            call()
        sync()
        yield count * examples


def calls_of_a_tick(call: Callable[[], object], sync: Callable[[], object]) -> int:
    """How many calls take as long as a tick together, found by making some."""
    call()
    sync()
    count = 1
    while count < _MOST_CALLS:
        began = time.perf_counter()
        for _ in range(count):
            call()
        sync()
        spent = time.perf_counter() - began
        if spent >= TICK_S / 4:
            return max(1, round(count * TICK_S / spent))
        count *= 2
    return count


def on_one_core() -> None:
    """Keep this process to one core, before any library has started its threads."""
    if can_keep_to_one_core():
        bind()
    # It counted the cores when the launcher loaded it; two threads on one core wait
    # for each other.
    loaded = text_of(Path("/proc/self/maps"))
    for path in dict.fromkeys(re.findall(r"/\S*(?:openblas|mkl_rt)\S*", loaded)):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(path)
            for name in _SET_THREADS:
                with contextlib.suppress(AttributeError):
                    getattr(library, name)(ctypes.c_int(1))


def bind() -> None:
    """Keep this process to the last of its cores."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def can_keep_to_one_core() -> bool:
    """Whether this system lets a process choose its cores."""
    return hasattr(os, "sched_setaffinity")


def without_gpus() -> None:
    """Let TensorFlow of this process see no GPU.

    Preparing needs none, and one that it takes is missed by a trial.
    """
    tf.config.set_visible_devices([], "GPU")


def side(kind: str = "float32") -> int:
    """Rows of a square matrix that keeps all cores busy for some milliseconds."""
    wide = granted() > 16
    return (2048 if wide else 1024) * (2 if wide and kind != "float64" else 1)


_CHUNK = 1 << 20
_OWN = 256 * _CHUNK
_FOLDER, _FILE = "to-read-256", "random.bin"
# Names that are looked at, in a folder that may hold millions.
_LOOKED_AT = 20_000
_SMALLEST = 4096
_SAMPLE = 4 * _CHUNK
NAME = "data disk"
FORGETTING = "making the system forget the files"
COLD = "from the disk: memory had forgotten it"
CACHED = "maybe from memory: it does not forget here"


def files(folder: str) -> tuple[str, ...]:
    """The files to read: the largest of a folder, or one that ``made`` wrote."""
    if not folder:
        return (str(cache.folder() / _FOLDER / _FILE),)
    largest = sorted(_looked_at(Path(folder).expanduser()), reverse=True)
    before = itertools.accumulate((size for size, _ in largest), initial=0)
    pairs = zip(largest, before, strict=False)
    return tuple(path for (_, path), size in pairs if size < _OWN)


def make(folder: str) -> Generator[Note, None, tuple[str, ...]]:
    """Write a file of random bytes where no folder is given; give what to read.

    Raises:
        MissingPartError: There is no room for it.
        RunError: The folder holds nothing that is worth reading.
    """
    if not folder:
        write = functools.partial(write_noise, name=_FILE, size=_OWN)
        yield from cache.make(_FOLDER, write, size=_OWN, label="a file to read")
    if paths := files(folder):
        return paths
    raise RunError(
        "The folder holds no readable file of 4 KB or more; give the folder of your "
        "data, or none to read a generated file."
    )


# Of a file that was read from the disk; what lies in it as a hole is not fetched.
_FETCHED = 0.9


def forgets(paths: Sequence[str]) -> bool:
    """Whether the system can be made to forget these files."""
    before = bytes_fetched()
    if before is None or not drop_cached_file(paths[0]):
        return False
    with open(paths[0], "rb", buffering=0) as file:
        count = file.readinto(bytearray(_SAMPLE))
    return (bytes_fetched() or 0) - before >= _FETCHED * (count or 0)


def read(folder: str) -> Iterator[Yielded]:
    """Read the files from begin to end, over and over, each time forgotten before."""
    passes = _passes(files(folder))
    yield READY
    yield from every(passes)


def benchmark(folder: str) -> Benchmark:
    """Reading the data; whether it is cold is added to the description once known."""
    work = functools.partial(read, folder)
    return Benchmark("disk", NAME, "B", "reading", work, sources=(_passes,))


def _passes(paths: Sequence[str]) -> Iterator[Any]:
    buffer = bytearray(_CHUNK)
    while True:
        for path in paths:
            drop_cached_file(path)
        yield Pause(FORGETTING)
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                count = file.readinto(buffer)
                while count:
                    yield count
                    count = file.readinto(buffer)


def forget(paths: Iterable[str]) -> Pause:
    """Ask the system to forget these files; gives the pause that this was."""
    for path in paths:
        drop_cached_file(path)
    return Pause(FORGETTING)


def bytes_from_disk() -> int | None:
    """Bytes that disks have given to this process; None where nobody counts."""
    return limits.amounts_of(Path("/proc/self/io")).get("read_bytes")


def _looked_at(folder: Path) -> Iterator[tuple[int, str]]:
    """Size and path of each file that is worth reading."""
    paths = (os.path.join(p, name) for p, _, names in os.walk(folder) for name in names)
    for path in itertools.islice(paths, _LOOKED_AT):
        if os.path.isfile(path) and os.access(path, os.R_OK):
            size = os.path.getsize(path)
            if size >= _SMALLEST:
                yield size, path


def write_noise(folder: Path, *, name: str, size: int) -> Iterator[Note]:
    """Write a file of random bytes, which no file system can make smaller."""
    yield Note("progress", f"Writing {units.size(size)} to read from the disk")
    with open(folder / name, "wb") as file:
        for start in range(0, size, _CHUNK):
            file.write(secrets.token_bytes(min(_CHUNK, size - start)))
        file.flush()
        os.fsync(file.fileno())


_LEAST, _FACTOR = 128_000_000, 4
# Two arrays, of the memory that is free, so that nothing is driven out of it.
_SHARE = 16


def array_bytes(root: Path = Path("/")) -> int:
    """Bytes of an array that is far larger than the caches, if memory allows it."""
    folder = root / "sys/devices/system/cpu/cpu0/cache"
    texts = [text_of(path) for path in folder.glob("index*/size")]
    caches = (re.fullmatch(r"(\d+)K", text) for text in texts)
    largest = max((1024 * int(size[1]) for size in caches if size), default=0)
    length = max(_LEAST, _FACTOR * largest)
    return min(length, free_bytes() // _SHARE) // 64 * 64


def copy(*, one_core: bool) -> Iterator[Yielded]:
    """Copy one array onto another; what is read and what is written both count."""
    if one_core:
        on_one_core()
    workers = 1 if one_core else granted()
    # What is available changes from moment to moment, and both must be as long. They
    # are written once, so that the pages are there before anything is timed.
    size = array_bytes()
    source, target = (np.full(size, n, np.uint8) for n in (1, 2))
    halves = (np.array_split(array, workers) for array in (target, source))
    parts = list(zip(*halves, strict=True))
    with ThreadPoolExecutor(workers) as pool:
        call = _copying(*parts[0]) if one_core else copying_parts(pool, parts)
        yield from repeated(call, 2 * len(source))


def _copying(target: Any, source: Any) -> Callable[[], None]:
    return lambda: np.copyto(target, source)


def copying_parts(pool: Any, parts: Any) -> Callable[[], None]:
    """Make what copies one array onto another, a part on each core."""

    def copy() -> None:
        # NumPy lets other threads run while it copies.
        list(pool.map(lambda part: np.copyto(*part), parts))

    return copy


def benchmarks() -> tuple[Benchmark, ...]:
    """Copying on one core, which rarely fills the memory's lanes, and on all."""
    description = f"copying {units.size(array_bytes())}; bytes read and written count"
    return tuple(
        Benchmark(
            *(
                "memory",
                "memory copy, 1 core" if one_core else "memory copy",
                "B",
                description,
            ),
            functools.partial(copy, one_core=one_core),
            one_core=one_core,
            sources=(_copying if one_core else copying_parts,),
        )
        for one_core in (True, False)
    )


BASELINE = "NumPy product, float32"
NUMPY_ONE = "NumPy product, 1 core"
TENSORFLOW = "TensorFlow product, float32"
TENSORFLOW_ONE = "TensorFlow product, 1 core"
BFLOAT16 = "TensorFlow product, bfloat16"


def flop(rows: int) -> int:
    """Multiplications and additions in the product of two square matrices."""
    return 2 * rows**3


def _of_numpy(rows: int, kind: str) -> Callable[[], object]:
    draw = np.random.default_rng(0)
    one, other = draw.random((2, rows, rows)).astype(kind)
    result = np.empty_like(one)
    return lambda: np.matmul(one, other, out=result)


def _of_tensorflow(rows: int, kind: str) -> Callable[[], object]:
    without_gpus()
    one, other = (tf.cast(tf.random.uniform((rows, rows)), kind) for _ in range(2))
    return lambda: tf.matmul(one, other)


def product(
    kind: str,
    *,
    one_core: bool = False,
    make: Callable[[int, str], Callable[[], object]] = _of_tensorflow,
) -> Iterator[Yielded]:
    """Multiply two matrices on the CPU, over and over."""
    if one_core:
        on_one_core()
    rows = 1024 if one_core else side(kind)
    yield from repeated(make(rows, kind), flop(rows))


def _product(
    name: str, kind: str, *, one_core: bool = False, numpy: bool = False
) -> Benchmark:
    description = f"square matrices{' in NumPy' if numpy else ''}, {kind}, "
    make = _of_numpy if numpy else _of_tensorflow
    return Benchmark(
        *("arrays" if numpy else "TensorFlow", name, "FLOP"),
        description + ("one core" if one_core else "all cores"),
        functools.partial(product, kind, one_core=one_core, make=make),
        functools.partial(peaks.of_kind, kind=kind, one_core=one_core),
        tensorflow=not numpy,
        one_core=one_core,
        sources=(functools.partial(make, kind=kind),),
    )


NUMPY = (
    _product(NUMPY_ONE, "float32", one_core=True, numpy=True),
    _product(BASELINE, "float32", numpy=True),
    _product("NumPy float64, 1 core", "float64", one_core=True, numpy=True),
    _product("NumPy product, float64", "float64", numpy=True),
)
PRODUCTS = (
    _product(TENSORFLOW_ONE, "float32", one_core=True),
    _product(TENSORFLOW, "float32"),
    _product(BFLOAT16, "bfloat16"),
    _product("TensorFlow product, float16", "float16"),
)


# A layer from the middle of a residual network.
_SIDE, _CHANNELS, _FILTER = 56, 64, 3
_IMAGES = 8


def convolution_flop(images: int) -> int:
    """Multiplications and additions in a convolution of so many images."""
    return 2 * images * _SIDE**2 * _CHANNELS**2 * _FILTER**2


def layer(kind: str, images: int) -> "tuple[tf.Tensor, tf.Tensor]":
    """Make a batch of images and the layer's filters, of TensorFlow's ``kind``."""
    pixels = tf.random.uniform((images, _SIDE, _SIDE, _CHANNELS))
    taps = tf.random.uniform((_FILTER, _FILTER, _CHANNELS, _CHANNELS))
    return tf.cast(pixels, kind), tf.cast(taps, kind)


def convolution(kind: str, images: int = _IMAGES) -> Iterator[Yielded]:
    """Convolve a batch on the CPU, forward only, over and over."""
    without_gpus()
    call = functools.partial(tf.nn.conv2d, *layer(kind, images), 1, "SAME")
    yield from repeated(call, convolution_flop(images))


_LAYER = f"{_IMAGES} images of {_SIDE}×{_SIDE}×{_CHANNELS}, {_FILTER}×{_FILTER} filters"
CONVOLUTIONS = tuple(
    Benchmark(
        *("TensorFlow", f"convolution, {kind}", "FLOP", _LAYER),
        functools.partial(convolution, kind),
        functools.partial(peaks.of_kind, kind=kind, one_core=False),
        tensorflow=True,
    )
    for kind in ("float32", "bfloat16", "float16")
)
ON_CPU = (*PRODUCTS, *CONVOLUTIONS)
