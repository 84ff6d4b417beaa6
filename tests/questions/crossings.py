"""Runs on two devices whose costs are known."""

from perfkit.questions.cpu_or_gpu import PAIRS, Size, name_of
from tests.questions.batches import timed_steps

WIDTHS = (32, 128, 512, 2048)
BATCH = 64
SIZES = (*(Size(width, BATCH) for width in WIDTHS), Size(512, 8 * BATCH))
# Seconds of launch, of a byte and of a FLOP. One core and two, a CPU and a GPU.
ONE = (6e-4, 1 / 8e9, 1 / 5e10)
TWO = (7e-4, 1 / 16e9, 1 / 10e10)
CPU = (2e-4, 1 / 30e9, 1 / 5e11)
GPU = (9e-4, 1 / 1e12, 1 / 3e13)


def seconds(costs, cost):
    """A step's seconds by a cost model."""
    launch, byte, flop = costs
    return launch + byte * cost.traffic + flop * cost.flops


def steps(first, second, sizes=SIZES, pair=("one core", "all cores")):
    """Seconds of a step by variant, on devices of these costs."""
    found = {}
    for size in sizes:
        for device, costs in zip(pair, (first, second), strict=True):
            name = name_of(device, f"width {size.width:,}", size.batch)
            found[name] = size.batch, seconds(costs, size.cost)
    return found


def measured(timed, *, notes=None, **more):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    A variant is held against the other device; the rest is of ``batches.timed_steps``.
    """
    return timed_steps(timed, _other, notes={"cores": 2} | (notes or {}), **more)


def _other(name):
    device, _, rest = name.partition(", ")
    firsts = {second: first for first, second in PAIRS}
    return f"{firsts[device]}, {rest}" if device in firsts else ""
