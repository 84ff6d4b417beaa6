"""Runs on two devices whose costs are known."""

from perfkit.experiments.cpu_or_gpu import numbers
from perfkit.experiments.cpu_or_gpu.work import Size
from perfkit.measure.measurement import CONTROL, Measurement, Variant
from tests.experiments.batches import trial

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
    return {
        numbers.name_of(device, f"width {size.width:,}", size.batch): (
            size.batch,
            seconds(costs, size.cost),
        )
        for size in sizes
        for device, costs in zip(pair, (first, second), strict=True)
    }


def measured(
    timed, *, rounds=4, noise=0.002, notes=None, variants=(), extra=(), **against
):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    Args:
        timed: Batch and seconds by variant; the first is the baseline.
        rounds: How many trials each.
        noise: By how much trials differ from round to round.
        notes: What preparing told.
        variants: Variants besides, which were not run.
        extra: Trials besides.
        **against: What a variant is compared with, where that is not the other device.
    """
    baseline = next(iter(timed))
    numbered = range(1, rounds + 1)
    named = [*timed.items(), (CONTROL, timed[baseline])]
    return Measurement(
        variants=(
            *(Variant(n, list, against=_against(n, against)) for n in timed),
            *variants,
        ),
        trials=(
            *(
                trial(batch, step, r, noise=noise, variant=name)
                for r in numbered
                for name, (batch, step) in named
            ),
            *extra,
        ),
        notes={"cores": 2} | (notes or {}),
        baseline=baseline,
    )


def _against(name, against):
    device, _, rest = name.partition(", ")
    firsts = {second: first for first, second in numbers.PAIRS}
    other = f"{firsts[device]}, {rest}" if device in firsts else ""
    return against.get(name, other)
