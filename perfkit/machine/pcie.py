"""What can one lane of PCI Express carry?"""

from __future__ import annotations

# Bits per second of one lane in one direction, by generation: transfers times the share
# of them that carries data (8 of 10, 128 of 130, 242 of 256 bits).
_BITS = {
    1: 2.5e9 * 8 / 10,
    2: 5e9 * 8 / 10,
    3: 8e9 * 128 / 130,
    4: 16e9 * 128 / 130,
    5: 32e9 * 128 / 130,
    6: 64e9 * 242 / 256,
}


def rate(generation: int | None, width: int | None) -> float | None:
    """Bytes per second in one direction, in theory; None if it is not known.

    Args:
        generation: Of the link, from 1 to 6.
        width: Its lanes.
    """
    if generation not in _BITS or not width:
        return None
    return _BITS[generation] / 8 * width
