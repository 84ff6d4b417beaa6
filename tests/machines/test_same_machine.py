from collections import Counter

from perfkit.machines.compare import compare
from tests.machines import same_machine

PAIRS = 8
# A quiet machine: it wavers by a few percent, and stalls now and then.
QUIET = {"spread": 0.03, "stalls": 0.05, "drift": 0.005}
# What a machine of many guests does: a fifth faster or slower, for seconds.
ROUGH = {"spread": 0.22, "lasts": 2.0, "stalls": 0.1, "drift": 0.03}


def said(world, **other):
    """The verdicts on pairs of passports of one machine, B made different."""
    both = (
        (
            same_machine.passport(2 * seed, **world),
            same_machine.passport(2 * seed + 1, **world | other),
        )
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
        for training in same_machine.passport(seed, **ROUGH).trainings
        if training.seconds
    ]
    held = [step.low < same_machine.usual_s(step.name) < step.high for step in steps]
    assert sum(held) >= 0.9 * len(held)
