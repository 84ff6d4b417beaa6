import importlib.metadata
import importlib.util
import json
import runpy
import sys
from pathlib import Path

import pytest

from perfkit.errors import MissingPartError
from perfkit.machine import environment, software
from tests.machine.checks.computers import HELD
from tests.machine.trees import (
    CPU,
    CUDA,
    WSL1,
    WSL2,
    computer,
    container,
    grow,
    package,
    tensorflow,
)

DOCKER = {"proc/self/cgroup": "0::/system.slice/docker-4f2a.scope\n"}
MY_OWN = computer(release="6.1.9-my-own")


@pytest.mark.parametrize(
    ("files", "variables", "kind", "expected"),
    [
        (computer(), {}, "Linux", ("linux", False)),
        (computer() | container(), {}, "Linux", ("container", True)),
        (computer() | DOCKER, {}, "Linux", ("container", True)),
        (computer(), {"APPTAINER_CONTAINER": "x.sif"}, "Linux", ("container", True)),
        (computer(), {"container": "podman"}, "Linux", ("container", True)),
        # A virtual machine that was made from a container's files.
        (computer() | {".dockerenv": ""}, {}, "Linux", ("linux", False)),
        (computer(release=WSL1), {}, "Linux", ("wsl1", False)),
        (computer(release=WSL2), {}, "Linux", ("wsl2", False)),
        (computer(release=WSL2) | container(), {}, "Linux", ("wsl2", True)),
        (MY_OWN, {"WSL_DISTRO_NAME": "U"}, "Linux", ("wsl2", False)),
        (computer(release="4.4.0-210-generic"), {}, "Linux", ("linux", False)),
        # Systems without /proc name themselves.
        ({}, {}, "Darwin", ("macos", False)),
        ({}, {}, "Windows", ("windows", False)),
        ({}, {}, "FreeBSD", ("other", False)),
    ],
)
def test_the_kind_of_system_is_told(tmp_path, files, variables, kind, expected):
    grow(tmp_path, files)
    inside = software.in_container(tmp_path, variables)
    platform = software.platform(tmp_path, variables, kind, container=inside)
    assert (platform, inside) == expected


@pytest.mark.parametrize(
    ("variables", "file", "backend"),
    [
        ({}, None, "tensorflow"),
        ({}, {"backend": "jax"}, "jax"),
        ({"KERAS_BACKEND": "torch"}, {"backend": "jax"}, "torch"),
        ({"KERAS_BACKEND": ""}, {"backend": "jax"}, "jax"),
        ({}, {"floatx": "float16"}, "tensorflow"),
        ({}, ["jax"], "tensorflow"),
        ({}, {"backend": ["jax"]}, "tensorflow"),
        ({"KERAS_BACKEND": "/home/ada/x"}, None, "tensorflow"),
        # Its folder may be another, and a broken file is as none.
        ({"HOME": "/", "KERAS_HOME": "{home}/.keras"}, {"backend": "jax"}, "jax"),
        pytest.param({}, "{" + "[" * 10_000, "tensorflow", id="broken"),
    ],
)
def test_keras_chooses_as_it_will(tmp_path, variables, file, backend):
    told = file if isinstance(file, str) else json.dumps(file)
    files = {".keras/keras.json": told} if file is not None else {}
    grow(tmp_path, package("keras", "3.15.1") | files)
    variables = {k: v.format(home=tmp_path) for k, v in variables.items()}
    home = {"HOME": str(tmp_path)} | variables
    assert software.keras_backend(home, [str(tmp_path)]) == backend
    # Without Keras there is no backend.
    assert software.keras_backend(home, [str(tmp_path / "none")]) is None


@pytest.mark.parametrize(
    ("variables", "elsewhere"),
    [
        ({}, False),
        ({"VIRTUAL_ENV": "{here}"}, False),
        ({"VIRTUAL_ENV": "{here}/../venv/."}, False),
        ({"VIRTUAL_ENV": "{other}"}, True),
        ({"CONDA_PREFIX": "{here}", "CONDA_DEFAULT_ENV": "tf"}, False),
        ({"CONDA_PREFIX": "{other}", "CONDA_DEFAULT_ENV": "tf"}, True),
        # Conda's own environment is active in every terminal.
        ({"CONDA_PREFIX": "{other}", "CONDA_DEFAULT_ENV": "base"}, False),
        ({"VIRTUAL_ENV": "{here}", "CONDA_PREFIX": "{other}"}, False),
    ],
)
def test_another_environment_is_told(tmp_path, variables, elsewhere):
    here, other = tmp_path / "venv", tmp_path / "another"
    places = {k: v.format(here=here, other=other) for k, v in variables.items()}
    said = software.elsewhere(str(here), places)
    assert bool(said) is elsewhere
    assert str(tmp_path) not in said


def test_variables_that_this_process_set_are_found():
    at_start = "OMP_NUM_THREADS=2\0HOME=/home/ada\0TF_XLA_FLAGS=a=b\0"
    now = {"OMP_NUM_THREADS": "4", "TF_XLA_FLAGS": "a=b", "XLA_FLAGS": "x", "HOME": "y"}
    assert environment.set_inside(now, at_start) == ("OMP_NUM_THREADS", "XLA_FLAGS")
    # Where nothing tells how it began nothing is claimed.
    assert environment.set_inside({"XLA_FLAGS": "x"}, "") == ()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TF_USE_LEGACY_KERAS": "1"}, "makes tf.keras Keras 2"),
        ({"KERAS_BACKEND": "jax"}, "set KERAS_BACKEND=tensorflow"),
        ({"KERAS_BACKEND": "torch"}, "Keras trains with torch here"),
    ],
)
def test_a_training_on_something_else_is_refused_in_one_sentence(variables, words):
    with pytest.raises(MissingPartError, match=words):
        software.check_trains({"HOME": "/nowhere"} | variables)


@pytest.mark.parametrize("off", ["0", "", "yes"])
def test_keras_3_on_tensorflow_is_not_refused(off):
    variables = {"TF_USE_LEGACY_KERAS": off, "KERAS_BACKEND": "tensorflow"}
    software.check_trains(variables)


def test_keras_2_is_refused_with_the_tensorflow_that_brings_3(tmp_path, monkeypatch):
    old = grow(tmp_path, {"keras/__init__.py": '__version__ = "2.15.0"\n'})
    monkeypatch.setattr(sys, "path", [str(old), *sys.path])
    with pytest.raises(MissingPartError, match=r"Keras 2\.15\.0.*TensorFlow 2\.16"):
        software.check_trains({})


OTHER = tensorflow(CPU, "2.20.0", "tensorflow-cpu")
ROCM = CUDA | {"is_cuda_build": False, "is_rocm_build": True}
BUILD = "tensorflow/python/platform/build_info.py"
MADE = "build_info = collections.OrderedDict"


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        # A build for GPUs says what it was made with.
        (tensorflow(), {}, {"build": "cuda", "cuda": "12.5.1", "cudnn": "9",
         "capabilities": HELD, "packages": ("tensorflow",)}),
        # Others are told apart; without TensorFlow there is none.
        *[(tensorflow(made) | more, {}, {"build": build}) for made, more, build in (
            (CPU, {}, "cpu"), (CPU, package("tensorflow-metal", "1.2.0"), "metal"),
            (ROCM, {}, "rocm"), ({}, {}, "unknown"),
            ({"is_cuda_build": "yes"}, {}, "unknown"))],
        (package("keras", "3.15.1"), {}, {"build": "none", "packages": (),
         "folder": None}),
        # A build that cannot be read is unknown.
        *[(tensorflow() | {BUILD: source}, {}, {"build": "unknown", "cuda": None,
           "capabilities": None}) for source in (
            "", f"{MADE}([('is_cuda_build', True)", f"{MADE}([1, 2])",
            f"{MADE}([__import__('os').abort()])",
            f"{MADE}([{'(' * 5000}{')' * 5000}])",
            "OrderedDict([('cuda_version', ['12']), "
            "('cuda_compute_capabilities', 5)])")],
        # A file of its name hides TensorFlow, as one in an earlier folder does.
        ({"tensorflow.py": ""}, tensorflow(), {"build": "unknown"}),
        (tensorflow(), OTHER, {"build": "cuda", "packages": ("tensorflow",)}),
        # Two distributions in one folder are both told.
        (tensorflow() | OTHER, {}, {"packages": ("tensorflow", "tensorflow-cpu")}),
        # One that only asks for another is not counted.
        (tensorflow(name="tensorflow-intel") | tensorflow(brings=False), {},
         {"packages": ("tensorflow-intel",)}),
    ],
)  # fmt: skip
def test_the_first_tensorflow_says_how_it_was_built(tmp_path, mine, theirs, told):
    folders = grow(tmp_path / "a", mine), grow(tmp_path / "b", theirs)
    found = software.tensorflow([*map(str, folders)])
    told = {"folder": folders[0]} | told
    assert {name: getattr(found, name) for name in told} == told


CUDNN = "nvidia-cudnn-cu12"
PUBLIC = "tensorflow/include/tensorflow/core/public"
HEADER = """
#define TF_MAJOR_VERSION 2
#define TF_MINOR_VERSION 18
#define TF_PATCH_VERSION 1
"""
OWN = tensorflow(name="a-containers-own")
NIGHTLY = tensorflow(CPU, "2.20.0.dev1", "tf-nightly-cpu")


@pytest.mark.parametrize(
    ("mine", "theirs", "versions"),
    [
        # They are those that Python finds first, of what matters.
        (package(CUDNN, "9.3.0.75"), package(CUDNN, "8.9") | tensorflow()
         | package("secret-project", "1"),
         {CUDNN: "9.3.0.75", "tensorflow": "2.21.0"}),
        # A TensorFlow that nothing known brought says its version itself.
        *[(OWN | {f"{PUBLIC}/{name}": HEADER}, {}, {"tensorflow": "2.18.1"})
          for name in ("release_version.h", "version.h")],
        # Whichever distribution brings the module, it is TensorFlow.
        (NIGHTLY, {}, dict.fromkeys(("tensorflow", "tf-nightly-cpu"), "2.20.0.dev1")),
    ],
)  # fmt: skip
def test_versions_are_those_that_python_finds_first(tmp_path, mine, theirs, versions):
    folders = grow(tmp_path / "a", mine), tmp_path / "gone", tmp_path / "b"
    grow(folders[-1], theirs)
    found = software.versions([*map(str, folders)])
    assert found == {"keras": "3.15.1"} | versions


def test_the_versions_here_are_those_that_are_installed():
    found = software.versions(sys.path)
    assert {"numpy", "keras", "perfkit"} <= set(found)
    assert found == {name: importlib.metadata.version(name) for name in found}
    # The tensorflow here is read without being imported.
    place = importlib.util.find_spec("tensorflow").origin
    told = runpy.run_path(Path(place).parent / "python/platform/build_info.py")
    found = software.tensorflow(sys.path)
    assert found.folder == Path(place).parents[1]
    assert (found.build == "cuda") == told["build_info"]["is_cuda_build"]
    assert found.cuda == told["build_info"].get("cuda_version")
    assert "tensorflow" in " ".join(found.packages)


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("keras/src/version.py", '__version__ = "3.11.3"\n', "3.11.3"),
        ("keras/__init__.py", 'import x\n__version__ = "2.15.0"\n', "2.15.0"),
        ("keras/__init__.py", "raise RuntimeError('imported')\n", ""),
    ],
)
def test_keras_says_its_version_without_being_imported(tmp_path, file, text, version):
    assert software.keras_version([str(grow(tmp_path, {file: text}))]) == version
