"""Runs over batch sizes whose answer is known."""

import itertools
import math
import random

from perfkit.engine.measurement import CONTROL
from perfkit.engine.plan import following
from perfkit.engine.trial import Trial
from tests.findings.made import completed
from tests.questions.races import ROUNDS, rounds_of


def name(size):
    return f"batch {size:,}"


def trial(size, step_s, round=1, *, noise=0.01, variant="", **more):
    """Twenty ticks of some steps of ``step_s`` seconds each."""
    draw = random.Random(f"{size} {variant} {noise}")
    pace = math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    steps = max(1, math.ceil(0.03 / step_s - 1e-9))
    lengths = [steps * step_s * pace * draw.uniform(0.98, 1.02) for _ in range(20)]
    stamps = itertools.accumulate(lengths, initial=0.3)
    ticks = zip(stamps, [0, *itertools.repeat(steps * size, 20)], strict=True)
    return completed(variant or name(size), round, ticks, **more)


def measured(step_s, *, noise=0.01, rounds=4, tried=(), notes=None, **more):
    """A run in which a step of each size takes so many seconds, the smallest first.

    Of the run are ``rounds``, ``tried`` outside them, and ``notes``; what is more is
    each trial's.
    """
    sizes = {name(size): size for size in step_s}
    smallest = min(step_s)

    def make(one, number):
        size, other = sizes.get(one, smallest), one if one == CONTROL else ""
        return trial(size, step_s[size], number, noise=noise, variant=other, **more)

    told = {"gpus": 0} | (notes or {})
    return rounds_of(make, sizes, rounds=rounds, extra=tried, notes=told)


def timed_steps(timed, against, *, noise=0.002, **more):
    """A run in which each variant's step has a batch and takes seconds, in that order.

    What each is held against is said by its name, the rest as of ``rounds_of``.
    """
    every = timed | {CONTROL: next(iter(timed.values()))}

    def make(one, number):
        return trial(*every[one], number, noise=noise, variant=one)

    held = {name: against(name) for name in timed}
    return rounds_of(make, timed, against=held, **more)


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
    while wanted := following(asking, trials[-1] if trials else None):
        trials.append(answer(wanted))
    return trials
