"""Does anything grow from run to run, such as in a kernel that stays open for days?

    .venv/bin/python benchmarks/soak.py [RUNS] [--every N]
    .venv/bin/python benchmarks/soak.py --panel --hours 4

Makes short runs in one process, without TensorFlow's own work, and looks every so often
at this process and at its launcher. With ``--panel`` Run is pressed in a panel instead,
again and again, and its chart has to be drawn in each. Ends with 1 where descriptors,
threads, children or temporary files did not come back to what they were after the first
runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from multiprocessing import forkserver, util
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

# The first run that measures something loads it, with a thread of its own.
import scipy.special  # noqa: F401
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY)]

import perfkit  # noqa: E402
from perfkit import units  # noqa: E402
from perfkit.questions.session import Session  # noqa: E402
from tests.panel.runs import settle  # noqa: E402
from tests.questions.toy import Loops  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

# The first runs import what a run needs, and fill what is kept for the next.
FIRST = 2
# In which a slow machine, too, measures something.
BUDGET_S = 2.0
MEMORY = ("memory", "launcher's")
COUNTS = ("descriptors", "its descriptors", "threads", "children", "files")


def state(folder: Path) -> dict[str, int]:
    """What there is now: bytes of memory, and counts."""
    me = psutil.Process()
    # Python has no name for it.
    its = psutil.Process(forkserver._forkserver._forkserver_pid)
    held = me.open_files()
    return {
        "memory": me.memory_info().rss,
        "launcher's": its.memory_info().rss,
        # Matplotlib keeps some of its fonts open, and for each thread its own.
        "descriptors": me.num_fds() - sum(f.path.endswith(".ttf") for f in held),
        "its descriptors": its.num_fds(),
        "threads": me.num_threads(),
        "children": len(me.children(recursive=True)),
        "files": sum(path.is_file() for path in folder.rglob("*")),
    }


def in_session(found: Path) -> None:
    """Make one run."""
    for _ in Session(Loops(), budget=BUDGET_S, folder=found).events():
        pass


def in_panel(found: Path) -> Callable[[Path], None]:
    """Make a panel; what presses its Run, and waits until all is shown."""
    panel = perfkit.panel(Loops(), budget=BUDGET_S, folder=found)
    drawn: list[str] = []
    panel.view.chart.observe(lambda change: drawn.extend(change.new), "picture")

    def press(_: Path) -> None:
        drawn.clear()
        panel.view.run.click()
        panel.wait()
        settle(panel)
        said = panel.view.chart.state
        if not (drawn and said.startswith("Finished.")):
            raise SystemExit(f"The chart stood still: {said}")

    return press


def soak(
    run: Callable[[Path], None], every: int, folder: Path, over: Callable[[int], bool]
) -> dict[int, dict[str, int]]:
    """Make runs until it is over; what there was after how many of them."""
    seen, number = {}, 0
    while number <= FIRST or not over(number):
        run(folder / "found")
        number += 1
        # Each run has a file of its own, which nobody takes for left.
        for path in (folder / "found").iterdir():
            path.unlink()
        if number == FIRST or number % every == 0 or over(number):
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
    parser.add_argument("--hours", type=float, help="in place of so many runs")
    parser.add_argument("--panel", action="store_true")
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
        run = in_panel(Path(folder) / "found") if asked.panel else in_session
        end = time.monotonic() + 3600 * (asked.hours or 0.0)
        over = (lambda _: time.monotonic() > end) if asked.hours else asked.runs.__le__
        seen = soak(run, asked.every, Path(folder), over)
    Console(width=120).print(table(seen))
    return int(any(grown(seen)[name] for name in COUNTS))


if __name__ == "__main__":
    sys.exit(main())
