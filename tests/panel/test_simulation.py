"""The simulated pipeline: the times of its stages, and what it shows without a kernel.

``tests/browser/test_simulator.py`` tries its arithmetic, which a browser does.
"""

from dataclasses import replace

import pytest

import perfkit
from perfkit.findings.page import export
from perfkit.panel.simulation import stage_times
from perfkit.questions.replay import BROUGHT
from tests.findings.page.books import book, code, result, write


def test_the_stages_of_a_recording_are_those_that_had_the_machine_to_themselves():
    recorded = perfkit.load(BROUGHT / "data-pipeline.json")
    stages = stage_times(recorded)
    rates = {timing.variant: timing.rate for timing in recorded.timings}
    batch = recorded.parameters["batch"]
    assert stages.train_ms == 1000 * batch / rates["synthetic"]
    assert stages.decode_ms == 1000 * batch * stages.cores / rates["decode limit"]
    assert (stages.read_ms, stages.batch, stages.cores) == (0, batch, 2)
    # Recorded before one core alone was timed.
    assert stages.augment_ms == 0
    alone = {"decode": 0.004, "decode_square": 0.003, "augment": 0.001}
    timed = replace(recorded, notes={**recorded.notes, "stages": alone})
    assert stage_times(timed) == replace(stages, augment_ms=stages.decode_ms / 4)
    measured = perfkit.pipeline_simulator(timed).measured
    assert measured["square_ms"] == pytest.approx(0.75 * stages.decode_ms)
    odd = replace(recorded, notes={**recorded.notes, "stages": alone | {"decode": 0}})
    assert stage_times(odd) == stages


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
