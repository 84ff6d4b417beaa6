import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from perfkit.engine.measurement import CONTROL, Measurement, Variant, line, pay_back
from perfkit.engine.steady import steady
from tests.findings.made import completed

BATCH = 10


def trial(variant, round, first, step):
    """A first call of ``first`` seconds, then steps of ``step`` seconds, four a tick.

    The first call makes one step, as a loop's does.
    """
    stamps = [0.5, 0.5 + first]
    stamps += [stamps[-1] + 4 * step * number for number in range(1, 31)]
    ticks = zip(stamps, [0, BATCH, *[4 * BATCH] * 30], strict=True)
    return completed(variant, round, ticks, setup_s=0.5)


def measured(**costs):
    """A run whose variants cost what is given: ``(first call, step)`` per round."""
    trials = [
        trial(name, number, *cost)
        for name, rounds in costs.items()
        for number, cost in enumerate(rounds, start=1)
    ]
    controls = [trial(CONTROL, n, *c) for n, c in enumerate(costs["eager"], start=1)]
    return Measurement(
        variants=tuple(Variant(name, list, against="eager") for name in costs),
        trials=(*trials, *controls),
        baseline="eager",
    )


def test_a_crossing_is_where_adding_up_the_steps_says_it_is():
    run = measured(eager=[(0.11, 0.010)] * 3, graph=[(0.95, 0.002)] * 3)
    slow = itertools.accumulate([0.11, *[0.010] * 500])
    fast = itertools.accumulate([0.95, *[0.002] * 500])
    steps = next(n for n, (s, f) in enumerate(zip(slow, fast, strict=True), 1) if f < s)
    paid = pay_back(run, "graph", "eager")
    assert paid.paying == "pays back"
    assert steps - 1 <= paid.examples / BATCH <= steps
    assert [paid.low, paid.high] == pytest.approx([paid.examples] * 2)
    # Steps are said with their interval.
    paid = replace(paid, examples=320.0, low=200.0, high=500.0)
    assert paid.steps(32) == "10 steps (7 to 16)"
    assert replace(paid, low=128.0, high=1000.0).steps(32) == "at least 4 steps"


def test_the_work_of_the_first_call_is_not_what_it_costs_extra():
    one = trial("graph", 1, 0.5, 0.02)
    assert line(one, steady(one)) == pytest.approx((0.48, 0.002))


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_what_a_test_of_each_number_of_steps_leaves_open(seed):
    draw = np.random.default_rng(seed)
    eager = [(0.1, step) for step in draw.normal(0.010, 0.0008, 5)]
    graph = [(first, 0.004) for first in draw.normal(0.6, 0.06, 5)]
    paid = pay_back(measured(eager=eager, graph=graph), "graph", "eager")
    (first, step), (first_fast, step_fast) = np.transpose(eager), np.transpose(graph)
    extra = first_fast - step_fast - (first - step)
    saved = (step - step_fast) / BATCH
    counts = np.linspace(1, 4000, 16_000)
    apart = extra[:, None] - counts * saved[:, None]
    open_ = counts[stats.ttest_1samp(apart, 0).pvalue > 0.05]
    assert paid.low == pytest.approx(open_[0], abs=0.5)
    assert paid.high == pytest.approx(open_[-1], abs=0.5)
    assert paid.low < paid.examples < paid.high


def test_slower_steps_never_pay_back_and_equal_ones_are_not_shown_to():
    run = measured(
        eager=[(0.1, 0.01)] * 3, slow=[(0.2, 0.02)] * 3, same=[(0.2, 0.01)] * 3
    )
    assert pay_back(run, "slow", "eager").paying == "never"
    assert pay_back(run, "same", "eager").paying == "not shown"
    assert pay_back(run, "same", "eager").examples is None
    assert pay_back(run, "missing", "eager") is None
    # One round shows nothing.
    once = measured(eager=[(0.1, 0.01)], graph=[(0.2, 0.001)])
    assert pay_back(once, "graph", "eager").paying == "one round"
    # Who starts sooner and works faster is ahead at once.
    run = measured(eager=[(0.5, 0.01)] * 3, graph=[(0.4, 0.002)] * 3)
    paid = pay_back(run, "graph", "eager")
    assert (paid.paying, paid.examples, paid.low) == ("at once", 0.0, 0.0)
    # A saving that is hardly known leaves the end open.
    eager = [(0.1, 0.0100), (0.1, 0.0104)]
    graph = [(0.6, 0.0060), (0.6, 0.0075)]
    paid = pay_back(measured(eager=eager, graph=graph), "graph", "eager")
    assert paid.paying == "pays back"
    assert paid.high is None
    assert 0 < paid.low < paid.examples


def test_a_first_call_that_may_be_longer_is_not_ahead_at_once():
    firsts = ((0.1, 0.35), (0.4, 0.05), (0.2, 0.27))
    run = measured(
        eager=[(first, 0.01) for first, _ in firsts],
        graph=[(first, 0.008) for _, first in firsts],
    )
    paid = pay_back(run, "graph", "eager")
    assert paid.paying == "not shown"
    # It is ahead by then, whichever it is: Student's t for two degrees of freedom.
    extra = np.array([second - first for first, second in firsts])
    reach = 4.303 * extra.std(ddof=1) / 3**0.5
    assert paid.high == pytest.approx((extra.mean() + reach) * BATCH / 0.002, rel=0.02)
