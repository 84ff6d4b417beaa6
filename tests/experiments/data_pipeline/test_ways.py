import pytest

from perfkit.experiments.data_pipeline.ways import (
    BASELINE,
    DECODE_LIMIT,
    GROUPS,
    SYNTHETIC,
    WAYS,
)


@pytest.mark.parametrize("way", WAYS.values(), ids=lambda way: way.name)
def test_a_way_says_what_it_changes_and_how_to_have_it(way):
    assert way.changes.endswith(".")
    assert bool(way.do) is not bool(way.excluded)
    assert way.code.endswith(way.advice)
    assert way.against in WAYS


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_holds_the_baseline_and_what_its_ways_stand_against(group):
    names = set(GROUPS[group])
    assert {BASELINE, SYNTHETIC, DECODE_LIMIT} <= names
    for name in names & set(WAYS):
        assert WAYS[name].against in names | {"parallel map"}


def test_every_way_is_in_a_group_besides_the_one_of_all():
    grouped = {name for group in GROUPS if group != "all" for name in GROUPS[group]}
    assert set(WAYS) <= grouped


def test_groups_and_ways_have_different_names():
    assert not set(GROUPS) & {*WAYS, SYNTHETIC, DECODE_LIMIT}
