"""Every state of the face as pictures, so that a change to it is looked at.

``.venv/bin/python -m tests.browser.states [FOLDER]`` draws the reports as a page shows
them and the panel as JupyterLab does, light and dark, at 400, 800 and 1,280 px, into
``artifacts/states``. Look at each as somebody who knows nothing of perfkit: what should
this person do, how much does it bring, and how sure is that?
"""

import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

import perfkit
from perfkit.diagnosis import verdict
from perfkit.errors import RunError
from perfkit.experiments.replay import BROUGHT, Replay
from perfkit.export.page import laid_out, of_finding, page_of
from perfkit.findings import store
from perfkit.findings.standing import measurement
from perfkit.machines.compare import compare
from perfkit.measure.plan import Progress, Ticked
from perfkit.panel import panel as panel_panel
from perfkit.passports import passport as passports
from tests.browser.conftest import FLAGS, REPOSITORY
from tests.diagnosis.diagnosed import LOGGER, RATES, SLOW_MAP, cause, diagnosis
from tests.doctor import looked
from tests.findings import made
from tests.lab.server import running_lab
from tests.machines import pairs
from tests.machines.passports import passport
from tests.needs import find_browser

OPEN = "data-pipeline-variants-prefetch-batch-first-numpy-numpy-by-element"
WIDTHS, SCHEMES = (400, 800, 1280), ("light", "dark")
BUDGET_S, TIMES_AS_FAST = 90, 10
# Seconds of the recorded run that a panel has been told of; None before Run.
PANELS = {"before": None, "running 5 s": 5, "running 30 s": 30, "after": 1e9}


class Held:
    """A recorded run that is told up to a moment, and held there."""

    def __init__(self, experiment, recorded, until):
        self.experiment, self.machine = experiment, recorded.machine
        self.finding, self.unsaved, self.budget = recorded, "", BUDGET_S
        self._until, self._stopped = until, threading.Event()
        self._told = Replay(experiment, recorded, folder=tempfile.mkdtemp())

    def events(self):
        began = time.monotonic()
        for event in self._told.events():
            yield event
            if isinstance(event, Ticked):
                at = event.ticks[-1][0]
                yield Progress(at, BUDGET_S)
                if at > self._until:
                    break
                time.sleep(max(0.0, at / TIMES_AS_FAST + began - time.monotonic()))
        else:
            return
        while not self._stopped.wait(0.3):
            yield Progress(self._until, BUDGET_S)

    def stop(self):
        self._stopped.set()


def recorded(name="data-pipeline"):
    return store.load(BROUGHT / f"{name}.json")


def panel(state):
    """The panel in one of its states; this runs in the kernel."""
    until = PANELS[state]

    def opened(experiment, *_):
        if until is None:
            raise RunError("This panel is looked at before its run.")
        return Held(experiment, recorded(), until)

    panel_panel.open_session = opened
    shown = perfkit.panel("data-pipeline", budget=BUDGET_S, guess="cache 2x")
    if until is not None:
        shown.start()
    return shown


def reports(folder):
    """The page of each state that is no panel's, by name."""
    whole, asked = recorded(), perfkit.experiment("data-pipeline")
    crashes = [made.failed(name, "crashed", "no such file") for name in ("a", "b")]
    failed = made.finding({}, rounds=0, extra=crashes)
    causes = (SLOW_MAP, LOGGER, cause("xla", "XLA", 1.1, kind="opportunity"))
    same = dict.fromkeys(RATES, 1000.0)
    findings = {
        "sure": whole,
        "not known yet": recorded(OPEN),
        "stopped": replace(whole, stopped=True),
        "failed": replace(failed, verdict=asked.verdict(measurement(failed))),
        "healthy diagnosis": told(diagnosis(causes=(), rates=same, together=None)),
        "three causes": told(diagnosis(causes=causes)),
    }
    for name, found in findings.items():
        yield name, laid_out([of_finding(found)])
    two = compare(pairs.passport(), pairs.one_core())
    yield "two machines", two.export(folder / "two.html").read_text()
    for name, speed in {"ada": 0.5, "bob": 1.0, "eve": 1.1, "kim": 4.0}.items():
        passports.save(passport(name, speed), folder / f"{name}.json")
    room = perfkit.classroom(folder, you=folder / "ada.json")
    yield "class", room.export(folder / "class.html").read_text()
    for name, checks in {"well": (), "ill": (looked.SLOW, looked.HIDDEN)}.items():
        found = looked.examination(*checks, looked.WELL)
        yield f"doctor {name}", laid_out([page_of(found.report, ())])


def told(found):
    return replace(found, verdict=verdict.verdict_of(found))


def draw_reports(browser, folder):
    with tempfile.TemporaryDirectory() as place:
        for name, html in reports(Path(place)):
            for width in WIDTHS:
                for scheme in SCHEMES:
                    page = browser.new_page(
                        viewport={"width": width, "height": 800}, color_scheme=scheme
                    )
                    page.set_content(html)
                    # What the page begins with; the appendix is more of the same.
                    page.locator("main > .perfkit-report").first.screenshot(
                        path=folder / f"{name} {width} {scheme}.png"
                    )
                    page.close()


def draw_panels(browser, folder):
    with tempfile.TemporaryDirectory() as place:
        root, home = Path(place, "checkout"), Path(place, "home")
        (root / "notebooks").mkdir(parents=True)
        home.mkdir()
        kernel = {"name": "python3", "display_name": "Python 3"}
        for state in PANELS:
            # A notebook for each: a kernel has one run at a time.
            code = f"from tests.browser.states import panel\npanel({state!r})"
            cell = nbformat.v4.new_code_cell(code)
            book = nbformat.v4.new_notebook(cells=[cell])
            book.metadata.kernelspec = kernel
            nbformat.write(book, root / "notebooks" / f"{state}.ipynb")
        with running_lab(root, home, PYTHONPATH=str(REPOSITORY)) as lab:
            for state in PANELS:
                draw_panel(browser, lab, state, folder)


def draw_panel(browser, lab, state, folder):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(120_000)
    page.goto(f"{lab.origin}/lab/tree/notebooks/{state}.ipynb?token={lab.token}")
    page.locator(".jp-NotebookPanel").wait_for()
    page.locator("#jp-bottom-panel", has_text="| Idle").wait_for()
    page.keyboard.press("Control+b")  # without the sidebar
    page.locator(".jp-Notebook .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    shown = page.locator(".perfkit-panel")
    shown.wait_for()
    if PANELS[state] is not None:
        # As long as the recorded run takes to be told.
        page.wait_for_timeout(1000 * min(PANELS[state], BUDGET_S) / TIMES_AS_FAST + 3e3)
    for scheme, theme in zip(SCHEMES, ("Light", "Dark"), strict=True):
        page.set_viewport_size({"width": 1280, "height": 1000})
        page.get_by_role("menuitem", name="Settings", exact=True).click()
        page.get_by_text("Theme", exact=True).hover()
        page.get_by_text(f"JupyterLab {theme}", exact=True).click()
        light = str(theme == "Light").lower()
        page.locator(f"body[data-jp-theme-light={light}]").wait_for(state="attached")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 2400})
            # JupyterLab lays the cell out anew.
            page.wait_for_timeout(1500)
            path = folder / f"{state} {width} {scheme}.png"
            page.screenshot(path=path, clip=shown.bounding_box())
    page.close()
    lab.forget()


def main(folder=REPOSITORY / "artifacts" / "states"):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        draw_reports(browser, folder)
        draw_panels(browser, folder)
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
