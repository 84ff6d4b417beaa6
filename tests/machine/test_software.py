import json
import sys

import pytest

from perfkit.errors import MissingPartError
from perfkit.machine import environment, software
from tests.machine.trees import WSL1, WSL2, computer, container, grow, package

DOCKER = {"proc/self/cgroup": "0::/system.slice/docker-4f2a.scope\n"}


OWN = computer(release="6.1.9-my-own")


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
        (OWN, {"WSL_DISTRO_NAME": "U"}, "Linux", ("wsl2", False)),
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
