import pytest

from perfkit import units


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        *[(units.seconds, value, text) for value, text in {
            0: "0 s", 3.2e-8: "32 ns", 0.0000123: "12.3 µs", 0.0123: "12.3 ms",
            0.9999: "1 s", 1.5: "1.5 s", 99.6: "1 min 40 s", 3725: "62 min 05 s",
            -0.5: "-500 ms"}.items()],
        *[(units.size, value, text) for value, text in {
            0: "0 B", 999: "999 B", 1_500: "1.5 KB", 2.4e10: "24 GB",
            5e15: "5,000 TB"}.items()],
        # A ratio keeps three digits where it is small.
        *[(units.ratio, value, text + "\N{MULTIPLICATION SIGN}") for value, text in {
            0.0107: "0.0107", 0.25: "0.25", 1: "1.00", 9.99: "9.99", 38.6: "38.6",
            1234: "1,230"}.items()],
        *[(units.percent, value, text) for value, text in {
            0: "0 %", 0.0042: "0.4 %", 0.37: "37 %", 1: "100 %"}.items()],
        (units.rate, 1240, "1,240 examples/s"), (units.significant, 2e-5, "2e-05"),
    ],
)  # fmt: skip
def test_a_number_is_written_with_its_unit(write, value, text):
    assert write(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.5, "steps", "0.5 steps/s"), (3.065e11, "FLOP", "306 GFLOP/s"),
     (0.9999e12, "FLOP", "1 TFLOP/s"), (8.13e9, "B", "8.13 GB/s"),
     (2.6e7, "B", "26 MB/s"), (3.65e9, "Hz", "3.65 GHz"), (0.0, "FLOP", "0 FLOP/s"),
     (3.21e6, "calls", "3.21 million calls/s"), (999_400, "calls", "999,000 calls/s"),
     (7e9, "elements", "7 billion elements/s")],
)  # fmt: skip
def test_a_rate_is_written_in_the_size_that_its_unit_has(value, unit, text):
    assert units.rate(value, unit) == text


def test_an_interval_is_written_in_the_size_of_its_rate():
    said = units.rate_between(1.02e12, 0.97e12, 1.1e12, "FLOP")
    assert said == "1.02 TFLOP/s (0.97 to 1.1)"
    assert units.rate_between(1240, 1190, 1301) == "1,240 examples/s (1,190 to 1,300)"
    assert units.ratio_between(1.7, 1.5, 2.0) == "1.70× (1.50 to 2.00)"


def test_an_end_that_leaves_out_one_is_not_written_as_one():
    assert units.ratio_between(1.03, 1.002, 1.06) == "1.03× (1.002 to 1.06)"
    assert units.ratio_between(1.03, 1.0, 1.06) == "1.03× (1.00 to 1.06)"
    assert (units.times(1.002), units.times(1.0)) == ("1.002", "1.00")


@pytest.mark.parametrize(
    ("low", "high", "known"),
    [(1.0, 4.0, True), (1.0, 4.01, False), (0.0, 0.1, False), (-0.1, 0.2, False),
     (-4.0, -1.0, True), (-4.1, -1.0, False), (0.5, float("inf"), False),
     (float("nan"), float("nan"), False), (2.0, 2.0, True)],
)  # fmt: skip
def test_an_interval_over_more_than_a_factor_of_four_is_no_result(low, high, known):
    assert units.is_known(low, high) == known
    said = [
        units.between(1.5, low, high, units.seconds),
        units.ratio_between(1.5, low, high),
        units.rate_between(1.5, low, high).removesuffix(" examples/s"),
    ]
    assert [text == "?" for text in said] == [not known] * 3


def test_a_wide_interval_is_told_in_place_of_what_lies_in_it():
    assert units.roughly(0.043, 0.038, 0.055, units.seconds) == "43 ms"
    assert units.roughly(0.043, 0.024, 0.077, units.seconds) == "24 ms to 77 ms"
    assert not units.is_narrow(0.0, 1.0)
