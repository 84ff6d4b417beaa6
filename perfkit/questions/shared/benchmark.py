"""What trials do alike: repeat a call, keep to cores and devices, read from disks."""

import contextlib
import ctypes
import itertools
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

from perfkit import units
from perfkit.engine.trial import READY, TICK_S, Note, Pause, Yielded
from perfkit.errors import RunError
from perfkit.machine import limits
from perfkit.machine.collect import bytes_fetched, drop_cached_file
from perfkit.machine.limits import free_bytes, text_of
from perfkit.questions.shared import cache, tf


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


def repeated(
    call: Callable[[], object], examples: int, sync: Callable[[], object] = lambda: None
) -> Iterator[Yielded]:
    """Call without an end; as many calls make a tick as take long enough together.

    It was called at least twice before it is ready. ``sync`` waits for the device, once
    a tick.
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
    """Let TensorFlow of this process see no GPU, which a trial would miss."""
    tf.config.set_visible_devices([], "GPU")


def sees_gpu() -> bool:
    """Whether TensorFlow can use a GPU in this process."""
    return bool(tf.config.list_physical_devices("GPU"))


_CHUNK = 1 << 20
_OWN = 256 * _CHUNK
_FOLDER, _FILE = "to-read-256", "random.bin"
# Names that are looked at, in a folder that may hold millions.
_LOOKED_AT = 20_000
_SMALLEST = 4096
_SAMPLE = 4 * _CHUNK
FORGETTING = "making the system forget the files"


def files(folder: str) -> tuple[str, ...]:
    """The files to read: the largest of a folder, or one that ``make`` wrote."""
    if not folder:
        return (str(cache.folder() / _FOLDER / _FILE),)
    tree = os.walk(Path(folder).expanduser())
    paths = (os.path.join(place, name) for place, _, names in tree for name in names)
    readable = (
        path
        for path in itertools.islice(paths, _LOOKED_AT)
        if os.path.isfile(path) and os.access(path, os.R_OK)
    )
    sizes = ((os.path.getsize(path), path) for path in readable)
    largest = sorted((pair for pair in sizes if pair[0] >= _SMALLEST), reverse=True)
    before = itertools.accumulate((size for size, _ in largest), initial=0)
    pairs = zip(largest, before, strict=False)
    return tuple(path for (_, path), size in pairs if size < _OWN)


def make(folder: str) -> Generator[Note, None, tuple[str, ...]]:
    """Write a file of random bytes where no folder is given; give what to read."""
    if not folder:
        yield from cache.make(_FOLDER, _write_noise, size=_OWN, label="a file to read")
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


def forget(paths: Iterable[str]) -> Pause:
    """Ask the system to forget these files; gives the pause that this was."""
    for path in paths:
        drop_cached_file(path)
    return Pause(FORGETTING)


def bytes_from_disk() -> int | None:
    """Bytes that disks have given to this process; None where nobody counts."""
    return limits.amounts_of(Path("/proc/self/io")).get("read_bytes")


def _write_noise(folder: Path) -> Iterator[Note]:
    """Write a file of random bytes, which no file system can make smaller."""
    yield Note("progress", f"Writing {units.size(_OWN)} to read from the disk")
    with open(folder / _FILE, "wb") as file:
        for _ in range(_OWN // _CHUNK):
            file.write(secrets.token_bytes(_CHUNK))
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
