"""Each question can be taken away: its folder goes, and nothing else misses it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from perfkit.questions import experiments
from tests.test_house import PACKAGE, files

ROOMS = {
    kind.__module__.removeprefix("perfkit.questions."): name
    for name, kind in experiments().items()
}
# Who may import a question: what it finds is part of a machine's passport.
ASKS = {"machines/recording.py": {"reference_trainings"}}
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


def test_no_file_but_its_own_imports_a_question():
    found, home = {}, "perfkit.questions."
    for file in files():
        every = [module for module in file.imports if module.startswith(home)]
        rooms = {m.removeprefix(home).partition(".")[0] for m in every} & ROOMS.keys()
        where = file.path.relative_to(PACKAGE).as_posix()
        if others := {one for one in rooms if f"questions/{one}" not in where}:
            found[where] = others
    assert found == ASKS


@pytest.mark.parametrize("odd", [0, 1], ids=["every other", "the others"])
def test_questions_leave_nothing_behind_that_misses_them(tmp_path, odd):
    gone = {*sorted(ROOMS)[odd::2]}
    house = tmp_path / "perfkit"
    # With all that is compiled, but for what is being written.
    written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(PACKAGE, house, copy_function=os.link, ignore=written)
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
