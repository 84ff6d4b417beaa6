from dataclasses import replace

import pytest

import perfkit
from perfkit.errors import RunError
from perfkit.panel import panel as panels
from perfkit.training.diagnose.rounds import AS_GIVEN
from tests.panel import runs
from tests.panel.runs import finished, settle
from tests.training.diagnose.diagnosed import SLOW_MAP, cause, diagnosis
from tests.training.race.built import make_training

XLA = cause("xla", "XLA", 1.4, "opportunity")


class House:
    """Makes panels whose diagnoses were made before, told as if they ran."""

    def __init__(self, monkeypatch):
        self.asked, self.fails = [], None
        self.found = diagnosis(causes=(SLOW_MAP, XLA))
        monkeypatch.setattr(panels, "open_diagnosis", self.open)

    def open(self, training, budget, seed, folder, guess):
        self.asked.append((training, budget))
        found = replace(self.found, guess=guess)
        self.session = runs.Session(None, found, self.told, fails=self.fails)
        self.session.variants = [AS_GIVEN, "parallel map"]
        return self.session

    def told(self):
        return runs.events({AS_GIVEN: 100.0, "parallel map": 250.0})


@pytest.fixture
def house(monkeypatch):
    return House(monkeypatch)


def test_nothing_runs_before_run_which_diagnoses_with_what_is_set_and_shows_it(house):
    panel = perfkit.panel(make_training, budget=30)
    settle(panel)
    assert house.asked == []
    assert "What slows your training?" in panel.view.asked.value
    panel.controls.by_name["guess"].value = "3x"
    panel.controls.by_name["budget"].value = "45"
    panel.view.run.click()
    found = finished(panel)
    assert found.guess == "3x"
    assert house.asked == [(make_training, 45.0)]
    assert panel.view.chart.state == f"Finished. {found.verdict.headline}"
    assert found.verdict.headline in panel.view.card.value
    assert panel.view.card.value.count("<svg") > 1


def test_as_many_seconds_as_it_needs_are_its_budget_unless_some_are_given(house):
    panel = perfkit.panel(make_training)
    assert "At most 10 min" in panel.view.asked.value
    assert panel.view.settings.description == "Settings: budget auto"
    finished(panel)
    panel.controls.by_name["budget"].value = "soon"
    settle(panel)
    assert "budget is 'soon'" in panel.view.chart.state
    assert house.asked == [(make_training, None)]


def test_what_the_training_raised_is_shown_with_its_own_lines(house):
    panel = perfkit.panel(make_training, budget=30)
    error = RunError("The training raised KeyError: 'price'")
    error.add_note("Traceback (most recent call last):\n  there")
    house.fails = error
    with pytest.raises(RunError, match="KeyError"):
        finished(panel)
    assert panel.view.chart.state.endswith("there")
    assert not panel.view.run.disabled
