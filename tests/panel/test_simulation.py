"""The simulated pipeline: its arithmetic, the times of stages, what it shows."""

import math
from dataclasses import replace

import pytest

import perfkit
from perfkit.findings.page.export import export
from perfkit.panel.simulation import (
    Pipeline,
    simulate,
    stage_times,
)
from perfkit.questions.replay import BROUGHT
from tests.findings.page.books import book, code, result, write

# 32 images, whose stages take 16, 64 and 40 ms.
PLAIN = Pipeline()


@pytest.mark.parametrize(
    ("settings", "ms_a_batch"),
    [
        # One thing after another.
        ({}, 16 + 64 + 40),
        # The slower side decides; what is made ahead brings no more than the first.
        ({"prefetch": 1}, 16 + 64),
        ({"prefetch": 8}, 16 + 64),
        # Elements in parallel share the cores for decoding, and nothing for reading.
        ({"prefetch": 1, "parallel": 4}, 40),
        ({"parallel": 2}, 8 + 32 + 40),
        ({"parallel": 16, "cores": 1, "read_ms": 0}, 64 + 40),
        # The cache leaves the step.
        ({"cache": True}, 40),
        # Without a GPU training takes all cores, and one busy core leaves half of two:
        # both together have 2 x 40 + 64 ms of two cores to do.
        ({"read_ms": 0, "parallel": 2, "prefetch": 1, "cores": 2, "gpu": False}, 72),
        ({"read_ms": 0, "gpu": False}, 64 + 40),
    ],
)
def test_a_steady_rate_is_what_arithmetic_says(settings, ms_a_batch):
    timeline = simulate(replace(PLAIN, **settings))
    assert timeline.rate == pytest.approx(1000 * 32 / ms_a_batch, rel=0.02)


def test_the_model_of_a_recording_comes_near_the_rate_that_was_measured():
    recorded = perfkit.load(BROUGHT / "data-pipeline.json")
    stages = stage_times(recorded)
    rates = {timing.variant: timing.rate for timing in recorded.timings}
    # As TensorFlow ran them: two elements at a time, a batch or two made ahead.
    for name, prefetch in (("naive map", 1), ("prefetch", 2)):
        fed = replace(stages, parallel=2, prefetch=prefetch)
        assert abs(math.log(simulate(fed).rate / rates[name])) < math.log(1.15)


def test_an_exported_page_has_a_sentence_in_its_place(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **options: shown.append(data)
    )
    perfkit.pipeline_simulator()._ipython_display_()
    assert "application/vnd.jupyter.widget-view+json" in shown[0]
    cell = code("perfkit.pipeline_simulator()", result(html=shown[0]["text/html"]))
    page = export(write(book("# Why?", cell), tmp_path / "x.ipynb"))
    assert "simulate an input pipeline" in page.read_text(encoding="utf-8")
