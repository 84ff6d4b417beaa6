import pytest

from perfkit.machine.checks import software as libraries
from tests.machine.checks.computers import changed, without_card, workstation


def test_without_tensorflow_the_command_brings_it():
    machine = changed(without_card(), software={"build": "none"})
    (found,) = libraries.missing(machine)
    assert found.status == "fail"
    assert list(libraries.missing(without_card())) == []


@pytest.mark.parametrize(
    ("version", "faults"), [("2.10.1", 0), ("2.11.0", 1), ("2.21.0", 1)]
)
def test_windows_lost_its_gpu_with_2_11(version, faults):
    machine = changed(
        workstation(),
        system="Windows 11",
        software={"platform": "windows"},
        versions={"tensorflow": version},
    )
    found = list(libraries.windows(machine))
    assert len(found) == faults
    assert all("wsl --install" in check.remedy for check in found)


def test_windows_without_a_card_is_fine():
    machine = changed(without_card(), software={"platform": "windows"})
    assert list(libraries.windows(machine)) == []


def test_the_processor_build_beside_a_card_is_a_fault():
    software = {"build": "cpu", "packages": ("tensorflow-cpu",), "cuda": None}
    (found,) = libraries.cpu_only(changed(workstation(), software=software))
    assert (found.id, found.status) == ("cpu-only-build", "fail")
    assert found.remedy == (
        "python -m pip uninstall -y tensorflow-cpu; "
        'python -m pip install "tensorflow[and-cuda]==2.21.0"'
    )
    assert list(libraries.cpu_only(changed(without_card(), software=software))) == []


def test_two_distributions_are_a_fault_beside_a_card_and_a_cost_without():
    two = {"packages": ("tensorflow", "tensorflow-cpu")}
    (beside,) = libraries.duplicated(changed(workstation(), software=two))
    (alone,) = libraries.duplicated(changed(without_card(), software=two))
    assert (beside.status, alone.status) == ("fail", "warn")
    assert 'install "tensorflow==2.21.0"' in alone.remedy


def test_the_two_distributions_of_windows_are_one():
    pair = {"packages": ("tensorflow", "tensorflow-intel"), "platform": "windows"}
    assert list(libraries.duplicated(changed(without_card(), software=pair))) == []


@pytest.mark.parametrize(
    ("version", "python", "status"),
    [
        ("2.21.0", "3.13.1", "ok"),
        ("2.21.0", "3.14.0", "unknown"),
        ("2.16.2", "3.9.9", "ok"),
        ("2.16.2", "3.13.0", "unknown"),
        ("2.30.0", "3.13.0", "unknown"),
        ("2.9.0", "3.9.0", "unknown"),
    ],
)
def test_untested_is_not_wrong(version, python, status):
    machine = changed(
        without_card(),
        versions={"tensorflow": version},
        python=python,
        software={"build": "cpu"},
    )
    (found,) = libraries.tested(machine)
    assert found.status == status


def test_a_build_with_another_cuda_is_untested():
    machine = changed(workstation(), software={"cuda": "12.9.1"})
    (found,) = libraries.tested(machine)
    assert found.status == "unknown"
    assert "CUDA 12.5 (this build: 12.9.1)" in found.evidence


def test_another_backend_of_keras_is_named():
    machine = changed(workstation(), software={"keras_backend": "jax"})
    (found,) = libraries.backend(machine)
    assert "jax" in found.title
    assert list(libraries.backend(workstation())) == []


def test_a_python_from_elsewhere_is_told_in_the_words_of_the_record():
    machine = changed(workstation(), software={"elsewhere": "It is not the one."})
    (found,) = libraries.elsewhere(machine)
    assert found.evidence == "It is not the one."
    assert list(libraries.elsewhere(workstation())) == []
