"""How are the GPUs of a machine joined? A sentence for each pair."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from perfkit.machine.nvml import Device, RefusedError, given

if TYPE_CHECKING:
    from collections.abc import Sequence

# What two cards have in common, by the library's numbers.
_WAYS = {
    0: "on one board",
    10: "over PCI Express, through one switch",
    20: "over PCI Express, through several switches",
    30: "over PCI Express, through one bridge of a processor",
    40: "over PCI Express, through one processor",
    50: "over PCI Express, through two processors",
}
_READ, _NVLINK = 0, 2
_CAN = 0


def topology(gpus: Sequence[Device]) -> tuple[str, ...]:
    """Say of each pair of cards how data go from one to the other.

    Raises:
        RefusedError: The driver says it of no pair.
    """
    said, refused = list[str](), list[RefusedError]()
    for (a, one), (b, other) in combinations(enumerate(gpus), 2):
        if one.refused or other.refused or one.card is other.card:
            continue
        try:
            said.append(f"GPU {a} and GPU {b}: {_joined(one, other)}.")
        except RefusedError as error:
            refused.append(error)
    if refused and not said:
        raise refused[0]
    return tuple(said)


def _joined(one: Device, other: Device) -> str:
    if _can(one, other, _NVLINK):
        return "joined by NVLink"
    common = given(one.ask("nvmlDeviceGetTopologyCommonAncestor", other.card))
    way = _WAYS.get(common, f"in a way that the driver numbers {common}")
    direct = _can(one, other, _READ)
    if direct is None:
        return way
    return f"{way}, {'directly' if direct else 'by way of main memory'}"


def _can(one: Device, other: Device, what: int) -> bool | None:
    """Whether two cards can reach each other so; None where the driver hides it."""
    try:
        return bool(one.ask("nvmlDeviceGetP2PStatus", other.card, what) == _CAN)
    except RefusedError:
        return None
