"""Passports of one scripted machine: what it does from second to second is known."""

import functools
import math
import random
from collections import Counter

from perfkit.experiments import experiment
from perfkit.experiments.reference_trainings import trainings_of
from perfkit.experiments.shared.reference_jobs import REFERENCES
from perfkit.findings.standing import measurement
from perfkit.machines.compare import compare
from perfkit.passports.levels import Levels, together
from tests.experiments.references import ALONE, CALL, FED
from tests.findings import made
from tests.machines import pairs
from tests.measure.scripted import Script, Weather, play

NAME = "reference-trainings"
VISIT_S = 24.0


class Rough(Weather):
    """Slow and fast spells, and stalls in which next to nothing is done."""

    def __init__(self, seed, spread, lasts=2.0, stalls=0.0):
        super().__init__(seed, spread, lasts)
        self._draw, self._stalls = random.Random(seed + 1), stalls
        self._next = self._gap()

    def _gap(self):
        return self._draw.expovariate(self._stalls) if self._stalls else math.inf

    def slowdown(self, now):
        usual = super().slowdown(now)
        if now < self._next:
            return usual
        self._next = now + self._gap()
        return 20 * usual


def usual_s(name):
    """What a step of a training takes on this machine when nothing disturbs it."""
    one = next(one for one in REFERENCES if one.name == name)
    # A script's examples are two in two steps; a step has as many as its batch.
    return (ALONE + CALL + FED[one.feed]) * one.batch


def scripts(slower):
    """What a tick of each training takes on this machine, and how processes differ."""
    made_of = {}
    for one in REFERENCES:
        if one.dtype == "float32":
            step = (ALONE + CALL + FED[one.feed]) * slower
            made_of[one.variant] = Script(2 * step, 0.8, 0.01, 0.01, examples=2)
            alone = (ALONE + CALL) * slower
            made_of[one.resident] = Script(2 * alone, 1.2, 0.01, 0.01, examples=2)
    return made_of


@functools.cache
def passport(
    seed, *, visits=4, slower=1.0, spread=0.0, lasts=2.0, stalls=0.0, drift=0.0
):
    """One passport, made as the scripted machine lets it be.

    Args:
        seed: Of all that is random.
        visits: How often each training is visited.
        slower: Times the usual length of every step.
        spread: Standard deviation of the log of the machine's speed, ``lasts`` seconds.
        stalls: How many a second.
        drift: The same spread from visit to visit.
    """
    draw = random.Random(seed)
    told = []
    for number in range(visits):
        now = slower * math.exp(draw.gauss(0, drift))
        weather = Rough(draw.randrange(2**31), spread, lasts, stalls)
        run, _ = play(
            scripts(now),
            baseline=experiment(NAME).baseline,
            budget=VISIT_S,
            weather=weather,
            seed=draw.randrange(2**31),
        )
        for _ in run.events():
            pass
        told.append((60.0 * number, finding(run.measurement)))
    found = together(told)
    return pairs.passport(
        trainings=trainings_of(found),
        drift={NAME: Levels(measurement(found)).drift},
        noise_floors={},
    )


def finding(measured):
    return made.finding(
        experiment=NAME,
        trials=measured.trials,
        timings=(),
        comparisons=(),
        baseline=measured.baseline,
    )


PAIRS = 8
# A quiet machine: it wavers by a few percent, and stalls now and then.
QUIET = {"spread": 0.03, "stalls": 0.05, "drift": 0.005}
# What a machine of many guests does: a fifth faster or slower, for seconds.
ROUGH = {"spread": 0.22, "lasts": 2.0, "stalls": 0.1, "drift": 0.03}


def said(world, **other):
    """The verdicts on pairs of passports of one machine, B made different."""
    both = (
        (passport(2 * seed, **world), passport(2 * seed + 1, **world | other))
        for seed in range(PAIRS)
    )
    return Counter(compare(*pair).verdict for pair in both)


def test_a_quiet_machine_shows_no_difference_from_itself():
    assert said(QUIET)["no difference shown"] >= PAIRS - 1


def test_a_rough_machine_hardly_ever_seems_another():
    found = said(ROUGH)
    assert found["slower"] + found["faster"] <= 1


def test_a_machine_that_is_slower_is_still_told_apart():
    assert said(QUIET, slower=1.3)["slower"] >= PAIRS - 1


def test_the_interval_of_a_step_holds_what_it_takes_on_the_whole():
    """Over many rough passports a step's interval leaves the truth out in one of 20."""
    steps = [
        training
        for seed in range(PAIRS)
        for training in passport(seed, **ROUGH).trainings
        if training.seconds
    ]
    held = [step.low < usual_s(step.name) < step.high for step in steps]
    assert sum(held) >= 0.9 * len(held)
