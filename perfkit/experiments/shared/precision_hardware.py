"""What does this machine have for numbers of fewer bits? Read, not tried."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.experiments.shared.precision import INSTRUCTIONS
from perfkit.machine import cards
from perfkit.machine.processor import processor

if TYPE_CHECKING:
    from perfkit.machine.record import Machine

Capability = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What decides which precision is fast.

    Attributes:
        instructions: Of the processor; None where they are not known.
        gpu: The name of the GPU that computes; "" for none.
        capability: Its compute capability; None where it is not known.
        allowed: The most that oneDNN may use of the processor, where somebody set it.
    """

    instructions: tuple[str, ...] | None = None
    gpu: str = ""
    capability: Capability | None = None
    allowed: str = ""


def of(machine: Machine) -> Hardware:
    """Read it from a machine's record; of several GPUs the first computes."""
    gpu = next(iter(machine.gpus), None)
    return Hardware(
        instructions=machine.processor.instructions if machine.processor else None,
        gpu=gpu.name if gpu else "",
        capability=parsed(gpu.compute_capability) if gpu else None,
        allowed=machine.environment.get(INSTRUCTIONS, ""),
    )


@functools.cache
def here() -> Hardware:
    """Read it from this machine, without TensorFlow."""
    import psutil

    _, found, _ = cards.gpus()
    gpu = next(iter(found), None)
    return Hardware(
        instructions=processor(Path("/"), psutil).instructions,
        gpu=gpu.name if gpu else "",
        capability=parsed(gpu.compute_capability) if gpu else None,
        allowed=os.environ.get(INSTRUCTIONS, ""),
    )


def parsed(capability: str | None) -> Capability | None:
    """A compute capability such as ``"8.9"`` as two numbers."""
    major, _, minor = (capability or "").partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        return None
    return int(major), int(minor)
