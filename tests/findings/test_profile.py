import pytest

from tests.training.profile.profiled import profile


def test_the_tracers_cost_shows_where_steps_took_longer_than_most_others():
    made = profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 9 + (0.5,))
    assert made.cost == pytest.approx(1.2)
    # Of few times the longest counts: tenths would leave out the most of them.
    assert not profile(traced_s=(0.0099,), untraced_s=(0.0098, 0.01)).shows_cost
    assert not profile(traced_s=(1.19,), untraced_s=(1.0, 1.2)).shows_cost
    assert profile(traced_s=(0.0101,), untraced_s=(0.0098, 0.01)).shows_cost
    said = repr(profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 3))
    assert "a step takes 10 ms without it (10 ms to 10 ms in all of 3 times)" in said
    assert "so the times below are 1.20× as long" in said
    made = profile(traced_s=(0.012,) * 10, untraced_s=(0.010,) * 9, at_a_time=8)
    assert "an execution of 8 steps takes 10 ms without it" in repr(made)
    assert "in most of 9 times" in repr(made)

    # A single time is its own range.
    assert profile(untraced_s=(0.01,)).usual_step_s == (0.01, 0.01)
