"""Whole runs with real processes, on an experiment that needs no TensorFlow."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from perfkit.engine import plan
from perfkit.engine.plan import Finished, Preparing, Ticked, TrialEnded
from perfkit.errors import BadParameterError, MissingPartError, RunError
from perfkit.findings import store
from perfkit.questions.session import Session
from tests.questions.toy import InAFolder, Loops, NoRoom, SlowToPrepare, Stuck


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """A run, what it told, and how many trials its file held after each of them."""
    folder = tmp_path_factory.mktemp("findings")
    images = tmp_path_factory.mktemp("images") / "alice"
    images.mkdir()
    asked = InAFolder(where=str(images))
    session = Session(asked, budget=4, guess="short", seed=4, folder=folder)
    kinds, kept = [], []
    for event in session.events():
        kinds.append(type(event))
        if isinstance(event, TrialEnded):
            (path,) = folder.iterdir()
            kept.append(len(json.loads(path.read_text())["trials"]))
    assert session.finding.path == path
    return session.finding, kinds, kept


def test_a_run_gives_a_finding_that_is_saved_without_the_path_of_a_folder(heard):
    finding, _, _ = heard
    (comparison,) = finding.comparisons
    # However busy this machine is: the truth, or too noisy to say, never the opposite.
    assert comparison.verdict in ("slower", "too noisy to say")
    assert comparison.low < 0.6
    assert finding.verdict.headline == str(comparison)
    assert finding.notes["numbers"] == 20_000
    assert (finding.guess, finding.seed, finding.stopped) == ("short", 4, False)
    loaded = store.load(finding.path)
    assert loaded.verdict == finding.verdict
    times, counts = zip(*finding.trials[0].ticks, strict=True)
    loaded_times, loaded_counts = zip(*loaded.trials[0].ticks, strict=True)
    assert loaded_times == pytest.approx(times, abs=1e-5)
    assert loaded_counts == counts
    assert not loaded.unfinished
    assert "broken off" not in repr(finding)
    assert finding.parameters == {"size": 20_000, "where": "FOLDER"}
    assert "alice" not in finding.path.read_text()


def test_a_run_tells_what_happens_and_its_file_is_whole_after_every_trial(heard):
    _, kinds, kept = heard
    assert (kinds[0], kinds[-1]) == (Preparing, Finished)
    assert {plan.TrialStarted, Ticked, plan.Sampled, TrialEnded} <= set(kinds)
    assert kept == sorted(kept)
    assert kept[-1] >= 3


@pytest.mark.fault(
    "findings", "SIGKILL", sees="The file holds the run so far, and says it broke off."
)
def test_a_run_that_is_broken_off_is_not_taken_for_a_whole_one(tmp_path):
    events = Session(Loops(), budget=6, folder=tmp_path).events()
    while not isinstance(next(events), TrialEnded):
        pass
    # Whatever ends the program here, this is what is left.
    (path,) = tmp_path.glob("*.json")
    left = store.load(path)
    events.close()
    assert left.unfinished
    assert "broke off; this holds the measurements until then." in repr(left)


def makes_data(event):
    return isinstance(event, Preparing) and "data" in event.message


STOPS = {
    "preparing": (Loops, lambda event: isinstance(event, Preparing)),
    "trial started": (Loops, lambda event: isinstance(event, plan.TrialStarted)),
    "trial ended": (Loops, lambda event: isinstance(event, TrialEnded)),
    # The baseline and its control are both silent.
    "silent": (Stuck, lambda event: getattr(event, "variant", "double") != "double"),
    "making data": (SlowToPrepare, makes_data),
}


@pytest.mark.parametrize("moment", STOPS)
def test_stop_works_at_every_moment_from_any_thread_and_keeps_what_finished(
    tmp_path, moment
):
    experiment, is_due = STOPS[moment]
    session = Session(experiment(), budget=6, folder=tmp_path)
    with ThreadPoolExecutor() as threads:
        for event in session.events():
            if is_due(event):
                threads.submit(session.stop)
    assert isinstance(event, Finished)
    if experiment is Loops:
        assert event.stopped
    if moment == "trial ended":
        assert session.finding.stopped
        assert session.finding.timings
    if moment == "making data":
        assert session.finding is None


def test_what_cannot_be_run_is_refused_in_a_sentence(tmp_path, monkeypatch):
    for budget in (0, -1, 7201, float("nan")):
        with pytest.raises(BadParameterError, match="give seconds from 1 to 7200"):
            Session(Loops(), budget=budget)
    with pytest.raises(RunError, match="No space left on device"):
        list(Session(NoRoom(), folder=tmp_path).events())
    monkeypatch.setattr(Loops, "baseline", "shrt")
    with pytest.raises(BadParameterError, match="among its variants: short, d"):
        list(Session(Loops(), budget=2, folder=tmp_path).events())
    monkeypatch.setattr(Loops, "needs", ("a_library_nobody_has",))
    with pytest.raises(MissingPartError, match="pip install a_library_nobody_has"):
        Session(Loops())


@pytest.mark.fault(
    "launcher", "two at once", sees="The second run waits, and says for how long."
)
@pytest.mark.fault("findings", "two at once", sees="Each run writes its own file.")
def test_two_runs_at_once_measure_one_after_the_other(tmp_path):
    sessions = [Session(Loops(), budget=2, folder=tmp_path) for _ in range(2)]
    told = []

    def run(session):
        told.extend((id(session), type(event)) for event in session.events())

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, sessions))
    measuring = [who for who, kind in told if kind is Ticked]
    assert measuring == sorted(measuring, key=measuring.index)
    assert len({session.finding.path for session in sessions}) == 2
    assert all(session.finding.timings for session in sessions)
