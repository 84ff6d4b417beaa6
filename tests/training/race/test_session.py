"""A race's session as far as it goes without a process."""

import tempfile
from dataclasses import replace

import pytest

from perfkit.engine.host import Environment
from perfkit.errors import BadParameterError
from perfkit.training.race import race as sessions
from perfkit.training.race.race import RaceSession, open_race
from perfkit.training.race.sides import Asked
from tests.findings.made import of_run
from tests.training.race.built import (
    FUNCTION,
    NEW,
    OLD,
    THIRD,
    WAVERING,
    facts,
    make_training,
    measured,
    sides,
)
from tests.training.race.built import race as question
from tests.training.race.repositories import SCRIPT, commit_all, write

SLOWER, THREE = {OLD: 1000.0, NEW: 500.0}, sides(OLD, NEW, THIRD)


def ended(rates, *, worse=0.05, of=None, **known):
    session = RaceSession(question(of, **known), worse=worse)
    session.finding = of_run(measured(rates), experiment="race")
    return session


@pytest.mark.parametrize(
    ("rates", "how", "is_worse"),
    [
        (SLOWER, {}, True),
        ({OLD: 1000.0, NEW: 1000.0}, {}, False),
        ({OLD: 1000.0, NEW: WAVERING}, {}, None),
        # Of another job no rate says so, and where nobody asked it is not told.
        (SLOWER, {"new": {"batch": 20, "steps": 50}}, None),
        (SLOWER, {"worse": None}, None),
        # A side that never ran leaves it open, unless another is slower.
        ({OLD: 1000.0}, {}, None),
        ({OLD: 1000.0, NEW: 1000.0}, {"of": THREE}, None),
        (SLOWER, {"of": THREE}, True),
    ],
)
def test_what_is_worse_is_decided_from_what_was_saved(rates, how, is_worse):
    assert ended(rates, **how).is_worse is is_worse
    assert RaceSession(question(), worse=0.05).is_worse is None


@pytest.mark.parametrize(("crashed", "cannot"), [(NEW, True), (f"{NEW}, x", False)])
def test_a_side_that_fails_in_all_its_trials_cannot_be_run(crashed, cannot):
    session = ended({OLD: 1000.0, NEW: WAVERING})
    assert not session.cannot_run
    trials = [
        replace(trial, variant=crashed, outcome="crashed")
        if trial.variant == NEW and (cannot or trial.round > 1)
        else trial
        for trial in session.finding.trials
    ]
    session.finding = replace(session.finding, trials=tuple(trials))
    assert session.cannot_run is cannot


def test_what_a_script_sets_itself_is_set_in_its_place_and_not_raced(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    write(tmp_path, train_py=f"import os\nos.environ['TF_A'] = '1'\n{SCRIPT}")
    asked = Asked(trainings=(tmp_path / "train.py",), env=("TF_A=2", "TF_B=3"))
    race_sides = open_race(asked)._race.sides
    # What is asked for by hand counts more.
    assert [dict(side.place.variables) for side in race_sides] == [
        {"TF_A": "1"},
        {"TF_A": "2"},
        {"TF_A": "1", "TF_B": "3"},
    ]
    given = {"TF_A", "TF_B"}
    sessions._check_holds(race_sides[1], given, facts(late=("TF_C",)))
    with pytest.raises(BadParameterError, match="sets TF_A itself, which overrides"):
        sessions._check_holds(race_sides[1], given, facts(late=("TF_A", "TF_C")))
    write(tmp_path, plain_py=SCRIPT)
    files, cores = (tmp_path / "plain.py", *asked.trainings), ("0",)
    for ways, called in (
        (asked, ("train.py with TF_A=2", "without")),
        (Asked(trainings=files), ("train.py", "plain.py")),
        (replace(asked, env=(), cores=cores), ("train.py on core 0", "on all cores")),
    ):
        raced = open_race(ways)._race
        assert raced._in_sentence(raced.sides[1]) == called


@pytest.mark.parametrize("loading", [False, True])
def test_a_race_that_is_stopped_before_it_looks_starts_no_trial(monkeypatch, loading):
    class Loading:
        """Launchers that are never ready."""

        def __init__(self, *_):
            assert loading
            self.wait = self.close = lambda *_: False

    monkeypatch.setattr(sessions, "Launchers", Loading)
    session = RaceSession(question())
    if not loading:
        session.stop()
    for event in session._measure():
        assert "Loading TensorFlow" in event.message
        session.stop()
    assert session.finding is None


def test_a_race_that_is_refused_late_takes_its_commit_away(tmp_path, monkeypatch):
    top, temporary = tmp_path / "mine", tmp_path / "temporary"
    temporary.mkdir()
    write(top, train_py=SCRIPT)
    commit_all(top, "one")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    asked = Asked(trainings=(top / "train.py",), commit=("main",))
    for options in ({"budget": 5}, {"budget": 7201}, {"budget": "soon"}, {"seed": -1}):
        with pytest.raises(BadParameterError):
            open_race(asked, **options)
    assert list(temporary.iterdir()) == []
    session = open_race(asked)
    (folder,) = temporary.iterdir()
    monkeypatch.setattr(RaceSession, "_measure", lambda self: iter(()))
    list(session.events())
    assert not folder.exists()


def test_another_python_reads_a_file_and_is_refused_the_code_of_a_function(
    monkeypatch, tmp_path
):
    elsewhere = Environment("3.99.1", {"tensorflow": "2.99"})
    monkeypatch.setattr(sessions, "environment_of", lambda place: elsewhere)
    python = ("other/bin/python",)
    refused = r"Python 3\.99 cannot run make_training"
    with pytest.raises(BadParameterError, match=refused):
        open_race(Asked(trainings=(make_training,), python=python))
    write(tmp_path, train_py=FUNCTION)
    opened = open_race(Asked(trainings=(tmp_path / "train.py",), python=python))
    assert opened.finding is None
