import subprocess
import sys
from dataclasses import replace

import pytest

from perfkit.machine.checks import software as checks_libraries
from perfkit.machine.checks.asking import statements
from perfkit.machine.record import Library
from tests.machine.checks.computers import (
    NEEDED,
    changed,
    libraries,
    without_card,
    workstation,
)


def test_each_library_that_cannot_be_loaded_is_named():
    missing = ("libcusolver.so.11", "libcudnn.so.9")
    found = libraries("not found", missing=missing)
    (check,) = checks_libraries.absent(
        changed(workstation(), software={"libraries": found})
    )
    assert check.status == "fail"
    assert all(name in check.evidence for name in missing)
    assert "Of 7 libraries 2 cannot be loaded" in check.evidence
    assert "tensorflow[and-cuda]" in check.remedy


def test_libraries_that_are_installed_and_not_found_need_only_be_named():
    found = [
        replace(one, problem="not found") if one.name == "libcufft.so.11" else one
        for one in libraries()
    ]
    (check,) = checks_libraries.absent(
        changed(workstation(), software={"libraries": found})
    )
    assert check.remedy.startswith("export LD_LIBRARY_PATH=$(python -c")


def test_the_folders_of_installed_libraries_are_printed(tmp_path):
    folder = tmp_path / "nvidia/cufft/lib"
    folder.mkdir(parents=True)
    code = statements()["unnamed-libraries"]["value"]
    code = code.removeprefix('$(python -c "').removesuffix('")')
    code = code.replace("s.get_path('purelib')", repr(str(tmp_path)))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == str(folder)


@pytest.mark.parametrize(
    ("inside", "remedy"), [(True, "docker run --gpus all"), (False, "ubuntu-drivers")]
)
def test_the_library_of_the_driver_does_not_come_from_pip(inside, remedy):
    found = libraries("not found", missing=("libcuda.so.1",))
    machine = changed(workstation(), software={"libraries": found, "container": inside})
    (check,) = checks_libraries.no_driver(machine)
    assert remedy in check.remedy
    assert [check.status for check in checks_libraries.absent(machine)] == ["ok"]
    assert list(checks_libraries.no_driver(workstation())) == []


def test_libraries_are_not_missed_where_there_is_no_card():
    assert list(checks_libraries.absent(without_card())) == []


def test_a_library_that_only_several_gpus_need_is_not_missed():
    optional = replace(libraries()[0], name="libnccl.so.2", problem="not found")
    machine = changed(workstation(), software={"libraries": (*libraries(), optional)})
    assert [check.status for check in checks_libraries.absent(machine)] == ["ok"]


@pytest.mark.parametrize(
    ("version", "faults"),
    [("9.3.0.75", 0), ("9.26.0.1", 0), ("9.1.0.70", 1), ("8.9.7.29", 1), ("10.0", 1)],
)
def test_a_cudnn_fits_if_it_is_as_new_and_of_the_same_generation(version, faults):
    machine = changed(workstation(), versions={"nvidia-cudnn-cu12": version})
    found = list(checks_libraries.old_cudnn(machine))
    assert len(found) == faults
    assert all(check.id == "wrong-cudnn" for check in found)


def test_libraries_from_the_search_path_stand_before_those_of_pip():
    driver, first, *rest = libraries()
    found = (driver, replace(first, origin="search path"), *rest)
    machine = changed(workstation(), software={"libraries": found})
    (check,) = checks_libraries.shadowed(machine)
    assert NEEDED[1] in check.evidence
    assert "LD_LIBRARY_PATH" in check.remedy
    versions = {"tensorflow": "2.21.0"}
    assert list(checks_libraries.shadowed(replace(machine, versions=versions))) == []
    assert list(checks_libraries.shadowed(workstation())) == []


def loading(*found):
    start = replace(workstation().start, loaded=found)
    return changed(workstation(), start=start)


def test_two_copies_of_a_library_in_one_process_are_told():
    own = Library(name="libcudnn.so.9", version="9.3.0", origin="package")
    other = Library(name="libcudnn.so.8", version="8.9.7", origin="system")
    (check,) = checks_libraries.twice(loading(own, other))
    assert check.evidence == "libcudnn: 8.9.7 (system), 9.3.0 (package)."
    assert list(checks_libraries.twice(loading(own))) == []


def test_the_libraries_of_the_driver_may_come_from_anywhere():
    found = loading(
        Library(name="libcuda.so.1", origin="search path"),
        Library(name="libnvidia-ptxjitcompiler.so.1", origin="search path"),
    )
    assert (
        list(checks_libraries.shadowed(found))
        == list(checks_libraries.twice(found))
        == []
    )


def test_a_cudnn_of_another_cuda_is_not_looked_at():
    versions = {"nvidia-cudnn-cu11": "8.9.7.29"}
    assert (
        list(checks_libraries.old_cudnn(changed(workstation(), versions=versions)))
        == []
    )


def test_what_the_loader_says_of_several_libraries_is_told_once():
    words = "cannot open shared object file"
    found = tuple(replace(one, problem=f"{one.name}: {words}") for one in libraries())
    (check,) = checks_libraries.absent(
        changed(workstation(), software={"libraries": found})
    )
    assert check.evidence.count(words) == 1
    assert check.evidence.count("libcufft.so.11") == 1
