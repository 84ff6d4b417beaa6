"""The simulated pipeline in a browser: its arithmetic, and its drawing."""

import math
from dataclasses import asdict, replace

import pytest

import perfkit
from perfkit.panel.browser import PipelineSimulator
from perfkit.panel.simulation import Pipeline, stage_times
from perfkit.questions.replay import BROUGHT
from tests.browser.conftest import barriers, fits_its_width, picture

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


# 32 images, whose stages take 16, 64 and 40 ms.
PLAIN = Pipeline()
# What is set otherwise, and the milliseconds of a batch in the steady state.
ARITHMETIC = [
    # One thing after another.
    ({}, 16 + 64 + 40),
    # The slower side decides; what is made ahead brings no more than the first.
    ({"prefetch": 1}, 16 + 64),
    ({"prefetch": 8}, 16 + 64),
    # Elements in parallel share the cores for decoding, and nothing for reading.
    ({"prefetch": 1, "parallel": 4}, 40),
    ({"parallel": 2}, 8 + 32 + 40),
    ({"parallel": 16, "cores": 1, "read_ms": 0}, 64 + 40),
    # The cache leaves the step, and what augments each image anew.
    ({"cache": True}, 40),
    ({"augment_ms": 20}, 16 + 64 + 20 + 40),
    ({"cache": True, "augment_ms": 20}, 20 + 40),
    # Without a GPU training takes all cores, and one busy core leaves half of two:
    # both together have 2 x 40 + 64 ms of two cores to do.
    ({"read_ms": 0, "parallel": 2, "prefetch": 1, "cores": 2, "gpu": False}, 72),
    ({"read_ms": 0, "gpu": False}, 64 + 40),
]


def rates(page, pipelines):
    """The examples per second that the browser computes for each of them."""
    settings = [asdict(pipeline) for pipeline in pipelines]
    return page.evaluate("(all) => all.map((p) => widget.simulate(p).rate)", settings)


def test_a_steady_rate_is_what_arithmetic_says(blank):
    computed = rates(blank, [replace(PLAIN, **settings) for settings, _ in ARITHMETIC])
    expected = [1000 * 32 / ms_a_batch for _, ms_a_batch in ARITHMETIC]
    assert computed == pytest.approx(expected, rel=0.02)


def test_the_model_of_a_recording_comes_near_the_rate_that_was_measured(blank):
    recorded = perfkit.load(BROUGHT / "data-pipeline.json")
    stages = stage_times(recorded)
    measured = {timing.variant: timing.rate for timing in recorded.timings}
    # As TensorFlow ran them: two elements at a time, a batch or two made ahead.
    ahead = {"naive map": 1, "prefetch": 2}
    fed = [replace(stages, parallel=2, prefetch=count) for count in ahead.values()]
    for name, rate in zip(ahead, rates(blank, fed), strict=True):
        assert abs(math.log(rate / measured[name])) < math.log(1.15)


def test_the_drawing_follows_the_slider_on_a_narrow_dark_page(blank):
    widget = perfkit.pipeline_simulator(perfkit.load(BROUGHT / "data-pipeline.json"))
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
    assert fits_its_width(blank)
    assert barriers(blank, "'main'") == []
