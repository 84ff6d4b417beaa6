import importlib.metadata
import re
from pathlib import Path

import pytest

from perfkit.machine.checks import base, software
from perfkit.machine.record import Processor
from tests.machine.checks.computers import changed, workstation


def test_the_cudnn_of_the_tensorflow_that_is_installed_here_is_known():
    here = {"tensorflow": importlib.metadata.version("tensorflow")}
    machine = changed(workstation(), versions=here | {"nvidia-cudnn-cu12": "1.0"})
    assert [check.id for check in software.old_cudnn(machine)] == ["wrong-cudnn"]


@pytest.mark.parametrize(
    ("version", "pin"),
    [("2.21.0", "==2.21.0"), ("2.22.0.dev20260101", ""), ("2.17.0+nv25.2", "")],
)
def test_a_version_is_asked_of_pip_where_pip_has_it(version, pin):
    machine = changed(workstation(), versions={"tensorflow": version})
    assert base.install(machine).endswith(f'"tensorflow[and-cuda]{pin}"')


def test_an_arm_server_takes_the_container_that_has_cuda():
    arm = changed(workstation(), processor=Processor(instructions=("asimd", "sve")))
    assert "nvcr.io/nvidia/tensorflow" in base.install(arm)
    assert "pip install" in base.install(changed(arm, gpus=()))


def _remedies(machine):
    """Every remedy that the statements have, with X for what rules fill in."""
    told = base.statements()
    text = Path(base.__file__).with_name("statements.toml").read_text()
    names = re.findall(r"{(\w+)}", text)
    entries = [e for e in told.values() if isinstance(e, dict) and "remedy" in e]
    for entry in (*entries, *told["fixes"].values(), {}):
        given = dict.fromkeys(set(names) - entry.keys() - told["words"].keys(), "X")
        words = base.Words(machine, entry, {"install": "pip install X", **given})
        yield words["remedy"]
        yield from (words[f"lift_{limit}"] for limit in ("quota", "affinity"))


@pytest.mark.parametrize("platform", ["linux", "container", "wsl2"])
def test_what_is_shown_as_code_is_a_command_alone(platform):
    machine = changed(workstation(), software={"platform": platform})
    ways = map(base.first_way, _remedies(machine))
    code = [way for way in ways if way.startswith("run `")]
    assert code
    prose = (", ", ": ", " before ", " shows ")
    assert [way for way in code if any(word in way for word in prose)] == []
