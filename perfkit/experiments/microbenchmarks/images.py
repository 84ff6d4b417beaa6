"""How fast are photographs decoded, by one core and by all?"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.experiments.shared import cache, decoding, sources
from perfkit.experiments.shared.images import kept, look_at
from perfkit.experiments.shared.photographs import HEIGHT, WIDTH
from perfkit.experiments.shared.probe import Probe, on_one_core

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from perfkit.experiments.shared.images import Images
    from perfkit.measure.tick import Note, Yielded

_SOURCE, _COUNT, _SIDE = "photographs", 32, 224


def made() -> Generator[Note, None, Images]:
    """Draw the photographs on first use, and check them."""
    folder = yield from sources.folder(_SOURCE, _COUNT)
    return (yield from look_at(folder, count=_COUNT, side=_SIDE))


def decode(*, one_core: bool) -> Iterator[Yielded]:
    """Decode them from memory, a process for each core."""
    if one_core:
        on_one_core()
    folder = cache.folder() / sources.folder_name(_SOURCE, _COUNT)
    yield from decoding.limit(kept(folder, count=_COUNT, side=_SIDE))


ONE_CORE, ALL_CORES = "JPEG decode, 1 core", "JPEG decode"
NAMES = (ONE_CORE, ALL_CORES)
PROBES = tuple(
    Probe(
        name=name,
        group="images",
        unit="images",
        what=f"decoding JPEG files of {WIDTH} by {HEIGHT} px from memory",
        work=functools.partial(decode, one_core=one_core),
        tensorflow=True,
        one_core=one_core,
    )
    for name, one_core in ((ONE_CORE, True), (ALL_CORES, False))
)
