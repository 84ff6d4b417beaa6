"""Races of whole scripts: a run is from a script's first line to its end."""

import math
import os
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from perfkit import gallery
from perfkit.diagnosis.script import WholeScript, whole_script
from perfkit.errors import BadParameterError, RunError
from perfkit.measure.measurement import CONTROL, Measurement, Variant
from perfkit.measure.plan import Foreseen, Progress, TrialEnded
from perfkit.measure.trial import RUN
from perfkit.progress import Board, in_html, in_text
from perfkit.race.race import RaceSession, open_race, race
from perfkit.race.sides import Asked, entrants
from perfkit.race.whole import WholeRace, WholeRounds, foreseeing
from tests.findings.made import completed, failed, of_run
from tests.findings.test_report import written
from tests.race.built import NEW, OLD, sides
from tests.race.repositories import commit_all, write

ROOT = Path(__file__).parents[2]
TRAINS = """
import keras
import numpy as np

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for _ in range(2):
    model.fit(np.ones((8, 4)), np.ones((8, 1)), epochs=2, verbose=0)
model.save("trained.keras")
"""
COUNTS = 'open("counted.txt", "w").write(str(sum(range(1000))))\n'


# What is said of runs whose seconds are known.


def whole(budget=600.0, of=None):
    race = WholeRace(of=of or sides(), typed="perfkit race --whole old.py new.py")
    return replace(race, budget=budget)


def run_of(name, seconds, number=1, started=0.0, **more):
    ticks, known = ((0.1, 0), (0.1 + seconds, 1)), {RUN: True}
    wall = seconds + 0.1
    more = {"started_s": started, "wall_s": wall, "notes": known} | more
    return completed(name, number, ticks, **more)


def measured(seconds, rounds=6, more=()):
    """Rounds of runs that take about so many seconds, by their names."""
    trials, at = [], 0.0
    for number in range(1, rounds + 1):
        for name, usual in (*seconds.items(), (CONTROL, seconds[OLD])):
            took = usual * (1 + 0.002 * math.sin(7 * number + len(name)))
            trials.append(run_of(name, took, number, at))
            at += trials[-1].wall_s
    variants = tuple(Variant(n, list, against=OLD * (n != OLD)) for n in (OLD, NEW))
    trials = (*trials, *more)
    return Measurement(variants=variants, trials=trials, baseline=OLD)


def test_a_difference_is_said_in_seconds_of_a_run():
    found = whole().verdict(measured({OLD: 40.0, NEW: 12.0}))
    assert found.headline == "new.py runs 3.3 times as fast as old.py."
    assert found.much == "One run takes 12 instead of 40 s."
    assert (found.sure, found.winner, found.next) == ("sure", NEW, "")
    (warning,) = found.warnings
    assert warning.startswith("perfkit did not compare what the scripts computed")
    slower = whole().verdict(measured({OLD: 12.0, NEW: 40.0}))
    assert slower.headline == "new.py takes 3.3 times as long as old.py."
    same = whole().verdict(measured({OLD: 12.0, NEW: 12.0}))
    assert same.headline == "No difference between new.py and old.py is shown."


@pytest.mark.parametrize(("rounds", "held"), [(1, "1"), (2, "2")])
def test_too_few_runs_say_how_many_the_budget_holds_and_what_would_do(rounds, held):
    budget = rounds * 170.0
    found = whole(budget).verdict(measured({OLD: 80.0, NEW: 80.0}, rounds))
    assert found.headline == "Whether new.py is faster than old.py is not known yet."
    assert found.much.startswith("One run takes 80")
    assert found.next.startswith("One run takes about 80")
    assert found.next.endswith(
        f": this budget holds {held} of each; give --budget 530 for three."
    )


def test_a_run_that_raised_is_told_in_its_own_words():
    why = "raised ValueError: no such column: age (line 2 of new.py)"
    trials = (run_of(OLD, 40.0), failed(NEW, "crashed", why))
    run = replace(measured({OLD: 1.0, NEW: 1.0}, 0), trials=trials)
    found = whole().verdict(run)
    assert found.headline == f"new.py {why}."
    assert found.much == "A run of old.py took 40 s."
    assert why in found.because[0]
    # The control is the first side.
    run = replace(run, trials=(failed(CONTROL, "crashed", why),))
    assert whole().verdict(run).headline == f"old.py {why}."
    run = replace(run, trials=(failed(NEW, "crashed", "ended: new.py did so."),))
    assert whole().verdict(run).headline == "new.py did so."


def test_a_failure_after_three_rounds_costs_nothing():
    why = failed(NEW, "crashed", "raised ValueError: x", 7)
    found = whole().verdict(measured({OLD: 40.0, NEW: 12.0}, more=[why]))
    assert found.headline == "new.py runs 3.3 times as fast as old.py."
    assert "raised ValueError: x" in found.because[0]


def test_a_run_that_did_not_end_is_told_with_a_budget_that_may_do():
    cut = replace(run_of(NEW, 19.9, started=40.1), outcome="stopped")
    run = replace(measured({OLD: 1.0, NEW: 1.0}, 0), trials=(run_of(OLD, 40.0), cut))
    found = whole(60.0).verdict(run)
    assert found.headline == "The budget of 60 s ended before new.py did."
    assert found.much == "A run of old.py took 40 s."
    assert found.next == (
        "Give --budget 360: three runs of each take more than 3 min 00 s."
    )


def test_once_a_run_has_ended_its_seconds_say_that_three_do_not_fit():
    run = measured({OLD: 20.0, NEW: 20.0}, 1)
    ended = TrialEnded(run.trials[0], run)
    events = [Progress(9.0, 60.0), ended, Progress(21.0, 60.0)]
    heard = list(foreseeing(events, whole(60.0), auto=False))
    assert [one for one in heard if one in events] == events
    (said,) = [event.message for event in heard if isinstance(event, Foreseen)]
    assert "this budget holds 1 of each; give --budget 140 for three." in said
    assert list(foreseeing([ended], whole(600.0), auto=False)) == [ended]
    board = Board()
    board.hear(Foreseen("This budget holds 1 < 3."))
    assert "This budget holds 1 < 3." in in_text(board)
    assert "This budget holds 1 &lt; 3." in in_html(board)


def test_without_a_budget_the_time_that_it_takes_is_known_with_the_first_run():
    run = measured({OLD: 10.0, NEW: 10.0}, 1)
    told = [Progress(1.0, 600.0), TrialEnded(run.trials[0], run), Progress(9.0, 600.0)]
    early, _, late = foreseeing(told, whole(), auto=True)
    assert early.expected == 0.0
    assert late.expected == pytest.approx(180.0, rel=0.02)


# Which rounds are wanted.


def wavering(rounds, each):
    trials, at = [], 0.0
    for number in range(1, rounds + 1):
        for name in (OLD, NEW):
            took = each * (1 + 0.3 * (number % 2) * (name == NEW))
            trials.append(run_of(name, took, number, at))
            at += trials[-1].wall_s
    return replace(measured({OLD: 1.0, NEW: 1.0}, 0), trials=tuple(trials))


def test_without_a_budget_six_rounds_and_a_minute_are_enough():
    auto, given = (WholeRounds(sides(), {}, 600.0, auto=one) for one in (True, False))
    assert [len(auto(wavering(n, 10.0))) for n in (5, 6)] == [2, 0]
    # An interval that is narrow needs no more either.
    plain = {OLD: 40.0, NEW: 12.0}
    assert [len(auto(measured(plain, n))) for n in (2, 6)] == [2, 0]
    assert len(given(wavering(6, 10.0))) == 2
    # Short runs are many.
    assert len(auto(wavering(6, 1.0))) == 2


def test_no_round_follows_one_in_which_a_script_failed():
    run = measured({OLD: 40.0, NEW: 12.0}, 2, [failed(NEW, "crashed", "raised", 3)])
    assert WholeRounds(sides(), {}, 600.0)(run) == ()


def test_a_share_that_was_asked_for_ends_it():
    run = measured({OLD: 12.0, NEW: 40.0}, 3)
    sides_alone = tuple(trial for trial in run.trials if trial.variant != CONTROL)
    alone = replace(run, trials=sides_alone)
    for each in (run, alone):
        assert WholeRounds(sides(), {}, 600.0, 0.05)(each) == ()
        session = RaceSession(whole(), worse=0.05)
        session.finding = of_run(each, experiment="race")
        assert session.is_worse is True


def test_the_plan_lets_each_run_come_to_its_end():
    session = RaceSession(whole(), seed=3)
    plan = session._plan()
    assert (plan.in_turns, plan.runs, plan.overrun, plan.budget) == (False, 3, 1.0, 600)


# What is read of it.


def saved():
    run = measured({OLD: 40.0, NEW: 12.0})
    return of_run(
        run,
        experiment="race",
        parameters={"sides": [OLD, NEW], "command": "perfkit race --whole a.py b.py"},
        verdict=whole().verdict(run),
    )


def test_its_report_counts_runs_and_no_examples():
    said = written(saved(), whole=True)
    assert "a run takes" in said
    assert "One run takes 12 instead of 40 s." in said
    assert "perfkit race --budget" in said
    assert "--whole a.py b.py" in said
    assert "examples" not in said


def test_every_chart_of_it_is_drawn_and_counts_runs():
    kinds = gallery.kinds(saved())
    assert {"rates", "ratios", "timeline"} <= set(kinds)
    drawn = {kind: gallery.chart(saved(), kind).svg for kind in kinds}
    assert "runs per second" in drawn["rates"]
    assert "12 s a run" in drawn["rates"]


# Scripts.


@pytest.fixture
def as_main(monkeypatch, tmp_path):
    """Run scripts here as if each had this process to itself."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(os.environ, "MPLBACKEND", "Agg")
    # Only a process that ends may do that.
    monkeypatch.setattr(threading, "_shutdown", lambda: None)
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        whole_script(path, arguments)()

    return run


def test_a_script_is_run_as_python_does_with_its_arguments(as_main, tmp_path):
    as_main(
        """
        import sys
        if __name__ == "__main__":
            open("seen.txt", "w").write(" ".join(sys.argv[1:]))
            sys.exit(0)
        """,
        *("--epochs", "3"),
    )
    assert (tmp_path / "seen.txt").read_text() == "--epochs 3"


LEAVES = """
import threading
from concurrent.futures import ThreadPoolExecutor

begun = threading.Event()


def work(name):
    begun.wait()
    open(name, "w").close()


# Its threads wait for more to do until Python ends.
ThreadPoolExecutor(1).submit(work, "pool.txt")
threading.Thread(target=work, args=["thread.txt"]).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
begun.set()
"""


def test_what_a_script_leaves_at_work_belongs_to_its_run(tmp_path):
    write(tmp_path, leaves_py=LEAVES)
    code = (
        "import os, pathlib\n"
        "from types import SimpleNamespace as Made\n"
        "from perfkit.diagnosis.script import whole_script\n"
        "from perfkit.race import whole\n"
        "whole.contain = lambda maker: ''\n"
        "maker = whole_script(pathlib.Path('leaves.py'), ())\n"
        "moved = Made(move=lambda: None, left=lambda modules: '')\n"
        "[*whole.WholeWork(Made(maker=maker, moved=moved))()]\n"
        "os._exit(0 if {'pool.txt', 'thread.txt'} <= {*os.listdir()} else 1)\n"
    )
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    known = os.environ | {"PYTHONPATH": paths}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=known)
    assert ran.returncode == 0


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("import sys\nsys.exit(2)", RunError, "script.py ended itself with 2."),
        ("raise KeyError('age')", KeyError, "age"),
    ],
)
def test_a_script_that_fails_says_how(as_main, text, error, said):
    with pytest.raises(error, match=said):
        as_main(text)


def asked(tmp_path, *names, **more):
    write(tmp_path, a_py=COUNTS, b_py="x = 1\n", f_py="def make_training(): ...\n")
    write(tmp_path, broken_py="def\n")
    files = tuple(str(tmp_path / name) for name in names)
    return Asked(trainings=files, whole=True, **more)


def test_a_script_that_trains_nothing_is_raced_whole(tmp_path):
    what = asked(tmp_path, "a.py", "b.py", arguments=("-v",))
    assert what.typed == "perfkit race --whole a.py b.py -- …"
    one, two = entrants(what).sides
    assert [type(side.maker) for side in (one, two)] == [WholeScript] * 2
    assert one.maker.arguments == ("-v",)
    assert isinstance(open_race(what)._race, WholeRace)


def test_one_script_is_raced_with_a_variable_or_at_a_commit(tmp_path):
    _, other = entrants(asked(tmp_path, "a.py", env=("A=1",))).sides
    assert other.place.variables == (("A", "1"),)
    commit_all(tmp_path, "one")
    made = entrants(asked(tmp_path, "a.py", commit=("main",)))
    try:
        assert [type(side.maker) for side in made.sides] == [WholeScript] * 2
        assert made.sides[0].maker.path != made.sides[1].maker.path
    finally:
        made.close()


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        (("a.py", "b.py"), {"fit": 2}, "leave --fit or --whole out"),
        (("a.py", "f.py"), {}, "f.py:make_training is a function"),
        (("a.py", "broken.py"), {}, "broken.py cannot be read as Python"),
        (("a.py", "none.py"), {}, "There is no file none.py"),
    ],
)
def test_what_cannot_be_raced_whole_is_refused(tmp_path, names, more, said):
    with pytest.raises(BadParameterError, match=said):
        entrants(asked(tmp_path, *names, **more))
    with pytest.raises(BadParameterError, match="asked is a function: call it in a"):
        entrants(Asked(trainings=(asked, asked), whole=True))


@pytest.mark.measures
def test_two_scripts_are_run_to_their_end_and_leave_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, counts_py=COUNTS, trains_py=TRAINS)
    found = race("trains.py", "counts.py", whole=True, budget=20, seed=1)
    assert found.baseline == "trains.py"
    ended = {trial.outcome for trial in found.trials if trial.round == 1}
    assert ended <= {"completed", "stopped"}
    assert all(sum(n for _, n in t.ticks) == 1 for t in found.trials if t.setup_s)
    assert "examples" not in written(found, whole=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "counts.py",
        "perfkit-findings",
        "trains.py",
    ]
