"""The simulated pipeline: its arithmetic, the times of stages, what it shows."""

import math
from dataclasses import replace

import pytest

import perfkit
from perfkit.findings.page.export import export
from perfkit.panel.simulation import (
    BATCHES,
    DECODING_ALONE,
    TRAINING_ALONE,
    Pipeline,
    simulate,
    stage_times,
)
from perfkit.questions.data_pipeline import variants
from perfkit.questions.replay import BROUGHT
from tests.findings import made
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


def test_the_training_waits_for_what_is_not_made_ahead():
    timeline = simulate(PLAIN)
    assert timeline.wait_share == pytest.approx(80 / 120)
    assert timeline.wait[1] == pytest.approx((120, 200))
    assert timeline.train[1] == pytest.approx((200, 240))
    # The first image of a batch is decoded while later ones are to be read.
    assert timeline.read[1] == pytest.approx((120, 198))
    assert timeline.decode[1] == pytest.approx((120.5, 200))
    cached = simulate(replace(PLAIN, cache=True))
    assert [bar is None for bar in cached.read] == [False] * 4 + [True] * (BATCHES - 4)
    assert cached.wait[4:] == (None,) * (BATCHES - 4)
    assert cached.wait_share == 0


def test_a_stage_is_what_was_measured_of_it_alone():
    assert (TRAINING_ALONE, DECODING_ALONE) == (
        variants.SYNTHETIC,
        variants.DECODE_LIMIT,
    )
    rates = {"naive map": 300.0, TRAINING_ALONE: 800.0, DECODING_ALONE: 1000.0}
    settings = {"against": "naive map", "parameters": {"batch": 16}}
    stages = stage_times(made.finding(rates, **settings))
    # Two cores decode 1,000 images a second.
    assert (stages.batch, stages.cores, stages.gpu) == (16, 2, False)
    assert stages.train_ms == pytest.approx(20, rel=0.03)
    assert stages.decode_ms == pytest.approx(32, rel=0.03)
    assert stages.read_ms == 0
    for other in (
        made.finding({"naive map": 300.0, TRAINING_ALONE: 800.0}, **settings),
        made.finding(rates, **settings | {"parameters": {"batch": "many"}}),
        made.finding(rates, **settings, experiment="batch-size"),
    ):
        assert stage_times(other) is None
        assert perfkit.pipeline_simulator(other).measured == {}


def test_the_model_of_a_recording_comes_near_the_rate_that_was_measured():
    recorded = perfkit.load(BROUGHT / "data-pipeline.json")
    stages = stage_times(recorded)
    rates = {timing.variant: timing.rate for timing in recorded.timings}
    # As TensorFlow ran them: two elements at a time, a batch or two made ahead.
    for name, prefetch in (("naive map", 1), ("prefetch", 2)):
        fed = replace(stages, parallel=2, prefetch=prefetch)
        assert abs(math.log(simulate(fed).rate / rates[name])) < math.log(1.15)
    widget = perfkit.pipeline_simulator(recorded)
    assert widget.measured["pipeline"]["train_ms"] == pytest.approx(17.39, abs=0.01)
    assert "naive map 785" in widget.measured["rates"]


def test_what_is_no_finding_is_refused_with_what_is_one():
    with pytest.raises(perfkit.PerfkitError, match=r"a finding, such as .* not str\.$"):
        perfkit.pipeline_simulator("data-pipeline")


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
