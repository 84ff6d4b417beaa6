"""In which order tests run, on a few that this file writes (tests/conftest.py)."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import os, pathlib, pytest
from perfkit.engine.alone import lock_file

BESIDE = "PYTEST_XDIST_WORKER" in os.environ


def test_beside():
    assert BESIDE and {beside}

@pytest.mark.measures
def test_alone():
    assert not BESIDE and {alone}

def test_measures_unmarked():
    lock_file().touch() if {unmarked} and BESIDE else None

@pytest.mark.slow
def test_slow():
    raise AssertionError("was not asked for")
"""


@pytest.fixture
def ran(tmp_path):
    """Runs those tests side by side; gives the exit code, the output and the report."""

    def run(*options, beside=True, alone=True, unmarked=False):
        names = {"beside": beside, "alone": alone, "unmarked": unmarked}
        (tmp_path / "test_some.py").write_text(TESTS.format(**names))
        settings = ["-p", "tests.conftest", "-c", ROOT / "pyproject.toml", "-n", "1"]
        report = ["--rootdir", tmp_path, "--junitxml", tmp_path / "report.xml"]
        command = [sys.executable, "-m", "pytest", *settings, *report, *options]
        # This test may itself be one of those beside others.
        mine = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        done = subprocess.run(
            [*command, tmp_path], cwd=ROOT, env=mine, capture_output=True, text=True
        )
        cases = ElementTree.parse(tmp_path / "report.xml").iter("testcase")
        return done, {case.get("name") for case in cases}

    return run


def summary(done):
    """The last line that pytest prints, without how long it took."""
    return re.sub(r"=+ ?| in [\d.]+s.*", "", done.stdout.splitlines()[-1])


def test_what_measures_runs_after_the_rest_and_in_one_report(ran):
    done, cases = ran()
    assert (done.returncode, summary(done)) == (0, "3 passed, 1 deselected"), done
    assert cases == {"test_beside", "test_alone", "test_measures_unmarked"}


def test_what_measures_runs_although_others_fail_and_unmarked_it_does(ran):
    done, cases = ran(beside=False, unmarked=True)
    assert done.returncode == 1
    assert re.fullmatch("1 failed, 2 passed.* 1 error", summary(done))
    assert "This test measures: mark it `measures`" in done.stdout
    assert "test_alone" in cases
