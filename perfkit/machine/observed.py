"""What did the GPUs do while they worked? Read out of the samples of a run.

A link falls to a lower generation while its GPU idles, so one look says nothing of it.
Only samples that show work count, and a few of them at least.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from perfkit.machine.throttling import IDLE, throttle_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perfkit.machine.gpu import Gpu

_COLUMNS = ("busy", "pcie_rx", "pcie_tx", "throttle", "link_generation", "link_width")
# A GPU that is busy for half of the time, or that moves so many bytes per second, has
# left its idle clocks and its idle link.
_BUSY = 0.5
_TRAFFIC = 100e6
# Samples with work, below which nothing is said.
_ENOUGH = 3
# Share of the samples in which the same reason slowed it. One alone proves nothing.
_OFTEN = 0.1

Sample = dict[str, float]


def observed(
    gpus: Sequence[Gpu], samples: Mapping[str, Sequence[float | None]]
) -> tuple[Gpu, ...]:
    """The GPUs, told what was seen of them while they worked.

    Args:
        gpus: In the driver's order.
        samples: Columns of a run, such as ``"gpu0_throttle"``, one value per sample.
    """
    return tuple(
        _with_what_was_seen(gpu, _samples_of(number, samples))
        for number, gpu in enumerate(gpus)
    )


def _with_what_was_seen(gpu: Gpu, samples: Sequence[Sample]) -> Gpu:
    working = [sample for sample in samples if _works(sample)]
    if len(working) < _ENOUGH:
        return gpu
    link = dataclasses.replace(
        gpu.link,
        busy_generation=_highest(working, "link_generation"),
        busy_width=_highest(working, "link_width"),
    )
    clocks = dataclasses.replace(gpu.clocks, busy_throttle=_throttle(working))
    return dataclasses.replace(gpu, link=link, clocks=clocks)


def _samples_of(
    number: int, columns: Mapping[str, Sequence[float | None]]
) -> list[Sample]:
    mine = {name: columns.get(f"gpu{number}_{name}", ()) for name in _COLUMNS}
    length = max(map(len, mine.values()))
    return [
        {
            name: value
            for name, values in mine.items()
            if at < len(values) and (value := values[at]) is not None
        }
        for at in range(length)
    ]


def _works(sample: Sample) -> bool:
    if max(sample.get("pcie_rx", 0.0), sample.get("pcie_tx", 0.0)) >= _TRAFFIC:
        return True
    if "busy" in sample:
        return sample["busy"] >= _BUSY
    # Where the driver hides how busy it is, it may still say that it is not idle.
    return "throttle" in sample and not int(sample["throttle"]) & IDLE


def _highest(samples: Iterable[Sample], name: str) -> int | None:
    return max((int(s[name]) for s in samples if name in s), default=None)


def _throttle(samples: Iterable[Sample]) -> tuple[str, ...] | None:
    masks = [sample["throttle"] for sample in samples if "throttle" in sample]
    if not masks:
        return None
    seen = [reason for mask in masks for reason in throttle_reasons(mask)]
    often = len(masks) * _OFTEN
    return tuple(r for r in dict.fromkeys(seen) if seen.count(r) >= often)
