"""A patch is printed where a race shows that it helps, and nowhere else."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfkit import cli
from perfkit.engine.trial import LOSSES
from perfkit.errors import RunError
from perfkit.findings import store
from perfkit.findings.reports import TYPED
from perfkit.training.diagnose.maker import maker
from perfkit.training.race import race as races
from perfkit.training.race.commits import changed
from perfkit.training.race.race import NAME, open_proof, proof_of
from tests.findings.made import failed, of_run
from tests.training.diagnose.diagnosed import cause, diagnosis
from tests.training.diagnose.typed import locate, patch
from tests.training.race.built import WAVERING, measured, race, sides
from tests.training.race.repositories import git, write

ROOT = Path(__file__).parents[3]
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


def raced(rate, *, learns=FALLING, trials=(), **known):
    """What was found of a race whose patched copy has this rate, its original 1000."""
    rates, notes = {"train.py": 1000.0, NAME: rate}, {"train.py": {LOSSES: FALLING}}
    if rate is None:
        del rates[NAME]
    rounds = len(rate) if isinstance(rate, tuple) else 3
    run = measured(rates, rounds, notes | {NAME: {LOSSES: learns}}, trials)
    verdict = race(sides("train.py", NAME), **{NAME: known}).verdict(run)
    return of_run(run, experiment="race", verdict=verdict)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder to be in, with a script, a module beside it and data."""
    write(tmp_path, train_py=TRAINING, beside_py="WIDTH = 4\n")
    write(tmp_path, **{"data__a.csv": "1"})
    monkeypatch.chdir(tmp_path)
    return tmp_path


CLOSE = [(10, 1.9), (20, 1.8), (30, 1.8)]


@pytest.mark.parametrize(
    ("rate", "how", "says"),
    [
        (3000.0, {}, r"3\.0 times as fast \(2\.9 to 3\.\d\), same first losses"),
        (3000.0, {"learns": CLOSE}, r"3.*\), no difference shown in first losses"),
        (3000.0, {"learns": []}, r"3.*\), its losses were not compared"),
        # A factor that is not known is not written.
        (3 * (4e3, 4e5), {}, "faster, by how much is not known yet, same first losses"),
    ],
)
def test_what_is_shown_to_be_faster_is_claimed_with_how_it_learns(rate, how, says):
    found = proof_of(raced(rate, **how))
    assert found.helps
    assert re.fullmatch(f"as patched: {says}", found.says)


CRASHED = [failed(NAME, "crashed", "ValueError: no", n) for n in (1, 2)]
FAR, COPY = [(n, 9 * loss) for n, loss in FALLING], "the patched copy"


@pytest.mark.parametrize(
    ("rate", "how", "said"),
    [
        (1000.0, {}, f"no difference shown between {COPY} and train.py (0."),
        (500.0, {}, f"{COPY} takes 2.0 times as long as train.py (1.9"),
        (
            WAVERING,
            {},
            f"this race does not show whether {COPY} is faster than train.py",
        ),
        (3000.0, {"parameters": 7}, f"{COPY} and train.py do different work, so"),
        (3000.0, {"steps": 50}, f"{COPY} does another job than train.py: an epoch"),
        (3000.0, {"learns": FAR}, f"{COPY} does another job than train.py: its first"),
        (None, {"trials": CRASHED}, f'"{COPY}" ValueError: no'),
    ],
)
def test_what_is_not_shown_to_be_faster_is_no_patch_and_says_why(rate, how, said):
    found = proof_of(raced(rate, **how))
    assert not found.helps
    assert found.says.startswith(f"There is no patch: {said}")
    assert ("run it again while nothing else runs" in found.says) is (rate == WAVERING)
    assert found.says.endswith("; `--no-race` prints the patch without a race.")


def test_the_copy_finds_around_it_what_the_script_finds(
    project, monkeypatch, tmp_path_factory
):
    write(project, scripts__train_py=TRAINING, scripts__own_py="")
    script = project / "scripts" / "train.py"
    copy = changed(script, b"changed", NAME)
    there = copy.path_of(script)
    assert there.read_bytes() == b"changed"
    for name in ("own.py", "../beside.py", "../data/a.csv"):
        assert (there.parent / name).resolve() == (script.parent / name).resolve()
    copy.close()
    assert not there.exists()
    assert script.read_text() == TRAINING
    assert (project / "data" / "a.csv").read_text() == "1"
    # One that lies elsewhere has its own folder around it, or its repository.
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    copy = changed(script, b"changed", NAME)
    assert (copy.top, (copy.tree / "own.py").exists()) == (script.parent, True)
    copy.close()
    if shutil.which("git"):
        git(project, "init", "-q")
        copy = changed(script, b"changed", NAME)
        assert (copy.top, (copy.tree / "data").exists()) == (project, True)
        copy.close()


def test_the_race_holds_the_patched_text_against_the_script(project, monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    found, made = diagnosis(causes=[GRAPH]), maker("train.py")
    session = open_proof(patch(found, made, project), made, seed=1)
    original, copied = session.experiment.sides
    assert original.maker == made
    assert BEFORE in Path(original.maker.path).read_bytes()
    assert AFTER in Path(copied.maker.path).read_bytes()
    assert Path(copied.maker.path).name == "train.py"
    assert copied.maker.folder == str(project)
    session.stop()
    list(session.events())
    assert not Path(copied.maker.path).exists()


@pytest.fixture
def diagnosed(project, monkeypatch):
    """Let the command line have diagnosed this, and raced it with that outcome."""

    def diagnosed(outcome=None, code=0, **more):
        found = locate(diagnosis(causes=[GRAPH], **more), maker("train.py"))
        session = SimpleNamespace(finding=found)
        monkeypatch.setattr(
            "perfkit.training.diagnose.diagnose.open_diagnosis",
            lambda *_, **__: session,
        )
        monkeypatch.setattr("perfkit.cli._watched", lambda *_: code)

        def opened(*_):
            if outcome is None:
                raise AssertionError("there is nothing to race")

        def watched(*_):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(races, "open_proof", opened)
        monkeypatch.setattr("perfkit.questions.runs.watch", watched)
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
    assert b"This is the race of the whole patch." in said
    commands = [["git", "apply", "-"], ["patch", "-p1", "-s"]]
    for command in [c for c in commands if shutil.which(c[0])]:
        write(project, train_py=TRAINING)
        subprocess.run(command, cwd=project, input=out, check=True)
        assert AFTER in (project / "train.py").read_bytes()


NO_DIFFERENCE, STOPPED = raced(1000.0), replace(raced(3000.0), stopped=True)
ERROR = RunError("the patched copy: It raised x.")
BROKEN_OFF = {"stopped": True, "code": cli.INTERRUPTED}


@pytest.mark.parametrize(
    ("outcome", "known", "code", "said"),
    [
        (NO_DIFFERENCE, {}, cli.LEFT_OPEN, "no difference shown between the patched"),
        (ERROR, {}, cli.LEFT_OPEN, "the patched copy: It raised x;"),
        (KeyboardInterrupt(), {}, cli.INTERRUPTED, "its race was stopped; "),
        (STOPPED, {}, cli.INTERRUPTED, "its race was stopped; "),
        # What was stopped or recorded is not raced.
        (None, BROKEN_OFF, cli.INTERRUPTED, "the diagnosis was stopped, so nothing"),
        (None, {"replayed": True}, cli.LEFT_OPEN, "the diagnosis was a recording, so"),
    ],
)
def test_without_proof_there_is_no_patch_and_a_code_of_its_own(
    diagnosed, capsys, outcome, known, code, said
):
    assert diagnosed(outcome, **known) == code
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith(f"perfkit: There is no patch: {said}")
    assert told.count("\n") == 1


@pytest.mark.slow
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
