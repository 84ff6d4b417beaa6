from dataclasses import replace

import numpy as np
import pytest

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.steady import steady, warm_up_ticks
from tests.findings.made import completed


def trial(spent, *, examples=10, turns=(), ready=1.0, gaps=()):
    """A trial whose ticks took ``spent`` seconds and which waited before ``gaps``."""
    at, ticks = ready, [(ready, 0)]
    for index, seconds in enumerate(spent):
        if index in gaps:
            at += 0.5
            ticks.append((at, 0))
        at += seconds
        ticks.append((at, examples))
    return completed("v", 1, ticks, ready, turns=turns)


def test_the_rate_is_all_examples_over_all_steady_seconds():
    found = steady(trial([0.5, *[0.1, 0.3] * 10]))
    assert found.first_call_s == pytest.approx(0.5)
    assert found.rate == pytest.approx(20 * 10 / (10 * 0.4))
    # A slow beginning is warm up and not in the rate.
    found = steady(trial([1.0, 0.4, 0.3, 0.2, *[0.1] * 20]))
    assert found.rate == pytest.approx(10 / 0.1)
    assert found.examples.sum() == 20 * 10
    # One that is too short has no rate.
    assert [steady(trial([0.1] * count)) for count in range(3)] == [None] * 3


def test_neither_noise_nor_one_slow_tick_at_the_start_is_warm_up():
    # A stall is real, so it counts.
    assert warm_up_ticks(np.array([0.1, 0.9, *[0.1] * 30])) == 0
    draw = np.random.default_rng(3)
    cut = [warm_up_ticks(0.1 * np.exp(draw.normal(0, 0.1, 40))) for _ in range(200)]
    assert np.mean(np.array(cut) > 0) < 0.05
    # The cut is that after which the mean is known best.
    # The rule as it is written down, tail by tail.
    draw = np.random.default_rng(5)
    for size in (8, 9, 40, 301):
        cost = np.exp(draw.normal(-7, 0.05, size))
        cost[: size // 4] *= 1.6
        tails = [np.log(cost)[cut:] for cut in range(size // 2 + 1)]
        known = [(tail.var() + 1e-6) / len(tail) for tail in tails]
        assert warm_up_ticks(cost) == int(np.argmin(known))


def test_turns_are_the_blocks_and_what_came_before_them_was_warm_up():
    slow_start = trial([0.5, 0.2, 0.2, *[0.1] * 6], turns=(2.0, 2.8), gaps=(3, 6))
    found = steady(slow_start)
    assert found.keys == (1, 2)
    assert found.examples.tolist() == [30, 30]
    assert found.seconds == pytest.approx([0.3, 0.3])
    # A single turn is split so that its spread is known.
    found = steady(trial([0.5, *[0.1, 0.2] * 8], turns=(1.55,), gaps=(1,)))
    assert found.keys == ()
    assert len(found.seconds) > 4
    # Whichever number it has.
    late = trial([0.5, *[0.1, 0.2] * 8], turns=(1.55, 1.55), gaps=(1,))
    assert (found.turns, steady(late).turns) == (1, 1)
    assert steady(slow_start).turns == 2
    assert steady(trial([0.1] * 9)).turns == 0


def in_turns(first, ticks=5):
    """Three turns of ticks of 0.1 s, the first of each as slow as asked."""
    turn = [first, *[0.1] * (ticks - 1)]
    # Each has half a second before it, and begins at the end of that.
    begins = [2.499 + number * (0.5 + sum(turn)) for number in range(3)]
    return trial([1.0, *turn * 3], turns=begins, gaps=range(1, 3 * ticks + 1, ticks))


@pytest.mark.parametrize(
    ("trial", "rate"),
    [
        # What waits for what stood still is no work, and what is a little slow is.
        (in_turns(0.5), 100),
        (in_turns(0.2), 50 / 0.6),
        # Turns of one tick each all count.
        (in_turns(0.5, ticks=1), 20),
        # Time that was not worked is in no rate.
        (trial([0.1] * 20, gaps=(5, 9)), 10 / 0.1),
    ],
)
def test_what_is_no_work_is_in_no_rate(trial, rate):
    assert steady(trial).rate == pytest.approx(rate)


def test_beside_a_trial_that_waited_nobody_counts_the_first_of_a_turn():
    def one(name, first_s, **kinds):
        return replace(in_turns(first_s, **kinds), variant=name)

    even, waited = one("even", 0.2), one("waited", 0.5)
    single = one("single", 0.5, ticks=1)

    def rates(*trials):
        names = tuple(Variant(trial.variant, list) for trial in trials)
        found = Measurement(variants=names, trials=trials)
        return [pytest.approx(timing.rate) for timing in found.timings]

    assert rates(even) == [50 / 0.6]
    assert rates(even, waited) == [100, 100]
    # Where each turn is one tick there is nothing else.
    assert rates(single, waited) == [20, 100]
