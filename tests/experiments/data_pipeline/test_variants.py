import pytest

from perfkit.experiments.data_pipeline.variants import (
    BASELINE,
    DECODE_LIMIT,
    GROUPS,
    SYNTHETIC,
    VARIANTS,
)


@pytest.mark.parametrize("method", VARIANTS.values(), ids=lambda method: method.name)
def test_a_way_says_what_it_changes_and_how_to_have_it(method):
    assert method.changes.endswith(".")
    assert bool(method.do) is not bool(method.excluded)
    assert method.code.endswith(method.advice)
    assert method.against in VARIANTS


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_holds_the_baseline_and_what_its_ways_stand_against(group):
    names = set(GROUPS[group])
    assert {BASELINE, SYNTHETIC, DECODE_LIMIT} <= names
    for name in names & set(VARIANTS):
        assert VARIANTS[name].against in names | {"parallel map"}


def test_every_way_is_in_a_group_besides_the_one_of_all():
    grouped = {name for group in GROUPS if group != "all" for name in GROUPS[group]}
    assert set(VARIANTS) <= grouped


def test_groups_and_ways_have_different_names():
    assert not set(GROUPS) & {*VARIANTS, SYNTHETIC, DECODE_LIMIT}
