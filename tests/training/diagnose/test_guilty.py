"""Every training of the test-bed keeps its frame, and really trains; each fix fits."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from perfkit.engine.processes import in_process
from perfkit.engine.trial import Note, Pause, Tick
from perfkit.training.diagnose.causes import KNOWN
from perfkit.training.diagnose.epochs import Epochs
from perfkit.training.diagnose.loop import Looping, fitted
from perfkit.training.diagnose.maker import InFile

ROOT = Path(__file__).resolve().parents[3]
GUILTY = ROOT / "tests" / "guilty"
SCRIPTS = GUILTY / "scripts"
# No other name is ever given to a cause.
CAUSES = {*KNOWN, "compute-bound"}


def files(folder, name):
    return sorted(p for p in folder.glob("*.py") if name in defined(p))


def defined(path):
    """What a file defines at its top level: constants by value, functions by node."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found |= {target.id: node.value.value for target in node.targets}
    return found


PLANTED = files(GUILTY, "CAUSE")
HEALTHY = files(GUILTY / "healthy", "make_training")
FIXED = sorted(SCRIPTS.glob("*.py"))
MADE = [
    *((path, ("make_training", "make_fixed")) for path in PLANTED),
    *((path, ("make_training",)) for path in HEALTHY),
]


def named(value):
    return value.stem


@pytest.mark.parametrize("path", [*PLANTED, *HEALTHY], ids=named)
def test_a_training_stands_alone_and_says_what_it_is(path):
    source = path.read_text()
    assert ast.get_docstring(ast.parse(source))
    assert {defined(path).get("CAUSE", "eager")} <= CAUSES
    # A loop of one's own marks its steps, and knows nothing else of it.
    own = source.replace("import perfkit\n", "").replace("perfkit.steps(", "")
    assert "perfkit" not in own


# To trace what is then run twice takes most of a minute and a half.
@pytest.mark.parametrize(
    "traces",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["eagerly", "in graphs"],
)
@pytest.mark.parametrize(
    ("path", "functions"), MADE, ids=[path.stem for path, _ in MADE]
)
def test_a_training_and_its_fix_keep_the_contract_and_make_two_steps(
    path, functions, traces
):
    ended = in_process(two_steps(str(path), functions, traces), 100)
    assert [ended.notes.get(name) for name in functions] == [2] * len(functions), ended


def two_steps(path, functions, traces):
    """Make trainings and take two steps of each, in a process that knows only them."""

    def steps_of(function):
        import tensorflow as tf

        tf.config.run_functions_eagerly(not traces)
        # The first step is told by a pause, those after it by ticks.
        ticks = fitted(InFile(path, function), Looping(Epochs(batch=1)))
        first, second = next(ticks), next(ticks)
        ticks.close()
        return isinstance(first, Pause) + isinstance(second, Tick)

    return lambda: (Note(name, steps_of(name)) for name in functions)


@pytest.mark.parametrize("script", FIXED, ids=named)
def test_a_fix_names_its_cause_and_leaves_a_script_that_parses(script, tmp_path):
    fix = script.with_suffix(".diff").read_bytes()
    label, _, causes = fix.decode().splitlines()[0].partition(": ")
    assert label == "cause"
    assert set(causes.split(" or ")) <= CAUSES
    copy = tmp_path / script.relative_to(ROOT)
    copy.parent.mkdir(parents=True)
    shutil.copy(script, copy)
    tool = ("git", "apply") if shutil.which("git") else ("patch", "--batch", "-p1")
    # In a repository around the folder git would skip the file and say nothing.
    environ = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(tool, cwd=tmp_path, input=fix, env=environ, check=True)
    after = ast.parse(copy.read_text())
    assert ast.dump(after) != ast.dump(ast.parse(script.read_text()))


def test_every_fix_has_its_script_and_no_healthy_one_has_a_fix():
    fixes = sorted(SCRIPTS.rglob("*.diff"))
    assert [fix.with_suffix(".py") for fix in fixes] == FIXED
