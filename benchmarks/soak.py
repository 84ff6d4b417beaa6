"""Does anything grow from run to run, such as in a kernel that stays open for days?

    .venv/bin/python benchmarks/soak.py [RUNS] [--every N]

Makes short runs in one process, without TensorFlow's own work, and looks every so often
at this process and at its launcher. Ends with 1 where descriptors, threads, children or
temporary files did not come back to what they were after the first runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from multiprocessing import forkserver, util
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY)]

from perfkit import units  # noqa: E402
from perfkit.experiments.session import Session  # noqa: E402
from tests.experiments.toy import Loops  # noqa: E402

# The first runs import what a run needs, and fill what is kept for the next.
FIRST = 2
# The shortest that a session takes.
BUDGET_S = 1.0
MEMORY = ("memory", "launcher's")
COUNTS = ("descriptors", "its descriptors", "threads", "children", "files")


def state(folder: Path) -> dict[str, int]:
    """What there is now: bytes of memory, and counts."""
    me = psutil.Process()
    # Python has no name for it.
    its = psutil.Process(forkserver._forkserver._forkserver_pid)
    return {
        "memory": me.memory_info().rss,
        "launcher's": its.memory_info().rss,
        "descriptors": me.num_fds(),
        "its descriptors": its.num_fds(),
        "threads": me.num_threads(),
        "children": len(me.children(recursive=True)),
        "files": sum(path.is_file() for path in folder.rglob("*")),
    }


def soak(runs: int, every: int, folder: Path) -> dict[int, dict[str, int]]:
    """Make so many runs; what there was after how many of them."""
    seen = {}
    for number in range(1, runs + 1):
        for _ in Session(Loops(), budget=BUDGET_S, folder=folder / "found").events():
            pass
        # Each run has a file of its own, which nobody takes for left.
        for path in (folder / "found").iterdir():
            path.unlink()
        if number in (FIRST, runs) or number % every == 0:
            seen[number] = state(folder)
    return seen


def grown(seen: dict[int, dict[str, int]]) -> dict[str, int]:
    """By how much each differs between the first look and the last."""
    first, last = seen[min(seen)], seen[max(seen)]
    return {name: last[name] - first[name] for name in first}


def table(seen: dict[int, dict[str, int]]) -> Table:
    """A row for each look, and last what has grown."""
    made = Table("after runs", *MEMORY, *COUNTS)
    for after, row in (*seen.items(), ("grown by", grown(seen))):
        sizes = [units.size(abs(row[name])) for name in MEMORY]
        signs = ["-" * (row[name] < 0) for name in MEMORY]
        cells = [sign + size for sign, size in zip(signs, sizes, strict=True)]
        made.add_row(str(after), *cells, *(str(row[name]) for name in COUNTS))
    return made


def main() -> int:
    """Make the runs, and show what grew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="?", type=int, default=500)
    parser.add_argument("--every", type=int, default=50)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as state,
        tempfile.TemporaryDirectory() as folder,
    ):
        # What such runs have seen is nothing that the machine's own should know.
        os.environ["XDG_STATE_HOME"] = state
        # Python removes its own folder, with a socket, at its very end.
        util.get_temp_dir()
        # Whatever is left by a run lies here.
        tempfile.tempdir = folder
        seen = soak(max(FIRST + 1, asked.runs), asked.every, Path(folder))
    Console(width=120).print(table(seen))
    return int(any(grown(seen)[name] for name in COUNTS))


if __name__ == "__main__":
    sys.exit(main())
