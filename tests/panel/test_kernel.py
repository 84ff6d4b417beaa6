"""A panel in a real kernel, without a page that shows it."""

import tempfile

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

from perfkit.findings.page.clean import Pictures
from perfkit.findings.page.notebook import outputs as exported
from tests.engine.trials import PATH, ROOT
from tests.panel.runs import SHOWN

VIEW = "application/vnd.jupyter.widget-view+json"
LONG_S = 60


@pytest.fixture(autouse=True, scope="module")
def _without_tensorflow(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        # A kernel's first trial starts ten seconds earlier.
        patch.setenv(*PATH)
        patch.chdir(tmp_path_factory.mktemp("here"))
        # With a lock of its own: nothing here is judged by its rates.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            patch.setenv("TMPDIR", temporary)
            yield


def test_run_all_leaves_a_result_where_the_panel_was_and_errors_are_a_sentence():
    cells = (
        SHOWN.format(budget=4, more=""),
        "finding = panel.result()",
        "finding.verdict.headline",
        "perfkit.load('there/is/no/such.json')",
        "print('before'); perfkit.run(Loops(), budget=4)",
    )
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    notebook.cells[3].metadata.tags = ["raises-exception"]
    NotebookClient(notebook, timeout=LONG_S, kernel_name="python3").execute()
    (panel, lost), _, (shown,), (wrong,), ran = (c.outputs for c in notebook.cells)
    headline = shown.data["text/plain"].strip("'\"")
    assert VIEW in panel.data
    assert headline in panel.data["text/html"]
    assert headline in panel.data["text/plain"]
    # It is for a page that is loaded without this kernel; one that is sent has none.
    assert "Run this cell again" in lost.data["text/html"]
    assert "".join(exported([lost], Pictures(ROOT))) == ""
    said = "BadFileError: There is no file there/is/no/such.json."
    assert "\n".join(wrong.traceback).strip() == said
    # What it showed while it ran is gone; its answer has its chart.
    printed, live, _ = ran
    assert (printed.text, live.data) == ("before\n", {})
    pages = "".join(exported(ran, Pictures(ROOT)))
    assert pages.count("perfkit-report") == pages.count("<svg") == 1


@pytest.fixture(scope="module")
def kernel(_without_tensorflow):
    """A kernel that runs one cell after the other."""
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("cell", ["panel.result()", "perfkit.run(Loops(), budget=40)"])
def test_an_interrupt_is_stop_while_a_cell_waits(kernel, cell):
    manager, client = kernel
    client.execute_interactive(
        SHOWN.format(budget=40, more=""), output_hook=lambda _: None
    )
    said = []

    def hear(message):
        # The first interval says that there is something to keep.
        state = message["content"].get("data", {}).get("state", {})
        rows = state.get("picture", {}).get("rows")
        if rows and all(row["ends"] for row in rows) and not said:
            said.append("interrupted")
            manager.interrupt_kernel()

    reply = client.execute_interactive(
        f"finding = {cell}", output_hook=hear, timeout=LONG_S
    )
    assert said == ["interrupted"]
    assert reply["content"]["status"] == "ok"
    client.execute_interactive(
        "print(finding.stopped, panel.running, len(finding.timings))",
        output_hook=lambda message: said.append(message["content"].get("text")),
    )
    assert "True False 2\n" in said
