"""What somebody does on the first day: start, Run All, read the verdict."""

import shutil

from perfkit.findings import store
from tests.browser.conftest import REPOSITORY, picture, watch
from tests.lab.server import running_lab

# Slow machines load TensorFlow for a minute, and others may use their cores as well.
LONG_MS = 300_000


def test_from_the_start_command_to_the_first_verdict(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFKIT_BUDGET", "10")
    shutil.copytree(REPOSITORY / "notebooks", tmp_path / "notebooks")
    (tmp_path / "home").mkdir()
    problems = []
    with running_lab(tmp_path, tmp_path / "home") as lab:
        context = browser.new_context(viewport={"width": 1280, "height": 1600})
        watch(context, lab.origin, problems)
        page = context.new_page()
        page.goto(lab.url)
        page.locator("#jp-bottom-panel", has_text="| Idle").wait_for(timeout=LONG_MS)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        headline = page.locator(".jp-OutputArea .perfkit-answer").first
        headline.wait_for(timeout=LONG_MS)
        page.screenshot(path=picture("first verdict"))
        # Which verdict it is, a busy machine decides.
        (file,) = tmp_path.glob("my-notebooks/perfkit-findings/*.json")
        assert headline.inner_text() == store.load(file).verdict.headline
        context.close()
    assert problems == []
    shipped, ran = (folder / "notebooks" for folder in (REPOSITORY, tmp_path))
    for path in shipped.glob("*.ipynb"):
        assert (ran / path.name).read_bytes() == path.read_bytes()
