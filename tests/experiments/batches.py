"""Runs over batch sizes whose answer is known."""

import itertools
import math
import random

from perfkit.measure.measurement import CONTROL, Measurement, Variant
from perfkit.measure.plan import following
from perfkit.measure.trial import Trial
from tests.measure.scripted import Script, play

FORECAST = {"weights": 400_000, "gradients": 400_000, "slots": 800_000}
FORECAST |= {"activations": 4000}
# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)


def name(size):
    return f"batch {size:,}"


def trial(size, step_s, round=1, *, noise=0.01, variant="", **more):
    """Twenty ticks of some steps of ``step_s`` seconds each."""
    draw = random.Random(f"{size} {variant} {noise}")
    pace = math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    steps = max(1, round_up(0.03 / step_s))
    lengths = [steps * step_s * pace * draw.uniform(0.98, 1.02) for _ in range(20)]
    stamps = itertools.accumulate(lengths, initial=0.3)
    counts = [0, *itertools.repeat(steps * size, 20)]
    return Trial(
        variant=variant or name(size),
        round=round,
        outcome="completed",
        setup_s=0.3,
        ticks=tuple(zip(stamps, counts, strict=True)),
        **more,
    )


def round_up(value):
    return math.ceil(value - 1e-9)


def measured(step_s, *, rounds=4, noise=0.01, tried=(), notes=None, **more):
    """A run in which a step of each size takes what is asked for.

    Args:
        step_s: Seconds of a step by batch size, the smallest first.
        rounds: How many trials each.
        noise: By how much trials differ from round to round.
        tried: Trials outside the rounds.
        notes: What preparing told.
        more: What each trial has besides.
    """
    smallest = min(step_s)
    numbers = range(1, rounds + 1)
    trials = [
        trial(s, t, r, noise=noise, **more) for r in numbers for s, t in step_s.items()
    ]
    trials += [
        trial(smallest, step_s[smallest], r, noise=noise, variant=CONTROL)
        for r in numbers
    ]
    return Measurement(
        variants=tuple(
            Variant(name(size), list, against=name(smallest)) for size in step_s
        ),
        trials=(*trials, *tried),
        notes={"gpus": 0, "forecast": FORECAST} | (notes or {}),
        baseline=name(smallest),
    )


def by_cost(overhead, cost, sizes=(4, 16, 64, 256, 1024)):
    """Seconds of a step by size, on a machine that costs this."""
    return {size: overhead + cost * size for size in sizes}


def played(step_s, **more):
    """The same through the engine, on a clock of its own."""
    scripts = {
        name(size): Script(seconds, examples=size, jitter=0.02, spread=0.01)
        for size, seconds in step_s.items()
    }
    run, _ = play(scripts, baseline=name(min(step_s)), **more)
    return list(run.events())[-1].measurement


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


def learnt(batch, losses, step_s=0.1, samples=512):
    """A training that was run to learn."""
    at = itertools.count(1)
    ticks = [(1.0, 0), *((1.0 + step_s * next(at), samples) for _ in losses[1:])]
    return Trial(
        variant=f"learning by {batch:,}",
        round=0,
        outcome="completed",
        ticks=tuple(ticks),
        notes={"batch": batch, "losses": list(losses)},
    )
