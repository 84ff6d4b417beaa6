"""Which versions were tested together, and which card runs which kernels?

The table lies in ``compatibility.json``. Builds are those of TensorFlow's install page
for Linux with a GPU, drivers those of NVIDIA's compatibility pages, capabilities what
the Linux wheel of that version was found to hold.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Kernels = Literal["native", "partly native", "compiled", "none"]

_TABLE = Path(__file__).with_name("compatibility.json")


@dataclass(frozen=True, kw_only=True)
class Build:
    """A release of TensorFlow and what it was tested with; Python from and to."""

    python: tuple[str, str]
    cuda: str
    cudnn: str


def build(tensorflow: str) -> Build | None:
    """The tested build of a version such as ``"2.21.0"``; None if it is not listed."""
    found = _table()["builds"].get(minor(tensorflow))
    return found and Build(**{**found, "python": tuple(found["python"])})


def newest() -> str:
    """The newest version of TensorFlow that the table knows."""
    versions: dict[str, Any] = _table()["builds"]
    return max(versions, key=numbers)


def lowest_driver(cuda: str, system: str) -> str | None:
    """The oldest driver that runs programs made for a CUDA version; None if unknown.

    Args:
        cuda: Such as ``"12.5.1"``.
        system: ``"linux"``, ``"windows"`` or ``"wsl2"``.
    """
    found: str | None = _table()["drivers"].get(cuda.split(".")[0], {}).get(system)
    return found


def capabilities(tensorflow: str) -> tuple[str, ...] | None:
    """What the Linux GPU wheel of a version holds kernels for; None if unknown."""
    found = _table()["capabilities"].get(minor(tensorflow))
    return found and tuple(found)


def kernels(held: tuple[str, ...], card: str) -> Kernels:
    """How a card gets its kernels from a build.

    Args:
        held: As the build spells them: ``"sm_80"`` is machine code for 8.0 and later
            cards of that generation, ``"compute_90"`` is code that the driver compiles
            for 9.0 and all later ones.
        card: Its compute capability, such as ``"8.6"``.
    """
    wanted = numbers(card)
    native = {_capability(name) for name in held if name.startswith("sm_")}
    if any(has[0] == wanted[0] and has <= wanted for has in native):
        return "native"
    portable = {_capability(name) for name in held if name.startswith("compute_")}
    if wanted in portable:
        # The 2.21 wheel was looked into: 289 of its 1,438 bundles of kernels hold
        # machine code for 9.0 beside the portable code; 1,149 hold the portable code
        # only, in the language of CUDA 12.5, which older drivers do not read.
        return "partly native"
    return "compiled" if any(has < wanted for has in portable) else "none"


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing: ``"12.5.1"`` is (12, 5, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def minor(version: str) -> str:
    """The first two numbers of a version: ``"2.21.0"`` is ``"2.21"``."""
    return ".".join(str(number) for number in numbers(version)[:2])


def _capability(name: str) -> tuple[int, int]:
    digits = "".join(re.findall(r"\d", name))
    return int(digits[:-1]), int(digits[-1])


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table
