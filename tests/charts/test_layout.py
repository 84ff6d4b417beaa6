from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from perfkit.charts import curves
from perfkit.charts.layout import (
    OWN,
    describe_others,
    even_ticks,
    layout,
    leads,
    limits,
    log_ticks,
)
from perfkit.findings.record import Verdict
from perfkit.findings.standing import Guess, Standing, standings
from tests.findings.made import finding

X = "\N{MULTIPLICATION SIGN}"


def laid(found, guess=None, **more):
    return layout(standings(found), guess or Guess(), found.noise_floor, **more)


def test_rows_are_sorted_by_rate_and_all_stand_within_the_axis():
    rows = laid(finding()).rows
    assert [row.name for row in rows] == ["prefetched", "parallel", "naive"]
    assert [row.mark for row in rows] == ["fastest", "", "baseline"]
    assert [row.ratio for row in rows] == [f"1.9{X}", f"1.3{X}", ""]
    assert "1.9 times as fast as naive (1.8 to 2.0), sure" in rows[0].sentence
    page = laid(finding(), Guess("3x", ratio=3.0)).for_page()
    bands = [end for _, _, _, *ends in page["bands"] for end in ends]
    ends = [end for row in page["rows"] for end in row["ends"]]
    places = [at for at, *_ in page["ticks"]] + [row["at"] for row in page["rows"]]
    assert all(0 <= place <= 100 for place in bands + ends + places)
    assert {kind for kind, *_ in page["bands"]} == {"noise", "guess"}


def test_what_has_no_interval_yet_is_where_its_ticks_put_it_or_says_why():
    waiting = [Standing(variant=name, group="") for name in ("one", "two")]
    one, two = layout(waiting, Guess(), so_far={"one": 123.4}).rows
    assert (one.rate, one.words, one.is_known) == (123.4, "123", False)
    assert "123 so far, no interval yet" in one.sentence
    assert (two.rate, two.words, two.sentence) == (None, "", "two is to come")
    gone = Standing(variant="a", group="", problem="was not run: no")
    (row,) = layout([gone], Guess()).rows
    assert (row.rate, row.problem) == (None, "was not run: no")
    # A microbenchmark stands at its own rate, and says it with its unit.
    timing = finding().timings[0]
    benchmark = Standing(variant="copy", group="memory", timing=timing, unit="B")
    drawn = layout([benchmark], Guess(), as_share=True)
    (row,) = drawn.rows
    assert (row.rate, drawn.unit, row.mark) == (1.0, OWN, "")
    assert row.words.endswith(" B/s")


def test_a_guess_far_off_does_not_squeeze_the_rest():
    near, far, farther = (
        laid(finding(), Guess("", ratio=ratio)) for ratio in (1.0, 3.0, 99.0)
    )
    assert near.ends[1] == farther.ends[1] < far.ends[1] < 4 * near.ends[1]
    # What does not stand on the axis is not drawn at its end.
    assert "guess" in {band.kind for band in far.bands}
    assert "guess" not in {band.kind for band in farther.bands}
    # One below what was measured stands on a logarithmic axis too.
    wide = finding({"naive": 100.0, "fast": 5000.0})
    low, lower = (laid(wide, Guess("", ratio=ratio)) for ratio in (0.4, 0.01))
    assert low.ends[0] < 41 < lower.ends[0]
    assert [one.at(41.0) > 0 for one in (low, lower)] == [True, False]
    # An interval out of reach squeezes nothing.
    assert limits([100, 200], [90, 210]) == (90, 210)
    assert limits([100, 200], [0.001, 1e9]) == (50, 400)
    assert limits([], []) == (1, 1)
    assert limits([0.0, 10.0], []) == (10, 10)


def test_who_leads_is_who_the_verdict_names():
    found = replace(finding(), unfinished=True)
    said = leads(found, standings(found))
    assert said == "So far prefetched leads, 1.9 times as fast as naive."
    open_ = replace(found, verdict=Verdict(headline="Not known yet.", much="So much."))
    assert leads(open_, standings(open_)) == "So far: Not known yet. So much."
    assert leads(finding(), ()) == finding().verdict.headline


IDLE = [0.1] * 10


@pytest.mark.parametrize(
    ("cores", "words"),
    [
        ([], ""),
        ([0.3] * 30, ""),
        (IDLE + [1.1] * 10 + IDLE, "other programs took 1.1 cores, 2 to 4 s"),
        ([1.04] * 10, "other programs took 1 core, 0 to 2 s"),
        # A peak of a fifth of a second is no second.
        ([0.1] * 5 + [2.0] + [0.1] * 9, ""),
        # The longest stretch counts.
        ([1.0] * 5 + [0.0] * 5 + [1.0] * 10, "other programs took 1 core, 2 to 4 s"),
    ],
)
def test_what_others_took_is_told_by_its_longest_stretch(cores, words):
    assert describe_others((i / 5, kept) for i, kept in enumerate(cores)) == words


@pytest.mark.parametrize(
    ("made", "low", "high", "ticks"),
    [
        (even_ticks, 0, 2000, [0, 500, 1000, 1500, 2000]),
        (even_ticks, 0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (even_ticks, 0.93, 1.31, [0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3]),
        (even_ticks, 0, 0, [0]),
        (log_ticks, 15, 120, [20, 50, 100]),
        (log_ticks, 1, 1000, [1, 3, 10, 30, 100, 300, 1000]),
        (log_ticks, 1, 1e6, [10.0**n for n in range(7)]),
    ],
)
def test_even_ticks_are_round_numbers_and_log_ticks_multiply(made, low, high, ticks):
    assert made(low, high) == pytest.approx(ticks, rel=1e-12)


@given(st.floats(1e-6, 1e9), st.floats(1.01, 1e9))
def test_ticks_lie_on_the_axis_and_are_not_too_many(low, factor):
    high = low * factor
    for ticks in (even_ticks(low, high), log_ticks(low, high)):
        assert len(ticks) <= 10
        assert ticks == sorted(ticks)
        assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)


def test_numbers_that_would_meet_are_left_out_the_first_ones_staying():
    axes = Figure(figsize=(2, 1), dpi=72).add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 144)
    curves.put(axes, [100, 20, 40, 110], lambda value: f"{value:g},000")
    assert list(axes.get_xticks()) == [20, 100]
    curves.put(axes, [20, 70, 120], lambda value: f"{value:g}")
    assert list(axes.get_xticks()) == [20, 70, 120]
