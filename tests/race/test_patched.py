"""A patch is printed where a race shows that it helps, and nowhere else."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfkit import cli
from perfkit.diagnosis.edits import Patch, patch
from perfkit.diagnosis.maker import maker
from perfkit.diagnosis.source import text_of
from perfkit.errors import RunError
from perfkit.findings import store
from perfkit.findings.reports import TYPED
from perfkit.measure.trial import LOSSES
from perfkit.race import patched
from perfkit.race.commits import changed
from perfkit.race.patched import NAME, Proof, open_proof, proof_of
from tests.diagnosis.diagnosed import cause, diagnosis
from tests.findings.made import failed, of_run
from tests.race.built import WAVERING, measured, race, sides
from tests.race.repositories import git, write

ROOT = Path(__file__).parents[2]
GRAPH = cause("eager", "graph", 3.0)
TRAINING = """import keras
import numpy as np
from beside import WIDTH

features = np.zeros((400, WIDTH))
model = keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
model.fit(features, features, batch_size=10, epochs=3, verbose=0)
"""
BEFORE, AFTER = b"run_eagerly=True", b'compile("sgd", "mse")'
FALLING = [(10, 2.0), (20, 1.9), (30, 1.7)]


def raced(rate, *, learns=FALLING, retuned=False, trials=(), **known):
    """What was found of a race whose patched copy has this rate, its original 1000."""
    rates, notes = {"train.py": 1000.0, NAME: rate}, {"train.py": {LOSSES: FALLING}}
    if rate is None:
        del rates[NAME]
    rounds = len(rate) if isinstance(rate, tuple) else 3
    run = measured(rates, rounds, notes | {NAME: {LOSSES: learns}}, trials)
    of = sides("train.py", NAME, retuned=retuned)
    verdict = race(of, **known).verdict(run)
    return of_run(run, experiment="race", verdict=verdict)


def proof(rate, *, retuned=False, **more):
    finding = raced(rate, retuned=retuned, **more)
    return proof_of(finding, Patch(b"x", (), retuned=retuned))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder to be in, with a script, a module beside it and data."""
    write(tmp_path, train_py=TRAINING, beside_py="WIDTH = 4\n")
    write(tmp_path, **{"data__a.csv": "1"})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("learns", "said"),
    [
        (FALLING, "same first losses"),
        ([(10, 1.9), (20, 1.8), (30, 1.8)], "first losses not shown to differ"),
        ([], "how it learns is not seen"),
    ],
)
def test_what_is_shown_to_be_faster_is_claimed_with_how_it_learns(learns, said):
    found = proof(3000.0, learns=learns)
    assert found.helps
    assert found.says.startswith("as patched: 3.0 times as fast (2.9 to 3.")
    assert found.says.endswith(f"), {said}")
    # A factor that is not known is not written.
    found = proof(3 * (4e3, 4e5))
    assert found == Proof(
        "as patched: faster, by how much is not known yet, same first losses",
        helps=True,
    )


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (1000.0, "no difference between the patched copy and train.py is shown (0."),
        (500.0, "the patched copy takes 2.0 times as long as train.py (1.9"),
        (WAVERING, "whether the patched copy is faster than train.py is not kn"),
    ],
)
def test_what_is_not_shown_to_be_faster_is_no_patch_and_says_why(rate, said):
    found = proof(rate)
    assert not found.helps
    assert found.says.startswith(f"There is no patch: {said}")
    assert ("run it again while nothing else runs" in found.says) is (rate == WAVERING)
    assert found.says.endswith("; `--no-race` prints the patch without a race.")


def test_another_job_is_no_patch_however_fast():
    for known in ({"parameters": 7}, {"steps": 50}):
        found = proof(3000.0, **{NAME: known})
        assert not found.helps
        assert " job" in found.says or "different work" in found.says
    far = proof(3000.0, learns=[(n, 9 * loss) for n, loss in FALLING])
    assert not far.helps
    assert "its first losses are" in far.says


def test_a_patch_that_is_known_to_learn_otherwise_is_claimed_as_that():
    other = {NAME: {"batch": 20, "steps": 50}}
    found = proof(2000.0, retuned=True, learns=[(20, 9.0)], **other)
    assert found.helps
    assert found.says.endswith(", and it learns otherwise")


def test_a_copy_that_fails_is_no_patch_and_says_how():
    ended = [failed(NAME, "crashed", "ValueError: no", n) for n in (1, 2)]
    found = proof(None, trials=ended)
    assert not found.helps
    assert "ValueError: no" in found.says


def test_the_copy_finds_around_it_what_the_script_finds(project):
    write(project, scripts__train_py=TRAINING, scripts__own_py="")
    copy = changed(project / "scripts" / "train.py", b"changed", NAME)
    there = copy.path_of(project / "scripts" / "train.py")
    assert there.read_bytes() == b"changed"
    for name in ("own.py", "../beside.py", "../data/a.csv"):
        found = there.parent / name
        assert found.resolve() == (project / "scripts" / name).resolve()
    copy.close()
    assert not there.exists()
    assert (project / "scripts" / "train.py").read_text() == TRAINING
    assert (project / "data" / "a.csv").read_text() == "1"


def test_a_script_elsewhere_has_its_own_folder_around_it_or_its_repository(
    project, monkeypatch, tmp_path_factory
):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    for top in (project / "inner", project):
        write(project, inner__train_py=TRAINING, inner__own_py="")
        copy = changed(project / "inner" / "train.py", b"changed", NAME)
        assert copy.top == top
        assert (copy.tree / "own.py" if top != project else copy.tree / "data").exists()
        copy.close()
        if shutil.which("git"):
            git(project, "init", "-q")
        else:
            return


@pytest.mark.measures
def test_the_race_holds_the_patched_text_against_the_script(project, monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    made, slow = maker("train.py"), {"ready_s": 20.0, "step_s": 0.1}
    for facts, least in (({}, 60.0), (slow, 4 * 3 * 20.0)):
        found = diagnosis(causes=[GRAPH], facts=facts)
        session = open_proof(patch(found, made, project), found, made, seed=1)
        assert least <= session.budget <= 600
        original, copied = session.experiment.sides
        assert original.maker == made
        assert BEFORE in Path(original.maker.path).read_bytes()
        assert AFTER in Path(copied.maker.path).read_bytes()
        assert Path(copied.maker.path).name == "train.py"
        assert copied.maker.folder == str(project)
        session.stop()
        list(session.events())
        assert not Path(copied.maker.path).exists()


@pytest.mark.measures
@pytest.mark.parametrize(
    ("change", "is_retuned"),
    [
        (GRAPH, False),
        (cause("small-batch", "batch ×2", 2.0), True),
    ],
)
def test_a_larger_batch_is_known_to_learn_otherwise(project, change, is_retuned):
    facts = {"data": "arrays", "batch": 10, "steps": 40}
    found, made = diagnosis(causes=[change], facts=facts), maker("train.py")
    written = patch(found, made, project)
    assert written.text
    session = open_proof(written, found, made)
    assert [one.retuned for one in session.experiment.sides] == [False, is_retuned]
    session.stop()
    list(session.events())


def test_a_notebook_is_copied_with_its_code_alone(project):
    cells = [{"cell_type": "code", "source": [TRAINING]}]
    write(project, **{"train.ipynb": json.dumps({"cells": cells})})
    made = maker("train.ipynb")
    written = patch(diagnosis(causes=[GRAPH]), made, project)
    write(project, **{"copy.ipynb": written.copy.decode()})
    code = TRAINING.replace(", run_eagerly=True", "")
    assert text_of(str(project / "copy.ipynb")) == code.rstrip("\n")
    assert written.text.startswith(b"train.ipynb, code cell 1, line 7")


@pytest.fixture
def diagnosed(project, monkeypatch):
    """Let the command line have diagnosed this, and raced it with that outcome."""

    def diagnosed(outcome=None, code=0, **more):
        found = diagnosis(causes=[GRAPH], **more)
        session = SimpleNamespace(finding=found)
        monkeypatch.setattr(
            "perfkit.diagnoses.open_diagnosis", lambda *_, **__: session
        )
        monkeypatch.setattr("perfkit.cli._watched", lambda *_: code)

        def opened(*_):
            if outcome is None:
                raise AssertionError("there is nothing to race")

        def watched(*_):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(patched, "open_proof", opened)
        monkeypatch.setattr("perfkit.runs.watch", watched)
        return cli.main(["diagnose", "train.py", "--diff"])

    return diagnosed


def test_the_claim_stands_above_the_patch_that_git_and_patch_apply(
    diagnosed, project, capfdbinary
):
    assert diagnosed(raced(3000.0)) == cli.DONE
    out, said = capfdbinary.readouterr()
    header, rest = out.split(b"\n", 1)
    assert header.startswith(b"# as patched: 3.0 times as fast (2.9 to 3.")
    assert rest.startswith(b"--- a/train.py\n+++ b/train.py\n@@ ")
    assert said.startswith(b"perfkit: as patched: 3.0 times as fast (2.9 to 3.")
    assert b"This counts: the whole patch was raced." in said
    commands = [["git", "apply", "-"], ["patch", "-p1", "-s"]]
    for command in [c for c in commands if shutil.which(c[0])]:
        write(project, train_py=TRAINING)
        subprocess.run(command, cwd=project, input=out, check=True)
        assert AFTER in (project / "train.py").read_bytes()


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (raced(1000.0), "no difference between the patched copy and train.py"),
        (RunError("the patched copy: It raised x."), "the patched copy: It raised x;"),
    ],
    ids=["no difference", "an error"],
)
def test_without_proof_there_is_no_patch_and_a_code_of_its_own(
    diagnosed, capsys, outcome, said
):
    assert diagnosed(outcome) == cli.LEFT_OPEN
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith(f"perfkit: There is no patch: {said}")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "outcome", [KeyboardInterrupt(), replace(raced(3000.0), stopped=True)], ids=str
)
def test_a_race_that_is_stopped_prints_no_patch(diagnosed, capsys, outcome):
    assert diagnosed(outcome) == cli.INTERRUPTED
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith("perfkit: There is no patch: its race was stopped; ")


@pytest.mark.parametrize(
    ("known", "code", "expected"),
    [
        ({"stopped": True}, cli.INTERRUPTED, cli.INTERRUPTED),
        ({"replayed": True}, cli.DONE, cli.LEFT_OPEN),
    ],
)
def test_what_was_stopped_or_recorded_is_not_raced(
    diagnosed, capsys, known, code, expected
):
    assert diagnosed(code=code, **known) == expected
    out, told = capsys.readouterr()
    assert out == ""
    assert "nothing proves it" in told


@pytest.mark.measures
def test_a_patch_is_printed_if_and_only_if_its_race_shows_that_it_helps(project):
    line = "diagnose train.py --diff --budget 20 --seed 1"
    known = {"PYTHONPATH": str(ROOT), "PERFKIT_BUDGET": "20"}
    ran = subprocess.run(
        [sys.executable, "-m", "perfkit", *line.split()],
        cwd=project,
        env=os.environ | known,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in ran.stdout + ran.stderr
    assert (project / "train.py").read_text() == TRAINING
    if ran.stdout:
        assert ran.returncode == cli.DONE
        assert ran.stdout.startswith("# as patched: ")
    else:
        # On a busy machine nothing may be found to patch.
        assert ran.returncode in (cli.DONE, cli.FAILED, cli.LEFT_OPEN), ran.stderr
        assert "perfkit: " in ran.stderr
    assert (ran.returncode == cli.LEFT_OPEN) is ("; `--no-race` prints" in ran.stderr)
    found = [store.load(path) for path in project.glob("perfkit-findings/race-*.json")]
    assert all(one.parameters[TYPED].endswith("--diff train.py") for one in found)
    assert all(timing.rate > 0 for one in found for timing in one.timings)
