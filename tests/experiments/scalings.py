"""Runs on several devices whose costs are known."""

from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.numbers import FED, LINK, OWN, STRATEGY, Setup
from perfkit.experiments.scaling.work import GPU
from perfkit.measure.measurement import CONTROL, Measurement, Variant
from tests.experiments.batches import trial

WEIGHTS = 1_000_000
SHARE = 32
# Seconds: of a step's arithmetic on one device, of the strategy, of summing the
# gradients of two devices or more, and what input adds to a step of one device.
STEP, STRATEGY_S, SUM_S, INPUT_S = 0.010, 0.0005, 0.004, 0.001
# Bytes per second of the link.
LINK_RATE = 4e9


def steps(counts=(1, 2, 4), kind=GPU, *, summing=SUM_S, feeding=INPUT_S):
    """Examples and seconds of a step by variant; input has to come n times as fast."""
    found = {}
    for count in counts:
        batch, alone = count * SHARE, STEP + (STRATEGY_S if count > 1 else 0.0)
        whole = alone + (summing if count > 1 else 0.0)
        found[Setup(kind, count).name] = batch, whole
        found[Setup(kind, count, FED).name] = batch, whole + (count - 1) * feeding
        if count == 1:
            name = Setup(kind, count, STRATEGY).name
            found[name] = batch, STEP + STRATEGY_S
        else:
            found[Setup(kind, count, OWN).name] = batch, alone
    return found


def note(counts=(1, 2, 4), **more):
    """What preparing tells of such a run; the link counts a byte as an example."""
    batches = {str(count): count * SHARE for count in counts}
    usual = {"weights": WEIGHTS, "batches": batches, "link": 1000.0, "joined": []}
    return {numbers.NOTE: usual | more}


def linked(timed):
    """The same run with the link: a thousand bytes count as one example."""
    return timed | {LINK: (40_000, 40_000 * 1000 / LINK_RATE)}


def measured(timed, *, rounds=4, noise=0.002, notes=None, variants=(), extra=()):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    Args:
        timed: Batch and seconds by variant; the first is the baseline.
        rounds: How many trials each.
        noise: By how much trials differ from round to round.
        notes: What preparing told.
        variants: Variants besides, which were not run.
        extra: Trials besides.
    """
    baseline = next(iter(timed))
    named = [*timed.items(), (CONTROL, timed[baseline])]
    return Measurement(
        variants=(
            *(Variant(n, list, against=_against(n, baseline)) for n in timed),
            *variants,
        ),
        trials=(
            *(
                trial(batch, step, r, noise=noise, variant=name)
                for r in range(1, rounds + 1)
                for name, (batch, step) in named
            ),
            *extra,
        ),
        notes=note() if notes is None else notes,
        baseline=baseline,
    )


def _against(name, baseline):
    if name in (LINK, baseline):
        return ""
    before, _, way = name.partition(",")
    return before if way else baseline
