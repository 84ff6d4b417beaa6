"""A real JupyterLab in a real browser that can reach nothing but that server."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
from playwright.sync_api import sync_playwright

from tests.lab.server import running_lab
from tests.needs import find_browser

REPOSITORY = Path(__file__).resolve().parents[2]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # What the browser itself might ask for; pages are watched in `page`.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
# What JupyterLab notes of a panel on a page that is loaded after its kernel has ended.
GONE = "widget model not found"
# As long as a kernel may take to start, on two cores that others use as well.
LONG_MS = 60_000


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server on a copy of the notebooks, one for each file of tests."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(REPOSITORY / "notebooks", root / "notebooks")
    home = tmp_path_factory.mktemp("home")
    with running_lab(root, home, PERFKIT_BUDGET="10") as server:
        yield server


@pytest.fixture(scope="session")
def browser():
    """One headless browser with an empty profile."""
    with sync_playwright() as playwright:
        path = find_browser()
        if path is None:
            pytest.fail("There is no Chromium; `python3 start.py test` sees to one.")
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def page(browser, lab, request):
    """An empty page, 1280 by 800; fails the test on an error or a foreign request."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, service_workers="block"
    )
    problems = []
    watch(context, lab.origin, problems)
    page = context.new_page()
    yield page
    page.screenshot(path=picture(f"end of {request.node.name}"))
    context.close()
    lab.forget()
    assert problems == []


@pytest.fixture
def open_notebook(page, lab):
    """Opens a notebook of the lab, the first by default; gives the page once ready."""

    def visit(path=lab.path):
        # On a loaded machine JupyterLab takes a save of its own for somebody else's.
        asked = page.locator(".jp-Dialog", has_text="has changed on disk")
        keep = page.get_by_role("button", name="Overwrite")
        page.add_locator_handler(asked, lambda _: keep.click())
        page.goto(f"{lab.origin}{path}?token={lab.token}")
        page.locator(".jp-NotebookPanel").wait_for()
        # The notebook's own sign says idle before there is a kernel.
        page.locator("#jp-bottom-panel", has_text="| Idle").wait_for()
        return page

    return visit


@pytest.fixture
def show(lab, open_notebook):
    """Opens a notebook of some cells, the first of which is a panel, and runs that."""

    def opened(*cells):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, lab.root / "notebooks" / "panel.ipynb")
        page = open_notebook("/lab/tree/notebooks/panel.ipynb")
        page.set_default_timeout(LONG_MS)
        run_cell(page, 0)
        page.locator(".perfkit-state").wait_for()
        return page

    return opened


def run_cell(page, number):
    page.locator(".jp-Notebook .cm-content").nth(number).click()
    page.keyboard.press("Control+Enter")


def barriers(page, within=""):
    """What bars people from a page, or from what ``within`` finds, by axe's words."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(f"axe.run({within})")["violations"]
    return [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found]


def fits_its_width(page):
    """Whether a page never scrolls sideways."""
    root = "document.documentElement"
    return page.evaluate(f"{root}.scrollWidth <= window.innerWidth")


@pytest.fixture
def screenshot(page):
    """Saves what the page shows as ``artifacts/browser/<name>.png``."""

    return lambda name: page.screenshot(path=picture(name))


def picture(name):
    """Where a screenshot is kept: in a folder that git ignores."""
    folder = REPOSITORY / "artifacts" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.png"


def watch(context, origin, problems):
    """Let only ``origin`` through, and note everything that should not happen."""
    local = urlsplit(origin).netloc

    def guard(route):
        if urlsplit(route.request.url).netloc == local:
            route.continue_()
        else:
            problems.append(f"request: {route.request.url}")
            route.abort()

    def console(message):
        if message.type == "error" and GONE not in message.text:
            problems.append(f"console: {message.text} {message.location}")

    def socket_opened(socket):
        if urlsplit(socket.url).netloc != local:
            problems.append(f"websocket: {socket.url}")

    context.route("**/*", guard)
    context.on("page", lambda page: page.on("websocket", socket_opened))
    context.on("console", console)
    context.on("weberror", lambda raised: problems.append(f"error: {raised.error}"))
