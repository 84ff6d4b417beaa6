import pytest

from perfkit.machine import checks
from perfkit.machine.checks.base import statements
from perfkit.machine.gpu import Gpu, Link
from perfkit.machine.record import Processor, Software
from perfkit.machines.compare import _BEARS, _OF_GPUS, compare
from perfkit.machines.sides import differences
from tests.machines import pairs


def told(**fields):
    return {d.what: d for d in differences(pairs.MACHINE, pairs.changed(**fields))}


def test_values_have_their_units_and_equal_machines_differ_in_nothing():
    found = told(cores_granted=1.0, memory=2 * 10**9)
    assert (found["cores granted"].a, found["cores granted"].b) == ("2", "1")
    assert (found["memory granted"].a, found["memory granted"].b) == ("25 GB", "2 GB")
    assert told() == {}
    # A reading that one does not give is no difference.
    assert told(processor=None, load=None, software=None, disk=None) == {}


OFF, ON = ({"environment": {"TF_ENABLE_ONEDNN_OPTS": number}} for number in "01")
FEWER = {"processor": Processor(instructions=("avx",))}
UNKNOWN = {"processor": None}


@pytest.mark.parametrize(
    ("fields", "what", "slower"),
    [
        ({"cores_granted": 1.0}, "cores granted", "B"),
        ({"cores_granted": 4.0}, "cores granted", "A"),
        ({"memory": 2 * 10**9}, "memory granted", "B"),
        (FEWER, "instruction sets that only one has", "B"),
        ({"cpu": "Intel Xeon"}, "processor", ""),
        (OFF, "TF_ENABLE_ONEDNN_OPTS", "B"),
        (OFF | UNKNOWN, "TF_ENABLE_ONEDNN_OPTS", "B"),
        # On an older processor TensorFlow leaves them off by itself.
        (OFF | FEWER, "TF_ENABLE_ONEDNN_OPTS", ""),
        (ON, "TF_ENABLE_ONEDNN_OPTS", ""),
        ({"versions": {"tensorflow": "2.16.1"}}, "tensorflow", ""),
    ],
)
def test_it_is_said_whom_a_difference_can_slow(fields, what, slower):
    assert told(**fields)[what].slower == slower


def test_what_matters_most_comes_first():
    found = told(
        cores_granted=1.0,
        memory=2 * 10**9,
        environment={"TF_ENABLE_ONEDNN_OPTS": "0", "A_COLOUR": "red"},
        versions=pairs.MACHINE.versions | {"absl-py": "1.0"},
        gpus=(Gpu(name="Tesla T4"),),
    )
    assert list(found) == [
        *("cores granted", "GPUs", "memory granted"),
        *("TF_ENABLE_ONEDNN_OPTS", "A_COLOUR", "absl-py"),
    ]
    # Links are compared where both are known.
    one, other = (
        pairs.changed(gpus=(Gpu(name="T4", link=Link(busy_width=width)),))
        for width in (16, 4)
    )
    assert {d.what: (d.a, d.b) for d in differences(one, other)} == {
        "link lanes under load": ("16", "4"),
    }


def test_advice_comes_from_the_checks_of_the_slower_one():
    found = compare(pairs.passport(), pairs.one_core())
    assert [one.title for one in found.advice] == ["Only 1 of 2 cores may be used"]
    assert found.advice[0].seconds == pytest.approx(
        sum(one.change for one in found.main.causes), rel=0.01
    )
    turned = compare(pairs.one_core(), pairs.passport())
    assert turned.advice[0].title == found.advice[0].title
    # No advice where no difference is shown or both have it.
    slow = pairs.one_core()
    assert compare(slow, slow).advice == ()
    worse = pairs.changed(slow, trainings=pairs.slow_disk().trainings)
    assert compare(slow, worse).advice == ()
    # Words of a file are never advice.
    check = checks.checks(pairs.one_core().machine)[0]
    evil = pairs.changed(check, title="Mine", remedy="rm -rf /")
    found = compare(pairs.passport(), pairs.changed(pairs.one_core(), checks=(evil,)))
    assert "rm -rf" not in repr(found)
    assert found.advice
    # It knows only checks that there are.
    assert [name for name in _BEARS | _OF_GPUS if name not in statements()] == []


@pytest.mark.parametrize("used", [True, False])
def test_a_gpu_that_neither_of_them_used_explains_nothing(used):
    laptop = pairs.changed(gpus=(Gpu(name="RTX 3060"),))
    slow = pairs.passport(dict.fromkeys(pairs.KERNELS, 0.25), laptop)
    fast = pairs.passport()
    if used:
        build = Software(platform="linux", build="cuda")
        machine = pairs.changed(gpus=(Gpu(name="T4"),), software=build)
        fast = pairs.on_gpu(pairs.passport({}, machine), hidden=True)
    found = compare(fast, slow)
    built = "This TensorFlow is built for the processor only"
    assert [one.title for one in found.advice] == [built] * used
    assert ("GPUs: " in found.main.change("compute").why) is used
