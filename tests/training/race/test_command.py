"""`perfkit race` as it is typed: what it refuses, and what its codes say."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from perfkit import cli
from perfkit.errors import BadFileError, MissingPartError
from perfkit.findings import store
from perfkit.training.race.race import RaceSession
from tests.findings import made
from tests.training.race.repositories import SCRIPT, WHO, commit_all, git, state, write

ROOT = Path(__file__).parents[3]
TRAINING = """
import os, time
import keras
import numpy as np

keras.utils.set_random_seed(1)
features = np.random.rand(2000, 16).astype("float32")
labels = features.sum(1)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")


class Watching(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep({pause})
        open("steps.txt", "a").write("one more")


os.makedirs("logs", exist_ok=True)
folder = os.path.dirname(os.path.abspath(__file__))
open(os.path.join(folder, "beside.txt"), "w").close()
saves = keras.callbacks.ModelCheckpoint("logs/{{epoch}}.keras")
watching = [Watching(), keras.callbacks.CSVLogger("logs/epochs.csv"), saves]
model.fit(features, labels, batch_size=20, epochs=3, callbacks=watching, verbose=0)
model.save("trained.keras")
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("race", "the following arguments are required: FILE.py"),
        ("race train.py --commit main", "git refused"),
        ("race train.py other.py --worse 100%", "--worse is 1.0; give a share"),
        ("race train.py other.py --fit 2", "calls fit 1 times"),
        ("race train.py other.py --faster", "--faster"),
    ],
)
def test_bad_usage_is_said_in_one_line(capsys, tmp_path, monkeypatch, line, said):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, train_py=SCRIPT, other_py=SCRIPT)
    assert cli.main(line.split()) == cli.BAD_USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("perfkit: ")
    assert told.err.count("\n") == 1
    assert said in told.err
    assert not (tmp_path / "perfkit-findings").exists()


class Ended(RaceSession):
    """A session that has been run already, in place of one of processes."""

    is_worse, cannot_run = None, False

    def __init__(self, finding, **known):
        self.finding, self.unsaved = finding, ""
        vars(self).update(known)


@pytest.fixture
def opened(monkeypatch):
    """Open sessions that have been run; gives what they were asked with."""
    asked = {}

    def opened(finding=None, error=None, **known):
        def open_race(what, budget, **options):
            if error:
                raise error
            asked.update(options, what=what, budget=budget)
            return Ended(finding or made.finding(), **known)

        monkeypatch.setattr("perfkit.training.race.race.open_race", open_race)
        monkeypatch.setattr(
            "perfkit.questions.runs.watch", lambda s, display: s.finding
        )
        monkeypatch.setattr(cli, "_give_up_stdout", lambda: None)
        return asked

    return opened


STOPPED, NOTHING = made.finding(stopped=True), made.finding(timings=(), comparisons=())


@pytest.mark.parametrize(
    ("known", "code", "code_of_check"),
    [
        ({"is_worse": True}, cli.DONE, cli.FAILED),
        ({"is_worse": False}, cli.DONE, cli.DONE),
        ({"is_worse": None}, cli.DONE, cli.LEFT_OPEN),
        ({"cannot_run": True}, cli.DONE, cli.BAD_USAGE),
        ({"finding": STOPPED, "is_worse": True}, cli.INTERRUPTED, cli.INTERRUPTED),
        ({"finding": NOTHING}, cli.FAILED, cli.LEFT_OPEN),
        # With --worse 1 means slower, and nothing else.
        ({"error": MissingPartError("x")}, cli.FAILED, cli.BAD_USAGE),
        ({"error": BadFileError("x")}, cli.FAILED, cli.BAD_USAGE),
        ({"error": OSError(28, "x")}, cli.FAILED, cli.BAD_USAGE),
    ],
    ids=str,
)
def test_the_code_says_whether_it_is_worse(opened, known, code, code_of_check):
    asked, line = opened(**known), "race a.py b.py"
    assert cli.main(line.split()) == code
    assert asked.get("worse") is None
    assert cli.main([*line.split(), "--worse", "5%"]) == code_of_check
    assert asked.get("worse", 0.05) == 0.05


@pytest.mark.fault(
    "race", "full disk", sees="perfkit shows the verdict, and says it isn't saved."
)
def test_a_full_disk_costs_the_file_and_not_the_verdict(opened, capsys):
    opened(unsaved="The finding could not be saved: no space.")
    assert cli.main(["race", "a.py", "b.py"]) == 1
    told = capsys.readouterr()
    assert "prefetched is the fastest way here." in told.out
    assert told.err == "perfkit: The finding could not be saved: no space.\n"


def test_all_that_is_typed_is_asked(opened):
    asked = opened()
    line = "race t.py --env A=1 --env B=2 --fit 2 --budget auto --seed 7 --out kept"
    cli.main([*line.split(), "--", "--epochs", "3", "--env", "C=3"])
    what = asked["what"]
    assert (what.trainings, what.env) == (("t.py",), ("A=1", "B=2"))
    assert what.arguments == ("--epochs", "3", "--env", "C=3")
    assert (what.fit, asked["budget"]) == (2, "auto")
    assert (asked["seed"], asked["folder"]) == (7, "kept")


@pytest.mark.slow
def test_a_commit_made_slower_is_never_let_pass_and_no_file_is_left(tmp_path):
    top = tmp_path / "mine"
    for name, pause in (("slower", 0.030), ("usual", 0.005)):
        write(top, train_py=TRAINING.format(pause=pause), inner__x_py="")
        commit_all(top, name)
        git(top, "tag", name)
    before = state(top)
    checked_out = set(Path(tempfile.gettempdir()).glob("perfkit-commit-*"))
    line = "race train.py --commit main --commit slower --worse 20% --budget 30"
    ran = subprocess.run(
        [sys.executable, "-m", "perfkit", *line.split(), "--seed", "1"],
        cwd=top,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | WHO,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in ran.stdout + ran.stderr
    (kept,) = (top / "perfkit-findings").glob("*.json")
    found = store.load(kept)
    assert ran.returncode in (cli.FAILED, cli.LEFT_OPEN)
    assert found.baseline.startswith("main (")
    assert not found.verdict.winner.startswith("slower (")
    # A pause is never shorter than asked for.
    rates = {timing.variant: timing.rate for timing in found.timings}
    slow = [rates[name] for name in rates if name.startswith("slower (")]
    assert all(0 < rate <= 20 / 0.030 for rate in slow)
    # The working tree is as the first commit: it is no worse by as much.
    same = [c for c in found.comparisons if c.variant == "the working tree"]
    assert all(one.high > 0.8 for one in same)
    # What the scripts write is nowhere.
    shutil.rmtree(top / "perfkit-findings")
    assert state(top) == before
    assert set(Path(tempfile.gettempdir()).glob("perfkit-commit-*")) <= checked_out
