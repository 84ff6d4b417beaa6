from dataclasses import replace

import pytest

from perfkit.charts.layout import OWN, layout, leads, taken
from perfkit.findings.record import Verdict
from perfkit.findings.standing import Guess, Standing, standings
from tests.findings.made import finding
from tests.panel import runs

X = "\N{MULTIPLICATION SIGN}"


def laid(found, guess=None, **more):
    return layout(standings(found), guess or Guess(), found.noise_floor, **more)


def test_rows_are_sorted_by_rate_and_say_it_against_the_baseline():
    rows = laid(finding()).rows
    assert [row.name for row in rows] == ["prefetched", "parallel", "naive"]
    assert [row.mark for row in rows] == ["fastest", "", "baseline"]
    assert [row.ratio for row in rows] == [f"1.9{X}", f"1.3{X}", ""]
    assert "1.9 times as fast as naive (1.8 to 2.0), sure" in rows[0].said


def test_everything_stands_within_the_axis():
    page = laid(finding(), Guess("3x", ratio=3.0)).for_page()
    bands = [end for _, _, _, *ends in page["bands"] for end in ends]
    ends = [end for row in page["rows"] for end in row["ends"]]
    places = [at for at, *_ in page["ticks"]] + [row["at"] for row in page["rows"]]
    assert all(0 <= place <= 100 for place in bands + ends + places)
    assert {kind for kind, *_ in page["bands"]} == {"noise", "guess"}


def test_what_has_no_interval_yet_is_where_its_ticks_put_it():
    waiting = [Standing(variant=name, group="") for name in ("one", "two")]
    one, two = layout(waiting, Guess(), so_far={"one": 123.4}).rows
    assert (one.rate, one.words, one.known) == (123.4, "123", False)
    assert "123 so far, no interval yet" in one.said
    assert (two.rate, two.words, two.said) == (None, "", "two is to come")


def test_what_was_not_run_says_why():
    (row,) = layout(
        [Standing(variant="a", group="", problem="was not run: no")], Guess()
    ).rows
    assert (row.rate, row.problem) == (None, "was not run: no")


def test_a_microbenchmark_stands_at_its_own_rate_and_says_it_with_its_unit():
    (timing, _) = runs.measured().timings
    benchmark = Standing(variant="slow", group="memory", timing=timing, unit="B")
    drawn = layout([benchmark], Guess(), own=True)
    (row,) = drawn.rows
    assert (row.rate, drawn.unit, row.mark) == (1.0, OWN, "")
    assert row.words.endswith(" B/s")


def test_a_guess_far_off_does_not_squeeze_the_rest():
    ends = [
        laid(finding(), Guess("", ratio=ratio)).ends[1] for ratio in (1.0, 3.0, 99.0)
    ]
    assert ends[0] < ends[1] < ends[2] < 4 * ends[0]


def test_who_leads_is_who_the_verdict_names():
    found = replace(finding(), unfinished=True)
    said = leads(found, standings(found))
    assert said == "So far prefetched leads, 1.9 times as fast as naive."
    open_ = replace(found, verdict=Verdict(headline="Not known yet.", much="So much."))
    assert leads(open_, standings(open_)) == "So far: Not known yet. So much."
    assert leads(finding(), ()) == finding().verdict.headline


@pytest.mark.parametrize(
    ("cores", "words"),
    [
        ([], ""),
        ([0.3] * 30, ""),
        (
            [0.1] * 10 + [1.1] * 10 + [0.1] * 10,
            "other programs took 1.1 cores, 2 to 4 s",
        ),
        # A peak of a fifth of a second is no second.
        ([0.1] * 5 + [2.0] + [0.1] * 9, ""),
        # The longest stretch counts.
        ([1.0] * 5 + [0.0] * 5 + [1.0] * 10, "other programs took 1 core, 2 to 4 s"),
    ],
)
def test_what_others_took_is_told_by_its_longest_stretch(cores, words):
    assert taken((i / 5, kept) for i, kept in enumerate(cores)) == words
