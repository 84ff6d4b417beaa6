from dataclasses import replace

import pytest

from perfkit.machine.checks import software
from perfkit.machine.record import Driver
from tests.machine.checks import computers
from tests.machine.checks.computers import by_rule, changed, says

WITH, WITHOUT = computers.workstation(), computers.without_card()


def silent(cards=1, **facts):
    """A machine whose driver tells of no GPU."""
    return changed(WITHOUT, nvidia_cards=cards, **facts)


def built(machine=WITH, *, versions=(), **facts):
    """A machine with a TensorFlow of other facts, and other packages."""
    return changed(machine, software=facts, versions=dict(versions))


def on(platform, version):
    """A machine with this version of the driver."""
    return changed(WITH, driver={"version": version}, software={"platform": platform})


def cudnn(version, name="nvidia-cudnn-cu12"):
    return built(versions={name: version})


UNLOADED = Driver(problem="not loaded")
READER = "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"
WSL = built(changed(WITHOUT, nvidia_cards=None), platform="wsl2")
WSL_WITH = changed(WSL, versions={"nvidia-cuda-runtime-cu12": "12.5.82"})
FOR_CPU = {"build": "cpu", "packages": ("tensorflow-cpu",), "cuda": None}
TWO = {"packages": ("tensorflow", "tensorflow-cpu")}
GONE = computers.with_card(WITH, lost="GPU is lost")
LATE = ("TF_GPU_ALLOCATOR", "TF_XLA_FLAGS")
NO_PACKAGES = changed(WITH, start=None)
NO_PACKAGES = replace(NO_PACKAGES, versions={"tensorflow": "2.21.0"})
CASES = {
    # No GPU is a fault only where one is left unused.
    software.no_card: [
        (WITHOUT, "no-gpu:ok",
         " | TensorFlow trains on the processor: there is no NVIDIA GPU here | ",
         " | No NVIDIA card is on the bus. | "),
        (WITH, ""),
        (changed(WITHOUT, driver=UNLOADED), "no-gpu:ok",
         "there is no NVIDIA GPU here, and nothing for its driver to load | ",
         "~restart"),
        (silent(None), "no-gpu:ok", ": no NVIDIA GPU is seen here | "),
        (built(WITHOUT, build="metal"), "no-gpu:ok", "built for GPUs of Apple",
         "~processor"),
        (built(WITHOUT, build="rocm"), "no-gpu:ok", "built for GPUs of AMD",
         "~processor"),
        (WSL, "driver-in-windows:unknown"),
        (WSL_WITH, ""),
        (silent(None, driver=UNLOADED), ""),
    ],
    software.silent: [
        *[(machine, "") for machine in (
            WITHOUT, WITH, WSL, changed(WITHOUT, driver=UNLOADED), silent(None),
            *(built(WITHOUT, build=build) for build in ("metal", "rocm")))],
        (WSL_WITH, "no-driver:fail"),
        (silent(None, driver=UNLOADED), "driver-not-loaded:fail"),
        # Each silence of the driver has its name and remedy.
        (silent(driver=Driver(problem="no answer")), "driver-silent:fail",
         "nvidia-smi"),
        (silent(driver=Driver()), "reports-none:fail", "nvidia-smi"),
        (silent(driver=Driver(problem="no driver")), "no-driver:fail",
         "ubuntu-drivers"),
        (silent(2), "no-driver:fail", "NVIDIA cards on the bus: 2."),
        (silent(no_gpu=READER), "no-reader:fail",
         " | python -m pip install nvidia-ml-py | "),
    ],
    # A driver is held against the minimum of CUDA 12.
    software.too_old: [
        *[(on(platform, version), said, version) for platform, version, said in (
            ("linux", "525.60.13", "driver:ok"),
            ("linux", "525.60.11", "driver-too-old:fail"),
            ("linux", "470.256.02", "driver-too-old:fail"),
            ("wsl2", "528.33", "driver:ok"),
            ("wsl2", "527.41", "driver-too-old:fail"))],
        # Of a version of CUDA that is not in the table nothing is said.
        *[(built(cuda=cuda), "") for cuda in ("14.0", None)],
    ],
    # The TensorFlow is the one that this machine wants.
    software.missing: [
        (built(WITHOUT, build="none"), "no-tensorflow:fail"),
        (WITHOUT, ""),
    ],
    software.cpu_only: [
        (built(**FOR_CPU), "cpu-only-build:fail",
         " | python -m pip uninstall -y tensorflow-cpu; "
         'python -m pip install "tensorflow[and-cuda]==2.21.0" | '),
        (built(WITHOUT, **FOR_CPU), ""),
    ],
    software.duplicated: [
        (built(**TWO), "two-tensorflows:fail"),
        (built(WITHOUT, **TWO), "two-tensorflows:warn", 'install "tensorflow==2.21.0"'),
    ],
    software.wsl1: [
        (built(WITHOUT, platform="wsl1"), "wsl-1:warn", "wsl --set-version"),
    ],
    # A card that fell off the bus is named with the word of the driver.
    software.lost: [
        (GONE, "lost-card:fail", " | NVIDIA RTX A4000: GPU is lost. | "),
        (WITH, ""),
    ],
    # A cuDNN fits if it is as new and of the same generation, and for this CUDA.
    software.old_cudnn: [
        *[(cudnn(version), "") for version in ("9.3.0.75", "9.26.0.1")],
        *[(cudnn(version), "wrong-cudnn:fail")
          for version in ("9.1.0.70", "8.9.7.29", "10.0")],
        (cudnn("8.9.7.29", "nvidia-cudnn-cu11"), ""),
    ],
    # Without packages of CUDA only a start tells whether TensorFlow finds it.
    software.unseen_libraries: [
        (NO_PACKAGES, "unseen-libraries:unknown", "perfkit doctor --probe"),
        (changed(WITH, start=None), "unseen-libraries:ok", "CUDA 12.5.82"),
        (WITH, ""),
        (changed(WITHOUT, start=None), ""),
    ],
    # Variables that were set too late are named.
    software.late: [
        (built(set_late=LATE), "set-too-late:warn",
         " | Set too late: TF_GPU_ALLOCATOR, TF_XLA_FLAGS. | "),
        (WITH, ""),
    ],
}  # fmt: skip

test_software_is_judged_by_what_is_known_of_it = by_rule(CASES)


@pytest.mark.parametrize("cards", [None, 0])
@pytest.mark.parametrize("problem", ["mismatch", "no permission", "no answer", ""])
def test_a_driver_that_is_there_is_believed_whatever_the_bus_says(problem, cards):
    says(software.silent, silent(cards), "")
    broken = silent(cards, driver=Driver(problem=problem))
    assert [check.status for check in software.silent(broken)] == ["fail"]
    says(software.no_card, broken, "")
