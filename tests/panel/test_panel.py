import os
import threading
from unittest.mock import Mock

import pytest

import perfkit
from perfkit.errors import BadParameterError, MissingPartError, RunError
from perfkit.findings import store
from perfkit.findings.reading import parse
from perfkit.findings.record import Finding
from perfkit.panel import panel as panel_panel
from tests.findings import made
from tests.panel import runs
from tests.panel.runs import links, settle, state
from tests.questions.toy import Loops, NoRoom
from tests.training.race.built import make_training


class House:
    """Makes panels whose sessions are written down, and knows those sessions."""

    def __init__(self, monkeypatch):
        self.sessions, self.asked = [], []
        self.more = {}
        monkeypatch.setattr(panel_panel, "open_session", self.open)

    def open(self, experiment, budget, guess, seed, folder):
        self.asked.append((seed, folder))
        asked = {"parameters": experiment.parameters, "guess": guess}
        finding = made.finding(runs.RATES, against="slow", budget_s=budget, **asked)
        self.sessions.append(runs.Session(experiment, finding, **self.more))
        return self.sessions[-1]


@pytest.fixture
def house(monkeypatch):
    return House(monkeypatch)


@pytest.fixture
def panel(house):
    return perfkit.panel(Loops(), budget=9)


def test_before_a_run_it_says_what_is_asked_and_what_that_costs():
    panel = perfkit.panel("data-pipeline", budget=40, image_side=64, guess="4x")
    assert panel.controls.by_name["image_side"].value == 64
    assert panel.controls.guess == "4x"
    asked = panel.view.asked.value
    assert panel._question in asked
    assert "7 variants, in fresh processes. About 40 s." in asked
    # What is tried after the rounds is part of the cost.
    assert "About 90 s." in perfkit.panel("batch-size", budget=60).view.asked.value


def test_nothing_is_measured_before_run_and_then_with_what_is_set(house, tmp_path):
    panel = perfkit.panel(Loops(), budget=9, seed=3, folder=tmp_path)
    for name, value in {"size": 500, "guess": " 3x ", "budget": 7}.items():
        panel.controls.by_name[name].value = value
    assert state(panel) == "Ready: press Run."
    assert house.sessions == []
    panel.view.run.click()
    finding = panel.result()
    assert len(house.sessions) == 1
    assert finding.parameters == {"size": 500}
    assert (finding.guess, finding.budget_s) == ("3x", 7)
    assert house.asked == [(3, tmp_path)]


def test_what_was_found_is_shown_and_is_the_result_without_another_run(house, panel):
    finding = panel.result()
    assert state(panel) == f"Finished. {finding.verdict.headline}"
    assert finding.verdict.headline in panel.view.card.value
    assert panel.view.card.value.count("<svg") == 4
    assert panel.view.chart.picture["rows"]
    assert panel.result() is finding
    assert len(house.sessions) == 1
    size = panel.controls.by_name["size"]
    size.value = 300
    assert state(panel) == "Changed since the last run: press Run again."
    size.value = 20_000
    assert state(panel).startswith("Finished.")


def test_controls_and_run_are_locked_while_it_runs_and_stop_is_not(house, panel):
    def locked():
        view = panel.view
        controls = {one.disabled for one in panel.controls.by_name.values()}
        return view.run.disabled, view.stop.disabled, controls

    def look():
        seen.append(locked())
        yield from runs.events()

    seen = []
    house.more = {"told": look}
    panel.result()
    assert seen == [(True, False, {True})]
    assert locked() == (False, True, {False})


def test_a_setting_that_is_refused_is_said_at_once_and_an_error_of_the_run_too(house):
    panel = perfkit.panel("data-pipeline", budget=9)
    panel.controls.by_name["images"].value = "there/is/no/such/folder"
    assert "is not a folder" in state(panel)
    panel.controls.by_name["images"].value = ""
    assert state(panel) == "Ready: press Run."
    panel.controls.by_name["variants"].value = ()
    with pytest.raises(BadParameterError, match="choose from"):
        panel.result()
    assert "choose from" in state(panel)


def test_stop_before_anything_was_measured_says_that_nothing_is_kept(house, panel):
    house.more = {"held": threading.Event()}
    panel.view.run.click()
    panel.view.stop.click()
    panel.wait()
    with pytest.raises(RunError, match="nothing to keep"):
        panel._require_result()
    assert state(panel) == "Stopped before a trial ended, so there is nothing to keep."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RunError("The data do not fit."), "The data do not fit."),
        (KeyError("rate"), "The run broke off: KeyError: 'rate'."),
    ],
)
def test_an_error_is_one_sentence_and_it_runs_again(house, panel, error, said):
    house.more = {"fails": error}
    with pytest.raises(type(error)) as caught:
        panel.result()
    assert caught.value is error
    assert state(panel) == said
    house.more = {}
    assert panel.result().timings


@pytest.mark.fault(
    "panel", "fork failure", sees="The panel asks you to close other programs."
)
def test_without_a_thread_it_says_so_and_can_be_pressed_again(panel):
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        panel.view.run.click()
        assert not panel.running
        with pytest.raises(RunError, match="close other programs, then press"):
            panel.result()
        panel.controls.by_name["size"].value = 500
    assert "(can't start new thread)" in panel.view.chart.state
    panel.view.run.click()
    assert panel.result().parameters == {"size": 500}


@pytest.mark.fault(
    "panel", "full disk", sees="The panel shows the verdict, and says it isn't saved."
)
def test_a_finding_that_could_not_be_saved_is_shown_and_that_is_said(
    panel, monkeypatch
):
    unsaved = "The finding could not be saved: free some space."
    monkeypatch.setattr(runs.Session, "unsaved", unsaved)
    headline = panel.result().verdict.headline
    assert state(panel).endswith("could not be saved: free some space.")
    assert headline in panel.view.card.value


@pytest.mark.parametrize(
    ("first", "another", "again"),
    [
        (("cell", "1st"), ("another cell", "1st"), ("cell", "2nd")),
        # Where cells are not known it is the panel of the same experiment.
        (("", ""), ("", ""), ("", "")),
    ],
)
def test_running_a_cell_again_stops_the_run_that_it_started(
    house, monkeypatch, first, another, again
):
    house.more = {"held": threading.Event()}

    def panel(where, experiment=Loops):
        monkeypatch.setattr(panel_panel, "running_cell", lambda: where)
        return perfkit.panel(experiment())

    old, other = panel(first), panel(another, NoRoom)
    old.start()
    other.start()
    panel(again)
    assert not old.running
    assert other.running
    other.stop()
    other.wait()


@pytest.mark.parametrize("what", [(Loops(),), (make_training,), (make_training, links)])
def test_one_variable_sets_the_budget_of_every_panel(monkeypatch, what):
    monkeypatch.setenv("PERFKIT_BUDGET", "120")
    panel = perfkit.panel(*what)
    assert panel.controls.budget == 120
    assert "budget" in panel.view.settings.description


@pytest.mark.parametrize(
    ("what", "more", "said"),
    [
        ("data-pipeline", {"size": 3}, "Unknown parameter"),
        (3, {}, "takes a function"),
        (make_training, {"replay": "1"}, "takes only budget"),
    ],
)
def test_what_a_panel_does_not_take_is_refused_before_there_is_one(what, more, said):
    with pytest.raises(BadParameterError, match=said):
        perfkit.panel(what, **more)


def test_viewers_without_widgets_are_told_what_to_do_then_shown_the_finding(house):
    panel = perfkit.panel(Loops(), guess="<script>alert(1)</script>")
    static = panel._bundle()[0]["text/html"]
    assert "Does a longer loop take longer?" in static
    assert "where it does not appear, <code>perfkit.run(...)</code>" in static
    finding = panel.result()
    static, text = panel._bundle()[0]["text/html"], repr(panel)
    assert finding.verdict.headline in static
    assert 'role="img"' in static
    assert text == repr(finding)
    assert "<script>" not in static + panel.view.card.value


def test_the_last_runs_are_in_links_and_nothing_is_saved_again(panel, pages, here):
    for size in range(301, 306):
        panel.controls.by_name["size"].value = size
        panel.start()
        panel.wait()
    settle(panel)
    table = panel.view.runs.table.value
    (page, shown), (kind, held), *_ = found = links(table)
    assert len(found) == 2 * 4
    assert (page, kind) == ("finding.html", "finding.json")
    assert panel.finding.verdict.headline in shown
    assert parse(held.encode(), "linked", Finding).parameters == {"size": 305}
    assert '<th scope="row">5</th><td>size 305, budget 9 s<' in table
    assert os.listdir(here) == []


def test_a_panel_shows_a_recording_in_place_of_a_run(tmp_path, monkeypatch):
    fields = {"experiment": "loops", "parameters": {"size": 20_000}}
    rates = {"short": 200.0, "double": 100.0}
    store.save(made.finding(rates, against="short", **fields), tmp_path / "recorded")
    monkeypatch.setenv("PERFKIT_REPLAY", str(tmp_path / "recorded"))
    panel = perfkit.panel(Loops(), budget=9, folder=tmp_path)
    assert state(panel) == "Ready: Run shows a recording and measures nothing."
    panel.view.run.click()
    finding = panel.result()
    assert state(panel) == f"{finding.stamp} {finding.verdict.headline}"
    # The report, and its four charts.
    assert panel.view.card.value.count(">Recorded on 2025-03-14") == 5
    # The whole run stands in the live chart, though it was never drawn on the way.
    assert panel.view.chart.picture["total"] > 20
    assert finding.stamp in panel.view.chart.words
    # Where there is no such recording it says so.
    (tmp_path / "none").mkdir()
    panel = perfkit.panel(Loops(), budget=9, replay=tmp_path / "none")
    with pytest.raises(MissingPartError, match="holds no recording of loops"):
        panel.result()
