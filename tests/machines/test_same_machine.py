"""Passports of one scripted machine: what it does from second to second is known."""

import functools
import math
import random
from collections import Counter

import pytest

from perfkit.machines.compare import compare
from perfkit.questions import experiment
from perfkit.questions.reference_trainings import REFERENCES, trainings
from tests.engine.scripted import Script, Weather, play
from tests.machines import pairs
from tests.questions.references import ALONE, CALL, FED

NAME = "reference-trainings"
PAIRS = 8
# A quiet machine: it wavers by a few percent, and stalls now and then.
QUIET = {"spread": 0.03, "stalls": 0.05, "drift": 0.005}
# What a machine of many guests does: a fifth faster or slower, for seconds.
ROUGH = {"spread": 0.22, "stalls": 0.1, "drift": 0.03}


class Rough(Weather):
    """Slow and fast spells, and stalls in which next to nothing is done."""

    def __init__(self, seed, spread, stalls):
        super().__init__(seed, spread, 2.0)
        self._draw, self._stalls = random.Random(seed + 1), stalls
        self._next = self._draw.expovariate(stalls)

    def slowdown(self, now):
        usual = super().slowdown(now)
        if now < self._next:
            return usual
        self._next = now + self._draw.expovariate(self._stalls)
        return 20 * usual


def scripts(slower):
    """What a tick of each training takes on this machine, and how processes differ."""
    ticks = {}
    for one in REFERENCES:
        if one.dtype == "float32":
            # Seconds of one example, when nothing disturbs the machine.
            alone = (ALONE + CALL) * slower
            fed = alone + FED[one.feed] * slower
            ticks[one.variant] = Script(2 * fed, 0.8, 0.01, 0.01, examples=2)
            ticks[one.resident] = Script(2 * alone, 1.2, 0.01, 0.01, examples=2)
    return ticks


@functools.cache
def passport(seed, *, slower=1.0, spread, stalls, drift):
    """One passport, made as the scripted machine lets it be."""
    draw = random.Random(seed)
    run, _ = play(
        scripts(slower * math.exp(draw.gauss(0, drift))),
        baseline=experiment(NAME).baseline,
        budget=90.0,
        weather=Rough(draw.randrange(2**31), spread, stalls),
        seed=draw.randrange(2**31),
    )
    for _ in run.events():
        pass
    return pairs.passport(trainings=trainings(run.measurement), noise_floors={})


def verdicts(world, **other):
    """The verdicts on pairs of passports of one machine, B made different."""
    both = (
        (passport(2 * seed, **world), passport(2 * seed + 1, **world | other))
        for seed in range(PAIRS)
    )
    return Counter(compare(*pair).verdict for pair in both)


@pytest.mark.parametrize("world", [QUIET, ROUGH], ids=["quiet", "rough"])
def test_a_machine_never_seems_another(world):
    counts = verdicts(world)
    assert counts["no difference shown"] + counts["too noisy to say"] == PAIRS


def test_a_machine_that_is_slower_is_still_told_apart():
    assert verdicts(QUIET, slower=1.3)["slower"] >= PAIRS - 1
