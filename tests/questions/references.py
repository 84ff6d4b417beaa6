"""Reference trainings made by hand: what each change takes is known."""

import math
import random

from perfkit.engine.measurement import Measurement, Variant
from perfkit.questions import experiment
from perfkit.questions import reference_trainings as work
from perfkit.questions.reference_trainings import REFERENCES, RESIDENTS
from tests.findings.made import completed
from tests.questions.races import ROUNDS

TICKS, STEPS = 40, 8
# Seconds of a step on a processor: a call costs 1 ms, and nothing overlaps.
ALONE, CALL, FED = 0.010, 0.001, {"memory": 0.002, "JPEG": 0.030, "disk": 0.004}


def trial(variant, seconds, round, *, batch, changes=(), noise=0.0, told=None):
    """A trial whose steps take ``seconds``, and whose changes take theirs."""
    slower = math.exp(noise * random.Random(variant).sample(ROUNDS, 4)[round % 4])
    ticks = [(0.3, 0), (0.4, batch)]
    for number in range(TICKS):
        ticks.append((0.4 + (number + 1) * STEPS * seconds * slower, STEPS * batch))
    notes = {work.STEPS: {label: STEPS for label in changes}}
    notes |= {work.TRAINED: told or {"weights": 1000, "device": "CPU:0"}}
    spent = {name: (STEPS * s * slower,) * TICKS for name, s in dict(changes).items()}
    wall = {"wall_s": ticks[-1][0], "pauses": spent, "notes": notes}
    return completed(variant, round, ticks, **wall)


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

    Timed are ``names``, or all in float32, ``without`` the changes of these labels.
    A copy to a GPU takes ``copied`` seconds; no part takes the ``extra`` ones alone.
    """
    trials = []
    for number in range(1, rounds + 1):
        for one in REFERENCES:
            full = ALONE + CALL + FED[one.feed] + (copied or 0.0) + extra
            again = {"batch": one.batch, "noise": noise}
            trials.append(trial(one.variant, full, number, **again))
        for name, one in RESIDENTS.items():
            known = changes(one, copied).items()
            kept = {label: spent for label, spent in known if label not in without}
            again = {"batch": one.batch, "noise": noise, "changes": kept}
            trials.append(trial(name, ALONE + CALL + extra, number, **again))
    made = experiment("reference-trainings").make_variants()
    variants = tuple(Variant(a.name, a.work, against=a.against) for a in made.values())
    wanted = names or made
    timed = [t for t in trials if t.variant in wanted and "mixed" not in t.variant]
    base = "small CNN from memory"
    return Measurement(variants=variants, trials=tuple(timed), baseline=base)
