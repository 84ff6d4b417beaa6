"""The panel in a real JupyterLab, on a small experiment that needs no TensorFlow."""

import re

import psutil
import pytest

from tests.browser.conftest import barriers, run_cell
from tests.engine.trials import PATH
from tests.lab.server import running_lab
from tests.panel.runs import SHOWN


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server whose kernels have no TensorFlow to load."""
    root, home = (tmp_path_factory.mktemp(name) for name in ("checkout", "home"))
    (root / "notebooks").mkdir()
    with running_lab(root, home, **dict([PATH])) as server:
        yield server


def choose(page, menu, *entries):
    """Choose an entry of a menu, or one that lies deeper."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    for entry in entries[:-1]:
        page.get_by_text(entry, exact=True).hover()
    page.get_by_text(entries[-1], exact=True).click()


def button(page, name, panel=0):
    box = page.locator(".perfkit-panel").nth(panel)
    return box.get_by_role("button", name=name, exact=True)


def rows(page, panel=0):
    """How many samples of the machine the chart has drawn."""
    drawn = page.locator(".perfkit-live").nth(panel).get_attribute("data-rows")
    return int(drawn or 0)


def wait_for_rows(page, count, panel=0):
    page.wait_for_function(
        "([panel, count]) => "
        "document.querySelectorAll('.perfkit-live')[panel]?.dataset.rows >= count",
        arg=[panel, count],
    )


def state(page, words, panel=0):
    """Wait until the panel says ``words``; give the whole sentence."""
    line = page.locator(".perfkit-state").nth(panel)
    line.filter(has_text=words).wait_for()
    return line.inner_text()


def wait_for_intervals(page):
    """Wait until every variant has one: then there is something to keep."""
    page.locator(".perfkit-lead", has_text=re.compile("^So far")).wait_for()


def reload(page):
    page.keyboard.press("Control+s")
    page.locator(".jp-mod-dirty").wait_for(state="detached")
    page.reload()
    page.locator(".jp-NotebookPanel").wait_for()


def printed(page, words):
    page.locator(".jp-OutputArea-output", has_text=words).wait_for()


def trials(lab):
    """The processes of trials: what the children of kernels have started."""
    kernels = children(psutil.Process(lab.process.pid))
    started = [child for kernel in kernels for child in children(kernel)]
    return {trial for launcher in started for trial in children(launcher)}


def wait_for_trials(page, lab):
    """Between two rounds there are none for a moment."""
    while not (found := trials(lab)):
        page.wait_for_timeout(20)
    return found


def children(process):
    try:
        return process.children()
    except psutil.NoSuchProcess:
        return []


def serious(page):
    """What really bars people from the panel."""
    found = barriers(page, "'.perfkit-panel'")
    return [one for one in found if one[1] in ("serious", "critical")]


def overflowing(page):
    """The parts of a panel that stick out of it to the right."""
    return page.evaluate("""() => {
        const panel = document.querySelector('.perfkit-panel');
        const edge = panel.getBoundingClientRect().right + 1;
        return [...panel.querySelectorAll('button, input, svg, p, table')]
            .filter((part) => part.getBoundingClientRect().right > edge)
            .filter((part) => !part.closest('.perfkit-scroll, .perfkit-table'))
            .filter((part) => !part.closest('details [tabindex]'))
            .map((part) => part.outerHTML.slice(0, 100));
    }""")


def test_a_run_from_ready_to_verdict(show, screenshot):
    page = show(SHOWN.format(budget=10, more=', guess="1.2x"'))
    assert state(page, "Ready") == "Ready: press Run."
    screenshot("panel-ready")
    button(page, "Run").click()
    wait_for_rows(page, 8)
    assert re.search(r"\d+ s left", page.locator(".perfkit-left").inner_text())
    readout = page.locator(".perfkit-readout")
    assert "bar: 95 % interval" in readout.inner_text()
    name = page.locator(".perfkit-name", has_text="short")
    name.hover()
    readout.filter(has_text=re.compile(r"short: ([\d,?]+|to come)")).wait_for()
    page.mouse.move(0, 0)
    name.focus()
    assert "short" in readout.inner_text()
    screenshot("panel-mid-run")
    assert serious(page) == []
    # Seen in the report, the sentence is still there for those who are read to.
    page.locator(".perfkit-panel.perfkit-answered").wait_for()
    headline = state(page, "Finished").removeprefix("Finished. ")
    page.locator(".perfkit-panel .perfkit-answer", has_text=headline).wait_for()
    # The report has the same chart: nothing is shown twice.
    picture = page.locator(".perfkit-picture")
    assert picture.is_hidden()
    said = picture.get_attribute("aria-label")
    assert re.search(r"Axis: examples per second.* short: [\d,?]+", said)
    charts = page.locator(".perfkit-panel svg.perfkit-chart")
    charts.first.wait_for()
    # Each once.
    assert charts.count() == 3
    assert page.locator(".perfkit-doing").is_hidden()
    assert serious(page) == []
    for kind, ends in (("page", ".html"), ("finding", ".json")):
        with page.expect_download() as download:
            page.get_by_role("link", name=f"Download {kind} of run 1").click()
        assert download.value.suggested_filename.endswith(ends)
    page.set_viewport_size({"width": 1280, "height": 1500})
    screenshot("panel-finished")
    page.set_viewport_size({"width": 620, "height": 1800})
    assert overflowing(page) == []
    assert serious(page) == []
    screenshot("panel-narrow")


def test_stop_works_while_a_cell_waits_for_the_result(show, lab):
    page = show(
        SHOWN.format(budget=40, more=""),
        "finding = panel.result()",
        "f'{panel.finding.stopped} {panel.running}'",
    )
    run_cell(page, 1)
    run_cell(page, 2)
    wait_for_intervals(page)
    wait_for_trials(page, lab)
    button(page, "Stop").click()
    while trials(lab):
        page.wait_for_timeout(20)
    state(page, "Stopped.")
    printed(page, "True False")


@pytest.mark.fault(
    "panel", "browser closed", sees="The run goes on. A reload shows its chart again."
)
def test_a_reload_brings_the_chart_back(show, lab):
    page = show(SHOWN.format(budget=60, more=""), "finding = panel.result()")
    button(page, "Run").click()
    wait_for_rows(page, 12)
    reload(page)
    wait_for_rows(page, 12)
    assert state(page, "Running").startswith("Running: wait")
    wait_for_rows(page, rows(page) + 8)
    # While a cell waits JupyterLab connects no new page, and an interrupt ends that.
    run_cell(page, 1)
    wait_for_intervals(page)
    reload(page)
    page.locator("#jp-bottom-panel", has_text="| Unknown").wait_for()
    choose(page, "Kernel", "Interrupt Kernel")
    state(page, "Stopped.")
    page.locator(".perfkit-panel .perfkit-answer").wait_for()
    # The interrupt is taken for Stop, and no error.
    assert page.locator(".jp-OutputArea-output", has_text="Interrupt").count() == 0
    assert not trials(lab)


@pytest.mark.fault(
    "lab", "kernel killed", sees="The restart ends the old run, and a new run finishes."
)
def test_restart_and_run_all_ends_the_old_run_and_gives_a_new_result(show, lab):
    page = show(
        SHOWN.format(budget=4, more=""),
        "finding = panel.result()",
        "f'{len(finding.timings)} rates within {finding.budget_s} s'",
    )
    page.locator("button.perfkit-settings").click()
    budget = page.locator(".perfkit-controls input[type=number]").last
    budget.fill("600")
    budget.press("Tab")
    button(page, "Run").click()
    wait_for_rows(page, 3)
    old = wait_for_trials(page, lab)
    choose(page, "Kernel", "Restart Kernel and Run All Cells…")
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    printed(page, "2 rates within 4.0 s")
    assert not [trial for trial in old if trial.is_running()]
    assert not trials(lab)


@pytest.mark.fault(
    "panel", "two at once", sees="The second run waits, and its panel says how long."
)
def test_two_panels_in_one_notebook_measure_one_after_the_other(show):
    page = show(
        # The first one has to be at work still when the second is asked.
        SHOWN.format(budget=12, more=""),
        "other = perfkit.panel(Loops(size=300_000), budget=4)\nother",
    )
    run_cell(page, 1)
    button(page, "Run", panel=1).wait_for()
    button(page, "Run").click()
    wait_for_rows(page, 1)
    button(page, "Run", panel=1).click()
    # What is out of sight is not drawn.
    second = page.locator(".perfkit-panel").nth(1)
    second.evaluate("panel => panel.scrollIntoView({block: 'end'})")
    waiting = page.locator(".perfkit-doing").nth(1)
    waiting.filter(has_text="Waiting for the run in panel, about").wait_for()
    # Out of sight the first one draws nothing, and all of it once it is back.
    aside = "panel => panel.closest('.jp-OutputArea').style.transform = '{}'"
    first = page.locator(".perfkit-panel").first
    first.evaluate(aside.format("translateX(-5000px)"))
    drawn = rows(page, 0)
    state(page, "Finished", panel=1)
    # One picture may have been on its way, with the samples of its second.
    assert rows(page, 0) <= drawn + 6
    first.evaluate(aside.format(""))
    first.evaluate("panel => panel.scrollIntoView()")
    wait_for_rows(page, drawn + 3)
    state(page, "Finished", panel=0)
    cards = page.locator(".perfkit-panel .perfkit-answer")
    cards.nth(1).wait_for()
    assert cards.count() == 2
    page.locator(".jp-OutputArea").nth(1).evaluate("below => below.scrollIntoView()")
    wait_for_rows(page, 1, panel=1)


def test_a_run_by_keyboard_alone_on_small_screens_and_without_motion(show, lab):
    page = show(SHOWN.format(budget=600, more=', guess="1.2x"'))
    page.emulate_media(reduced_motion="reduce")
    page.keyboard.press("Control+b")
    page.set_viewport_size({"width": 800, "height": 600})
    page.keyboard.press("Escape")
    tab_to(page, "Run")
    page.keyboard.press("Enter")
    # What runs says so, and Stop is the one button that stands out.
    assert state(page, "Running").startswith("Running: ")
    tab_to(page, "Stop")
    wait_for_rows(page, 8)
    assert page.locator(".perfkit-panel .mod-primary").all_inner_texts() == ["Stop"]
    assert page.locator(".perfkit-panel progress").is_visible()
    assert moving(page) == []
    # Run, the guess and the chart are seen together.
    for width, height in ((800, 600), (768, 1024)):
        page.set_viewport_size({"width": width, "height": height})
        parts = (button(page, "Run"), page.get_by_label("your guess"))
        for part in (*parts, page.locator(".perfkit-drawn")):
            box = part.bounding_box()
            assert 90 < box["y"] < height - 80
    page.keyboard.press("Enter")
    state(page, "Stopped")
    # To run the panel's cell again stops a run of it.
    button(page, "Run again").click()
    old = wait_for_trials(page, lab)
    run_cell(page, 0)
    state(page, "Ready")
    assert not [trial for trial in old if trial.is_running()]
    assert not trials(lab)


def tab_to(page, name):
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.innerText") == name:
            return
    pytest.fail(f"Twelve times Tab did not lead to {name}.")


def moving(page):
    """The parts of a panel that would move by themselves, or do."""
    panel = page.locator(".perfkit-panel")
    assert panel.evaluate("panel => panel.getAnimations({subtree: true}).length") == 0
    return panel.evaluate("""(panel) => {
        const moves = ({ transitionDuration, animationName }) =>
            !/^0s(, 0s)*$/.test(transitionDuration) || animationName !== 'none';
        return [...panel.querySelectorAll('*')]
            .filter((part) => moves(getComputedStyle(part)))
            .map((part) => part.outerHTML.slice(0, 100));
    }""")


@pytest.mark.fault(
    "panel", "kernel killed", sees="The panel asks you to run its cell again."
)
def test_once_the_kernel_is_gone_one_sentence_says_what_to_do(show):
    page = show(SHOWN.format(budget=4, more=""))
    said = "part => getComputedStyle(part, '::before').content"
    words = '"The kernel has ended. Run this cell again to use the panel."'
    page.keyboard.press("Control+s")
    choose(page, "Kernel", "Restart Kernel…")
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    panel = page.locator(".perfkit-panel.jupyter-widgets-disconnected")
    panel.first.wait_for()
    assert panel.first.evaluate(said) == words
    assert button(page, "Run").count() == 0
    reload(page)
    page.locator(".jupyter-widgets", has_text="Error").wait_for(state="attached")
    assert page.locator(".jupyter-widgets", has_text="Error").is_hidden()
    lost = page.locator(".perfkit-lost")
    assert lost.is_visible()
    assert lost.evaluate(said) == words
