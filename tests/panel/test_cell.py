"""The live chart of a run in a cell: there while it runs, and gone with its end."""

import sys
from types import SimpleNamespace

import ipywidgets as widgets
import pytest

from perfkit.charts.layout import OWN
from perfkit.engine.plan import Prepared
from perfkit.errors import RunError
from perfkit.panel import view
from perfkit.questions.runs import watch
from tests.findings import made
from tests.panel import runs

VIEW = "application/vnd.jupyter.widget-view+json"


class Output:
    """The output of a cell: what it shows, and all that it has shown."""

    def __init__(self):
        self.now, self.before, self.metadata = None, [], {}

    def display(self, bundle, *, metadata, raw, display_id):
        assert raw
        assert display_id
        self.metadata = metadata
        self.update(bundle, raw=raw)
        return self

    def update(self, bundle, *, raw):
        self.now = bundle
        self.before.append(bundle)


@pytest.fixture
def output(monkeypatch):
    output = Output()
    monkeypatch.setattr("IPython.display.display", output.display)
    return output


def session(**options):
    finding = made.finding(runs.RATES, against="slow")
    return runs.Session(SimpleNamespace(), finding, **options)


def test_the_chart_is_that_of_a_panel_and_is_gone_once_the_run_is_over(output):
    notes = {"microbenchmarks": {"slow": {"unit": "B"}, "fast": {"unit": "FLOP"}}}

    def told():
        yield Prepared(notes)
        yield from runs.events()

    running = session(told=told)
    display = view.CellDisplay(running)
    chart, pictures = display._chart, []
    chart.observe(lambda change: pictures.append(change.new), "picture")
    assert watch(running, display) is running.finding
    (live, left) = output.before
    assert VIEW in live
    assert "interrupt the kernel" in live["text/html"]
    assert "interrupt the kernel" in live["text/plain"]
    assert {row["name"] for row in pictures[-1]["rows"]} == {*runs.RATES}
    # Microbenchmarks were told before the first trial: shares are drawn.
    assert pictures[-1]["unit"] == OWN
    # Nothing of it is left in the page or in the kernel.
    assert left == {}
    assert chart.comm is None
    assert display._box.comm is None


def test_a_run_that_fails_leaves_its_sentence_and_no_chart(output):
    running = session(told=lambda: [], fails=RunError("There is no trial."))
    with pytest.raises(RunError, match="no trial"):
        watch(running, view.CellDisplay(running))
    assert output.now == {}


def test_a_box_that_says_nothing_of_itself_is_shown_and_colab_told(output, monkeypatch):
    # As in ipywidgets 7, and with the module that Colab has.
    monkeypatch.delattr(widgets.Widget, "_repr_mimebundle_")
    colab = SimpleNamespace(
        enable_custom_widget_manager=lambda: None,
        _widgets=SimpleNamespace(_installed_url="manager.js"),
    )
    monkeypatch.setitem(sys.modules, "google.colab.output", colab)
    with view.CellDisplay(session()) as display:
        assert output.now[VIEW]["model_id"] == display._box.model_id
        assert output.metadata[VIEW]["colab"]["custom_widget_manager"]
