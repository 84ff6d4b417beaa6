import json
import platform
import threading

import pytest

import perfkit
from perfkit.errors import PerfkitError
from perfkit.machines import recording
from perfkit.machines.record import load, to_json
from perfkit.machines.recording import MICROBENCHMARKS, TRAININGS
from perfkit.measure.plan import Progress, TrialStarted
from tests.findings import parts
from tests.findings.made import MACHINE
from tests.machines.test_recording import climbed, trained
from tests.panel.runs import Session, finished, links, settle, state


class House:
    """A machine on which every run does what its script says."""

    def __init__(self, monkeypatch):
        self.on, self.began, self.asked = False, threading.Event(), {}
        self.found = {MICROBENCHMARKS: climbed(), TRAININGS: trained()}
        monkeypatch.setattr(recording.runs, "open_session", self.open)
        monkeypatch.setattr("perfkit.machines.recording.machine", lambda: MACHINE)

    def open(self, experiment, budget):
        self.asked[experiment.name] = budget
        found = self.found[experiment.name]
        if isinstance(found, Exception):
            raise found
        self.session = Session(None, found, self.told)
        return self.session

    def told(self):
        """A run that is over at once, or goes on until it is stopped."""
        yield TrialStarted("a", 1, 0.5)
        self.began.set()
        while self.on and not self.session.stopped.wait(0.01):
            yield Progress(1.0, 2.0)


@pytest.fixture
def house(monkeypatch, here):
    return House(monkeypatch)


@pytest.fixture
def panel(house):
    return perfkit.panel("passport", budget=60)


def test_nothing_is_measured_or_written_before_a_button_is_pressed(house, panel):
    assert "press Run" in state(panel)
    assert house.asked == {}
    assert panel.view.save.disabled
    assert panel.view.stop.disabled


def test_run_measures_with_the_budget_that_is_set(house, panel, tmp_path):
    panel.view.budget.value = 45
    panel.view.run.click()
    found = panel.result()
    assert found.budget_s == 45
    assert [one.name for one in found.microbenchmarks] == list(parts.RATES)
    assert list(tmp_path.glob("*.json")) == []
    assert (
        state(panel) == "Measured. Look through what is in the file, then press Save."
    )
    assert panel.view.chart.doing == {}


def test_the_preview_holds_every_letter_of_the_file(panel, tmp_path):
    assert "Nothing is shown yet" in panel._bundle()["text/html"]
    panel.result()
    # Without a kernel it shows what was measured.
    assert "Passport of this machine" in panel._bundle()["text/html"]
    settle(panel)
    shown = panel.view.preview.value
    panel.view.save.click()
    path = tmp_path / "this-machine.json"
    assert state(panel) == f"Saved as {path.resolve()}"
    assert path.read_text() == to_json(panel.passport)
    assert links(panel.view.saved.value) == [(path.name, path.read_text())]
    size = f"{path.stat().st_size / 1000:.3g} KB"
    assert f"In this file ({size})" in shown
    for name, value in json.loads(path.read_text()).items():
        assert name in shown
        if isinstance(value, str):
            assert value.split("+")[0] in shown


def test_names_are_out_unless_the_box_is_ticked(panel, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "tower-of-ada")
    finished(panel)
    said = "the box <code>host and user name</code> puts them in"
    assert said in panel.view.preview.value
    assert "tower-of-ada" not in panel.view.preview.value
    assert panel.passport.host == ""
    panel.view.names.value = True
    settle(panel)
    assert "tower-of-ada" in panel.view.preview.value
    assert panel.result().host == "tower-of-ada"
    panel.view.names.value = False
    settle(panel)
    assert "tower-of-ada" not in panel.view.preview.value


def test_a_label_can_be_changed_after_the_run(house, panel):
    panel.result()
    panel.view.label.value = "<b>lab</b> 9"
    settle(panel)
    assert "&lt;b&gt;lab&lt;/b&gt; 9" in panel.view.preview.value
    assert panel.passport.label == "<b>lab</b> 9"
    assert len(house.asked) == 2


def test_stop_keeps_what_was_measured_by_then(house, panel, monkeypatch):
    house.on = True
    # However long this machine halts, the time is not what ends the run.
    monkeypatch.setattr(recording, "_LATEST", float("inf"))
    panel.view.run.click()
    assert house.began.wait(30)
    panel.view.stop.click()
    panel.wait()
    assert panel.passport.stopped
    assert TRAININGS not in house.asked
    assert state(panel).startswith("Stopped: the passport holds what was measured")
    assert not panel.view.save.disabled


def test_stop_before_anything_was_measured_leaves_nothing_to_save(house, panel):
    house.found = dict.fromkeys(house.found, PerfkitError("Nothing starts here."))
    with pytest.raises(PerfkitError, match=r"Nothing was measured.*Nothing starts"):
        panel.result()
    assert panel.view.save.disabled
    assert not panel.view.run.disabled


def test_a_passport_without_a_training_says_what_to_do(house, panel):
    house.found[TRAININGS] = PerfkitError("No time.")
    assert panel.result().trainings == ()
    assert state(panel).startswith("No training was measured: give Run more seconds")
    assert not panel.view.save.disabled


def test_save_never_takes_the_place_of_another_file(panel, tmp_path):
    other = tmp_path / "other.json"
    other.write_text("mine")
    finished(panel)
    panel.view.file.value = "other.json"
    panel.view.save.click()
    assert "is there already" in state(panel)
    assert other.read_text() == "mine"
    panel.view.file.value = "new.json"
    panel.view.save.click()
    panel.wait()
    panel.view.label.value = "again"
    settle(panel)
    panel.view.save.click()
    assert state(panel).startswith("Saved as")
    assert load(tmp_path / "new.json").label == "again"


def test_a_new_run_saves_over_no_earlier_passport(panel, tmp_path):
    panel.result()
    panel.view.save.click()
    settle(panel)
    panel.start()
    panel.wait()
    panel.view.save.click()
    assert "is there already" in state(panel)


def test_what_is_set_at_first_is_what_the_verb_takes(house):
    panel = perfkit.panel(
        "passport", out="lab-7.json", budget=30, label="lab 7", with_names=True
    )
    told = (panel.view.file, panel.view.budget, panel.view.label, panel.view.names)
    assert [widget.value for widget in told] == ["lab-7.json", 30.0, "lab 7", True]


def test_a_bad_value_is_said(house, panel):
    panel.view.budget.value = 9000
    panel.start()
    assert "give seconds from 1 to 3600" in state(panel)
    assert house.asked == {}
