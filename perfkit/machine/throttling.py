"""What slows a GPU's clocks, in words."""

from __future__ import annotations

# The driver's bit for a GPU that has nothing to do.
IDLE = 0x1
_THROTTLES = {
    0x4: "power limit reached",
    0x8: "hardware slowdown (heat or power)",
    0x20: "too warm, slowed by the driver",
    0x40: "too hot, slowed by the hardware",
    0x80: "power brake (external power supply)",
    0x200: "board limit",
    0x400: "voltage limit",
}
# Idle, clocks that somebody set, cards in step, a display: settings, not faults.
_NOT_THROTTLING = IDLE | 0x2 | 0x10 | 0x100


def throttle_reasons(mask: float) -> tuple[str, ...]:
    """What slows the GPU's clocks, in words; nothing for idle or clocks set by hand."""
    bits = int(mask) & ~_NOT_THROTTLING
    known = [words for bit, words in _THROTTLES.items() if bits & bit]
    unknown = bits & ~sum(_THROTTLES)
    return (*known, *([f"reason {unknown:#x}"] if unknown else []))
