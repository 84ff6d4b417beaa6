"""A panel in a real kernel, without a page that shows it."""

import os
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from perfkit.export.outputs import shown as exported

ROOT = Path(__file__).resolve().parents[2]
# Without TensorFlow a kernel's first trial starts ten seconds earlier.
FOUND = (str(ROOT), str(ROOT / "tests" / "guilty" / "without_tensorflow"))
SHOW = """\
import perfkit
from tests.experiments.toy import Loops
panel = perfkit.panel(Loops(), budget={budget})
panel"""
VIEW = "application/vnd.jupyter.widget-view+json"
LONG_S = 60


@pytest.fixture(autouse=True)
def without_tensorflow(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(FOUND))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def executed():
    """Runs cells from top to bottom, as tests and CI do; gives their outputs."""

    def run(*cells):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        NotebookClient(notebook, timeout=LONG_S, kernel_name="python3").execute()
        return [cell.outputs for cell in notebook.cells]

    return run


@pytest.fixture
def kernel():
    """A kernel that runs one cell after the other."""
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.measures
def test_run_all_gives_a_result_and_leaves_it_where_the_panel_was(executed):
    (panel, lost), _, (shown,) = executed(
        SHOW.format(budget=3), "finding = panel.result()", "finding.verdict.headline"
    )
    headline = shown.data["text/plain"].strip("'\"")
    assert VIEW in panel.data
    assert headline in panel.data["text/html"]
    assert 'role="img"' in panel.data["text/html"]
    assert headline in panel.data["text/plain"]
    # It is for a page that is loaded without this kernel; one that is sent has none.
    assert "Run this cell again" in lost.data["text/html"]
    assert "".join(exported([lost], "", None)) == ""


def test_a_panel_that_never_ran_shows_what_it_is_set_to(executed):
    ((panel, _),) = executed(SHOW.format(budget=3))
    assert VIEW in panel.data
    assert "Does a longer loop take longer?" in panel.data["text/html"]
    assert "20000" in panel.data["text/html"]


@pytest.mark.parametrize("wait", ["panel.result()", "await panel"])
@pytest.mark.measures
def test_an_interrupt_is_stop_while_a_cell_waits(kernel, wait):
    manager, client = kernel
    client.execute_interactive(SHOW.format(budget=600), output_hook=ignore)
    said = []

    def hear(message):
        # The first interval says that there is something to keep.
        state = message["content"].get("data", {}).get("state", {})
        rows = state.get("picture", {}).get("rows")
        if rows and all(row["ends"] for row in rows) and not said:
            said.append("interrupted")
            manager.interrupt_kernel()

    reply = client.execute_interactive(
        f"finding = {wait}", output_hook=hear, timeout=LONG_S
    )
    assert said == ["interrupted"]
    assert reply["content"]["status"] == "ok"
    client.execute_interactive(
        "print(finding.stopped, panel.running, len(finding.timings))",
        output_hook=lambda message: said.append(message["content"].get("text")),
    )
    assert "True False 2\n" in said


def ignore(_):
    """Nobody looks."""


def test_what_is_wrong_is_one_sentence_in_a_cell(executed):
    with pytest.raises(CellExecutionError) as caught:
        executed("import perfkit\nperfkit.load('there/is/no/such.json')")
    shown = caught.value.traceback.rpartition("------\n")[2]
    assert shown.split("\n")[1:3] == [
        "",
        "BadFileError: There is no file there/is/no/such.json.",
    ]
    assert "Traceback" not in shown
