import pytest

import perfkit
from perfkit.errors import RunError
from perfkit.findings.record import Verdict
from perfkit.panel import panel as panels
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.panel import runs
from tests.panel.runs import finished, settle
from tests.training.diagnose.diagnosed import SLOW_MAP, cause, diagnosis

XLA = cause("xla", "XLA", 1.4, "opportunity")


def make_training():
    raise AssertionError("a panel calls it in other processes only")


class House:
    """Makes panels whose diagnoses were made before, told as if they ran."""

    def __init__(self, monkeypatch):
        self.asked, self.fails = [], None
        self.found = diagnosis(causes=(SLOW_MAP, XLA))
        monkeypatch.setattr(panels, "open_diagnosis", self.open)

    def open(self, training, budget, seed, folder, only):
        self.asked.append((training, budget, only))
        self.session = runs.Session(None, self.found, self.told, fails=self.fails)
        self.session.variants = [AS_GIVEN, "parallel map"]
        return self.session

    def told(self):
        return runs.events({AS_GIVEN: 100.0, "parallel map": 250.0})


@pytest.fixture
def house(monkeypatch):
    return House(monkeypatch)


@pytest.fixture
def panel(house):
    return perfkit.panel(make_training, budget=30)


def test_nothing_runs_before_run_which_diagnoses_with_what_is_set(house, panel):
    settle(panel)
    assert house.asked == []
    assert panel.view.apply.disabled
    panel.view.guess.value = "3x"
    panel.view.budget.value = "45"
    panel.view.run.click()
    assert finished(panel).guess == "3x"
    assert house.asked == [(make_training, "45", ())]


def test_the_report_its_charts_and_the_lines_to_change_are_shown(house, panel):
    found = finished(panel)
    assert panel.view.chart.state == f"Finished. {found.verdict.headline}"
    assert found.verdict.headline in panel.view.card.value
    lines = [row.children[1].value for row in panel.view._marks.children[:-1]]
    assert lines == [
        "<pre>use(&#x27;parallel map&#x27;)</pre>",
        "<pre>use(&#x27;XLA&#x27;)</pre>",
    ]
    # Defects are marked, and chances are left to the reader.
    assert panel.view.marked == ("parallel map",)
    # What cannot be applied is not offered.
    house.found = diagnosis(causes=(cause("input-bound", "without input", 3.0),))
    panel = perfkit.panel(make_training, budget=30)
    finished(panel)
    assert panel.view.choices == {}
    assert panel.view.apply.disabled


def test_applying_measures_what_is_marked_and_keeps_the_report(house, panel):
    first = finished(panel)
    panel.view.choices["parallel map"].value = False
    panel.view.apply.click()
    settle(panel)
    assert len(house.asked) == 1
    assert panel.view.chart.state == "Mark at least one change to apply."
    for choice in panel.view.choices.values():
        choice.value = True
    house.found = diagnosis(verdict=Verdict(headline="Keep both.", much="2 times."))
    panel.view.apply.click()
    settle(panel)
    assert house.asked[-1][2] == ("parallel map", "XLA")
    assert (panel.diagnosis, panel.applied) == (first, house.found)
    assert "Keep both." in panel.view.applied.value
    assert first.verdict.headline in panel.view.card.value


def test_what_the_training_raised_is_shown_with_its_own_lines(house, panel):
    error = RunError("The training raised KeyError: 'price'")
    error.add_note("Traceback (most recent call last):\n  there")
    house.fails = error
    with pytest.raises(RunError, match="KeyError"):
        finished(panel)
    assert panel.view.chart.state.endswith("there")
    assert not panel.view.run.disabled
