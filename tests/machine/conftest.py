"""Machines that do not exist: a driver's library that answers from a text file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pydantic
import pytest

from perfkit.machine.gpu import Driver, Gpu

HERE = Path(__file__).parent
NO_COMPILER = (
    "These tests compile a driver's library and find no C compiler named cc: install "
    "one, for example with: apt-get install gcc libc6-dev"
)
DESCRIBE = """
import dataclasses, os, pathlib
from perfkit.machine.cards import gpus
answer = {}
for script in sorted(pathlib.Path("tests/machine/nvml").glob("*.txt")):
    os.environ["NVML_MACHINE"] = str(script)
    driver, found, why = gpus()
    cards = [dataclasses.asdict(gpu) for gpu in found]
    answer[script.stem] = [driver and dataclasses.asdict(driver), cards, why]
"""


def build_library(folder, *flags):
    if shutil.which("cc") is None:
        pytest.fail(NO_COMPILER, pytrace=False)
    library = folder / "libnvidia-ml.so.1"
    compiler = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, *flags, HERE / "fake_nvml.c", "-o", library], check=True)
    return folder


def text_of(name):
    return (HERE / "nvml" / f"{name}.txt").read_text()


def under(library, script):
    """The variables under which a program finds a driver that plays a script."""
    return os.environ | {"LD_LIBRARY_PATH": str(library), "NVML_MACHINE": str(script)}


def answer_of(lines, library, script):
    child = subprocess.run(
        [sys.executable, "-c", f"{lines}\nimport json; print(json.dumps(answer))"],
        env=under(library, script),
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A folder with a driver's library that knows every call."""
    return build_library(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def old_driver(tmp_path_factory):
    """The same of some years ago."""
    return build_library(tmp_path_factory.mktemp("old-driver"), "-DDRIVER_470")


@pytest.fixture
def ask(driver, tmp_path):
    """Runs Python lines under a driver; what they leave in ``answer`` comes back.

    The library is found as on a real machine: by the loader, in a process that starts
    with it in its search path.
    """

    def ask_driver(lines, machine="", library=driver):
        script = tmp_path / "machine.txt"
        script.write_text(machine)
        return answer_of(lines, library, script)

    return ask_driver


@pytest.fixture
def scripted():
    """The text of a scripted machine, by name."""
    return text_of


@pytest.fixture
def scripted_driver(driver):
    """The variables for a program that is to find a scripted machine, by name."""
    return lambda name: under(driver, HERE / "nvml" / f"{name}.txt")


@pytest.fixture(scope="session")
def described(driver):
    """Every scripted machine as perfkit describes it: driver, GPUs and why none."""
    answers = answer_of(DESCRIBE, driver, "").items()
    drivers = pydantic.TypeAdapter(Driver | None)
    gpus = pydantic.TypeAdapter(tuple[Gpu, ...])
    return {
        name: (drivers.validate_python(d), gpus.validate_python(g), why)
        for name, (d, g, why) in answers
    }
