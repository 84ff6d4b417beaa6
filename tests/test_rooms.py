"""Each question can be taken away: its folder goes, and nothing else misses it."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfkit
from perfkit.questions import experiments

HOUSE = Path(perfkit.__file__).parent
ROOMS = {
    kind.__module__.removeprefix("perfkit.questions."): name
    for name, kind in experiments().items()
}
# Each question is missing in half of the houses, and no two in the same ones: so of any
# two, each is somewhere without the other.
HOUSES = range(6)
MISSING = dict(zip(ROOMS, itertools.combinations(HOUSES, 3), strict=False))
EVERYTHING = """
import importlib, json, pkgutil, sys
import perfkit
from perfkit.cli import main

# What a child process or Jupyter runs does its work when it is imported.
RUN = (".__main__", ".child", ".work", ".programs", ".loading", "_server_config")
for found in pkgutil.walk_packages(perfkit.__path__, "perfkit."):
    if not found.name.endswith(RUN):
        importlib.import_module(found.name)
print(json.dumps(list(perfkit.experiments())))
main(["list"])
room = perfkit.classroom(sys.argv[1])
print(len(room._repr_html_()))
"""


@pytest.mark.parametrize("number", HOUSES)
def test_questions_leave_nothing_behind_that_misses_them(tmp_path, number):
    assert MISSING.keys() == ROOMS.keys(), "more questions need more houses"
    gone = {room for room, houses in MISSING.items() if number in houses}
    house = tmp_path / "perfkit"
    made = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HOUSE, house, copy_function=os.link, ignore=made)
    for room in gone:
        place = house / "questions" / room
        shutil.rmtree(place) if place.is_dir() else place.with_suffix(".py").unlink()
    ran = subprocess.run(
        [sys.executable, "-c", EVERYTHING, str(house / "reference")],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert not ran.stderr
    listed, *shown, length = ran.stdout.splitlines()
    assert set(json.loads(listed)) == {ROOMS[room] for room in ROOMS.keys() - gone}
    assert not {line.split(" ")[0] for line in shown} & {ROOMS[room] for room in gone}
    assert int(length) > 500
