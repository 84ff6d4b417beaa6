import pytest

from perfkit import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (3.2e-8, "32 ns"),
        (0.0000123, "12.3 µs"),
        (0.0123, "12.3 ms"),
        (0.9999, "1 s"),
        (1.5, "1.5 s"),
        (99.6, "1 min 40 s"),
        (3725, "62 min 05 s"),
        (-0.5, "-500 ms"),
    ],
)
def test_seconds(value, text):
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_500, "1.5 KB"),
        (2.4e10, "24 GB"),
        (5e15, "5,000 TB"),
    ],
)
def test_size(value, text):
    assert units.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0107, "0.0107"),
        (0.25, "0.25"),
        (1, "1.00"),
        (9.99, "9.99"),
        (38.6, "38.6"),
        (1234, "1,230"),
    ],
)
def test_ratio_keeps_three_digits_where_it_is_small(value, text):
    assert units.ratio(value) == text + "\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 %"), (0.0042, "0.4 %"), (0.37, "37 %"), (1, "100 %")]
)
def test_percent(value, text):
    assert units.percent(value) == text


def test_rate_has_thousands_and_a_unit():
    assert units.rate(1240) == "1,240 examples/s"
    assert units.rate(0.5, "steps") == "0.5 steps/s"
