import pytest

from perfkit.machine import checks
from perfkit.machine.checks.base import statements
from perfkit.machine.gpu import Gpu, Link
from perfkit.machine.record import Disk, Processor
from perfkit.machines.compare import _BEARS, compare
from perfkit.machines.sides import differences
from tests.machines import pairs


def told(**fields):
    return {d.what: d for d in differences(pairs.MACHINE, pairs.changed(**fields))}


def test_equal_machines_differ_in_nothing():
    assert differences(pairs.MACHINE, pairs.MACHINE) == ()


def test_values_have_their_units():
    found = told(cores_granted=1.0, memory=2 * 10**9)
    assert (found["cores granted"].a, found["cores granted"].b) == ("2", "1")
    assert (found["memory granted"].a, found["memory granted"].b) == ("25 GB", "2 GB")


@pytest.mark.parametrize(
    ("fields", "what", "slower"),
    [
        ({"cores_granted": 1.0}, "cores granted", "B"),
        ({"cores_granted": 4.0}, "cores granted", "A"),
        ({"memory": 2 * 10**9}, "memory granted", "B"),
        (
            {"processor": Processor(instructions=("avx",))},
            "instruction sets that only one has",
            "B",
        ),
        ({"cpu": "Intel Xeon"}, "processor", ""),
        ({"environment": {"TF_ENABLE_ONEDNN_OPTS": "0"}}, "TF_ENABLE_ONEDNN_OPTS", "B"),
        ({"environment": {"TF_ENABLE_ONEDNN_OPTS": "1"}}, "TF_ENABLE_ONEDNN_OPTS", ""),
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


def test_a_reading_that_one_does_not_give_is_no_difference():
    blind = pairs.changed(processor=None, load=None, software=None, disk=None)
    assert differences(pairs.MACHINE, blind) == ()


def test_disks_and_links_are_compared_where_both_are_known():
    gpus = [(Gpu(name="T4", link=Link(busy_width=width)),) for width in (16, 4)]
    disks = Disk(cold=2e9), Disk(cold=1e8)
    one, other = (
        pairs.changed(gpus=gpu, disk=disk)
        for gpu, disk in zip(gpus, disks, strict=True)
    )
    found = {d.what: (d.a, d.b) for d in differences(one, other)}
    assert found == {
        "link lanes under load": ("16", "4"),
        "disk of the data, cold": ("2 GB/s", "100 MB/s"),
    }


def test_advice_comes_from_the_checks_of_the_slower_one():
    found = compare(pairs.passport(), pairs.one_core())
    assert [one.title for one in found.advice] == ["Only 1 of 2 cores may be used"]
    assert found.advice[0].seconds == pytest.approx(
        sum(one.change for one in found.main.causes), rel=0.01
    )
    turned = compare(pairs.one_core(), pairs.passport())
    assert turned.advice[0].title == found.advice[0].title


def test_no_advice_where_no_difference_is_shown_or_both_have_it():
    slow = pairs.one_core()
    assert compare(slow, slow).advice == ()
    worse = pairs.changed(slow, trainings=pairs.slow_disk().trainings)
    assert compare(slow, worse).advice == ()


def test_words_of_a_file_are_never_advice():
    check = checks.checks(pairs.one_core().machine)[0]
    evil = pairs.changed(check, title="Mine", remedy="rm -rf /")
    found = compare(pairs.passport(), pairs.changed(pairs.one_core(), checks=(evil,)))
    assert "rm -rf" not in repr(found)
    assert found.advice


def test_advice_knows_only_checks_that_there_are():
    assert [name for name in _BEARS if name not in statements()] == []
