import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfkit.questions import gallery
from tests.charts.test_any_finding import check
from tests.charts.test_kinds import words
from tests.findings.made import finding

RATES = {"naive": 1000.0, "8 in, 9 out": 900.0}
RATES |= {"9 in, 8 out": 500.0, "9 in, 9 out": 400.0}
NOTE = {
    "naive": {"in": 8, "out": 8, "flops": 1e6},
    "8 in, 9 out": {"in": 8, "out": 9, "flops": 2e6},
    "9 in, 8 out": {"in": 9, "out": 8, "flops": 2e6},
    "9 in, 9 out": {"in": 9, "out": 9, "flops": 4e6},
}


def of(note):
    return finding(RATES, notes={"channels": note}, experiment="convolution")


def drawn(note=NOTE):
    return gallery.chart(of(note), "channels")


def test_a_cell_says_its_arithmetic_and_is_the_darker_the_more_that_is():
    figure = drawn()
    alt = figure.alt
    assert re.search(r"8 in, 8 out: (1|0\.9\d+|1\.0\d) GFLOP/s ± \d", alt)
    assert re.search(r"8 in, 9 out: 1\.[78]\d? GFLOP/s ± \d", alt)
    assert re.search(r"9 in, 9 out: 1\.[56]\d? GFLOP/s ± \d", alt)
    said = words(figure)
    assert said.count("8 = 8 × 1") == 2
    assert said.count("9") == 2
    # Cells are drawn in the order of the variants: 1.0, 1.8, 1.0 and 1.6 GFLOP/s.
    shades = re.findall(r"fill: ?#0173b2; ?opacity: ?([\d.]+)", figure.svg)
    one, most, same, less = map(float, shades)
    assert most > less > one
    assert abs(one - same) < 0.1


def test_it_is_offered_where_counts_are_known_and_says_so_where_they_are_not():
    assert "channels" in gallery.kinds(of(NOTE))
    assert "No variant tells its channel counts" in drawn(7).alt


number = st.floats() | st.integers() | st.none() | st.text(max_size=3)
odd = st.dictionaries(st.sampled_from(["in", "out", "flops"]), number) | number


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(note=st.dictionaries(st.sampled_from([*RATES]), odd) | odd)
def test_a_note_from_anywhere_is_a_picture(note):
    assert len(check(drawn(note)).svg) < 60_000
