import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from perfkit.charts import curves, scale


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 2000, [0, 500, 1000, 1500, 2000]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.93, 1.31, [0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3]),
        (0, 0, [0]),
    ],
)
def test_even_ticks_are_round_numbers(low, high, ticks):
    assert scale.even_ticks(low, high) == ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (15, 120, [20, 50, 100]),
        (1, 1000, [1, 3, 10, 30, 100, 300, 1000]),
        (1, 1e6, [10.0**n for n in range(7)]),
    ],
)
def test_log_ticks_multiply(low, high, ticks):
    assert scale.log_ticks(low, high) == pytest.approx(ticks)


@given(st.floats(1e-6, 1e9), st.floats(1.01, 1e9))
def test_ticks_lie_on_the_axis_and_are_not_too_many(low, factor):
    high = low * factor
    for ticks in (scale.even_ticks(low, high), scale.log_ticks(low, high)):
        assert len(ticks) <= 10
        assert ticks == sorted(ticks)
        assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)


def test_an_interval_out_of_reach_does_not_squeeze_the_rest():
    assert scale.limits([100, 200], [90, 210]) == (90, 210)
    assert scale.limits([100, 200], [0.001, 1e9]) == (50, 400)
    assert scale.limits([], []) == (1, 1)
    assert scale.limits([0.0, 10.0], []) == (10, 10)


def test_rates_far_apart_need_a_log_axis():
    assert not scale.is_wide([100, 500])
    assert scale.is_wide([100, 50, 2500])
    assert not scale.is_wide([0, 0])


def test_numbers_that_would_meet_are_left_out_the_first_ones_staying():
    axes = Figure(figsize=(2, 1), dpi=72).add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 144)
    curves.put(axes, [100, 20, 40, 110], lambda value: f"{value:g},000")
    assert list(axes.get_xticks()) == [20, 100]
    curves.put(axes, [20, 70, 120], lambda value: f"{value:g}")
    assert list(axes.get_xticks()) == [20, 70, 120]
