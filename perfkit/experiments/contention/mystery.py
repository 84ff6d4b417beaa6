"""A sealed slow-down: its number decides which, and nothing else names it."""

from __future__ import annotations

import hashlib

from perfkit.experiments.contention.loads import CPU, DISK, MEMORY

QUIET, MYSTERY = "quiet", "mystery"
SLEEPING, DECODING = "sleeping pipeline", "decoding pipeline"
PIPELINES = (SLEEPING, DECODING)


def candidates(fed: str) -> tuple[str, ...]:
    """What a mystery may be: what can slow a training that is fed so, anywhere."""
    return (CPU, MEMORY, *PIPELINES, *([DISK] if fed == "disk" else []))


def sealed(number: int, fed: str) -> str:
    """Name the slow-down behind a number; the same number always hides the same."""
    digest = hashlib.sha256(f"mystery {number}".encode()).digest()
    among = candidates(fed)
    return among[int.from_bytes(digest, "big") % len(among)]
