"""Machines that do not exist: a driver's library that answers from a text file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def build_library(folder, *flags):
    library = folder / "libnvidia-ml.so.1"
    compiler = ["cc", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.run([*compiler, *flags, HERE / "fake_nvml.c", "-o", library], check=True)
    return folder


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
        child = subprocess.run(
            [sys.executable, "-c", f"{lines}\nimport json; print(json.dumps(answer))"],
            env=os.environ
            | {"LD_LIBRARY_PATH": str(library), "NVML_MACHINE": str(script)},
            cwd=HERE.parents[1],
            capture_output=True,
            text=True,
        )
        assert child.returncode == 0, child.stderr
        return json.loads(child.stdout)

    return ask_driver


@pytest.fixture
def scripted():
    """The text of a scripted machine, by name."""
    return lambda name: (HERE / "nvml" / f"{name}.txt").read_text()
