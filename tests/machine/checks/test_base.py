import importlib.metadata

import pytest

from perfkit.machine.checks import base

HELD = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")


def test_every_build_of_the_table_can_be_read():
    for number in range(10, 22):
        build = base.build(f"2.{number}.0")
        first, last = map(base.numbers, build.python)
        assert first < last
        assert base.lowest_driver(build.cuda, "linux")


def test_a_version_is_found_by_its_first_two_numbers():
    assert base.build("2.21.0") == base.build("2.21.3rc1")
    assert base.build("2.2.1") is None
    assert base.newest() == "2.21"


def test_the_version_that_is_installed_here_is_in_the_table():
    assert base.build(importlib.metadata.version("tensorflow"))


@pytest.mark.parametrize(
    ("card", "kernels"),
    [
        ("3.5", "none"),
        ("5.2", "none"),
        ("6.0", "native"),
        ("7.5", "native"),
        ("8.7", "native"),
        ("9.0", "partly native"),
        ("10.3", "compiled"),
        ("12.0", "compiled"),
    ],
)
def test_a_card_runs_its_own_generation_and_compiles_what_is_older(card, kernels):
    assert base.kernels(HELD, card) == kernels


def test_machine_code_is_of_no_use_to_an_older_card_or_another_generation():
    assert base.kernels(("sm_86",), "8.0") == "none"
    assert base.kernels(("sm_80",), "9.0") == "none"
    assert base.kernels(("sm_120",), "12.0") == "native"
    assert base.kernels((), "8.0") == "none"


def test_versions_compare_by_their_numbers():
    assert base.numbers("525.60.13") < base.numbers("525.105.17")
    assert base.minor("12.5.1") == "12.5"
