"""How many minutes does each notebook take? Its words, its runs and its exercises.

Run from a checkout: ``python benchmarks/pace.py [NAME ...] [--execute] [--map]``.
Words are read at 200 a minute, folded answers too. Runs count with the budget that they
have unless somebody gives another; with ``--execute`` the notebook is executed as it
ships instead, on this machine, and its seconds count. Each numbered exercise counts
with the budget or the call that it names, or else with the last run before it. With
``--map`` the minutes are written into the map of the notebooks.
"""

import argparse
import ast
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat

NOTEBOOKS = sorted(Path(__file__).resolve().parents[1].glob("notebooks/*.ipynb"))
MAP = NOTEBOOKS[0].with_name("README.md")
WORDS_A_MINUTE = 200
# Seconds that a call takes by default. A diagnosis and a race take what the training
# needs, and for those of the notebooks that is about so much.
SECONDS = {
    "perfkit.run": 60,
    "perfkit.panel": 60,
    "perfkit.lines": 20,
    "perfkit.diagnose": 90,
    "perfkit.race": 100,
    "perfkit.ladder": 60,
    "perfkit.profile": 20,
    "perfkit.doctor": 5,
    "perfkit.passport": 180,
    "perfkit.compare": 5,
    "perfkit.classroom": 5,
    "perfkit.fresh": 20,
}
EXERCISE = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
BUDGET = re.compile(r"budget\W+(?:to )?(\d+)")
CALL = re.compile("|".join(map(re.escape, SECONDS)))
ANSWERS = "<details>"


@dataclass(frozen=True)
class Pace:
    """What one notebook takes.

    Attributes:
        name: Without its ending.
        words: In its prose, folded answers included.
        runs: Seconds of its own runs.
        exercises: Seconds of the runs that its exercises ask for.
    """

    name: str
    words: int
    runs: float
    exercises: float

    @property
    def minutes(self):
        """All of it."""
        return self.words / WORDS_A_MINUTE + (self.runs + self.exercises) / 60


def pace(path):
    """Count what a notebook takes."""
    words, runs, exercises, last = 0, 0.0, 0.0, 0.0
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            taken = [_seconds(call) for call in ast.walk(ast.parse(cell.source))]
            runs += sum(taken)
            last = max(taken) or last
            continue
        words += len(cell.source.split())
        exercises += sum(_of(asked, last) for asked in exercises_of(cell.source))
    return Pace(path.stem, words, runs, exercises)


def exercises_of(source):
    """The numbered exercises of a cell of prose, without their answers."""
    return EXERCISE.findall(source.partition(ANSWERS)[0])


def _of(exercise, last):
    """What an exercise takes, where the last run before it took so much."""
    budget, called = BUDGET.search(exercise), CALL.search(exercise)
    if budget:
        return float(budget[1])
    return SECONDS[called[0]] if called else last


def _seconds(node):
    """What a call takes; 0 for what is none."""
    if not isinstance(node, ast.Call):
        return 0.0
    return SECONDS.get(ast.unparse(node.func), 0.0)


def executed(path):
    """Execute a notebook as it ships, in a folder of its own; give its seconds."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.glob("*.py"):
            shutil.copy(file, folder)
        began = time.monotonic()
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=1800, resources=resources).execute()
        return time.monotonic() - began


def write_map():
    """Write the minutes into the map, each in the row of its notebook."""
    text = MAP.read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        row = rf"(^\| \[{path.stem}\].*\| )\d+"
        new = rf"\g<1>{pace(path).minutes:.0f}"
        text, count = re.subn(row, new, text, flags=re.MULTILINE)
        if not count:
            row = f"| [{path.stem}](...) | ... | 0 |"
            sys.exit(f"{MAP.name} has no row of it: add `{row}`.")
    MAP.write_text(text, encoding="utf-8")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all if none")
    parser.add_argument("--execute", action="store_true", help="with their own runs")
    parser.add_argument("--map", action="store_true", help="write them into the map")
    options = parser.parse_args()
    if options.map:
        write_map()
    print(f"{'notebook':24} words  reading  runs  exercises  minutes")
    for path in NOTEBOOKS:
        if options.names and path.stem not in options.names:
            continue
        one = pace(path)
        if options.execute:
            one = Pace(one.name, one.words, executed(path), one.exercises)
        print(
            f"{one.name:24} {one.words:5} {one.words / WORDS_A_MINUTE:8.1f} "
            f"{one.runs / 60:5.1f} {one.exercises / 60:10.1f} {one.minutes:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
