"""A pause that comes again, whose share is part of the rate."""

from dataclasses import replace

import pytest

from perfkit.measure.measurement import Arm, Measurement
from perfkit.measure.recurring import Usual
from perfkit.measure.steady import steady
from perfkit.measure.trial import Trial


def trial_with(pauses, recurring):
    """1,000 examples/s in ticks of 10 ms, after a first call of a second."""
    ticks = ((0.0, 0), (1.0, 10), *((1 + 0.01 * n, 10) for n in range(1, 101)))
    return Trial(
        variant="v",
        round=1,
        outcome="completed",
        ticks=ticks,
        pauses=pauses,
        recurring=recurring,
    )


def with_pauses_rate(found):
    return found.with_pauses(found.pauses_s).rate


def test_the_share_of_an_epochs_end_is_part_of_the_rate():
    found = steady(trial_with({"epoch end": (0.4, 0.6)}, {"epoch end": (1000, 0)}))
    # 1,000 examples take a second, and after them comes half a second.
    assert with_pauses_rate(found) == pytest.approx(1000 / 1.5)


def test_the_work_that_is_done_in_a_pause_is_not_counted_twice():
    found = steady(trial_with({"epoch end": (0.5,)}, {"epoch end": (1000, 100)}))
    assert with_pauses_rate(found) == pytest.approx(1000 / 1.4)


def test_a_pause_that_does_not_come_again_stays_out_of_the_rate():
    found = steady(trial_with({"checkpoint": (5.0,)}, {}))
    assert with_pauses_rate(found) == pytest.approx(1000)


def test_a_trial_that_never_saw_its_pause_has_no_rate():
    assert steady(trial_with({}, {"epoch end": (1000, 0)})) is None


def test_what_is_random_in_pauses_is_shared_by_all_variants_alike():
    label = "epoch end"
    calm = trial_with({label: (0.1, 0.1, 0.1)}, {label: (1000, 0)})
    stalled = trial_with({label: (0.1, 0.1, 0.7)}, {label: (1000, 0)})
    usual = Usual({"one": [calm], "other": [stalled]})
    # The shortest is 0.1 s for both, and 0.6 s beyond it fall on six pauses.
    for name, trial in (("one", calm), ("other", stalled)):
        assert usual.usual_s(name, trial, 0.001) == pytest.approx(0.2 / 1000)


def test_a_variant_whose_pauses_are_shown_to_differ_keeps_its_own():
    label = "epoch end"
    calm = trial_with({label: (0.1,) * 12}, {label: (1000, 0)})
    slow = trial_with({label: (0.1, *(0.5,) * 11)}, {label: (1000, 0)})
    usual = Usual({"one": [calm], "other": [slow], "third": [slow]})
    assert usual.usual_s("one", calm, 0.001) == pytest.approx(0.1 / 1000)
    expected = (0.1 + 11 * 0.4 / 12) / 1000
    assert usual.usual_s("other", slow, 0.001) == pytest.approx(expected)


def test_a_variant_about_its_pauses_counts_those_of_its_own_trials():
    label = "epoch end"
    arms = (Arm("given", iter), Arm("swap", iter, against="given", own_pauses=True))
    slow = trial_with({label: (1.0,)}, {label: (1000, 0)})
    quick = trial_with({label: (0.5,)}, {label: (1000, 0)})
    trials = (replace(slow, variant="given"), replace(quick, variant="swap"))
    compared = Measurement(arms=arms, trials=trials).compare("swap", "given")
    assert compared.ratio == pytest.approx(2 / 1.5)
