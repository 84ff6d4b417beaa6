import json
import sys

import pytest

from perfkit.errors import MissingPartError
from perfkit.machine import environment, software
from tests.machine.trees import WSL1, WSL2, computer, container, grow, package


def platform(root, files, variables=None, kind="Linux"):
    grow(root, files)
    inside = software.in_container(root, variables or {})
    return software.platform(root, variables or {}, kind, container=inside), inside


DOCKER = {"proc/self/cgroup": "0::/system.slice/docker-4f2a.scope\n"}


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        (computer(), {}, ("linux", False)),
        (computer() | container(), {}, ("container", True)),
        (computer() | DOCKER, {}, ("container", True)),
        (computer(), {"APPTAINER_CONTAINER": "x.sif"}, ("container", True)),
        (computer(), {"container": "podman"}, ("container", True)),
        # A virtual machine that was made from a container's files.
        (computer() | {".dockerenv": ""}, {}, ("linux", False)),
        (computer(release=WSL1), {}, ("wsl1", False)),
        (computer(release=WSL2), {}, ("wsl2", False)),
        (computer(release=WSL2) | container(), {}, ("wsl2", True)),
        (computer(release="6.1.9-my-own"), {"WSL_DISTRO_NAME": "U"}, ("wsl2", False)),
        (computer(release="4.4.0-210-generic"), {}, ("linux", False)),
    ],
)
def test_the_kind_of_system_is_told(tmp_path, files, variables, expected):
    assert platform(tmp_path, files, variables) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("Darwin", "macos"), ("Windows", "windows"), ("FreeBSD", "other")],
)
def test_systems_without_proc_name_themselves(tmp_path, kind, expected):
    assert platform(tmp_path, {}, kind=kind) == (expected, False)


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
    ],
)
def test_keras_chooses_as_it_will(tmp_path, variables, file, backend):
    grow(tmp_path, package("keras", "3.15.1"))
    if file is not None:
        grow(tmp_path, {".keras/keras.json": json.dumps(file)})
    home = {"HOME": str(tmp_path)}
    assert software.keras_backend(home | variables, [str(tmp_path)]) == backend


def test_the_folder_of_keras_may_be_another(tmp_path):
    grow(tmp_path, package("keras", "3") | {"k/keras.json": '{"backend": "jax"}'})
    chosen = {"HOME": "/", "KERAS_HOME": str(tmp_path / "k")}
    assert software.keras_backend(chosen, [str(tmp_path)]) == "jax"


def test_a_broken_file_of_keras_is_as_none(tmp_path):
    grow(tmp_path, package("keras", "3") | {".keras/keras.json": "{" + "[" * 10_000})
    home = {"HOME": str(tmp_path)}
    assert software.keras_backend(home, [str(tmp_path)]) == "tensorflow"


def test_without_keras_there_is_no_backend(tmp_path):
    assert software.keras_backend({"KERAS_BACKEND": "jax"}, [str(tmp_path)]) is None


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
def test_another_environment_than_the_active_one_is_told(
    tmp_path, variables, elsewhere
):
    here, other = tmp_path / "venv", tmp_path / "another"
    places = {k: v.format(here=here, other=other) for k, v in variables.items()}
    said = software.elsewhere(str(here), places)
    assert bool(said) is elsewhere
    assert str(tmp_path) not in said


def test_variables_that_this_process_set_are_found():
    at_start = "OMP_NUM_THREADS=2\0HOME=/home/ada\0TF_XLA_FLAGS=a=b\0"
    now = {"OMP_NUM_THREADS": "4", "TF_XLA_FLAGS": "a=b", "XLA_FLAGS": "x", "HOME": "y"}
    assert environment.set_inside(now, at_start) == ("OMP_NUM_THREADS", "XLA_FLAGS")


def test_where_nothing_tells_how_it_began_nothing_is_claimed():
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
