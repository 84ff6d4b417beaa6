import dataclasses
import math
from collections import Counter

import pytest

from perfkit.machines import comparison_report, ratios
from perfkit.machines.compare import compare
from perfkit.machines.ratios import Ratio
from tests.machines import pairs

DRAWS = 200


def test_a_machine_against_itself_shows_no_difference():
    """Measured twice, each time with noise of 1 % in all that is measured."""
    said = Counter(
        compare(
            pairs.passport(seed=seed, noise=0.01, width=0.02),
            pairs.passport(seed=seed + DRAWS, noise=0.01, width=0.02),
        ).verdict
        for seed in range(DRAWS)
    )
    assert said["no difference shown"] >= 0.95 * DRAWS


def test_wide_intervals_leave_single_jobs_open_and_claim_nothing():
    said = Counter()
    for seed in range(20):
        both = (
            pairs.passport(seed=seed + more, noise=0.08, width=0.2) for more in (0, 50)
        )
        found = compare(*both)
        said[found.verdict] += 1
        assert not any(work.causes for work in found.works if not work.claimed)
    assert said["slower"] + said["faster"] <= 1


def test_a_passport_against_itself_is_never_a_difference():
    one = pairs.passport(width=0.3)
    assert compare(one, one).verdict == "too noisy to say"
    assert "may differ by more than 10 %" in compare(one, one).headline
    # One trial claims nothing.
    slow = pairs.onednn_off()
    once = pairs.each(slow.trainings, trials=1)
    found = compare(pairs.passport(), pairs.changed(slow, trainings=once))
    assert found.verdict == "too noisy to say"
    assert not any(work.claimed for work in found.works)


def test_a_claim_needs_a_ratio_beyond_the_noise_floors_of_both():
    a, b = (0.99, 1.0, 1.01), (0.93, 0.94, 0.95)
    assert ratios.between(a, b, (None, None)).verdict == "slower"
    assert ratios.between(a, b, (1.05, 1.05)).verdict == "no difference shown"
    assert ratios.between(a, b, (1.08, None)).verdict == "no difference shown"
    # A claim needs an interval that leaves out 1.
    wide = ratios.between((0.8, 1.0, 1.25), (0.7, 0.9, 1.15), (None, None))
    assert wide.verdict == "too noisy to say"
    half = math.hypot(math.log(1.25 / 0.8) / 2, math.log(1.15 / 0.7) / 2)
    assert wide.low == pytest.approx(0.9 * math.exp(-half), rel=1e-4)
    assert wide.high == pytest.approx(0.9 * math.exp(half), rel=1e-4)
    # More looks widen every interval.
    a, b = (0.97, 1.0, 1.03), (0.94, 0.97, 1.0)
    one, five = (ratios.between(a, b, (None, None), looks) for looks in (1, 5))
    # The normal distribution's 0.975 and 0.995: 1.95996 and 2.57583.
    ratio = math.log(five.high / five.low) / math.log(one.high / one.low)
    assert ratio == pytest.approx(2.57583 / 1.95996, rel=1e-3)


def test_on_the_whole_two_jobs_of_equal_doubt_count_alike():
    found = [
        Ratio(ratio=r, low=r / 1.2, high=r * 1.2, verdict="faster") for r in (1.1, 0.9)
    ]
    whole = ratios.on_the_whole(found)
    assert whole.ratio == pytest.approx(math.sqrt(1.1 * 0.9))
    assert whole.verdict in ("no difference shown", "too noisy to say")


def test_trainings_that_differ_both_ways_depend_on_the_training():
    rates = {"JPEG decode": 0.4, "TensorFlow product, float32": 2.0}
    found = compare(pairs.passport(), pairs.passport(rates))
    assert found.verdict == "depends on the training"
    assert found.headline == "Small CNN from JPEG takes 2.2 times as long on B as on A."
    assert "Wide dense runs 1.3 times as fast on B as on A." in repr(found)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        ((0.72, 0.6, 0.9), "72 % (60 % to 90 %)"),
        ((0.72, 0.04, 12.07), "?"),
        ((0.4, -0.2, 1.0), "?"),
        ((-0.1, -0.3, 0.1), "?"),
        ((0.0, -0.06, 0.05), "0 % (-6 % to 5 %)"),
        ((0.72, None, None), ""),
    ],
)
def test_a_share_that_may_be_anything_is_not_known(share, said):
    assert comparison_report.percent(*share) == said


def test_how_much_a_part_is_of_a_difference_is_said_only_where_that_is_known():
    found = compare(pairs.passport(), pairs.one_core())
    wide = dataclasses.replace(found.main.causes[0], share_low=0.04, share_high=12.07)
    vague = dataclasses.replace(found.main, changes=(wide,))
    for work, said in (
        (vague, "is part of the difference, how much is not known yet."),
        (found.main, " % of the difference (sure: "),
    ):
        told = dataclasses.replace(found, works=(work,), advice=())
        assert said in told.report.verdict.headline
