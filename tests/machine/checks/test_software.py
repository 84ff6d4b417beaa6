import subprocess
import sys
from dataclasses import replace

import pytest

from perfkit.machine.checks import software
from perfkit.machine.checks.base import statements
from perfkit.machine.gpu import Driver
from perfkit.machine.record import Library
from tests.machine.checks.computers import (
    NEEDED,
    changed,
    libraries,
    says,
    with_card,
    without_card,
    workstation,
)

WITH, WITHOUT = workstation(), without_card()
UNLOADED = Driver(problem="not loaded")
WSL = changed(WITHOUT, nvidia_cards=None, software={"platform": "wsl2"})
CUDA = {"nvidia-cuda-runtime-cu12": "12.5.82"}


@pytest.mark.parametrize(
    ("machine", "no_card", "silent", "pieces"),
    [
        (WITHOUT, "no-gpu:ok", "",
         [" | TensorFlow trains on the processor: there is no NVIDIA GPU here | ",
         " | No NVIDIA card is on the bus. | "]),
        (WITH, "", "", []),
        (changed(WITHOUT, driver=UNLOADED), "no-gpu:ok", "",
         ["there is no NVIDIA GPU here, and nothing for its driver to load | ",
         "~restart"]),
        (changed(WITHOUT, nvidia_cards=None), "no-gpu:ok", "",
         [": no NVIDIA GPU is seen here | "]),
        (changed(WITHOUT, software={"build": "metal"}), "no-gpu:ok", "",
         ["built for GPUs of Apple", "~processor"]),
        (changed(WITHOUT, software={"build": "rocm"}), "no-gpu:ok", "",
         ["built for GPUs of AMD", "~processor"]),
        (WSL, "no-driver:unknown", "", []),
        (changed(WSL, versions=CUDA), "", "no-driver:fail", []),
        (changed(WITHOUT, driver=UNLOADED, nvidia_cards=None), "",
         "driver-not-loaded:fail", []),
    ],
)  # fmt: skip
def test_no_gpu_is_a_fault_only_where_one_is_left_unused(
    machine, no_card, silent, pieces
):
    says(software.no_card, machine, no_card, *pieces)
    says(software.silent, machine, silent)


@pytest.mark.parametrize(
    ("facts", "rule", "remedy"),
    [
        ({"driver": Driver(problem="no answer")}, "driver-silent", "nvidia-smi"),
        ({"driver": Driver(problem="no driver")}, "no-driver", "ubuntu-drivers"),
        ({"nvidia_cards": 2}, "no-driver", "NVIDIA cards on the bus: 2."),
        (
            {"no_gpu": "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"},
            "no-reader",
            " | python -m pip install nvidia-ml-py | ",
        ),
    ],
)
def test_each_silence_of_the_driver_has_its_name_and_remedy(facts, rule, remedy):
    machine = changed(WITHOUT, **{"nvidia_cards": 1} | facts)
    says(software.silent, machine, f"{rule}:fail", remedy)


@pytest.mark.parametrize("cards", [None, 0])
@pytest.mark.parametrize("problem", ["mismatch", "no permission", "no answer", ""])
def test_a_driver_that_is_there_is_believed_whatever_the_bus_says(problem, cards):
    unknown = changed(WITHOUT, nvidia_cards=cards)
    broken = changed(unknown, driver=Driver(problem=problem))
    says(software.silent, unknown, "")
    assert [check.status for check in software.silent(broken)] == ["fail"]
    says(software.no_card, broken, "")


@pytest.mark.parametrize(
    ("platform", "version", "rule"),
    [
        ("linux", "525.60.13", "driver:ok"),
        ("linux", "525.60.11", "driver-too-old:fail"),
        ("linux", "470.256.02", "driver-too-old:fail"),
        ("wsl2", "528.33", "driver:ok"),
        ("wsl2", "527.41", "driver-too-old:fail"),
        ("windows", "527.41", "driver:ok"),
    ],
)
def test_a_driver_is_held_against_the_minimum_of_cuda_12(platform, version, rule):
    facts = {"driver": {"version": version}, "software": {"platform": platform}}
    says(software.too_old, changed(WITH, **facts), rule, version)


@pytest.mark.parametrize("cuda", ["14.0", None])
def test_nothing_is_said_of_a_cuda_version_that_is_not_in_the_table(cuda):
    says(software.too_old, changed(WITH, software={"cuda": cuda}), "")


def test_a_card_that_fell_off_the_bus_is_named_with_the_word_of_the_driver():
    gone = with_card(WITH, refused={"card": "GPU is lost"})
    evidence = " | NVIDIA RTX A4000: GPU is lost. | "
    says(software.lost, gone, "lost-card:fail", evidence)
    says(software.lost, WITH, "")


def test_wsl_1_is_told_how_to_become_wsl_2():
    machine = changed(WITHOUT, software={"platform": "wsl1"})
    says(software.wsl1, machine, "wsl-1:warn", "wsl --set-version")


BUILT_FOR_CPU = {"build": "cpu", "packages": ("tensorflow-cpu",), "cuda": None}
TWO = {"packages": ("tensorflow", "tensorflow-cpu")}
PAIR = {"packages": ("tensorflow", "tensorflow-intel"), "platform": "windows"}


@pytest.mark.parametrize(
    ("rule", "machine", "said", "piece"),
    [
        (software.missing, changed(WITHOUT, software={"build": "none"}),
         "no-tensorflow:fail", ""),
        (software.missing, WITHOUT, "", ""),
        (software.windows, changed(WITHOUT, software={"platform": "windows"}), "", ""),
        (software.cpu_only, changed(WITH, software=BUILT_FOR_CPU),
         "cpu-only-build:fail", " | python -m pip uninstall -y tensorflow-cpu; "
         'python -m pip install "tensorflow[and-cuda]==2.21.0" | '),
        (software.cpu_only, changed(WITHOUT, software=BUILT_FOR_CPU), "", ""),
        (software.duplicated, changed(WITH, software=TWO), "two-tensorflows:fail", ""),
        (software.duplicated, changed(WITHOUT, software=TWO), "two-tensorflows:warn",
         'install "tensorflow==2.21.0"'),
        # One that brings the other's code.
        (software.duplicated, changed(WITHOUT, software=PAIR), "", ""),
        (software.tested, changed(WITH, software={"cuda": "12.9.1"}),
         "tested-build:unknown", "CUDA 12.5 (this build: 12.9.1)"),
        (software.backend, changed(WITH, software={"keras_backend": "jax"}),
         "keras-backend:warn", " | Keras trains with jax"),
        (software.backend, WITH, "", ""),
        (software.elsewhere,
         changed(WITH, software={"elsewhere": "It is not the one."}),
         "other-environment:warn", " | It is not the one. | "),
        (software.elsewhere, WITH, "", ""),
    ],
)  # fmt: skip
def test_the_tensorflow_is_the_one_that_this_machine_wants(rule, machine, said, piece):
    says(rule, machine, said, piece)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.10.1", ""),
        ("2.11.0", "native-windows:fail"),
        ("2.21.0", "native-windows:fail"),
    ],
)
def test_windows_lost_its_gpu_with_2_11(version, said):
    facts = {"software": {"platform": "windows"}, "versions": {"tensorflow": version}}
    machine = changed(WITH, system="Windows 11", **facts)
    says(software.windows, machine, said, *["wsl --install"] * bool(said))


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
    facts = {"versions": {"tensorflow": version}, "software": {"build": "cpu"}}
    machine = changed(WITHOUT, python=python, **facts)
    says(software.tested, machine, f"tested-build:{status}")


def found(*libraries, **facts):
    return changed(WITH, software={"libraries": libraries} | facts)


def each(**facts):
    """Every library that is needed, those that are named here with other facts."""
    return [
        replace(library, **facts.get(library.name.split(".")[0], {}))
        for library in libraries()
    ]


LOST = libraries("not found", missing=("libcusolver.so.11", "libcudnn.so.9"))
NO_LIBCUDA = libraries("not found", missing=("libcuda.so.1",))
NCCL = replace(libraries()[0], name="libnccl.so.2", problem="not found")
WORDS = "cannot open shared object file"


@pytest.mark.parametrize(
    ("machine", "said", "pieces"),
    [
        (found(*LOST), "missing-library:fail",
         ["Of 7 libraries 2 cannot be loaded: libcusolver.so.11, libcudnn.so.9",
         "tensorflow[and-cuda]"]),
        # Those that are installed need only be named.
        (found(*each(libcufft={"problem": "not found"})), "missing-library:fail",
         [" | export LD_LIBRARY_PATH=$(python -c"]),
        # What the loader says of several is told once.
        (found(*(replace(x, problem=f"{x.name}: {WORDS}") for x in libraries())),
         "missing-library:fail", [f", libcudnn.so.9 ({WORDS}). | "]),
        (found(*NO_LIBCUDA), "libraries:ok", []),
        (WITHOUT, "", []),
        # What several GPUs alone need is not missed.
        (found(*libraries(), NCCL), "libraries:ok", []),
    ],
)  # fmt: skip
def test_each_library_that_cannot_be_loaded_is_named(machine, said, pieces):
    says(software.absent, machine, said, *pieces)


@pytest.mark.parametrize(
    ("inside", "remedy"), [(True, "docker run --gpus all"), (False, "ubuntu-drivers")]
)
def test_the_library_of_the_driver_does_not_come_from_pip(inside, remedy):
    machine = found(*NO_LIBCUDA, container=inside)
    says(software.no_driver, machine, "no-libcuda:fail", remedy)
    says(software.no_driver, WITH, "")


def test_the_folders_of_installed_libraries_are_printed(tmp_path):
    folder = tmp_path / "nvidia/cufft/lib"
    folder.mkdir(parents=True)
    code = statements()["unnamed-libraries"]["value"]
    code = code.removeprefix('$(python -c "').removesuffix('")')
    code = code.replace("s.get_path('purelib')", repr(str(tmp_path)))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == str(folder)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"nvidia-cudnn-cu12": "9.3.0.75"}, ""),
        ({"nvidia-cudnn-cu12": "9.26.0.1"}, ""),
        ({"nvidia-cudnn-cu12": "9.1.0.70"}, "wrong-cudnn:fail"),
        ({"nvidia-cudnn-cu12": "8.9.7.29"}, "wrong-cudnn:fail"),
        ({"nvidia-cudnn-cu12": "10.0"}, "wrong-cudnn:fail"),
        # Of another CUDA.
        ({"nvidia-cudnn-cu11": "8.9.7.29"}, ""),
    ],
)
def test_a_cudnn_fits_if_it_is_as_new_and_of_the_same_generation(versions, said):
    says(software.old_cudnn, changed(WITH, versions=versions), said)


def loading(*names):
    loaded = tuple(
        Library(name=name, version=version, origin=origin)
        for name, version, origin in names
    )
    return changed(WITH, start={"loaded": loaded})


SHADOWED = found(*each(libcudart={"origin": "search path"}))
OWN = ("libcudnn.so.9", "9.3.0", "package")
OTHER = ("libcudnn.so.8", "8.9.7", "system")
# The libraries of the driver may come from anywhere.
OF_DRIVER = loading(
    ("libcuda.so.1", None, "search path"),
    ("libnvidia-ptxjitcompiler.so.1", None, "search path"),
)


@pytest.mark.parametrize(
    ("rule", "machine", "said", "pieces"),
    [
        (software.shadowed, SHADOWED, "shadowed-libraries:warn",
         [f"LD_LIBRARY_PATH leads to {NEEDED[1]},", "unset LD_LIBRARY_PATH"]),
        (software.shadowed, replace(SHADOWED, versions={"tensorflow": "2.21.0"}), "",
         []),
        (software.shadowed, WITH, "", []),
        (software.shadowed, OF_DRIVER, "", []),
        (software.twice, loading(OWN, OTHER), "loaded-twice:warn",
         [" | libcudnn: 8.9.7 (system), 9.3.0 (package). | "]),
        (software.twice, loading(OWN), "", []),
        (software.twice, OF_DRIVER, "", []),
    ],
)  # fmt: skip
def test_one_copy_of_each_library_is_loaded_and_the_right_one(
    rule, machine, said, pieces
):
    says(rule, machine, said, *pieces)
