import json
import platform
import threading

import pytest

import perfkit
from perfkit.engine.plan import Progress, TrialStarted
from perfkit.errors import PerfkitError
from perfkit.findings.store import read, to_json
from perfkit.machines import recording
from perfkit.machines.record import Passport
from perfkit.machines.recording import MICROBENCHMARKS, TRAININGS
from tests.findings import parts
from tests.findings.made import MACHINE
from tests.machines.test_recording import climbed, trained
from tests.panel.runs import Session, finished, links, settle, state


class House:
    """A machine on which every run is over at once, or goes on until it is stopped."""

    def __init__(self, monkeypatch):
        self.is_endless, self.began, self.budgets = False, threading.Event(), {}
        self.findings = {MICROBENCHMARKS: climbed(), TRAININGS: trained()}
        monkeypatch.setattr(recording.runs, "open_session", self.open)
        monkeypatch.setattr("perfkit.machines.recording.machine", lambda: MACHINE)

    def open(self, experiment, budget):
        self.budgets[experiment.name] = budget
        finding = self.findings[experiment.name]
        if isinstance(finding, Exception):
            raise finding
        self.session = Session(None, finding, self.events)
        return self.session

    def events(self):
        yield TrialStarted("a", 1, 0.5)
        self.began.set()
        while self.is_endless and not self.session.stopped.wait(0.01):
            yield Progress(1.0, 2.0)


@pytest.fixture
def house(monkeypatch, here):
    return House(monkeypatch)


@pytest.fixture
def panel(house):
    return perfkit.panel("passport", budget=60)


def test_nothing_is_measured_before_run_and_never_with_a_bad_value(house, panel):
    assert "press Run" in state(panel)
    panel.view.budget.value = 9000
    panel.start()
    assert "give seconds from 1 to 3600" in state(panel)
    assert panel.view.save.disabled
    assert house.budgets == {}


def test_run_measures_what_is_set_and_shows_every_letter_of_the_file(panel, tmp_path):
    panel.view.budget.value = 45
    panel.view.run.click()
    passport = panel.result()
    assert passport.budget_s == 45
    assert [one.name for one in passport.microbenchmarks] == list(parts.RATES)
    assert list(tmp_path.glob("*.json")) == []
    # Without a kernel it shows what was measured.
    assert "Passport of this machine" in panel._bundle()[0]["text/html"]
    settle(panel)
    shown = panel.view.preview.value
    panel.view.save.click()
    path = tmp_path / "this-machine.json"
    assert state(panel) == f"Saved as {path.resolve()}"
    assert path.read_text() == to_json(panel.passport)
    assert links(panel.view.saved.value) == [(path.name, path.read_text())]
    for name, value in json.loads(path.read_text()).items():
        assert name in shown
        if isinstance(value, str):
            assert value.split("+")[0] in shown


def test_label_and_names_can_be_changed_after_the_run(house, panel, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "tower-of-ada")
    finished(panel)
    preview = panel.view.preview
    for has_names in (False, True, False):
        panel.view.names.value = has_names
        settle(panel)
        assert ("tower-of-ada" in preview.value) is has_names
        assert panel.result().host == ("tower-of-ada" if has_names else "")
    panel.view.label.value = "<b>lab</b> 9"
    settle(panel)
    assert "&lt;b&gt;lab&lt;/b&gt; 9" in preview.value
    assert panel.passport.label == "<b>lab</b> 9"


def test_stop_keeps_what_was_measured_by_then(house, panel, monkeypatch):
    house.is_endless = True
    # However long this machine halts, the time is not what ends the run.
    monkeypatch.setattr(recording, "_LATEST", float("inf"))
    panel.view.run.click()
    assert house.began.wait(30)
    panel.view.stop.click()
    panel.wait()
    assert panel.passport.stopped
    assert TRAININGS not in house.budgets
    assert state(panel).startswith("Stopped: the passport holds the results so far")
    assert not panel.view.save.disabled


def test_of_nothing_there_is_no_file(house, panel):
    house.findings = dict.fromkeys(house.findings, PerfkitError("Nothing starts here."))
    panel.start()
    with pytest.raises(PerfkitError, match=r"Nothing was measured.*Nothing starts"):
        panel.result()
    assert panel.view.save.disabled


def test_save_takes_the_place_of_no_file_but_that_of_this_run(panel, tmp_path):
    def save():
        panel.view.save.click()
        return state(panel)

    other = tmp_path / "other.json"
    other.write_text("mine")
    finished(panel)
    panel.view.file.value = "other.json"
    assert "already exists" in save()
    assert other.read_text() == "mine"
    panel.view.file.value = "new.json"
    save()
    panel.view.label.value = "again"
    settle(panel)
    assert save().startswith("Saved as")
    assert read(tmp_path / "new.json", Passport).label == "again"
    panel.start()
    panel.wait()
    assert "already exists" in save()
