"""Runs on several devices whose costs are known."""

from perfkit.experiments.scaling import numbers
from perfkit.experiments.scaling.numbers import FED, LINK, OWN, STRATEGY, Setup
from perfkit.experiments.scaling.work import GPU
from tests.experiments.batches import timed_steps

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
            found[Setup(kind, count, STRATEGY).name] = batch, STEP + STRATEGY_S
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


def measured(timed, *, notes=None, **more):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    The notes are those that preparing tells; the rest is as of ``batches.timed_steps``.
    """
    baseline = next(iter(timed))

    def against(name):
        before, _, way = name.partition(",")
        return "" if name in (LINK, baseline) else before if way else baseline

    return timed_steps(timed, against, notes=note() if notes is None else notes, **more)
