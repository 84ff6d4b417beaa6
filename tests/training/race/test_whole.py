"""Races of whole scripts: a run is from a script's first line to its end."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perfkit.engine.measurement import CONTROL
from perfkit.engine.trial import RUN
from perfkit.errors import BadParameterError
from perfkit.training.diagnose.script import WholeScript
from perfkit.training.race.race import RaceSession, open_race, race
from perfkit.training.race.rounds import WholeRace, choose_variants
from perfkit.training.race.sides import Asked, entrants
from tests.findings.made import completed, failed, of_run
from tests.findings.test_report import written
from tests.training.diagnose.measurements import in_rounds
from tests.training.race.built import NEW, OLD, sides
from tests.training.race.repositories import commit_all, write

ROOT = Path(__file__).parents[3]
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
COMMAND = "perfkit race --whole old.py new.py"


# What is said of runs whose seconds are known.


def whole(**more):
    return WholeRace(sides=sides(), typed=COMMAND, **more)


def measured(seconds, rounds=6, more=(), waver=0.0):
    """Rounds of runs that take about so many seconds, by their names.

    Every other one of the new side takes longer by that share.
    """
    ends = [0.0]

    def make(name, like, number):
        took = seconds[like] * (1 + 0.002 * math.sin(7 * number + len(name)))
        took *= 1 + waver * (number % 2) * (name == NEW)
        known = {"started_s": ends[-1], "wall_s": took + 0.1, "notes": {RUN: True}}
        ends.append(ends[-1] + known["wall_s"])
        return completed(name, number, ((0.1, 0), (0.1 + took, 1)), **known)

    return in_rounds(seconds, make, rounds, more)


PLAIN = {OLD: 40.0, NEW: 12.0}


@pytest.mark.parametrize(
    ("seconds", "headline"),
    [
        (PLAIN, "new.py runs 3.3 times as fast as old.py."),
        ({OLD: 12.0, NEW: 40.0}, "new.py takes 3.3 times as long as old.py."),
        ({OLD: 12.0, NEW: 12.0}, "No difference shown between new.py and old.py."),
    ],
)
def test_a_difference_is_said_in_seconds_of_a_run(seconds, headline):
    found = whole().verdict(measured(seconds))
    assert found.headline == headline
    (warning,) = found.warnings
    assert warning.startswith("perfkit does not compare what the scripts compute")
    if seconds == PLAIN:
        assert found.much == "One run takes 12 instead of 40 s."
        assert (found.sure, found.winner, found.next) == ("sure", NEW, "")


def wavering(rounds, each):
    return measured({OLD: each, NEW: each}, rounds, waver=0.3)


@pytest.mark.parametrize(
    ("run", "auto", "count"),
    [
        (wavering(5, 10.0), True, 2),
        (wavering(6, 10.0), True, 0),
        (wavering(6, 10.0), False, 2),
        # An interval that is narrow needs no more either.
        (measured(PLAIN, 2), True, 2),
        (measured(PLAIN, 6), True, 0),
        # Short runs are many.
        (wavering(6, 1.0), True, 2),
        (measured(PLAIN, 2, [failed(NEW, "crashed", "raised", 3)]), False, 0),
    ],
)
def test_rounds_end_after_a_minute_a_narrow_interval_or_a_failure(run, auto, count):
    assert len(choose_variants(whole(auto=auto), run)) == count


def test_a_share_that_was_asked_for_ends_it_with_and_without_a_control():
    run = measured({OLD: 12.0, NEW: 40.0}, 3)
    alone = tuple(trial for trial in run.trials if trial.variant != CONTROL)
    for each in (run, replace(run, trials=alone)):
        assert choose_variants(whole(), each, worse=0.05) == ()
        session = RaceSession(whole(), worse=0.05)
        session.finding = of_run(each, experiment="race")
        assert session.is_worse is True
    plan = RaceSession(whole(), seed=3, budget=86_400)._plan()
    assert (plan.in_turns, plan.runs, plan.overrun) == (False, 3, 1.0)
    assert (plan.budget, plan.least_rounds) == (86_400, 3)


# Scripts.


LEAVES = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor

begun = threading.Event()


def work(name):
    begun.wait()
    open(name, "w").close()


if __name__ == "__main__":
    # Its threads wait for more to do until Python ends.
    ThreadPoolExecutor(1).submit(work, "pool.txt")
    threading.Thread(target=work, args=sys.argv[1:]).start()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    begun.set()
    sys.exit(0)
"""
RUNS = """
import os, pathlib
from types import SimpleNamespace as Made
from perfkit.training.diagnose.script import whole_script
from perfkit.training.race import rounds as whole

whole.contain = lambda maker: ""
for name in ("exits", "raises", "leaves"):
    maker = whole_script(pathlib.Path(f"{name}.py"), ("thread.txt",))
    try:
        [*whole.run_whole(Made(maker=maker))]
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
os._exit(0 if {"pool.txt", "thread.txt"} <= {*os.listdir()} else 1)
"""


def test_a_script_is_run_as_python_does_with_what_it_leaves_at_work(tmp_path):
    write(tmp_path, exits_py="import sys\nsys.exit(2)\n", raises_py="{}['age']\n")
    write(tmp_path, leaves_py=LEAVES)
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    ran = subprocess.run(
        [sys.executable, "-c", RUNS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    said = "RunError: exits.py exited with 2.\nKeyError: 'age'\n"
    assert (ran.stdout, ran.returncode) == (said, 0), ran.stderr


def asked(tmp_path, *names, **more):
    write(tmp_path, a_py=COUNTS, b_py="x = 1\n", f_py="def make_training(): ...\n")
    write(tmp_path, broken_py="def\n")
    files = tuple(str(tmp_path / name) for name in names)
    return Asked(trainings=files, whole=True, **more)


def test_scripts_are_raced_whole_as_they_are_with_a_variable_or_at_a_commit(tmp_path):
    what = asked(tmp_path, "a.py", "b.py", arguments=("-v",))
    assert what.typed == "perfkit race --whole a.py b.py -- …"
    one, two = entrants(what).sides
    assert [type(side.maker) for side in (one, two)] == [WholeScript] * 2
    assert one.maker.arguments == ("-v",)
    assert isinstance(open_race(what)._race, WholeRace)
    _, other = entrants(asked(tmp_path, "a.py", env=("A=1",))).sides
    assert other.place.variables == (("A", "1"),)
    commit_all(tmp_path, "one")
    made = entrants(asked(tmp_path, "a.py", commit=("main",)))
    made.close()
    assert [type(side.maker) for side in made.sides] == [WholeScript] * 2
    assert made.sides[0].maker.path != made.sides[1].maker.path


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


def test_two_scripts_are_run_to_their_end_and_leave_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, counts_py=COUNTS, trains_py=TRAINS)
    found = race("trains.py", "counts.py", whole=True, budget=10, seed=1)
    assert found.baseline == "trains.py"
    ended = {trial.outcome for trial in found.trials if trial.round == 1}
    assert ended <= {"completed", "stopped"}
    assert all(sum(n for _, n in t.ticks) == 1 for t in found.trials if t.setup_s)
    assert "examples" not in written(found, in_full=True)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"counts.py", "perfkit-findings", "trains.py"}
