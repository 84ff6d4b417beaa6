import importlib.metadata
import importlib.util
import json
import runpy
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from perfkit.errors import MissingPartError
from perfkit.machine import environment
from tests.machine.checks.computers import HELD
from tests.machine.trees import (
    CPU,
    CUDA,
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
        # A virtual machine that was made from a container's files.
        (computer() | {".dockerenv": ""}, {}, "Linux", ("linux", False)),
        (computer(release=WSL2), {}, "Linux", ("wsl2", False)),
        (computer(release=WSL2) | container(), {}, "Linux", ("wsl2", True)),
        (MY_OWN, {"WSL_DISTRO_NAME": "U"}, "Linux", ("wsl2", False)),
        # Systems without /proc name themselves.
        ({}, {}, "Darwin", ("macos", False)),
    ],
)
def test_the_kind_of_system_is_told(tmp_path, files, variables, kind, expected):
    grow(tmp_path, files)
    inside = environment.in_container(tmp_path, variables)
    platform = environment.kind_of_system(tmp_path, variables, kind, container=inside)
    assert (platform, inside) == expected


@pytest.mark.parametrize(
    ("variables", "file", "backend"),
    [
        ({}, None, "tensorflow"),
        ({}, {"backend": "jax"}, "jax"),
        ({"KERAS_BACKEND": "torch"}, {"backend": "jax"}, "torch"),
        ({"KERAS_BACKEND": ""}, {"backend": "jax"}, "jax"),
        ({}, {"backend": ["jax"]}, "tensorflow"),
        # Its folder may be another, and a broken file is as none.
        ({"HOME": "/", "KERAS_HOME": "{home}/.keras"}, {"backend": "jax"}, "jax"),
        pytest.param({}, "{" + "[" * 10_000, "tensorflow", id="broken"),
    ],
)
def test_keras_chooses_as_it_will(tmp_path, variables, file, backend):
    told = file if isinstance(file, str) else json.dumps(file)
    grow(tmp_path, {".keras/keras.json": told} if file is not None else {})
    variables = {k: v.format(home=tmp_path) for k, v in variables.items()}
    assert environment.keras_backend({"HOME": str(tmp_path)} | variables) == backend


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TF_USE_LEGACY_KERAS": "1"}, "makes tf.keras Keras 2"),
        ({"KERAS_BACKEND": "jax"}, "set KERAS_BACKEND=tensorflow"),
        ({"KERAS_BACKEND": "torch"}, "Keras trains with torch here.*perfkit race"),
        # Keras 3 on TensorFlow is not.
        *[({"TF_USE_LEGACY_KERAS": off, "KERAS_BACKEND": "tensorflow"}, None)
          for off in ("0", "", "yes")],
    ],
)  # fmt: skip
def test_a_training_on_something_else_is_refused_in_one_sentence(variables, words):
    refused = pytest.raises(MissingPartError, match=words) if words else nullcontext()
    with refused:
        environment.check_trains({"HOME": "/nowhere"} | variables)


def test_keras_2_is_refused_with_the_tensorflow_that_brings_3(tmp_path, monkeypatch):
    old = grow(tmp_path, package("keras", "2.15.0"))
    monkeypatch.setattr(sys, "path", [str(old), *sys.path])
    with pytest.raises(MissingPartError, match=r"Keras 2\.15\.0.*TensorFlow 2\.16"):
        environment.check_trains({})


OTHER = tensorflow(CPU, "2.20.0", "tensorflow-cpu")
ROCM = CUDA | {"is_cuda_build": False, "is_rocm_build": True}
BUILD = "tensorflow/python/platform/build_info.py"
MADE = "build_info = collections.OrderedDict"


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        # A build for GPUs says what it was made with.
        (tensorflow(), {}, {"build": "cuda", "cuda": "12.5.1",
         "capabilities": HELD, "packages": ("tensorflow",)}),
        # Others are told apart; without TensorFlow there is none.
        *[(tensorflow(made) | more, {}, {"build": build}) for made, more, build in (
            (CPU, {}, "cpu"), (CPU, package("tensorflow-metal", "1.2.0"), "metal"),
            (ROCM, {}, "rocm"), ({}, {}, "unknown"),
            ({"is_cuda_build": "yes"}, {}, "unknown"))],
        (package("keras", "3.15.1"), {}, {"build": "none", "packages": ()}),
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
    ],
)  # fmt: skip
def test_the_first_tensorflow_says_how_it_was_built(tmp_path, mine, theirs, told):
    folders = grow(tmp_path / "a", mine), grow(tmp_path / "b", theirs)
    found = environment.tensorflow([*map(str, folders)])
    assert {name: getattr(found, name) for name in told} == told


def test_the_versions_here_are_those_that_are_installed():
    found = environment.versions(sys.path)
    assert {"numpy", "keras", "perfkit"} <= set(found)
    assert found == {name: importlib.metadata.version(name) for name in found}
    # The tensorflow here is read without being imported.
    place = importlib.util.find_spec("tensorflow").origin
    told = runpy.run_path(Path(place).parent / "python/platform/build_info.py")
    found = environment.tensorflow(sys.path)
    assert (found.build == "cuda") == told["build_info"]["is_cuda_build"]
    assert found.cuda == told["build_info"].get("cuda_version")
    assert "tensorflow" in " ".join(found.packages)
