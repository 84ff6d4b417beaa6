"""Drivers that do not exist: a library that answers from a text file, fake_nvml.c."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NO_COMPILER = (
    "These tests compile a driver's library and find no C compiler named cc: install "
    "one, for example with: apt-get install gcc libc6-dev"
)


def build_library(folder):
    """Compile the library into a folder; without a compiler the test fails so."""
    if shutil.which("cc") is None:
        pytest.fail(NO_COMPILER, pytrace=False)
    library = folder / "libnvidia-ml.so.1"
    compiler = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, HERE / "fake_nvml.c", "-o", library], check=True)
    return folder


def script(name):
    """The text of a scripted machine, its own lines before those of one like it."""
    text = (HERE / "nvml" / f"{name}.txt").read_text()
    like = re.search(r"^like (\w+)$", text, re.MULTILINE)
    return text + script(like[1]) if like else text


def answer_of(lines, library, machine):
    """Run Python lines under a driver; what they leave in ``answer`` comes back.

    The library is found as on a real machine: by the loader, in a process that starts
    with it in its search path. It plays the file ``machine``.
    """
    places = {"LD_LIBRARY_PATH": str(library), "NVML_MACHINE": str(machine)}
    child = subprocess.run(
        [sys.executable, "-c", f"{lines}\nimport json; print(json.dumps(answer))"],
        env=os.environ | places,
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)
