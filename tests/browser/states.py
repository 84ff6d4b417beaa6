"""Every kind of report as pictures, so that a change to it is looked at.

``.venv/bin/python -m tests.browser.states [FOLDER]`` draws them as a page shows them,
light and dark, at 400, 800 and 1,280 px, into ``artifacts/states``. Look at each as
somebody who knows nothing of perfkit: what should this person do, how much does it
bring, and how sure is that?
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright

import perfkit
from perfkit.diagnosis import verdict
from perfkit.experiments.replay import BROUGHT
from perfkit.export.page import laid_out, of_finding, page_of
from perfkit.findings import store
from perfkit.findings.record import Edit
from perfkit.findings.standing import measurement
from perfkit.machine.checks import checks
from perfkit.machine.record import Busy, Load
from perfkit.machines import record as passports
from perfkit.machines.compare import compare
from tests.browser.conftest import FLAGS, REPOSITORY
from tests.diagnosis.diagnosed import LOGGER, RATES, SLOW_MAP, cause, diagnosis
from tests.doctor import looked
from tests.findings import made
from tests.machines import pairs
from tests.machines.passports import passport
from tests.needs import find_browser

OPEN = "data-pipeline-variants-prefetch-batch-first-numpy-numpy-by-element"
WIDTHS, SCHEMES = (400, 800, 1280), ("light", "dark")
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


def recorded(name="data-pipeline"):
    return store.load(BROUGHT / f"{name}.json")


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


def main(folder=REPOSITORY / "artifacts" / "states"):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        draw_reports(browser, folder)
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
