import pytest

from perfkit.machine.checks import card as checks_card
from tests.machine.checks.computers import card, changed, with_card, workstation


def visible(value, *gpus, **environment):
    environment |= {"CUDA_VISIBLE_DEVICES": value}
    return changed(workstation(*gpus), environment=environment)


@pytest.mark.parametrize("value", ["", "-1", "1", "x", "-1,0"])
def test_a_value_that_names_no_card_hides_all(value):
    (found,) = checks_card.hidden(visible(value))
    assert (found.id, found.status) == ("hidden-gpu", "fail")
    assert f'"{value}"' in found.evidence


@pytest.mark.parametrize("value", ["0", "0,1", "0,-1", "GPU-1234...", "MIG-12"])
def test_a_value_that_leaves_a_card_is_fine(value):
    assert [check.status for check in checks_card.hidden(visible(value))] == ["ok"]


def test_what_is_hidden_is_left_out_of_all_other_rules():
    maxwell = card("NVIDIA GTX 970", compute_capability="5.2")
    machine = visible("0", card(), maxwell, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert [check.status for check in checks_card.kernels(machine)] == ["ok"]


def test_unlike_cards_are_all_looked_at_where_their_numbers_are_not_those_of_cuda():
    maxwell = card("NVIDIA GTX 970", compute_capability="5.2")
    found = checks_card.kernels(visible("0", card(), maxwell))
    assert [check.status for check in found] == ["ok", "fail"]


@pytest.mark.parametrize(
    ("capability", "rule", "status"),
    [
        ("5.2", "no-kernels", "fail"),
        ("6.1", "kernels", "ok"),
        ("7.5", "kernels", "ok"),
        ("8.6", "kernels", "ok"),
        ("8.9", "kernels", "ok"),
        ("9.0", "kernels", "ok"),
        ("10.0", "compiled-kernels", "warn"),
        ("12.0", "compiled-kernels", "warn"),
    ],
)
def test_the_wheel_is_held_against_the_card(capability, rule, status):
    machine = with_card(workstation(), compute_capability=capability)
    (found,) = checks_card.kernels(machine)
    assert (found.id, found.status) == (rule, status)
    assert capability in found.evidence


def test_a_build_that_does_not_tell_is_looked_up_by_its_version():
    machine = with_card(workstation(), compute_capability="12.0")
    silent = changed(machine, software={"capabilities": None})
    assert [check.id for check in checks_card.kernels(silent)] == ["compiled-kernels"]
    older = changed(silent, versions={"tensorflow": "2.19.0"})
    assert list(checks_card.kernels(older)) == []


def test_a_version_that_is_reported_to_fail_is_to_be_replaced():
    machine = with_card(workstation(), compute_capability="12.0")
    (found,) = checks_card.kernels(changed(machine, versions={"tensorflow": "2.20.0"}))
    assert 'install "tensorflow[and-cuda]>=2.21"' in found.remedy


def test_a_driver_that_may_not_compile_leaves_the_card_without_kernels():
    machine = with_card(workstation(), compute_capability="9.0")
    older = changed(machine, driver={"cuda": "12.2"})
    refused = changed(machine, environment={"CUDA_DISABLE_PTX_JIT": "1"})
    for broken in (older, refused):
        (found,) = checks_card.kernels(broken)
        assert (found.id, found.status) == ("uncompiled-kernels", "fail")
    allowed = changed(machine, environment={"CUDA_DISABLE_PTX_JIT": "0"})
    assert [check.status for check in checks_card.kernels(allowed)] == ["ok"]
    native = changed(with_card(older, compute_capability="8.6"))
    assert [check.status for check in checks_card.kernels(native)] == ["ok"]


def test_a_small_card_alone_is_used():
    machine = workstation(card(multiprocessors=3))
    assert list(checks_card.small(machine)) == []


def test_a_small_card_beside_a_large_one_is_left_out_without_a_fault():
    machine = workstation(card(), card("GT 1030", multiprocessors=3))
    (found,) = checks_card.small(machine)
    assert found.status == "ok"
    assert "GPU 1 (GT 1030) has 3 multiprocessors" in found.evidence


def test_a_minimum_above_every_card_is_a_fault():
    environment = {"TF_MIN_GPU_MULTIPROCESSOR_COUNT": "50"}
    (found,) = checks_card.small(changed(workstation(), environment=environment))
    assert found.status == "fail"
    assert "TF_MIN_GPU_MULTIPROCESSOR_COUNT=48" in found.remedy


def test_nothing_is_said_of_sizes_that_the_driver_does_not_tell():
    assert list(checks_card.small(workstation(card(multiprocessors=None)))) == []
