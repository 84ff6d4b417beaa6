import math

import numpy as np
import pytest

from perfkit.engine.statistics import Estimate
from perfkit.questions.cpu_or_gpu import PAIRS, CpuOrGpu, Size, cost, name_of
from perfkit.questions.shared import batches
from tests.questions import crossings
from tests.questions.crossings import CPU, GPU, ONE, SIZES, TWO, measured, steps


def true_crossing(first, second):
    """The width where the second device is a tenth faster, by halving."""
    low, high = 1.0, 1e5
    for _ in range(60):
        middle = math.sqrt(low * high)
        work = cost(middle, 64)
        pays = crossings.seconds(first, work) >= 1.1 * crossings.seconds(second, work)
        low, high = (low, middle) if pays else (middle, high)
    return middle


def timed(costs, sizes=SIZES, noise=0.0, seed=0):
    draw = np.random.default_rng(seed)
    for size in sizes:
        slower = math.exp(noise * draw.standard_normal())
        step = crossings.seconds(costs, size.cost) * slower
        ends = math.exp(max(2 * noise, 1e-3))
        yield size.cost, Estimate(value=step, low=step / ends, high=step * ends)


def fitted(timed):
    work, steps = zip(*timed, strict=True)
    return batches.fitted(work, steps)


def result(timed, **more):
    return CpuOrGpu().result(measured(timed, **more))


def crossing(first, second, pair=PAIRS[0], **more):
    return result(steps(first, second, pair=pair), **more).crossing


@pytest.mark.parametrize("costs", [ONE, CPU, GPU])
def test_injected_costs_are_found_within_five_percent(costs):
    fit = fitted(timed(costs))
    assert [cost.value for cost in fit.each] == pytest.approx([*costs], rel=0.05)


def test_the_intervals_hold_the_truth():
    held = 0
    for seed in range(40):
        parts = zip(fitted(timed(ONE, noise=0.05, seed=seed)).each, ONE, strict=True)
        held += sum(part.low <= truth <= part.high for part, truth in parts)
    assert held >= 0.9 * 120


def test_three_sizes_are_not_fitted_no_cost_is_below_zero_and_a_miss_is_told():
    fit = fitted(timed((0.0, 0.0, 1e-10), noise=0.05))
    assert min(cost.low for cost in fit.each) >= 0
    assert fit.each[0].low == pytest.approx(0, abs=1e-5)
    assert fitted(timed(ONE, SIZES[:3])) is None
    known = list(timed(ONE))
    work, step = known[-2]
    around = [part * step.value for part in (2, 1.9, 2.1)]
    odd = work, Estimate(**dict(zip(("value", "low", "high"), around, strict=True)))
    assert fitted([*known[:3], odd, known[-1]]).worst > 0.1
    assert fitted(known).worst < 0.001


@pytest.mark.parametrize(
    ("first", "second", "pair"), [(ONE, TWO, PAIRS[0]), (CPU, GPU, PAIRS[1])]
)
def test_a_known_crossover_is_found_and_held_by_the_interval(first, second, pair):
    quiet, truth = crossing(first, second, pair), true_crossing(first, second)
    assert quiet.kind == "from"
    assert quiet.width == pytest.approx(truth, rel=0.05)
    assert quiet.low <= quiet.width <= quiet.high
    noisy = crossing(first, second, pair, noise=0.05)
    assert noisy.low < truth < noisy.high
    assert noisy.high / noisy.low > 1.04 * quiet.high / quiet.low


@pytest.mark.parametrize(
    ("times", "noise", "kind"),
    [
        *((1, 0.002, "never"), (2, 0.002, "never")),
        *((0.5, 0.002, "always"), (1, 0.8, "open")),
    ],
)
def test_devices_of_like_costs_never_cross_and_noise_hides_whether(times, noise, kind):
    assert crossing(ONE, tuple(times * part for part in ONE), noise=noise).kind == kind


def test_one_round_and_a_gain_that_is_lost_again_are_no_crossover():
    assert crossing(ONE, tuple(0.95 * part for part in ONE), rounds=1).kind == "open"
    assert crossing(ONE, ONE, rounds=1).kind == "open"
    known = steps(ONE, TWO)
    name = name_of("all cores", "width 2,048", 64)
    known[name] = (64, 2 * known[name][1])
    assert result(known).crossing.kind == "mixed"
    assert result(steps(ONE, TWO, SIZES[:1])).curve is None


def test_work_is_counted_from_shapes():
    # Three products of 8 by 8 and one of 8 by 10, forward and for the weights; all but
    # the first once more for what lies before.
    assert Size(8, 5).cost.flops == 2 * 5 * (2 * (3 * 64 + 80) + (2 * 64 + 80))
    assert Size(8, 5).cost.traffic == 4 * (6 * (3 * 64 + 80) + 4 * 5 * 24)
