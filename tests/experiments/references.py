"""Reference trainings made by hand: what each change takes is known."""

import math
import random

from perfkit.experiments import experiment
from perfkit.experiments.reference_trainings import work
from perfkit.experiments.shared.reference_jobs import REFERENCES, RESIDENTS
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.trial import Trial

# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)
TICKS, STEPS = 40, 8
# Seconds of a step on a processor: a call costs 1 ms, and nothing overlaps.
ALONE, CALL, FED = 0.010, 0.001, {"memory": 0.002, "JPEG": 0.030, "disk": 0.004}


def trial(variant, seconds, round, *, batch, changes=(), noise=0.0, told=None):
    """A trial whose steps take ``seconds``, and whose changes take theirs."""
    draw = random.Random(variant)
    slower = math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    ticks = [(0.3, 0), (0.4, batch)]
    for number in range(TICKS):
        ticks.append((0.4 + (number + 1) * STEPS * seconds * slower, STEPS * batch))
    steps = {label: STEPS for label in changes}
    return Trial(
        variant=variant,
        round=round,
        outcome="completed",
        setup_s=0.3,
        wall_s=ticks[-1][0],
        ticks=tuple(ticks),
        pauses={
            label: (STEPS * spent * slower,) * TICKS
            for label, spent in dict(changes).items()
        },
        notes={
            work.STEPS: steps,
            work.TRAINED: told or {"weights": 1000, "device": "CPU:0"},
        },
    )


def changes(reference, copied=None):
    """What the changes of a resident training take, if calls and steps add up."""
    one = 1e-4
    found = {
        work.TOGETHER: ALONE + CALL / reference.together,
        work.ONE: one + CALL,
        work.ONE_TOGETHER: one + CALL / reference.many,
    }
    return found if copied is None else found | {work.COPIED: ALONE + CALL + copied}


def measured(*, rounds=3, names=None, noise=0.0, copied=None, without=(), extra=0.0):
    """A run in which a step is what is fed, a call, a copy and the work.

    Args:
        rounds: How many trials each.
        names: Variants that were timed; None for all in float32.
        noise: By how much trials differ.
        copied: Seconds of a copy to a GPU; None where there is none.
        without: Labels of changes that were not timed.
        extra: Seconds of a step that no part of it takes alone.
    """
    trials = []
    for number in range(1, rounds + 1):
        for one in REFERENCES:
            full = ALONE + CALL + FED[one.feed] + (copied or 0.0) + extra
            trials.append(
                trial(one.variant, full, number, batch=one.batch, noise=noise)
            )
        for name, one in RESIDENTS.items():
            known = changes(one, copied)
            kept = {k: spent for k, spent in known.items() if k not in without}
            trials.append(
                trial(
                    name,
                    ALONE + CALL + extra,
                    number,
                    batch=one.batch,
                    changes=kept,
                    noise=noise,
                )
            )
    wanted = names or [n for n in experiment("reference-trainings").make_variants()]
    timed = [t for t in trials if t.variant in wanted and "mixed" not in t.variant]
    variants = experiment("reference-trainings").make_variants().values()
    return Measurement(
        variants=tuple(Variant(a.name, a.work, against=a.against) for a in variants),
        trials=tuple(timed),
        baseline="small CNN from memory",
    )
