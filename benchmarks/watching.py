"""What does a panel cost the training beside it, watched in a browser and not?

A training on all cores runs throughout. Beside it a panel runs an experiment whose
trials only sleep, so that what the training loses is the panel's: its kernel, the
monitor, the server and the browser. Watched, unwatched and without a run take turns.

    .venv/bin/python benchmarks/watching.py --cycles 8
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY)]

from benchmarks.engine import base  # noqa: E402
from perfkit.engine.launcher import launcher  # noqa: E402
from perfkit.engine.trial import Limits  # noqa: E402
from tests.browser.conftest import FLAGS  # noqa: E402
from tests.lab.server import running_lab  # noqa: E402
from tests.needs import find_browser  # noqa: E402

WINDOW_S = 5.0
NOTEBOOK = "/lab/tree/notebooks/watched.ipynb"
CELL = """\
import time
from dataclasses import dataclass

import perfkit
from perfkit import READY, Experiment, Verdict, variant


@dataclass(frozen=True, kw_only=True)
class Asleep(Experiment):
    \"\"\"What does watching cost?\"\"\"

    name = "asleep"
    baseline = "one"
    needs = ()

    @variant
    def one(self):
        \"\"\"Sleep.\"\"\"
        yield READY
        while True:
            time.sleep(0.025)
            yield 1

    two = variant(lambda self: self.one())
    three = variant(lambda self: self.one())

    def verdict(self, measured):
        return Verdict(headline="Asleep.")


panel = perfkit.panel(Asleep(), budget=120)
panel"""


def rate(running):
    """Steps per second of the training, over one window."""
    until, ticks = time.perf_counter() + WINDOW_S, []
    while time.perf_counter() < until:
        ticks += [t for m in running.poll(0.1) if m[0] == "ticks" for t in m[1]]
    done = sum(examples for _, examples, *_ in ticks[1:])
    return done / ((ticks[-1][0] - ticks[0][0]) / 1e9)


def shown(browser, lab):
    """Open the notebook in a new page."""
    page = browser.new_page(viewport={"width": 1280, "height": 2000})
    page.set_default_timeout(120_000)
    page.goto(f"{lab.origin}{NOTEBOOK}?token={lab.token}")
    page.locator("#jp-bottom-panel", has_text="| Idle").wait_for()
    return page


def press(page, name):
    """Press a button of the panel once it can be pressed."""
    page.get_by_role("button", name=name, exact=True).click()


def settle(lab):
    """Wait until server, kernel and browser have drawn what there was to draw."""
    used, before = 1.0, busy(lab)
    while used > 0.03:
        time.sleep(1)
        now = busy(lab)
        used, before = now - before, now


def busy(lab):
    """Seconds of CPU time that the server, its kernels and the browser have used."""
    total = 0.0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            own = process.pid == lab.process.pid or lab.process.pid in [
                parent.pid for parent in process.parents()
            ]
            if own or "chrom" in process.name():
                total += sum(process.cpu_times()[:2])
    return total


def cycle(running, browser, lab, page):
    """One window of each kind; gives the rates and the page that is open now."""
    press(page, "Run")
    # A chart that is out of sight does not draw.
    page.locator(".perfkit-live").scroll_into_view_if_needed()
    page.wait_for_function(
        "Number(document.querySelector('.perfkit-live')?.dataset.rows ?? 0) > 8"
    )
    watched = rate(running)
    # A page that is opened later shows the panel that was saved.
    page.keyboard.press("Control+s")
    page.locator(".jp-mod-dirty").wait_for(state="detached")
    page.close()
    unwatched = rate(running)
    page = shown(browser, lab)
    press(page, "Stop")
    page.wait_for_function(
        "[...document.querySelectorAll('.perfkit-panel button')]"
        ".some(b => b.innerText.trim() === 'Run' && !b.disabled)"
    )
    settle(lab)
    return (watched, unwatched, rate(running)), page


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cycles", type=int, default=8)
    cycles = parser.parse_args().cycles
    folder = Path(tempfile.mkdtemp(prefix="perfkit-watching-"))
    (folder / "notebooks").mkdir()
    (folder / "home").mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbformat.write(notebook, folder / NOTEBOOK.removeprefix("/lab/tree/"))
    without = REPOSITORY / "tests" / "guilty" / "without_tensorflow"
    path = os.pathsep.join(map(str, (REPOSITORY, without)))
    while not launcher().wait(1):
        pass
    with (
        running_lab(folder, folder / "home", PYTHONPATH=path) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = shown(browser, lab)
        page.locator(".jp-Notebook .cm-content").first.click()
        page.keyboard.press("Control+Enter")
        running = launcher().start(base, 1, Limits())
        rates = []
        for _ in range(cycles):
            found, page = cycle(running, browser, lab, page)
            rates.append(found)
        running.kill("stopped", "done")
        browser.close()
    table = Table("the training beside it", "ratio", "95 % interval")
    logs = np.log(np.array(rates))
    for column, what in ((0, "panel watched in a browser"), (1, "panel, page closed")):
        pairs = logs[:, column] - logs[:, 2]
        draw = np.random.default_rng(0)
        means = draw.choice(pairs, (2000, len(pairs))).mean(axis=1)
        low, high = np.exp(np.quantile(means, [0.025, 0.975]))
        ratio = f"{np.exp(pairs.mean()):.3f}"
        table.add_row(f"{what}, against no run", ratio, f"{low:.3f} to {high:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
