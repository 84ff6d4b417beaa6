"""The panels about machines in a real JupyterLab, on files and no measurement."""

import os

import nbformat
import pytest

from tests.browser.conftest import REPOSITORY
from tests.browser.test_panel import (
    LONG_MS,
    button,
    choose,
    overflowing,
    run_cell,
    serious,
    state,
)
from tests.lab.server import running_lab
from tests.panel.files import put

COMPARE = """\
import perfkit
panel = perfkit.panel("compare")
panel"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server whose kernels have no TensorFlow to load, beside some passports."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "notebooks").mkdir()
    for name, times in (("mine", 1.0), ("theirs", 0.4)):
        rates = {"JPEG decode": times, "tf.data map": times}
        put(name, root / "notebooks", rates=rates)
    without = REPOSITORY / "tests" / "guilty" / "without_tensorflow"
    found = os.pathsep.join(map(str, (REPOSITORY, without)))
    with running_lab(root, tmp_path_factory.mktemp("home"), PYTHONPATH=found) as server:
        yield server


@pytest.fixture
def show(lab, open_notebook):
    """Opens a notebook of one cell and runs it; gives the page."""

    def opened(cell):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell)]
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, lab.root / "notebooks" / "panel.ipynb")
        page = open_notebook("/lab/tree/notebooks/panel.ipynb")
        page.set_default_timeout(LONG_MS)
        run_cell(page, 0)
        page.locator(".perfkit-state").wait_for()
        return page

    return opened


def upload(page, name, data):
    """Choose a file from elsewhere for machine B, as a reader does."""
    with page.expect_file_chooser() as asked:
        button(page, "Upload B…").click()
    asked.value.set_files({"name": name, "mimeType": "text/json", "buffer": data})


def test_two_machines_from_two_pickers_to_a_page(show, lab, screenshot):
    page = show(COMPARE)
    pickers = page.locator(".perfkit-panel select")
    labels = pickers.nth(0).locator("option").all_inner_texts()
    mine, theirs = (next(o for o in labels if name in o) for name in ("mine", "theirs"))
    upload(page, "huge.json", b" " * 30_000_000)
    assert "30 MB large" in state(page, "press Refresh")
    upload(page, "cut.json", b'{"schema": 1, "kind": "passport", "label": "<b>')
    assert "cut off" in state(page, "cut.json")
    upload(page, "sent.json", (lab.root / "notebooks" / "theirs.json").read_bytes())
    state(page, "Ready")
    assert "sent.json" in pickers.nth(1).locator("option:checked").inner_text()
    pickers.nth(0).select_option(label=mine)
    pickers.nth(1).select_option(label=theirs)
    button(page, "Compare").click()
    state(page, "Compared")
    page.locator(".perfkit-found", has_text="the input pipeline is").wait_for()
    assert page.locator(".perfkit-panel svg.perfkit-chart").count() == 5
    assert serious(page) == []
    page.set_viewport_size({"width": 1280, "height": 2400})
    screenshot("compare")
    page.set_viewport_size({"width": 700, "height": 2400})
    screenshot("compare-narrow")
    assert overflowing(page) == []
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download page").click()
    assert saved.value.suggested_filename.startswith("compare-")
    choose(page, "Settings", "Theme", "JupyterLab Dark")
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
    assert serious(page) == []
    page.set_viewport_size({"width": 1280, "height": 2400})
    screenshot("compare-dark")
