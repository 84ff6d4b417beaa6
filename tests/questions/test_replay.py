from dataclasses import replace

import pytest

import perfkit
from perfkit.engine import plan
from perfkit.errors import BadFileError, MissingPartError
from perfkit.findings import store
from perfkit.questions import replay as experiments_replay
from perfkit.questions.gallery import chart
from perfkit.questions.replay import Replay, recording
from tests.findings.made import MACHINE, finding
from tests.hostile.broken import broken
from tests.questions.toy import Loops

RATES = {"short": 200.0, "double": 100.0}
STAMP = "Recorded on 2025-03-14 09:26, Intel Xeon Platinum 8481C, 2 of 8 cores"


def recorded(**more):
    fields = {"experiment": "loops", "parameters": {"size": 20_000}, "guess": "9x"}
    return finding(RATES, against="short", **fields | more)


@pytest.fixture
def folder(tmp_path):
    """A folder of recordings, and files that are none."""
    made = tmp_path / "recordings"
    store.save(recorded(recorded="2025-01-01T00:00:00+00:00"), made)
    store.save(recorded(), made)
    store.save(recorded(recorded="2026-01-01T00:00:00+00:00", stopped=True), made)
    store.save(recorded(parameters={"size": 500}), made)
    store.save(finding(), made)
    (made / "broken.json").write_bytes(broken(b"{}")["zero bytes"]())
    return made


def test_the_newest_whole_recording_is_taken_or_what_there_is(folder, tmp_path):
    assert recording(Loops(), folder).recorded == "2025-03-14T09:26:53+01:00"
    assert recording(Loops(size=500), folder).parameters == {"size": 500}
    path = store.save(recorded(unfinished=True), tmp_path)
    assert recording(Loops(), path).unfinished
    # One made before a parameter was there has its usual value.
    store.save(recorded(parameters={}), tmp_path / "old")
    assert recording(Loops(), tmp_path / "old").parameters == {}
    with pytest.raises(MissingPartError, match="with these settings"):
        recording(Loops(size=500), tmp_path / "old")


def test_what_has_no_recording_is_said_with_what_to_do(folder):
    with pytest.raises(MissingPartError) as caught:
        recording(Loops(size=700), folder)
    assert str(caught.value) == (
        "recordings holds no recording of loops with these settings or this code of "
        'yours: to measure it, give `replay=""`, or run `%env PERFKIT_REPLAY=` in a '
        "cell and then this again."
    )
    # A notebook shows that and what was noted, and no traceback.
    caught.value.add_note("There.")
    shown = caught.value._render_traceback_()
    assert shown == [f"MissingPartError: {caught.value}", "There."]
    with pytest.raises(MissingPartError, match="no recording nowhere: give a finding"):
        recording(Loops(), "nowhere")
    with pytest.raises(BadFileError, match=r"broken\.json is not JSON"):
        recording(Loops(), folder / "broken.json")


def test_a_replay_tells_every_tick_and_sample_and_what_was_measured(tmp_path):
    made = recorded()
    heard = list(Replay(Loops(), made, folder=tmp_path).events())
    ticks = [tick for e in heard if isinstance(e, plan.Ticked) for tick in e.ticks]
    every = [tick for trial in made.trials for tick in trial.ticks]
    assert sum(n for _, n in ticks) == sum(n for _, n in every)
    started = [e for e in heard if isinstance(e, plan.TrialStarted)]
    assert len(started) == len(made.trials) == 9
    sampled = [e for e in heard if isinstance(e, plan.Sampled)]
    assert [e.values["t"] for e in sampled] == list(made.samples["t"])
    (finished,) = (e for e in heard if isinstance(e, plan.Finished))
    assert finished.measurement.timings == made.timings


def test_a_variable_turns_every_run_into_a_replay(folder, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(experiments_replay, "BROUGHT", folder)
        patch.setenv("PERFKIT_REPLAY", "1")
        assert perfkit.run(Loops(), folder=tmp_path).replayed
        with pytest.raises(MissingPartError, match="or 1 for perfkit's own"):
            recording(Loops(), "dgx")
    monkeypatch.setenv("PERFKIT_REPLAY", str(folder))
    monkeypatch.setattr(store, "FOLDER", str(tmp_path / "here"))
    shown = perfkit.run(Loops(), guess="3x")
    assert (shown.replayed, shown.guess, shown.machine) == (True, "3x", MACHINE)
    assert shown.timings == recorded().timings
    assert shown.stamp.startswith(STAMP)
    assert store.load(shown.path) == shown
    assert perfkit.run(Loops(), replay="", budget=1, folder=tmp_path).replayed is False


def test_what_is_shown_of_a_recording_has_its_stamp_as_text_and_of_a_run_none():
    # What is brought along is looked at by test_recordings.py, with all its charts.
    shown = recorded().as_recording()
    assert STAMP in shown.verdict._repr_html_()
    assert recorded().stamp == ""
    assert "ecorded on" not in repr(recorded()) + chart(recorded()).svg
    attack = '"><script>alert(1)</script>\x1b[2J\u202e'
    hostile = replace(shown, machine=replace(MACHINE, cpu=attack), recorded=attack)
    written = chart(hostile).svg + hostile._repr_html_()
    assert "<script" not in written
    assert "\x1b" not in written
