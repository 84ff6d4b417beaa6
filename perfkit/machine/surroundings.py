"""What is read of a machine besides the files of ``proc`` and ``sys``.

A script can stand in for all of it, and then nothing of the machine at hand is read.
"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil

from perfkit.machine import cards, environment, libraries

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from perfkit.machine.gpu import Driver, Gpu
    from perfkit.machine.packages import Built
    from perfkit.machine.record import Library

    Names = tuple[str, ...]
    Trying = Callable[
        [Built, Mapping[str, str], Names], Callable[[], tuple[Library, ...]]
    ]

# The variables as they were when TensorFlow was first seen in this process.
_SEEN = dict[str, str]()


def _calls_itself() -> str:
    """Kind and release of a system that has no ``proc``."""
    mac = platform.mac_ver()[0]
    return f"macOS {mac}" if mac else f"{platform.system()} {platform.release()}"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What answers; the fields that are not given are what is really there.

    Attributes:
        names: Words that tell whose machine this is, to be left out.
        kind: What a system without ``proc`` calls itself, and ``system`` with release.
        cpu: What it calls its processor.
        counters: What tells its load and memory, as psutil does.
        python: Version of Python, and ``prefix``: where its environment lies.
        paths: Where Python looks for packages.
        loaded: The modules of this process.
        seen: The variables as they were at the first look with TensorFlow loaded.
        gpus: Asks the driver: itself, its GPUs, and why there are none.
        trying: Begins to try the libraries that a GPU needs.
        wait: Waits between the two looks at the load, for so many seconds.
    """

    names: tuple[str, ...] = field(default_factory=environment.own_names)
    kind: str = field(default_factory=platform.system)
    system: str = field(default_factory=_calls_itself)
    cpu: str = field(default_factory=lambda: platform.processor() or platform.machine())
    counters: Any = psutil
    python: str = field(default_factory=platform.python_version)
    prefix: str = sys.prefix
    paths: Sequence[str] = field(default_factory=lambda: tuple(sys.path))
    loaded: Container[str] = field(default_factory=lambda: sys.modules)
    seen: dict[str, str] = field(default_factory=lambda: _SEEN)
    gpus: Callable[[], tuple[Driver | None, tuple[Gpu, ...], str]] = cards.gpus
    trying: Trying = libraries.tried
    wait: Callable[[float], object] = time.sleep
