"""The simulated pipeline without a kernel; its arithmetic is tried in a browser."""

import perfkit
from perfkit.findings.page.export import export
from tests.findings.page.books import book, code, result, write


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
