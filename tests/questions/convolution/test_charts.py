import re

from perfkit.questions import gallery
from perfkit.questions.convolution import Convolution
from perfkit.questions.convolution.channels import name_of, pairs_around
from tests.charts.test_kinds import words
from tests.findings.made import finding

ASKED = Convolution(compare="channels", side=16, channels=8, filters=8)
# GFLOP/s by channels in and out.
SPEEDS = {(8, 8): 1.0, (8, 9): 1.8, (9, 8): 1.0, (9, 9): 1.6}


def of(asked):
    pairs = {(p.channels, p.filters): p for p in pairs_around(ASKED.problem).values()}
    rates = {
        name_of(pairs[counts]): 1e9 * speed / pairs[counts].flops
        for counts, speed in SPEEDS.items()
    }
    more = {"experiment": "convolution", "parameters": asked.parameters}
    return finding(rates, against=ASKED.baseline, **more)


def test_a_cell_says_its_arithmetic_and_is_the_darker_the_more_that_is():
    figure = gallery.chart(of(ASKED), "channels")
    alt = figure.alt
    assert re.search(r"8 in, 8 out: (1|0\.9\d+|1\.0\d) GFLOP/s ± \d", alt)
    assert re.search(r"8 in, 9 out: 1\.[78]\d? GFLOP/s ± \d", alt)
    assert re.search(r"9 in, 9 out: 1\.[56]\d? GFLOP/s ± \d", alt)
    said = words(figure)
    assert said.count("8 = 8 × 1") == 2
    assert said.count("9") == 2
    # Cells are drawn in the order of the pairs, the one asked for first.
    shades = re.findall(r"fill: ?#0173b2; ?opacity: ?([\d.]+)", figure.svg)
    first, most, same, less = map(float, shades)
    assert most > less > first
    assert abs(first - same) < 0.1


def test_it_is_offered_where_counts_were_timed_and_says_so_where_they_were_not():
    assert "channels" in gallery.kinds(of(ASKED))
    other = of(Convolution())
    assert "channels" not in gallery.kinds(other)
    assert "No channel counts were timed" in gallery.chart(other, "channels").alt
