import re

import pytest

from perfkit.findings.report import in_text
from perfkit.findings.standing import Rung, is_ladder, note, rungs, standings
from tests.findings import ladders, made


def test_rungs_are_read_as_they_were_written():
    told = {"copy": Rung(unit="B", group="memory", what="x", limit=2e9, limit_from="y")}
    assert rungs({"rungs": note(told)}) == told


@pytest.mark.parametrize("told", [None, 7, [], "rungs", {}, {"copy": 7}])
def test_what_is_no_note_of_rungs_is_no_ladder(told):
    assert not is_ladder(made.finding(notes={"rungs": told}))


@pytest.mark.parametrize("limit", [None, "3", True, 0, -1, 1e300, float("inf"), []])
def test_a_limit_that_is_no_limit_is_none(limit):
    told = {"copy": {"unit": 7, "group": None, "limit": limit}}
    assert rungs({"rungs": told})["copy"] == Rung(unit="units")


def test_rungs_keep_their_own_order_and_none_is_a_baseline_or_the_fastest():
    stood = standings(ladders.finding())
    assert [s.variant for s in stood] == list(ladders.RUNGS)
    assert {s.place for s in stood} == {""}
    assert not any(s.is_baseline for s in stood)
    assert [s.unit for s in stood] == ["steps", "FLOP", "B", "calls"]


def test_a_variant_that_the_note_leaves_out_is_still_there():
    bare = ladders.note() | {"memory copy": None}
    stood = standings(ladders.finding(notes={"rungs": bare}))
    assert stood[-1].variant == "memory copy"
    assert stood[-1].unit == "units"


def test_every_place_writes_a_rungs_rate_in_its_own_unit():
    for said in (repr(ladders.finding()), ladders.finding()._repr_html_()):
        assert re.search(r"\b(19|20)\d GFLOP/s \(", said), said
        assert re.search(r"\b(19|20)\.?\d? GB/s \(", said), said
        assert "million steps/s" in said
        assert "examples" not in said
        assert re.search(r"(39|40|41) % of its limit", said), said


def test_what_counts_examples_says_so_as_before():
    for said in (repr(made.finding()), made.finding()._repr_html_()):
        assert "examples/s" in said
        assert "limit" not in said


def test_a_ladder_without_comparisons_is_whole():
    said = in_text(ladders.finding().report, whole=True)
    assert "No two variants" not in said
    assert "each work of its own" in said
    assert "xamples per second" not in said


def test_the_table_has_the_unit_and_the_limit_of_each_rung():
    table = ladders.finding().table().set_index("variant")
    assert table.loc["memory copy", "unit"] == "B"
    assert table.loc[ladders.PRODUCT, "limit"] == 5e11
    assert "unit" not in made.finding().table()
