"""A pause that comes again, whose share is part of the rate."""

import pytest

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


def test_the_share_of_an_epochs_end_is_part_of_the_rate():
    found = steady(trial_with({"epoch end": (0.4, 0.6)}, {"epoch end": (1000, 0)}))
    # 1,000 examples take a second, and after them comes half a second.
    assert found.rate == pytest.approx(1000 / 1.5)


def test_the_work_that_is_done_in_a_pause_is_not_counted_twice():
    found = steady(trial_with({"epoch end": (0.5,)}, {"epoch end": (1000, 100)}))
    assert found.rate == pytest.approx(1000 / 1.4)


def test_a_pause_that_does_not_come_again_stays_out_of_the_rate():
    found = steady(trial_with({"checkpoint": (5.0,)}, {}))
    assert found.rate == pytest.approx(1000)


def test_a_trial_that_never_saw_its_pause_has_no_rate():
    assert steady(trial_with({}, {"epoch end": (1000, 0)})) is None
