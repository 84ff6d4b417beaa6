"""Runs in one process leave it as it was: few of them here, many by the command."""

import os
import subprocess
import sys

import pytest

from tests.test_cli import ROOT, WITHOUT_TENSORFLOW


@pytest.mark.measures
@pytest.mark.parametrize("more", [[], ["--panel"]], ids=["sessions", "a panel"])
def test_run_after_run_nothing_is_left_open_alive_or_lying_about(more):
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "soak.py"), "4", *more],
        env=os.environ | {"PYTHONPATH": WITHOUT_TENSORFLOW},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "grown by" in done.stdout
