"""What somebody does on the first day: start, Run All, read the verdict."""

import re
import shutil
import time

from tests.browser.conftest import REPOSITORY, picture, watch
from tests.lab.server import running_lab

# The notebook measures for a minute, and slow machines load TensorFlow for another.
LONG_MS = 300_000


def test_from_the_start_command_to_the_first_verdict(browser, tmp_path, monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    shutil.copytree(REPOSITORY / "notebooks", tmp_path / "notebooks")
    (tmp_path / "home").mkdir()
    problems, began = [], time.monotonic()
    with running_lab(tmp_path, tmp_path / "home") as lab:
        context = browser.new_context(viewport={"width": 1280, "height": 1600})
        watch(context, lab.origin, problems)
        page = context.new_page()
        page.goto(lab.url)
        page.locator("#jp-bottom-panel", has_text="| Idle").wait_for(timeout=LONG_MS)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        headline = page.locator(".jp-OutputArea .perfkit-headline").first
        headline.wait_for(timeout=LONG_MS)
        took = time.monotonic() - began
        page.screenshot(path=picture("first verdict"))
        assert re.search(r"images/s|too noisy|no difference", headline.inner_text())
        context.close()
    assert problems == []
    print(f"from the start command to the first verdict: {took:.0f} s")
