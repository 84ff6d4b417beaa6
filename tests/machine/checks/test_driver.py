import pytest

from perfkit.machine.checks import software as driver
from perfkit.machine.gpu import Driver
from tests.machine.checks import healthy
from tests.machine.checks.computers import changed, with_card, without_card, workstation


def ids(rule, machine):
    return [(check.id, check.status) for check in rule(machine)]


def test_without_a_card_nothing_is_wrong_and_it_is_said():
    (said,) = driver.no_card(without_card())
    assert (said.status, said.id) == ("ok", "no-gpu")
    assert said.title == (
        "TensorFlow trains on the processor: there is no NVIDIA GPU here"
    )
    assert said.evidence == "No NVIDIA card is on the bus."
    assert list(driver.silent(without_card())) == []


def test_with_a_card_there_is_no_word_about_its_absence():
    assert list(driver.no_card(workstation())) == []
    assert list(driver.silent(workstation())) == []


def test_a_card_on_the_bus_without_a_driver_is_a_fault():
    machine = changed(without_card(), nvidia_cards=2)
    (found,) = driver.silent(machine)
    assert (found.id, found.status) == ("no-driver", "fail")
    assert "NVIDIA cards on the bus: 2." in found.evidence


@pytest.mark.parametrize(
    ("problem", "rule", "remedy"),
    [
        ("mismatch", "driver-mismatch", "sudo reboot"),
        ("not loaded", "driver-not-loaded", "sudo modprobe nvidia"),
        ("no permission", "driver-refused", "usermod -aG"),
        ("no answer", "driver-silent", "nvidia-smi"),
        ("no driver", "no-driver", "ubuntu-drivers"),
        ("", "driver-silent", "nvidia-smi"),
    ],
)
def test_each_silence_of_the_driver_has_its_name_and_remedy(problem, rule, remedy):
    machine = changed(without_card(), driver=Driver(problem=problem), nvidia_cards=1)
    (found,) = driver.silent(machine)
    assert found.id == rule
    assert remedy in found.remedy


def test_a_missing_reader_is_not_taken_for_a_missing_driver():
    why = "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"
    machine = changed(without_card(), nvidia_cards=1, no_gpu=why)
    (found,) = driver.silent(machine)
    assert found.id == "no-reader"
    assert found.remedy == "python -m pip install nvidia-ml-py"


@pytest.mark.parametrize("cards", [None, 0])
@pytest.mark.parametrize("problem", ["mismatch", "no permission", "no answer", ""])
def test_a_driver_that_is_there_is_believed_whatever_the_bus_says(problem, cards):
    unknown = changed(without_card(), nvidia_cards=cards)
    broken = changed(unknown, driver=Driver(problem=problem))
    assert list(driver.silent(unknown)) == []
    assert [check.status for check in driver.silent(broken)] == ["fail"]
    assert list(driver.no_card(broken)) == []


def test_a_driver_that_is_not_loaded_is_a_fault_unless_the_bus_shows_no_card():
    unloaded = Driver(problem="not loaded")
    hidden = changed(without_card(), driver=unloaded, nvidia_cards=None)
    assert ids(driver.silent, hidden) == [("driver-not-loaded", "fail")]
    none = changed(without_card(), driver=unloaded)
    assert ids(driver.silent, none) == []
    assert ids(driver.no_card, none) == [("no-gpu", "ok")]


def test_without_a_card_a_driver_that_is_not_loaded_has_nothing_to_load():
    none = changed(without_card(), driver=Driver(problem="not loaded"))
    (said,) = driver.no_card(none)
    assert said.title.endswith(
        "there is no NVIDIA GPU here, and nothing for its driver to load"
    )
    assert "restart" not in f"{said.evidence} {said.remedy}"


def test_where_the_bus_is_not_listed_no_gpu_is_seen_and_may_be_there():
    (said,) = driver.no_card(changed(without_card(), nvidia_cards=None))
    assert said.title.endswith(": no NVIDIA GPU is seen here")


@pytest.mark.parametrize(("build", "maker"), [("metal", "Apple"), ("rocm", "AMD")])
def test_a_build_for_other_gpus_is_not_said_to_train_on_the_processor(build, maker):
    (said,) = driver.no_card(changed(without_card(), software={"build": build}))
    assert "processor" not in said.title
    assert f"built for GPUs of {maker}" in said.title


@pytest.mark.parametrize(
    ("platform", "remedy"),
    [("container", "docker run --gpus all"), ("wsl2", "wsl --shutdown")],
)
def test_the_remedy_for_no_driver_is_that_of_the_system(platform, remedy):
    machine = changed(without_card(), nvidia_cards=1, software={"platform": platform})
    (found,) = driver.silent(machine)
    assert remedy in found.remedy


def test_wsl_without_a_driver_is_a_fault_only_where_a_gpu_is_wanted():
    plain = changed(without_card(), nvidia_cards=None, software={"platform": "wsl2"})
    assert ids(driver.no_card, plain) == [("no-driver", "unknown")]
    wanted = changed(plain, versions={"nvidia-cuda-runtime-cu12": "12.5.82"})
    assert ids(driver.no_card, wanted) == []
    assert ids(driver.silent, wanted) == [("no-driver", "fail")]


@pytest.mark.parametrize(
    ("platform", "version", "status"),
    [
        ("linux", "525.60.13", "ok"),
        ("linux", "525.60.11", "fail"),
        ("linux", "470.256.02", "fail"),
        ("wsl2", "528.33", "ok"),
        ("wsl2", "527.41", "fail"),
        ("windows", "527.41", "ok"),
    ],
)
def test_a_driver_is_held_against_the_minimum_of_cuda_12(platform, version, status):
    machine = changed(
        workstation(), driver={"version": version}, software={"platform": platform}
    )
    (found,) = driver.too_old(machine)
    assert found.status == status
    assert version in found.evidence


def test_nothing_is_said_of_a_cuda_version_that_is_not_in_the_table():
    assert list(driver.too_old(changed(workstation(), software={"cuda": "14.0"}))) == []
    assert list(driver.too_old(changed(workstation(), software={"cuda": None}))) == []


def test_a_card_that_fell_off_the_bus_is_named_with_the_word_of_the_driver():
    gone = with_card(workstation(), refused={"card": "GPU is lost"})
    (found,) = driver.lost(gone)
    assert found.evidence == "NVIDIA RTX A4000: GPU is lost."
    assert list(driver.lost(healthy.wsl_with_card())) == []


def test_wsl_1_is_told_how_to_become_wsl_2():
    machine = changed(without_card(), software={"platform": "wsl1"})
    (found,) = driver.wsl1(machine)
    assert "wsl --set-version" in found.remedy
    assert found.status == "warn"
