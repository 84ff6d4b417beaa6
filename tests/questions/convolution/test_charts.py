import re

import pytest

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


def test_a_row_says_its_arithmetic_and_its_interval():
    figure = gallery.chart(of(ASKED), "channels")
    rows = re.findall(r"(\d+) in, (\d+) out: ([\d.]+) ± \d\S* % GFLOP/s", figure.alt)
    reached = {(int(into), int(out)): float(speed) for into, out, speed in rows}
    assert reached == pytest.approx(SPEEDS, rel=0.05)
    assert list(reached) == sorted(SPEEDS)
    assert "8 in, 9 out" in words(figure)


def test_it_is_offered_where_counts_were_timed_and_says_so_where_they_were_not():
    assert "channels" in gallery.kinds(of(ASKED))
    other = of(Convolution())
    assert "channels" not in gallery.kinds(other)
    assert "No channel counts were timed" in gallery.chart(other, "channels").alt
