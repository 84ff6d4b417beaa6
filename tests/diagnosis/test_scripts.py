"""The trainings in tests/guilty/scripts are whole, and each fix fits its script."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "guilty" / "scripts"
PLANTED = sorted(FOLDER.glob("*.py"))
HEALTHY = sorted((FOLDER / "healthy").glob("*.py"))
CAUSES = {
    "callback",
    "debugging",
    "determinism",
    "eager",
    "epoch-boundary",
    "float64",
    "input-bound",
    "late-shuffle",
    "no-cache",
    "no-prefetch",
    "padding",
    "per-example-map",
    "python-input",
    "retracing",
    "serial-map",
    "slow-read",
    "small-batch",
    "step-overhead",
    "threads",
    "unrolled",
    "validation",
}


def named(paths):
    return pytest.mark.parametrize("script", paths, ids=[path.stem for path in paths])


def fixed(script, folder):
    """The script as its .diff leaves it, patched in a folder of its own."""
    copy = folder / script.relative_to(ROOT)
    copy.parent.mkdir(parents=True)
    shutil.copy(script, copy)
    tool = ("git", "apply") if shutil.which("git") else ("patch", "--batch", "-p1")
    subprocess.run(
        tool,
        cwd=folder,
        input=script.with_suffix(".diff").read_bytes(),
        # In a repository around the folder git would skip the file and say nothing.
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        check=True,
    )
    return copy.read_text()


@named([*PLANTED, *HEALTHY])
def test_a_script_says_in_one_line_what_it_trains(script):
    said = ast.get_docstring(ast.parse(script.read_text()))
    assert said
    assert len(said.splitlines()) == 1


@named(PLANTED)
def test_a_fix_names_causes_of_the_list(script):
    first = script.with_suffix(".diff").read_text().splitlines()[0]
    label, _, causes = first.partition(": ")
    assert label == "cause"
    assert set(causes.split(" or ")) <= CAUSES


@named(PLANTED)
def test_a_fix_applies_to_its_script_and_leaves_one_that_parses(script, tmp_path):
    after = fixed(script, tmp_path)
    assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(script.read_text()))


def test_every_fix_has_its_script_and_no_healthy_one_has_a_fix():
    fixes = sorted(FOLDER.rglob("*.diff"))
    assert [fix.with_suffix(".py") for fix in fixes] == PLANTED
