"""What every probe is, and how it repeats its work until a tick is long enough."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.experiments.shared import cores
from perfkit.machine.limits import text_of
from perfkit.measure.tick import READY, TICK_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.experiments.shared.peaks import Hardware, Peak
    from perfkit.measure.tick import Yielded

# What libraries of linear algebra call the function that sets their threads.
_SET_THREADS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
    "MKL_Set_Num_Threads",
)
_MOST_CALLS = 1 << 24


def unknown(_: Hardware) -> Peak | None:
    """There is no limit that could be worked out."""
    return None


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One piece of work of a known size.

    Attributes:
        name: Of the rung that it is.
        group: The part of the machine that it tries.
        unit: What is counted.
        what: What is done, in a line.
        work: Does it, in a fresh process; its examples are ``unit``.
        peak: The most that is possible in theory.
        tensorflow: Whether it needs TensorFlow.
        one_core: Whether it keeps to one core.
    """

    name: str
    group: str
    unit: str
    what: str
    work: Callable[[], Iterator[Yielded]]
    peak: Callable[[Hardware], Peak | None] = unknown
    tensorflow: bool = False
    one_core: bool = False


def repeated(
    call: Callable[[], object],
    each: int,
    sync: Callable[[], object] = lambda: None,
) -> Iterator[Yielded]:
    """Call without an end; as many calls make a tick as take long enough together.

    Args:
        call: Does the work; called at least twice before it is ready.
        each: What one call counts.
        sync: Waits for the device, once a tick.
    """
    count = calls_of_a_tick(call, sync)
    yield READY
    while True:
        for _ in range(count):
            call()
        sync()
        yield count * each


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
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    # It counted the cores when the launcher loaded it; two threads on one core wait
    # for each other.
    for library in _libraries_of_algebra():
        for name in _SET_THREADS:
            with contextlib.suppress(AttributeError):
                getattr(library, name)(ctypes.c_int(1))


def can_keep_to_one_core() -> bool:
    """Whether this system lets a process choose its cores."""
    return hasattr(os, "sched_setaffinity")


def without_gpus() -> None:
    """Let TensorFlow of this process see no GPU."""
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")


def side(bits: int = 32) -> int:
    """Rows of a square matrix that keeps all cores busy for some milliseconds."""
    wide = cores.granted() > 16
    return (2048 if wide else 1024) * (2 if wide and bits < 64 else 1)


def _libraries_of_algebra() -> Iterator[ctypes.CDLL]:
    loaded = text_of(Path("/proc/self/maps"))
    for path in dict.fromkeys(re.findall(r"/\S*(?:openblas|mkl_rt)\S*", loaded)):
        with contextlib.suppress(OSError):
            yield ctypes.CDLL(path)
