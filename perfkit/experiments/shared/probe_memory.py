"""How fast does memory give and take, where no cache can help?"""

from __future__ import annotations

import functools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from perfkit import units
from perfkit.experiments.shared import cores
from perfkit.experiments.shared.probe import Probe, on_one_core, repeated
from perfkit.machine.limits import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.tick import Yielded

_LEAST, _FACTOR = 128_000_000, 4
# Two arrays, of the memory that is free, so that nothing is driven out of it.
_SHARE = 16


def array_bytes(root: Path = Path("/")) -> int:
    """Bytes of an array that is far larger than the caches, if memory allows it."""
    wanted = max(_LEAST, _FACTOR * _last_cache(root))
    return min(wanted, psutil.virtual_memory().available // _SHARE) // 64 * 64


def copy(*, one_core: bool) -> Iterator[Yielded]:
    """Copy one array onto another; what is read and what is written both count."""
    import numpy as np

    if one_core:
        on_one_core()
    workers = 1 if one_core else cores.granted()
    # Written once, so that the pages are there before anything is timed.
    # What is available changes from moment to moment, and both must be as long.
    size = array_bytes()
    source, target = (np.full(size, n, np.uint8) for n in (1, 2))
    halves = (np.array_split(array, workers) for array in (target, source))
    parts = list(zip(*halves, strict=True))
    with ThreadPoolExecutor(workers) as pool:

        def call() -> None:
            if one_core:
                np.copyto(target, source)
            else:
                # NumPy lets other threads run while it copies.
                list(pool.map(lambda part: np.copyto(*part), parts))

        yield from repeated(call, 2 * len(source))


def probes() -> tuple[Probe, ...]:
    """Copying on one core, which rarely fills the memory's lanes, and on all."""
    size = units.size(array_bytes())
    return tuple(
        Probe(
            name=f"memory copy{', 1 core' * one_core}",
            group="memory",
            unit="B",
            what=f"copying {size}; bytes read and written count",
            work=functools.partial(copy, one_core=one_core),
            one_core=one_core,
        )
        for one_core in (True, False)
    )


def _last_cache(root: Path) -> int:
    """Bytes of the largest cache that the first core has; 0 where nothing says."""
    folder = root / "sys/devices/system/cpu/cpu0/cache"
    texts = [text_of(path) for path in sorted(folder.glob("index*/size"))]
    found = (re.fullmatch(r"(\d+)K", text) for text in texts)
    return max((1024 * int(size[1]) for size in found if size), default=0)
