"""Runs over batch sizes whose answer is known."""

import contextlib

from perfkit.engine.trial import Trial
from tests.questions import races


def name(size):
    return f"batch {size:,}"


def measured(step_s, *, tried=(), notes=None, **more):
    """A run in which a step of each size takes so many seconds, the smallest first.

    Of the run are what was ``tried`` outside the rounds, and ``notes``.
    """
    rates = {name(size): size / seconds for size, seconds in step_s.items()}
    told = {"gpus": 0} | (notes or {})
    return races.measured(rates, extra=tried, notes=told, **more)


def timed_steps(timed, against, *, noise=0.002, **more):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    What each is held against is said by its name, the rest as of ``races.measured``.
    """
    rates = {name: batch / seconds for name, (batch, seconds) in timed.items()}
    held = {name: against(name) for name in timed}
    return races.measured(rates, held, noise=noise, **more)


def by_cost(overhead, cost, sizes=(4, 16, 64, 256, 1024)):
    """Seconds of a step by size, on a machine that costs this."""
    return {size: overhead + cost * size for size in sizes}


def tried(variant, outcome="completed", message="", **notes):
    """A trial outside the rounds."""
    return Trial(
        variant=variant, round=0, outcome=outcome, message=message, notes=notes
    )


def driven(asking, answer):
    """Answer each try with a trial; gives the trials."""
    trials = []
    with contextlib.suppress(StopIteration):
        trials.append(answer(next(asking)))
        while True:
            trials.append(answer(asking.send(trials[-1])))
    return trials
