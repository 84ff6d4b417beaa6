"""The simulated pipeline in a browser: it computes as Python does, for everybody."""

import random
from dataclasses import asdict
from pathlib import Path

import pytest

import perfkit
from perfkit.panel.simulation import Pipeline, simulate
from perfkit.panel.simulator import PipelineSimulator
from perfkit.questions.replay import BROUGHT
from tests.browser.conftest import picture

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
LOADED = """async (code) => {
    const file = new Blob([code], { type: "text/javascript" });
    window.widget = await import(URL.createObjectURL(file));
}"""
SHOWN = """(state) => widget.default().render({
    model: { get: (name) => state[name] }, el: document.querySelector("main"),
})"""
STATE = ("start", "measured")


@pytest.fixture
def blank(browser):
    """A page that has loaded the widget's module, and shows nothing."""
    context = browser.new_context(
        viewport={"width": 400, "height": 800}, color_scheme="dark"
    )
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_content(
        "<style>:root { color-scheme: light dark } main { position: relative }"
        f"{PipelineSimulator._css}</style><main></main>"
    )
    page.evaluate(LOADED, PipelineSimulator._esm)
    yield page
    context.close()
    assert problems == []


def pipelines(count):
    """Pipelines of all kinds, the same each time."""
    draw = random.Random(11)
    for _ in range(count):
        times = {f"{stage}_ms": draw.uniform(0, 400) for stage in ("read", "decode")}
        yield Pipeline(
            **times if draw.random() < 0.8 else dict.fromkeys(times, 0.0),
            train_ms=draw.uniform(1, 400),
            batch=draw.choice((1, 7, 32)),
            cores=draw.randint(1, 16),
            parallel=draw.randint(1, 16),
            prefetch=draw.randint(0, 8),
            cache=draw.random() < 0.3,
            gpu=draw.random() < 0.5,
        )


def test_a_browser_computes_the_timeline_that_python_does(blank):
    every = [*pipelines(60)]
    computed = blank.evaluate(
        "(all) => all.map(widget.simulate)", [asdict(one) for one in every]
    )
    for pipeline, timeline in zip(every, computed, strict=True):
        expected = asdict(simulate(pipeline))
        assert timeline.keys() == expected.keys()
        for name, value in expected.items():
            if not isinstance(value, tuple):
                assert timeline[name] == pytest.approx(value)
                continue
            for bar, other in zip(timeline[name], value, strict=True):
                assert bar == (pytest.approx(other) if other else None)


def test_the_drawing_follows_the_slider_on_a_narrow_dark_page(blank):
    recorded = perfkit.load(BROUGHT / "data-pipeline.json")
    widget = perfkit.pipeline_simulator(recorded)
    blank.evaluate(SHOWN, {name: getattr(widget, name) for name in STATE})
    rate, why = blank.locator(".perfkit-rate b"), blank.locator(".perfkit-why")
    assert rate.inner_text() == "267 images/s"
    assert why.inner_text() == "The model waits 67 % of the time."
    # Each lane has its word, its colour and its pattern.
    for lane in ("read", "decode", "wait", "train"):
        assert blank.locator("svg text", has_text=lane).count() == 1
        assert blank.locator(f"svg rect.perfkit-{lane}").count() == 12
    fills = [
        blank.locator(f"rect.perfkit-{lane}").first.get_attribute("fill") or ""
        for lane in ("read", "wait", "train")
    ]
    assert len(set(fills)) == 3
    assert all(fill.startswith("url(#") for fill in fills)
    # By keyboard, a step at a time; the last word is read out.
    blank.get_by_role("slider", name="prefetch").focus()
    blank.keyboard.press("ArrowRight")
    assert rate.inner_text() == "400 images/s"
    assert "400 images/s" in blank.get_by_role("status").inner_text()
    blank.get_by_role("checkbox", name="cache decoded images").check()
    assert rate.inner_text() == "800 images/s"
    assert blank.locator("svg rect.perfkit-read").count() == 4
    blank.get_by_role("button", name="use what was measured").click()
    assert rate.inner_text() == "1,840 images/s"
    assert "naive map 785" in blank.locator(".perfkit-source").inner_text()
    assert blank.get_by_role("slider", name="cores").input_value() == "2"
    # How it is fed may change; another stage was not measured.
    blank.get_by_role("checkbox", name="cache decoded images").uncheck()
    blank.get_by_role("slider", name="elements in parallel").press("ArrowRight")
    assert rate.inner_text() == "854 images/s"
    assert blank.locator(".perfkit-source").is_visible()
    blank.screenshot(path=picture("simulator 400 dark"), full_page=True)
    blank.get_by_role("slider", name="read").press("ArrowRight")
    assert not blank.locator(".perfkit-source").is_visible()
    wide = blank.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1]
    blank.evaluate(AXE.read_text(encoding="utf-8"))
    found = blank.evaluate("axe.run('main')")["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_nothing_measured_means_no_button(blank):
    widget = perfkit.pipeline_simulator()
    blank.evaluate(SHOWN, {name: getattr(widget, name) for name in STATE})
    assert blank.get_by_role("slider").count() == 6
    assert blank.get_by_role("button").count() == 0
