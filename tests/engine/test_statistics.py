from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from perfkit.engine import statistics
from perfkit.engine.spread import LEAST, Spread
from perfkit.engine.statistics import Rounds
from perfkit.engine.steady import Steady

KNOWN = Spread()


def part(rate, blocks=6, keys=()):
    seconds = np.full(blocks, 0.5)
    return Steady(keys, rate * seconds, seconds, 0.1, 0.2, 0.0)


def rounds(logs, within=0.0, turns=6):
    logs = np.array(logs, dtype=float)
    within, turns = (np.full(len(logs), value) for value in (within, turns))
    return Rounds("new", "old", logs, within, turns)


def compared(of, *others, known=KNOWN, floor=1.0):
    return statistics.comparison(of, statistics.usual(known, [of, *others]), floor)


def test_one_trial_leaves_a_timing_wide_open():
    draw = np.random.default_rng(0)
    noisy = Steady((), draw.uniform(9, 11, 12), np.ones(12), 0.1, 0.2, 0.0)
    one = statistics.timing("v", [noisy], [0.1])
    many = statistics.timing("v", [noisy] * 8, [0.1] * 8)
    assert one.high / one.low > (many.high / many.low) ** 4
    # Turns in one process are many; those of a process among others show it alone.
    turned = [replace(noisy, keys=tuple(range(12)))]
    turns = statistics.timing("v", turned, [0.1], one_process=True)
    reach = [np.log(made.high / made.rate) for made in (turns, one)]
    assert reach[0] / reach[1] == pytest.approx(stats.t.ppf(0.975, 11) / 12.7062)
    assert statistics.timing("v", turned, [0.1]) == one
    # A trial that was stopped after one tick shows no spread, so its rate is not known.
    assert not statistics.timing("v", [part(100, blocks=1)], [0.1]).is_known
    assert statistics.timing("v", [part(100, blocks=1)], [0.1], 0.01).is_known
    # A timing is the geometric mean of its trials.
    timing = statistics.timing("v", [part(50), part(200)], [1.0, 3.0])
    assert timing.rate == pytest.approx(100)
    assert timing.setup_s == 2.0
    assert timing.trials == 2
    # A rate that is not known is no number in a sentence.
    assert replace(timing, low=80.0, high=120.0).in_words("images") == "100 images/s"
    wide = replace(timing, low=20.0, high=500.0)
    assert wide.in_words() == "a rate that is not known yet"
    # It borrows the spread of the other variants.
    usual = statistics.usual_spread([[part(90), part(110)], [part(50), part(60)]])
    logs = [np.log(110 / 90), np.log(60 / 50)]
    assert usual == pytest.approx(np.median(np.square(logs) / 2))
    timing = statistics.timing("v", [part(100)], [0.1], usual)
    reach = stats.t.ppf(0.975, 2) * np.sqrt(usual)
    assert np.log(timing.high / 100) == pytest.approx(reach)
    # It covers the spread between trials.
    draw = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        parts = [part(rate) for rate in 100 * np.exp(draw.normal(0, 0.1, 6))]
        timing = statistics.timing("v", parts, [0.1])
        covered += timing.low <= 100 <= timing.high
    assert 0.90 <= covered / 200 <= 0.99


def test_a_comparison_of_many_rounds_is_students_interval():
    logs = np.random.default_rng(2).normal(0.2, 0.05, 60)
    found = compared(rounds(logs))
    expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert np.log([found.low, found.high]) == pytest.approx(expected, rel=0.01)
    assert found.ratio == pytest.approx(np.exp(logs.mean()))
    # A comparison states its doubt when printed.
    text = str(compared(rounds([0.2, 0.21, 0.19] * 3), floor=1.05))
    assert text == "new against old: 1.22\N{MULTIPLICATION SIGN} (1.21 to 1.23), faster"


def once(ratio):
    return rounds([np.log(ratio)], within=1e-4)


LUCKY = rounds([0.10, 0.10])
OTHERS = [rounds([0.3, -0.3]), rounds([0.2, 0]), rounds([-0.2, 0.1])] * 2


@pytest.mark.parametrize(
    ("of", "others", "more", "judgement"),
    [
        # The verdict follows from interval and noise floor.
        (rounds([0.20, 0.21, 0.19]), [], {"floor": 1.05}, "faster"),
        (rounds([-0.20, -0.21, -0.19]), [], {"floor": 1.05}, "slower"),
        (rounds([0.04, 0.041, 0.039]), [], {"floor": 1.06}, "no difference shown"),
        (rounds([0.001, -0.001, 0.0]), [], {"floor": 1.01}, "no difference shown"),
        (rounds([0.3, -0.3, 0.0]), [], {"floor": 1.01}, "too noisy to say"),
        # Rounds that agree by luck borrow the spread of the others, and do not hide
        # what their turns show.
        (LUCKY, [], {}, "faster"),
        (LUCKY, OTHERS, {}, "too noisy to say"),
        (rounds([0.10, 0.10], within=0.04), [], {}, "too noisy to say"),
        # One round claims what no usual spread explains, and more on a known machine.
        (once(14), [], {"floor": 1.01}, "faster"),
        (once(1.1), [], {"floor": 1.01}, "one round: not judged"),
        (once(1 / 14), [], {"floor": 1.01}, "slower"),
        (once(1.1), [], {}, "one round: not judged"),
        (once(1.1), [], {"known": Spread(scale=1.0, freedom=10.0)}, "faster"),
    ],
)
def test_a_comparison_is_judged_by_its_interval(of, others, more, judgement):
    assert compared(of, *others, **more).judgement == judgement


def test_two_rounds_suffice_where_even_the_nearer_end_is_far_from_1():
    assert compared(rounds([4.0, 4.2])).after(3).verdict == "faster"
    assert compared(rounds([-4.0, -4.2])).after(3).verdict == "slower"
    assert compared(LUCKY).after(3).verdict == "too noisy to say"
    assert compared(once(60)).after(3).verdict == "too noisy to say"


def test_what_is_the_largest_of_many_by_chance_is_likely_at_most():
    usual = statistics.usual(KNOWN, [of := rounds([0.10, 0.12])])
    alone, of_many = (statistics.comparison(of, usual, 1.0, k) for k in (1, 12))
    assert (alone.verdict, alone.sure) == ("faster", "sure")
    assert of_many == replace(alone, stands_out=False)
    assert of_many.sure == "likely"


def test_the_control_tells_of_noise_from_its_first_round_on():
    # It does what the baseline does: what the two differ is noise, and all of it.
    change, control = once(1.5), replace(once(1.3), alike=True)
    assert compared(change).verdict == "faster"
    assert compared(change, control).verdict == "too noisy to say"
    assert statistics.variances([control]) == [
        (pytest.approx(np.log(1.3) ** 2 / 5e-4), 1)
    ]
    # The noise floor is what it reached and a standard error.
    of = rounds([0.02, 0.06])
    # One degree of freedom of its own, three of a usual machine.
    error = np.sqrt((of.logs.var(ddof=1) + 3 * 2.25 * LEAST**2) / 4 / 2)
    assert statistics.noise_floor(of, KNOWN) == pytest.approx(np.exp(0.04 + error))


def test_what_varies_beyond_all_others_stands_by_itself_and_no_round_says_more():
    # One that met no stall has no more of a say.
    of = rounds([0.0, 0.4])
    of.within[:] = 0.0001, 0.04
    assert np.log(compared(of).ratio) == pytest.approx(0.2)
    wild = rounds([0.5, -0.3])
    reach = stats.t.ppf(0.975, 3) * wild.logs.std(ddof=1) / np.sqrt(2)
    found = compared(wild, *[rounds([0.01, -0.01])] * 4)
    assert np.log(found.high) == pytest.approx(0.1 + reach)


def test_what_the_machine_does_to_both_at_once_leaves_their_ratio_alone():
    weather = np.exp(np.random.default_rng(4).normal(0, 0.5, 8))
    keys, seconds = tuple(range(8)), np.full(8, 0.2)
    one = Steady(keys, 130 * weather * seconds, seconds, 0.1, 0.1, 0.0)
    other = Steady(keys, 100 * weather * seconds, seconds, 0.1, 0.1, 0.0)
    found = statistics.rounds("a", "b", [(one, other)])
    assert np.exp(found.logs) == pytest.approx([1.3])
    assert found.within == pytest.approx([0], abs=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "judgement", "words"),
    [
        (1.5, 2.5, "faster", "2.0 times as fast as"),
        (1.2, 9.0, "faster, by how much is not known yet", "faster than"),
    ],
)
def test_a_verdict_without_a_number_says_so(low, high, judgement, words):
    sure = compared(rounds([0.2, 0.21, 0.19]))
    found = replace(sure, ratio=2.0, low=low, high=high)
    assert (found.judgement, found.as_fast_as) == (judgement, words)
    noise = replace(found, verdict="too noisy to say", low=0.3)
    assert noise.judgement == "too noisy to say"
    assert noise.as_fast_as == "faster or slower than"


def test_many_turns_in_one_process_are_surer_than_a_pair_of_processes():
    apart = rounds([np.log(1.3)], within=1e-2, turns=9)
    together = replace(apart, one_process=True)
    assert compared(together).half_width < 0.8 * compared(apart).half_width
    few = rounds([np.log(1.3)], within=1e-2, turns=1)
    assert compared(replace(few, one_process=True)) == compared(few)
