import itertools
import re
from dataclasses import replace

import pytest

from perfkit.findings import standing, store
from perfkit.findings.record import Verdict
from perfkit.findings.report import in_text
from perfkit.findings.standing import standings
from tests.findings.made import failed, finding, trial

UNDECIDED = Verdict(headline="No difference shown.")


def by_name(found):
    return {one.variant: one for one in standings(found)}


def test_the_fastest_comes_first_where_the_verdict_claims_it():
    stood = standings(finding())
    assert [s.variant for s in stood] == ["prefetched", "parallel", "naive"]
    assert [s.is_fastest for s in stood] == [True, False, False]
    assert [s.is_baseline for s in stood] == [False, False, True]
    assert stood[0].comparison.ratio == finding().comparisons[-1].ratio
    assert not any(s.is_fastest for s in standings(finding(verdict=UNDECIDED)))


def test_a_ceiling_does_not_compete():
    rates = {"naive": 1000, "parallel": 1500, "fused": 1500.1, "one batch": 9000}
    verdict = Verdict(headline="fused is the fastest.", winner="fused")
    stood = by_name(finding(rates, verdict=verdict))
    assert [stood[name].is_fastest for name in rates] == [False, False, True, False]
    assert stood["one batch"].is_limit


def test_what_left_after_quick_rounds_is_no_limit_although_its_rate_is_higher():
    # In the rounds that both were in, the winner was the faster one.
    found = finding({"naive": 1000.0, "lasting": 2000.0, "early": 1900.0})
    timings = {t.variant: t for t in found.timings}
    verdict = Verdict(headline="lasting is the fastest.", winner="lasting")
    swapped = (
        timings["naive"],
        replace(timings["lasting"], rate=1400.0, low=1390.0, high=1410.0),
        timings["early"],
    )
    stood = by_name(replace(found, timings=swapped, verdict=verdict))
    assert not stood["early"].is_limit
    assert stood["lasting"].is_fastest


def test_what_is_not_known_has_a_sign_of_its_own_and_is_no_number():
    made = finding()
    wide = replace(made.comparisons[-1], ratio=0.97, low=0.0611, high=15.5)
    timings = (replace(made.timings[0], low=1.0, high=1e5), *made.timings[1:])
    shown = replace(made, comparisons=(made.comparisons[0], wide), timings=timings)
    for said in (repr(shown), shown._repr_html_()):
        assert not re.search(r"0\.0611|15\.5|100,000", said)
        assert "not known yet" in said
    assert "not known yet" not in repr(made)
    assert '"low":0.0611' in store.to_json(shown)


def test_each_group_has_its_own_baseline_and_changes_go_back_to_the_first():
    rates = {"alone": 5000, "alone fast": 9000, "fed": 400, "fed fast": 500}
    both = finding(rates, against="alone")
    fed = replace(both.comparisons[-1], variant="fed fast", baseline="fed")
    kept = tuple(c for c in both.comparisons if c.variant == "alone fast")
    stood = standings(replace(both, comparisons=(*kept, fed)))
    assert [s.variant for s in stood] == ["alone fast", "alone", "fed fast", "fed"]
    assert [s.group for s in stood] == ["alone", "alone", "fed", "fed"]
    assert [s.is_baseline for s in stood] == [False, True, False, True]
    made = finding()
    last = replace(made.comparisons[1], baseline="parallel")
    stood = standings(replace(made, comparisons=(made.comparisons[0], last)))
    assert [s.variant for s in stood] == ["prefetched", "parallel", "naive"]
    assert {s.group for s in stood} == {"naive"}
    assert [s.is_baseline for s in stood] == [False, False, True]

    # Without a baseline a variant is in no group, and nothing has no standing.
    stood = standings(finding({"one": 5.0, "two": 7.0}, against="gone"))
    assert [s.variant for s in stood] == ["two", "one"]
    assert {(s.group, s.is_baseline) for s in stood} == {("", False)}
    assert standings(finding(rounds=0)) == ()


def test_baselines_that_lead_in_a_ring_or_far_away_have_a_group_all_the_same():
    far = [f"v{number}" for number in range(400)]
    made = finding({name: 100.0 for name in ("v0", "v399")}, against="v0")
    base = made.comparisons[0]
    chain = [
        replace(base, variant=name, baseline=before)
        for before, name in itertools.pairwise(far)
    ]
    timings = tuple(replace(made.timings[0], variant=name) for name in far)
    led = replace(made, timings=timings, comparisons=tuple(chain))
    assert {s.group for s in standings(led)} == {"v0"}
    ring = (*chain, replace(base, variant="v0", baseline="v399"))
    assert len(standings(replace(led, comparisons=ring))) == 400
    made = finding()
    ring = [replace(made.comparisons[0], variant="naive", baseline="parallel")]
    assert len(standings(replace(made, comparisons=(*made.comparisons, *ring)))) == 3


@pytest.mark.parametrize(
    ("low", "rate", "high", "said"),
    [
        (40, 50, 60, "50 % of its limit (40 % to 60 %)"),
        (90, 97, 104, "97 % of its limit (90 % or more)"),
        (96, 104, 112, "100 % of its limit (96 % or more)"),
        (5, 50, 500, "?"),
    ],
)
def test_no_share_of_a_limit_is_above_it(low, rate, high, said):
    found = replace(finding().timings[0], low=low, rate=rate, high=high)
    assert standing.share_of(found, 100) == said


TRIES = (
    trial("fits 512?", 900.0, 0),
    failed("fits 1,024?", "out-of-memory", "ran out", 0),
)


def test_a_try_is_no_variant_and_the_report_counts_it_apart():
    made, without = finding(extra=TRIES), finding()
    assert standings(made) == standings(without)
    assert standing.table(made).equals(standing.table(without))
    assert "fits" not in repr(made)
    said = in_text(made.report, in_full=True)
    assert "Variants: 3 variants" in said
    assert "in 3 rounds and 2 besides: " in said
    assert "1 out-of-memory" in said
    assert "besides" not in in_text(finding().report, in_full=True)
