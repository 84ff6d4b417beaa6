from hypothesis import given
from hypothesis import strategies as st

from perfkit.charts.layout import OWN, even_ticks, layout, limits, log_ticks
from perfkit.findings.standing import Guess, Standing, standings
from tests.findings.made import finding

X = "\N{MULTIPLICATION SIGN}"


def laid(found, guess=None, **more):
    return layout(standings(found), guess or Guess(), found.noise_floor, **more)


def test_rows_are_sorted_by_rate_and_all_stand_within_the_axis():
    rows = laid(finding()).rows
    assert [row.name for row in rows] == ["prefetched", "parallel", "naive"]
    assert [row.mark for row in rows] == ["fastest", "", "baseline"]
    assert [row.ratio for row in rows] == [f"1.9{X}", f"1.28{X}", ""]
    assert rows[0].in_words == f"prefetched: 1,900, 1.9{X}, the fastest"
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
    assert one.in_words == "one: 123, so far"
    assert (two.rate, two.words, two.in_words) == (None, "", "two: to come")
    # A microbenchmark stands at its own rate, and says it with its unit.
    timing = finding().timings[0]
    benchmark = Standing(variant="copy", group="memory", timing=timing, unit="B")
    drawn = layout([benchmark], Guess(), as_share=True)
    (row,) = drawn.rows
    assert (row.rate, drawn.unit, row.mark) == (1.0, OWN, "")
    assert row.words.endswith(" B/s")


def test_neither_a_guess_nor_an_interval_out_of_reach_squeezes_the_rest():
    near, far, farther = (
        laid(finding(), Guess("", ratio=ratio)) for ratio in (1.0, 3.0, 99.0)
    )
    assert near.ends[1] == farther.ends[1] < far.ends[1] < 4 * near.ends[1]
    # What does not stand on the axis is not drawn at its end.
    assert "guess" not in {band.kind for band in farther.bands}
    assert limits([100, 200], [90, 210]) == (90, 210)
    assert limits([100, 200], [0.001, 1e9]) == (50, 400)


@given(st.floats(1e-6, 1e9), st.floats(1.01, 1e9))
def test_ticks_lie_on_the_axis_and_are_not_too_many(low, factor):
    high = low * factor
    for ticks in (even_ticks(low, high), log_ticks(low, high)):
        assert len(ticks) <= 10
        assert ticks == sorted(ticks)
        assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)
