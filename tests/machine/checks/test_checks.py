from dataclasses import replace

import pytest

from perfkit.machine.checks import checks
from tests.machine.checks import faulty, healthy
from tests.machine.checks.computers import changed, started

ORDER = {"fail": 0, "warn": 0, "unknown": 0, "ok": 1}


@pytest.mark.parametrize("machine", healthy.MACHINES, ids=lambda made: made.__name__)
def test_nothing_is_said_against_a_healthy_machine(machine):
    found = checks(machine())
    assert [c for c in found if c.status in ("warn", "fail")] == []
    assert all(check.evidence.endswith((".", '"')) for check in found)


@pytest.mark.parametrize(
    ("machine", "cause", "remedy"), faulty.MACHINES, ids=[m[1] for m in faulty.MACHINES]
)
def test_what_was_planted_is_named_first_with_what_to_type(machine, cause, remedy):
    first = checks(machine)[0]
    assert first.id == cause
    assert first.status in ("warn", "fail")
    assert remedy in first.remedy
    assert all((first.title, first.evidence, first.why))


def test_what_costs_most_comes_first_and_what_is_well_last():
    for machine, *_ in faulty.MACHINES:
        found = checks(machine)
        keys = [(ORDER[check.status], -check.cost) for check in found]
        assert keys == sorted(keys)


@pytest.mark.parametrize(
    "machine", [faulty.OLD_DRIVER, faulty.MISSING_LIBRARY, faulty.OLD_CUDNN]
)
def test_a_gpu_that_computes_refutes_that_it_cannot(machine):
    working = changed(machine, start=started("GPU:0"))
    assert [c.id for c in checks(working) if c.status == "fail"] == []


def test_a_gpu_that_leaves_its_work_to_the_processor_refutes_nothing():
    start = started("GPU:0")
    passed_on = tuple(replace(proof, ran_on="CPU:0") for proof in start.proofs)
    machine = changed(faulty.OLD_DRIVER, start=replace(start, proofs=passed_on))
    assert checks(machine)[0].id == "driver-too-old"


def test_what_is_well_needs_no_remedy_and_costs_nothing():
    everything = [made() for made in healthy.MACHINES]
    everything += [machine for machine, *_ in faulty.MACHINES]
    for check in (check for machine in everything for check in checks(machine)):
        assert 0 <= check.cost <= 1
        if check.status == "ok":
            assert (check.remedy, check.cost) == ("", 0.0)
        elif check.status != "unknown":
            assert check.remedy
            assert check.cost > 0


def test_what_a_machine_says_is_shown_as_it_is_whatever_is_in_it():
    odd = {"tensorflow": "2.{x}.{0}"}
    machine = changed(faulty.OLD_CUDNN, versions=odd, software={"build": "cpu"})
    (found,) = (c for c in checks(machine) if c.id == "cpu-only-build")
    assert "2.{x}.{0} has no CUDA" in found.evidence
    assert found.remedy.endswith('"tensorflow[and-cuda]==2.{x}.{0}"')
