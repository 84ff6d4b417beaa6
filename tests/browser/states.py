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

from playwright.sync_api import sync_playwright

import perfkit
from perfkit.diagnosis import verdict
from perfkit.errors import RunError
from perfkit.experiments.replay import BROUGHT, Replay
from perfkit.export.page import laid_out, of_finding, page_of
from perfkit.findings import store
from perfkit.findings.record import Edit
from perfkit.findings.standing import measurement
from perfkit.machine.checks import checks
from perfkit.machine.record import Busy, Load
from perfkit.machines import record as passports
from perfkit.machines.compare import compare
from perfkit.measure.plan import Finished, Progress, Ticked, TrialEnded
from perfkit.panel import panel as panel_panel
from tests.browser.conftest import FLAGS, REPOSITORY, write_notebook
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
# Of each machine of a class: times the usual speed, processor, cores.
CLASS = {
    "ada": (0.5, "Intel Core i5-8250U", 4),
    "bob": (1.0, "AMD Ryzen 5 5600", 6),
    "eve": (1.1, "Intel Core i5-12400", 6),
    "kim": (4.0, "AMD Ryzen 9 7950X", 16),
}
# The same desktop, once as it should be and once with what slows it.
_SAID = tuple(one for one in looked.FULL.start.said if one.weight == "harmless")
WELL = replace(
    looked.FULL,
    processor=replace(
        looked.FULL.processor, governor="performance", frequency_driver="acpi-cpufreq"
    ),
    load=Load(others=0.2, memory_free=50 * 10**9),
    start=replace(looked.FULL.start, said=_SAID),
)
ILL = replace(
    WELL,
    processor=replace(WELL.processor, governor="powersave"),
    load=replace(WELL.load, others=5.2, top=(Busy(program="renderer", cores=5.0),)),
)
# Three causes, with the lines where they stand.
_LINES = (
    (
        *(SLOW_MAP, 27, "dataset = dataset.map(parse)"),
        "dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    (LOGGER, 41, "callbacks = [keras.callbacks.CSVLogger(log)]", "callbacks = []"),
    (
        *(cause("xla", "XLA", 1.1, "opportunity"), 38, 'model.compile("adam", "mse")'),
        'model.compile("adam", "mse", jit_compile=True)',
    ),
)
CAUSES = tuple(
    replace(one, edits=(Edit(file="train.py", line=line, old=old, new=new),))
    for one, line, old, new in _LINES
)
# Seconds of the recorded run that a panel has been told of; None before Run.
PANELS = {"before": None, "running 5 s": 5, "running 30 s": 30, "after": 1e9}


class Held:
    """A recorded run that is told up to a moment, and held there."""

    def __init__(self, experiment, recorded, until):
        self.experiment, self.machine = experiment, recorded.machine
        self.finding, self.unsaved, self.budget = None, "", BUDGET_S
        self._recorded = recorded
        self._until, self._stopped = until, threading.Event()
        self._told = Replay(experiment, recorded, folder=tempfile.mkdtemp())

    def events(self):
        began = time.monotonic()
        for event in self._told.events():
            self._learn(event)
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

    def _learn(self, event):
        """What a run knows once a round has ended, and all of it at its end."""
        match event:
            case TrialEnded(_, known):
                self.finding = replace(
                    self._recorded,
                    trials=known.trials,
                    timings=known.timings,
                    comparisons=known.comparisons,
                    noise_floor=known.noise_floor,
                    verdict=self.experiment.verdict(known),
                    unfinished=True,
                )
            case Finished():
                self.finding = self._recorded

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
    missing = "FileNotFoundError: photographs/0001.jpg"
    names = ("naive map", "prefetch", "cache")
    crashes = [made.failed(name, "crashed", missing) for name in names]
    failed = made.finding({}, rounds=0, extra=crashes, machine=whole.machine)
    same = dict.fromkeys(RATES, 1000.0)
    findings = {
        "sure": whole,
        "not known yet": recorded(OPEN),
        "stopped": replace(whole, stopped=True),
        "failed": replace(failed, verdict=asked.verdict(measurement(failed))),
        "healthy diagnosis": told(diagnosis(causes=(), rates=same, together=None)),
        "three causes": told(diagnosis(causes=CAUSES, rates=RATES | {"XLA": 1100.0})),
    }
    for name, found in findings.items():
        yield name, laid_out([of_finding(found)])
    yield from of_machines(folder)


def told(found):
    return replace(found, verdict=verdict.verdict_of(found))


def of_machines(folder):
    """The page of two machines, of a class, of a machine that is well and of one ill.

    Args:
        folder: Where the files of a class may lie; it has no others.
    """
    slow = replace(pairs.one_core(), label="laptop, in a container")
    two = compare(pairs.passport(label="laptop"), slow)
    yield "two machines", two.export(folder / "two.html").read_text()
    for name, (speed, cpu, cores) in CLASS.items():
        machine = replace(
            pairs.MACHINE, cpu=cpu, cores=cores, cores_granted=float(cores)
        )
        one = passport(name, speed, machine=machine, checks=checks(machine))
        passports.save(one, folder / f"{name}.json")
    room = perfkit.classroom(folder)
    yield "class", room.export(folder / "class.html").read_text()
    for name, machine in {"well": WELL, "ill": ILL}.items():
        found = looked.examination(*checks(machine), machine=machine)
        yield f"doctor {name}", laid_out([page_of(found.report, ())])


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
        for state in PANELS:
            # A notebook for each: a kernel has one run at a time.
            code = f"from tests.browser.states import panel\npanel({state!r})"
            write_notebook(root / "notebooks" / f"{state}.ipynb", code)
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
    if state == "after":
        for now in ("visible", "hidden"):
            page.get_by_text("Running: wait").wait_for(state=now)
    elif PANELS[state] is not None:
        # As long as the recorded run takes to be told until then.
        page.wait_for_timeout(1000 * PANELS[state] / TIMES_AS_FAST + 3e3)
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
