"""Machines with drivers that do not exist; drivers.py serves other folders too."""

import msgspec
import pytest

from perfkit.machine.gpu import Driver, Gpu
from tests.machine import drivers

DESCRIBE = """
import dataclasses, os, pathlib
from perfkit.machine.cards import gpus
answer = {}
for script in sorted(pathlib.Path(os.environ["NVML_MACHINE"]).iterdir()):
    os.environ["NVML_MACHINE"] = str(script)
    driver, found, why = gpus()
    cards = [dataclasses.asdict(gpu) for gpu in found]
    answer[script.stem] = [driver and dataclasses.asdict(driver), cards, why]
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A folder with a driver's library that knows every call."""
    return drivers.build_library(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def old_driver(tmp_path_factory):
    """The same of some years ago."""
    return drivers.build_library(tmp_path_factory.mktemp("old-driver"), "-DDRIVER_470")


@pytest.fixture
def ask(driver, tmp_path):
    """Runs Python lines under a driver; what they leave in ``answer`` comes back."""

    def ask_driver(lines, machine="", library=driver):
        script = tmp_path / "machine.txt"
        script.write_text(machine)
        return drivers.answer_of(lines, library, script)

    return ask_driver


@pytest.fixture(scope="session")
def described(driver, tmp_path_factory):
    """Every scripted machine as perfkit describes it: driver, GPUs and why none."""
    folder = tmp_path_factory.mktemp("machines")
    for path in (drivers.HERE / "nvml").glob("*.txt"):
        (folder / path.name).write_text(drivers.script(path.stem))
    answers = drivers.answer_of(DESCRIBE, driver, folder).items()
    return {
        name: (
            msgspec.convert(d, Driver | None),
            msgspec.convert(g, tuple[Gpu, ...]),
            why,
        )
        for name, (d, g, why) in answers
    }
