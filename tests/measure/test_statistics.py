import numpy as np
import pytest
from scipy import stats

from perfkit.measure import statistics
from perfkit.measure.statistics import Rounds
from perfkit.measure.steady import Steady


def part(rate, blocks=6, keys=()):
    seconds = np.full(blocks, 0.5)
    return Steady(keys, rate * seconds, seconds, 0.1, 0.2, 0.0)


def rounds(logs, within=0.0):
    logs = np.array(logs, dtype=float)
    return Rounds("new", "old", logs, np.full(len(logs), within))


def test_a_timing_is_the_geometric_mean_of_its_trials():
    timing = statistics.timing("v", [part(50), part(200)], [1.0, 3.0])
    assert timing.rate == pytest.approx(100)
    assert timing.setup_s == 2.0
    assert timing.trials == 2


def test_one_trial_leaves_a_timing_wide_open():
    draw = np.random.default_rng(0)
    noisy = Steady((), draw.uniform(9, 11, 12), np.ones(12), 0.1, 0.2, 0.0)
    one = statistics.timing("v", [noisy], [0.1])
    many = statistics.timing("v", [noisy] * 8, [0.1] * 8)
    assert one.high / one.low > (many.high / many.low) ** 4


def test_one_trial_borrows_the_spread_of_the_other_variants():
    usual = statistics.usual_spread([[part(90), part(110)], [part(50), part(60)]])
    logs = [np.log(110 / 90), np.log(60 / 50)]
    assert usual == pytest.approx(np.median(np.square(logs) / 2))
    timing = statistics.timing("v", [part(100)], [0.1], usual)
    reach = stats.t.ppf(0.975, 2) * np.sqrt(usual)
    assert np.log(timing.high / 100) == pytest.approx(reach)


def test_a_timing_covers_the_spread_between_trials():
    draw = np.random.default_rng(1)
    covered = 0
    for number in range(200):
        parts = [part(rate) for rate in 100 * np.exp(draw.normal(0, 0.1, 6))]
        timing = statistics.timing("v", parts, [0.1], seed=number)
        covered += timing.low <= 100 <= timing.high
    assert 0.90 <= covered / 200 <= 0.99


def test_a_comparison_of_many_rounds_is_students_interval():
    logs = np.random.default_rng(2).normal(0.2, 0.05, 60)
    of = rounds(logs)
    found = statistics.comparison(of, statistics.usual_variance([of]), 1.0)
    expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert np.log([found.low, found.high]) == pytest.approx(expected, rel=0.01)
    assert found.ratio == pytest.approx(np.exp(logs.mean()))


def test_two_rounds_that_agree_by_luck_borrow_the_spread_of_the_others():
    lucky = rounds([0.10, 0.10])
    alone = statistics.comparison(lucky, statistics.usual_variance([lucky]), 1.0)
    usual = statistics.usual_variance([lucky, rounds([0.3, -0.3]), rounds([0.2, 0])])
    among = statistics.comparison(lucky, usual, 1.0)
    assert alone.verdict == "faster"
    assert among.verdict == "too noisy to say"


def test_no_spread_is_believed_that_is_smaller_than_the_turns_show():
    of = rounds([0.10, 0.10, 0.10], within=0.04)
    assert statistics.comparison(of, 0.0, 1.0).verdict == "too noisy to say"


@pytest.mark.parametrize(
    ("logs", "floor", "verdict"),
    [
        ([0.20, 0.21, 0.19], 1.05, "faster"),
        ([-0.20, -0.21, -0.19], 1.05, "slower"),
        ([0.04, 0.041, 0.039], 1.06, "no difference shown"),
        ([0.001, -0.001, 0.0], 1.01, "no difference shown"),
        ([0.3, -0.3, 0.0], 1.01, "too noisy to say"),
    ],
)
def test_the_verdict_follows_from_interval_and_noise_floor(logs, floor, verdict):
    of = rounds(logs)
    usual = statistics.usual_variance([of])
    assert statistics.comparison(of, usual, floor).verdict == verdict


def test_what_the_machine_does_to_both_at_once_leaves_their_ratio_alone():
    weather = np.exp(np.random.default_rng(4).normal(0, 0.5, 8))
    keys, seconds = tuple(range(8)), np.full(8, 0.2)
    one = Steady(keys, 130 * weather * seconds, seconds, 0.1, 0.1, 0.0)
    other = Steady(keys, 100 * weather * seconds, seconds, 0.1, 0.1, 0.0)
    found = statistics.rounds("a", "b", [(one, other)])
    assert np.exp(found.logs) == pytest.approx([1.3])
    assert found.within == pytest.approx([0], abs=1e-12)


def test_the_noise_floor_is_what_the_twin_reached_and_a_standard_error():
    logs = np.array([0.02, 0.06])
    of = rounds(logs)
    error = logs.std(ddof=1) / np.sqrt(2)
    floor = statistics.noise_floor(of, float(logs.var(ddof=1)))
    assert floor == pytest.approx(np.exp(0.04 + error))


def test_a_comparison_states_its_doubt_when_printed():
    of = rounds([0.2, 0.21, 0.19])
    text = str(statistics.comparison(of, statistics.usual_variance([of]), 1.05))
    assert text == "new against old: 1.22\N{MULTIPLICATION SIGN} (1.20 to 1.24), faster"


def test_one_round_claims_nothing():
    of = rounds([0.7], within=1e-6)
    assert statistics.comparison(of, 0.0, 1.01).verdict == "too noisy to say"
