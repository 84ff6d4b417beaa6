import threading

import pytest

import perfkit
from perfkit.errors import PerfkitError, RunError
from perfkit.fleet import run
from tests.fleet import scripted
from tests.panel.runs import LONG_S, state


class Held(scripted.Fleet):
    """Time stands still in it until it is told to stop."""

    def __init__(self, *told):
        super().__init__(*told)
        self.running, self.stopping = threading.Event(), threading.Event()

    def sleep(self, seconds):
        self.running.set()
        if self.stopping.wait(0.01):
            super().sleep(seconds)

    def end(self, member=None):
        super().end(member)
        self.stopping.set()


class House:
    """Makes fleets that are written down, and knows them."""

    def __init__(self, monkeypatch, folder):
        self.folder, self.asked, self.fails = folder, [], None
        self.fleet = scripted.Fleet(
            {
                "w1": scripted.whole(8),
                "w2": [*scripted.whole(8)[:5], (6, ("left", "It was killed."))],
            },
            scripted.members(2),
        )
        monkeypatch.setattr(run, "open_run", self.open)

    def open(self, task, where, *, folder):
        if self.fails:
            raise self.fails
        self.asked.append((task, where, folder))
        return self.fleet.run(task, self.folder)


@pytest.fixture
def house(monkeypatch, tmp_path):
    return House(monkeypatch, tmp_path)


@pytest.fixture
def panel(house):
    return perfkit.panel("data-pipeline", where="tcp://a:1", budget=9, image_side=64)


def test_nobody_is_asked_before_run_is_pressed(house, panel):
    assert state(panel) == "Ready: Run asks every machine of the fleet."
    assert house.asked == []
    assert panel.view.stop.disabled


def test_run_asks_the_fleet_with_what_is_set(house, panel):
    panel.view.controls["image_side"].value = 128
    panel.view.controls["budget"].value = 7
    panel.view.run.click()
    panel.wait()
    ((task, where, _),) = house.asked
    assert (where, task.budget, task.experiment) == ("tcp://a:1", 7, "data-pipeline")
    assert task.parameters["image_side"] == 128
    assert "guess" not in panel.view.controls


def test_what_came_home_is_shown_with_what_did_not(panel):
    gathered = panel.result()
    assert [o.how for o in gathered.outcomes] == ["completed", "left"]
    assert state(panel).startswith("1 of 2 sent what they measured")
    assert "It was killed." in panel.view.found.value
    assert gathered.findings[0].verdict.headline in panel.view.found.value
    assert panel.view.rows.value == ""
    assert not panel.view.run.disabled


def test_stop_ends_it_and_keeps_what_comes_home(house, panel):
    scripts = {"w1": [(2, scripted.sent(how="stopped"))]}
    house.fleet = Held(scripts, scripted.members(2))
    panel.view.run.click()
    assert house.fleet.running.wait(LONG_S)
    assert panel.running
    panel.view.stop.click()
    gathered = panel.result()
    assert gathered.stopped
    assert len(gathered.findings) == 1
    assert [o.said for o in gathered.outcomes][1] == "Nothing came home after Stop."
    assert not panel.running


def test_a_cluster_that_cannot_be_reached_is_told_and_run_can_be_pressed_again(
    house, panel
):
    house.fails = RunError("No Dask scheduler could be reached.")
    with pytest.raises(PerfkitError, match="No Dask scheduler"):
        panel.result()
    assert state(panel) == "No Dask scheduler could be reached."
    house.fails = None
    assert len(panel.result().findings) == 1


def test_a_fleets_passports_have_a_panel_too(house):
    panel = perfkit.panel("passport", where="tcp://a:1")
    assert list(panel.view.controls) == ["budget"]
    panel.result()
    assert house.asked[0][0].experiment == ""
