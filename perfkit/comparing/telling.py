"""One difference of two machines: a number with its unit, or words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.comparing.differing import MachineDiffers
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.comparing.differing import Side

CORES, SPEED, KERNELS, PYTHON = "cores", "core speed", "kernels", "interpreter"
MEMORY, DISK, GPU, LINK = "memory", "disk", "GPU", "link"
THREADS = "threads"
# What a reading may differ by from one look to the next.
SAME = 0.05
# Topics that rungs show.
_SIGNS = {CORES, SPEED, KERNELS, DISK, GPU, LINK}


def number(
    what: str,
    values: tuple[float | None, float | None],
    write: Callable[[float], str],
    topic: str,
    parts: tuple[str, ...],
    *,
    more: bool = False,
    sign: str = "",
) -> Iterator[MachineDiffers]:
    """A number of which less is slower, unless ``more`` is."""
    a, b = values
    if a is None or b is None or abs(a - b) <= SAME * max(abs(a), abs(b)):
        return
    slower: Side = "B" if (b > a) is more else "A"
    yield MachineDiffers(
        what=what,
        a=write(a),
        b=write(b),
        topic=topic,
        parts=parts,
        slower=slower,
        sign=sign or (topic if topic in _SIGNS else ""),
    )


def words(
    what: str,
    a: str | None,
    b: str | None,
    topic: str,
    parts: tuple[str, ...],
    *,
    slower: Side = "",
    sign: str = "",
) -> Iterator[MachineDiffers]:
    """Words, of which the records alone do not say which is faster."""
    if a is None or b is None or a == b:
        return
    yield MachineDiffers(
        what=what,
        a=plain(a, 80) or "none",
        b=plain(b, 80) or "none",
        topic=topic,
        parts=parts,
        slower=slower,
        sign=sign or (topic if topic in _SIGNS else ""),
    )
