"""Runs on several devices whose costs are known."""

from perfkit.experiments.scaling.verdict import FED, OWN, STRATEGY, name_of
from perfkit.experiments.scaling.work import GPU
from tests.experiments.batches import timed_steps

SHARE = 32
# Seconds: of a step's arithmetic on one device, of the strategy, of summing the
# gradients of two devices or more, and what input adds to a step of one device.
STEP, STRATEGY_S, SUM_S, INPUT_S = 0.010, 0.0005, 0.004, 0.001


def steps(counts=(1, 2, 4), kind=GPU, *, summing=SUM_S, feeding=INPUT_S):
    """Examples and seconds of a step by variant; input has to come n times as fast."""
    timed = {}
    for count in counts:
        batch, alone = count * SHARE, STEP + (STRATEGY_S if count > 1 else 0.0)
        whole = alone + (summing if count > 1 else 0.0)
        timed[name_of(kind, count)] = batch, whole
        timed[name_of(kind, count, FED)] = batch, whole + (count - 1) * feeding
        if count == 1:
            timed[name_of(kind, count, STRATEGY)] = batch, STEP + STRATEGY_S
        else:
            timed[name_of(kind, count, OWN)] = batch, alone
    return timed


def measured(timed, **more):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    The rest is as of ``batches.timed_steps``.
    """
    baseline = next(iter(timed))

    def against(name):
        before, _, way = name.partition(",")
        return "" if name == baseline else before if way else baseline

    return timed_steps(timed, against, **more)
