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
from perfkit.panel import worker
from tests.findings import made
from tests.panel import runs
from tests.panel.runs import finished, links, settle, state
from tests.questions.toy import Loops, NoRoom


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


def test_nothing_runs_before_it_is_asked_to(house, panel):
    panel.controls.by_name["size"].value = 500
    assert state(panel) == "Ready: press Run."
    assert house.sessions == []
    assert panel.view.stop.disabled
    # The settings are folded until they are asked for.
    folded = panel.view.box.children[3]
    assert folded.layout.display == "none"
    panel.view.settings.value = True
    assert folded.layout.display != "none"
    assert panel.controls.by_name["guess"] not in folded.children


def test_before_a_run_it_says_what_is_asked_what_that_costs_and_with_which_code():
    panel = perfkit.panel("data-pipeline", budget=40)
    asked = panel.view.asked.value
    assert panel._question in asked
    assert "7 variants, in fresh processes. About 40 s." in asked
    assert "files.map(example).batch(batch)</pre>" in asked
    # Limits have their lines as well.
    assert asked.count("<pre") == asked.count("<summary") == 7
    assert "<summary title=" in asked
    assert ".cache()" in asked
    said = panel.view.settings.description
    assert said.startswith("Settings: source photographs, count 256 images, image side")
    panel.controls.by_name["variants"].value = ("cache",)
    panel.controls.by_name["budget"].value = 30
    settle(panel)
    assert "2 variants, in fresh processes. About 30 s." in panel.view.asked.value
    assert panel.view.settings.description.endswith(
        "variants cache, feeding training, budget 30 s"
    )
    # What is tried after the rounds is part of the cost.
    assert "About 90 s." in perfkit.panel("batch-size", budget=60).view.asked.value


def test_run_measures_with_what_is_set(house, tmp_path):
    panel = perfkit.panel(Loops(), budget=9, seed=3, folder=tmp_path)
    panel.controls.by_name["size"].value = 500
    panel.controls.by_name["guess"].value = " 3x "
    panel.controls.by_name["budget"].value = 7
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
    # What is seen in the report is not said a second time.
    assert "perfkit-answered" in panel.view.box._dom_classes
    assert panel.view.chart.total > 0
    assert panel.view.chart.doing == {}
    assert panel.result() is finding
    assert len(house.sessions) == 1


def test_result_waits_for_the_run_in_progress(house, panel):
    house.more = {"held": threading.Event()}
    panel.view.run.click()
    panel.view.run.click()
    threading.Timer(0.2, house.more["held"].set).start()
    assert panel.result().budget_s == 9
    assert len(house.sessions) == 1


def test_controls_and_run_are_locked_while_it_runs_and_stop_is_not(house, panel):
    locked = {}

    def look():
        view = panel.view
        locked.update(
            run=view.run.disabled,
            stop=view.stop.disabled,
            controls={one.disabled for one in panel.controls.by_name.values()},
            primary=[one.button_style for one in (view.run, view.stop)],
            said=view.chart.state.partition(":")[0],
            looks="perfkit-at-work" in view.box._dom_classes,
        )
        yield from runs.events()

    house.more = {"told": look}
    panel.result()
    assert (locked["run"], locked["stop"], locked["controls"]) == (True, False, {True})
    # What runs looks like it, and the one button that stands out is Stop.
    assert (locked["primary"], locked["said"]) == (["", "primary"], "Running")
    assert locked["looks"]
    assert "perfkit-at-work" not in panel.view.box._dom_classes
    assert panel.view.run.button_style == "primary"
    assert panel.view.stop.layout.display == "none"
    assert not panel.view.run.disabled
    assert not any(one.disabled for one in panel.controls.by_name.values())
    assert panel.view.run.description == "Run again"
    assert panel.view.stop.disabled


def test_a_changed_setting_asks_for_a_new_run_and_a_change_back_does_not(house, panel):
    panel.result()
    size = panel.controls.by_name["size"]
    size.value = 300
    changed = "Changed since the last run: size 300 (was 20000). Press Run again."
    assert state(panel) == changed
    assert "perfkit-changed" in size._dom_classes
    assert "perfkit-answered" not in panel.view.box._dom_classes
    size.value = 20_000
    assert state(panel).startswith("Finished.")
    assert "perfkit-changed" not in size._dom_classes
    assert len(house.sessions) == 1


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
    assert not panel.view.run.disabled
    assert panel.view.chart.doing == {}
    # After it, it runs again.
    house.more = {}
    assert panel.result().timings


def test_nothing_of_an_earlier_run_is_left_when_the_next_one_does_not_begin(
    panel, monkeypatch
):
    panel.result()
    assert panel.view.chart.picture
    monkeypatch.setattr(panel_panel, "open_session", Mock(side_effect=RunError("No.")))
    panel.start()
    panel.wait()
    chart = panel.view.chart
    assert (chart.picture, chart.frame, chart.total, chart.doing) == ({}, b"", 0, {})
    assert panel.view.card.value == ""


@pytest.mark.fault("panel", "fork failure", sees="Close programs, then press again.")
def test_without_a_thread_it_says_so_and_can_be_pressed_again(house, panel):
    settle(panel)
    for thread in threading.enumerate():
        if thread.name.startswith("perfkit-panel"):
            thread.join()
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


@pytest.mark.fault("panel", "full disk", sees="The verdict, and that it was not saved.")
def test_a_finding_that_could_not_be_saved_is_shown_and_that_is_said(
    house, panel, monkeypatch
):
    def open_full(*asked):
        session = house.open(*asked)
        session.unsaved = "The finding could not be saved: free some space."
        return session

    monkeypatch.setattr(panel_panel, "open_session", open_full)
    panel.view.run.click()
    headline = panel.result().verdict.headline
    assert state(panel).endswith("could not be saved: free some space.")
    assert headline in panel.view.card.value


def test_running_a_cell_again_stops_the_run_that_it_started(house, monkeypatch):
    where = ["cell", "first time"]
    monkeypatch.setattr(worker, "running_cell", lambda: tuple(where))
    house.more = {"held": threading.Event()}
    both = [perfkit.panel(Loops()), perfkit.panel(Loops())]
    where[0] = "another cell"
    other = perfkit.panel(Loops())
    other.start()
    assert other.running
    for one in both:
        one.start()
    where[:] = ["cell", "second time"]
    perfkit.panel(Loops())
    assert [one.running for one in both] == [False, False]
    assert other.running
    other.stop()
    other.wait()
    # Where cells are not known it is the panel of the same experiment.
    where[:] = ["", ""]
    old, other = perfkit.panel(Loops()), perfkit.panel(NoRoom())
    old.start()
    other.start()
    perfkit.panel(Loops())
    assert not old.running
    assert other.running
    other.stop()
    other.wait()


def one():
    raise AssertionError("a panel calls it in other processes only")


def other():
    raise AssertionError("a panel calls it in other processes only")


def every_panel():
    """A panel of each kind that measures."""
    yield perfkit.panel(Loops())
    yield perfkit.panel(one)
    yield perfkit.panel(one, other)
    yield perfkit.panel("passport")


def budget_of(panel):
    controls = getattr(panel, "controls", None)
    return float(controls.budget if controls else panel.view.budget.value)


def test_one_variable_sets_the_budget_of_every_panel_and_each_says_so(monkeypatch):
    monkeypatch.setenv("PERFKIT_BUDGET", "12")
    for panel in every_panel():
        assert budget_of(panel) == 12
        note = panel.view.box.children[1].value
        assert "gives every panel here 12 s" in note
    assert perfkit.panel(Loops(), budget=20).controls.budget == 20
    monkeypatch.delenv("PERFKIT_BUDGET")
    for panel in every_panel():
        values = [getattr(part, "value", "") for part in panel.view.box.children]
        assert not any("gives every panel" in str(value) for value in values)


def test_a_panel_begins_with_what_the_verbs_take():
    for budget in ("auto", "90"):
        assert perfkit.panel(one, budget=budget).view.budget.value == budget
    assert perfkit.panel(Loops(), budget="90").controls.budget == 90
    panel = perfkit.panel("data-pipeline", image_side=64, guess="4x")
    assert panel.controls.by_name["image_side"].value == 64
    assert panel.controls.guess == "4x"


@pytest.mark.parametrize(
    ("what", "more", "said"),
    [
        ("data-pipeline", {"size": 3}, "Unknown parameter"),
        (3, {}, "takes a function"),
        (one, {"replay": "1"}, "takes only budget"),
        ("passport", {"seed": 3}, "takes out, budget, label, with_names, but not seed"),
        ("passport", {"budget": 1e9}, "budget is"),
    ],
)
def test_what_a_panel_does_not_take_is_refused_before_there_is_one(what, more, said):
    with pytest.raises(BadParameterError, match=said):
        perfkit.panel(what, **more)


def test_viewers_without_widgets_are_told_what_to_do_then_shown_the_finding(
    house, panel
):
    static, text = panel._static_html(), repr(panel)
    assert "Does a longer loop take longer?" in static
    assert "where it does not appear, <code>perfkit.run(...)</code>" in static
    assert "<the panel of" in text
    finding = panel.result()
    static, text = panel._static_html(), repr(panel)
    assert finding.verdict.headline in static
    assert 'role="img"' in static
    assert text == repr(finding)
    # A guess is escaped.
    panel = perfkit.panel(Loops(), guess="<script>alert(1)</script>")
    panel.result()
    assert "<script>" not in panel._static_html() + panel.view.card.value


def linked(panel):
    """What the links of a panel hold, a file's kind and its text each."""
    settle(panel)
    found = links(panel.view.runs.table.value)
    return [(name.removeprefix("finding."), held) for name, held in found]


def test_the_page_and_the_finding_are_in_links_and_nothing_is_saved_again(
    panel, pages, here
):
    finding = finished(panel)
    (page, shown), (kind, held) = linked(panel)
    assert (page, kind) == ("html", "json")
    assert finding.verdict.headline in shown
    assert parse(held.encode(), "linked", Finding).verdict == finding.verdict
    assert os.listdir(here) == []


def test_the_last_runs_stand_side_by_side_with_what_was_changed(panel, pages):
    panel.result()
    assert "<table>" not in panel.view.runs.table.value
    for size in range(301, 305):
        panel.controls.by_name["size"].value = size
        panel.start()
        panel.wait()
    assert len(linked(panel)) == 2 * 4
    rows = panel.view.runs.table.value.split("<tr>")[2:]
    assert [row[: row.index("</td>")] for row in rows[:2]] == [
        '<th scope="row">5</th><td>size 304 (was 303)',
        '<th scope="row">4</th><td>size 303 (was 302)',
    ]
    assert all(panel.finding.verdict.headline in row for row in rows)
    assert 'aria-label="Download page of run 5"' in rows[0]


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
    assert finding.stamp in panel.view.card.value
    # The report, and its four charts.
    assert panel.view.card.value.count(">Recorded on 2025-03-14") == 5
    # The whole run stands in the live chart, though it was never drawn on the way.
    assert panel.view.chart.total > 20
    assert finding.stamp in panel.view.chart.words
    # Where there is no such recording it says so.
    (tmp_path / "none").mkdir()
    panel = perfkit.panel(Loops(), budget=9, replay=tmp_path / "none")
    with pytest.raises(MissingPartError, match="holds no recording of loops"):
        panel.result()
    assert "record one on a machine that can run it" in state(panel)
