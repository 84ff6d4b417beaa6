"""xprof reads a trace in processes of its own, and may end them."""

import importlib.util
import sys

import pytest

from perfkit.errors import MissingPartError
from perfkit.measure.processes import Ended
from perfkit.profiling import traces


def scripted(breaks):
    """A process that ends where it comes to one of these tools."""
    asked = []

    def process(work, longest):
        todo = work.args[1]
        asked.append(todo)
        known = {}
        for tool in todo:
            if tool in breaks:
                return Ended(known, "crashed", breaks[tool])
            known[tool] = f"{tool} of {work.args[0]}"
        return Ended(known)

    return process, asked


def test_all_tables_come_from_one_process():
    process, asked = scripted({})
    found, failed = traces.read("here", process)
    assert set(found) == set(traces.TOOLS)
    assert found[traces.OPS] == "framework_op_stats of here"
    assert failed == {}
    assert len(asked) == 1


def test_a_table_that_ends_the_process_costs_no_other():
    process, asked = scripted({traces.OPS: "was ended by SIGABRT.", traces.MEMORY: ""})
    found, failed = traces.read("here", process)
    assert set(found) == {traces.STEPS, traces.KERNELS}
    assert failed == {
        traces.OPS: "xprof could not read this part of the trace: was ended by "
        "SIGABRT.",
        traces.MEMORY: "xprof could not read this part of the trace: gave nothing.",
    }
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        (True, 'python -m pip install "xprof>=2.22"'),
        (False, 'uv pip install --python .venv "xprof>=2.22"'),
    ],
)
def test_without_xprof_the_command_that_brings_it_is_told(monkeypatch, pip, command):
    there = {"pip": object()} if pip else {}
    monkeypatch.setattr(importlib.util, "find_spec", there.get)
    monkeypatch.setattr(sys, "prefix", "/home/ada/perfkit/.venv")
    with pytest.raises(MissingPartError) as caught:
        traces.version()
    assert str(caught.value).endswith(f"in this environment: {command}")
