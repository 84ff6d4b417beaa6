import json

from perfkit.documents import load
from tests.browser.conftest import REPOSITORY

FOLDER = "my-notebooks"
NOTEBOOK = f"{FOLDER}/00_start_here.ipynb"
# Slow machines load TensorFlow for a minute, and others may use their cores as well.
LOADED_MS = 300_000


def first_heading(lab):
    first = json.loads((lab.root / NOTEBOOK).read_text())["cells"][0]
    return "".join(first["source"]).splitlines()[0].strip("# ")


def test_it_comes_up_with_the_first_notebook_whose_links_lead_to_the_word(
    open_notebook, lab, screenshot
):
    opened = open_notebook()
    # The page fixture adds: no console error, no request to anything but the server.
    tab = opened.locator("#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current")
    assert tab.inner_text() == "00_start_here.ipynb"
    title = opened.locator(".jp-NotebookPanel h1")
    assert title.inner_text().startswith(first_heading(lab))
    assert opened.locator(".jp-Dialog").count() == 0
    assert opened.locator(".Toastify__toast").count() == 0
    contents = opened.locator("#table-of-contents")
    assert contents.is_visible()
    contents.get_by_text(first_heading(lab)).wait_for()
    assert opened.get_by_role("tab", name="Table of Contents").count() == 1
    assert opened.get_by_role("tab", name="Extension Manager").count() == 0
    config = opened.locator("#jupyter-config-data").text_content()
    assert json.loads(config)["news"] == {"disabled": True}
    screenshot("lab")
    # The map and the glossary open as pages.
    opened.locator(".jp-NotebookPanel").get_by_role("link", name="map").click()
    shown = opened.locator(".jp-MarkdownViewer:visible")
    shown.locator("h1", has_text="The way through the notebooks").wait_for()
    shown.get_by_role("link", name="04_convolution").click()
    notebook = opened.locator(".jp-NotebookPanel:visible")
    notebook.get_by_role("link", name="XLA", exact=True).click()
    # The last one: the page has to be scrolled to it.
    word = shown.locator("h3", has_text="xla")
    word.wait_for()
    assert 0 <= word.bounding_box()["y"] < 800


# The last one: it leaves a notebook that was run.


def test_from_the_start_command_to_the_first_verdict(page, lab):
    """What somebody does on the first day: start, Run All, read the verdict."""
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.goto(lab.url)
    page.locator("#jp-bottom-panel", has_text="| Idle").wait_for(timeout=LOADED_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    headline = page.locator(".jp-OutputArea .perfkit-answer").first
    headline.wait_for(timeout=LOADED_MS)
    # Which verdict it is, a busy machine decides.
    (file,) = lab.root.glob("my-notebooks/perfkit-findings/account*.json")
    assert headline.inner_text() == load(file).verdict.headline
    for path in (REPOSITORY / "notebooks").glob("*.ipynb"):
        assert (lab.root / "notebooks" / path.name).read_bytes() == path.read_bytes()
