"""Machines with drivers that do not exist."""

import msgspec
import pytest

from perfkit.machine.record import Driver, Gpu
from tests.machine import drivers

DESCRIBE = """
import dataclasses, os, pathlib
from perfkit.machine.nvml import gpus
answer = []
for script in sorted(pathlib.Path(os.environ["NVML_MACHINE"]).iterdir()):
    os.environ["NVML_MACHINE"] = str(script)
    driver, found, why = gpus()
    cards = [dataclasses.asdict(gpu) for gpu in found]
    answer.append([driver and dataclasses.asdict(driver), cards, why])
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A folder with a driver's library that knows every call."""
    return drivers.build_library(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def ask(driver, tmp_path):
    """Runs Python lines under a driver; what they leave in ``answer`` comes back."""

    def ask_driver(lines, machine=""):
        script = tmp_path / "machine.txt"
        script.write_text(machine)
        return drivers.answer_of(lines, driver, script)

    return ask_driver


@pytest.fixture(scope="session")
def describe(driver, tmp_path_factory):
    """Tells of machines, one script each: driver, GPUs and why none."""

    def in_one_process(*scripts, library=driver):
        folder = tmp_path_factory.mktemp("machines")
        for number, text in enumerate(scripts):
            (folder / f"{number:03}").write_text(text)
        answers = drivers.answer_of(DESCRIBE, library, folder)
        kinds = tuple[Driver | None, tuple[Gpu, ...], str]
        return [msgspec.convert(answer, kinds) for answer in answers]

    return in_one_process


@pytest.fixture(scope="session")
def described(describe):
    """Every scripted machine as perfkit describes it, by its name."""
    names = [path.stem for path in (drivers.HERE / "nvml").glob("*.txt")]
    return dict(zip(names, describe(*map(drivers.script, names)), strict=True))
