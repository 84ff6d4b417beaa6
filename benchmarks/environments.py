"""Does perfkit work in an environment that has another TensorFlow, and leave it alone?

    python benchmarks/environments.py [--tensorflow 2.16] [--python 3.11] [--newest]

This needs a checkout, uv, the network, a GB of disk and some minutes for each
environment. Each gets that TensorFlow and what came with it in its day (``--newest``:
what comes with it today), then perfkit's wheel by pip, which may change no package.
Then the command asks data-pipeline and diagnoses a training of ``tests/guilty``, with
small budgets: both have to end well, and no trial may crash. What they claim is not
judged.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Some weeks after each came out: what a user installed then.
DAYS = {
    "2.16": "2024-04-15",
    "2.17": "2024-08-15",
    "2.18": "2024-11-30",
    "2.19": "2025-04-15",
    "2.20": "2025-09-15",
    "2.21": "2026-05-01",
}
WIDTHS = (10, 7, 8, 8, 18, 18, 18)
COLUMNS = (
    *("TensorFlow", "Python", "Keras", "NumPy"),
    *("changed", "data-pipeline", "diagnosis"),
)
LONGEST_S = 900


def main():
    """Try each environment, print a row of it, and fail where one does not hold."""
    options = asked()
    print_line(COLUMNS)
    with tempfile.TemporaryDirectory(prefix="perfkit-environments-") as folder:
        wheel = built(Path(folder))
        rows = [
            tried(Path(folder), wheel, tensorflow, python, options)
            for tensorflow in options.tensorflow
            for python in options.python
        ]
    return int(not all(rows))


def asked():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tensorflow", nargs="+", default=list(DAYS), choices=DAYS)
    parser.add_argument("--python", nargs="+", default=["3.11", "3.12", "3.13"])
    parser.add_argument(
        "--newest", action="store_true", help="what comes with it today"
    )
    parser.add_argument(
        "--training", default="callback_per_batch", help="of tests/guilty"
    )
    parser.add_argument("--budget", type=float, default=60.0, help="seconds each")
    options = parser.parse_args()
    if shutil.which("uv") is None:
        parser.error("uv is not installed: pip install uv")
    return options


@dataclass(frozen=True)
class Environment:
    """An environment in a folder of its own, and what is done in it."""

    folder: Path

    @property
    def python(self):
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def make(self, python, tensorflow, *, newest):
        """Make it with a TensorFlow; say in short why not, "" where it is there."""
        made = run("uv", "venv", "--seed", "--python", python, self.folder)
        if made.returncode:
            return "no such Python here"
        until = [] if newest else ["--exclude-newer", DAYS[tensorflow]]
        wanted = f"tensorflow=={tensorflow}.*"
        install = ("uv", "pip", "install", "--python", self.python)
        return "not to be had" if run(*install, *until, wanted).returncode else ""

    def packages(self):
        """Versions by name."""
        told = run(self.python, "-m", "pip", "list", "--format", "json").stdout
        return {one["name"].lower(): one["version"] for one in json.loads(told)}

    def add(self, wheel):
        """Install perfkit as a user does; "" or in short why not."""
        done = run(self.python, "-m", "pip", "install", wheel)
        return "pip refused" if done.returncode else ""

    def command(self, *arguments):
        """Run a command of perfkit; "ok", or in short what went wrong."""
        file = self.folder / "found.json"
        perfkit = self.folder / "bin" / "perfkit"
        done = run(perfkit, *arguments, "--json", file, cwd=self.folder)
        if done.returncode:
            print(done.stderr.strip(), file=sys.stderr)
            return f"exit code {done.returncode}"
        trials = json.loads(file.read_text())["trials"]
        bad = [t for t in trials if t["outcome"] not in ("completed", "stopped")]
        for trial in bad:
            print(f"{trial['variant']}: {trial['message']}", file=sys.stderr)
        return f"{len(bad)} of {len(trials)} trials" if bad else "ok"


def tried(folder, wheel, tensorflow, python, options):
    """Try one environment, print its row; whether all of it holds or cannot be had."""
    here = Environment(folder / f"{tensorflow}-{python}")
    if missing := here.make(python, tensorflow, newest=options.newest):
        print_line((tensorflow, python, missing))
        return True
    before = here.packages()
    refused = here.add(wheel)
    after = here.packages()
    changed = [f"{n} {after.get(n)}" for n, v in before.items() if after.get(n) != v]
    budget = ("--budget", f"{options.budget:g}")
    training = ROOT / "tests" / "guilty" / f"{options.training}.py"
    told = [refused or ", ".join(changed) or "nothing"]
    if not refused:
        told.append(here.command("run", "data-pipeline", *budget))
        told.append(here.command("diagnose", training, *budget))
    print_line((tensorflow, python, before["keras"], before["numpy"], *told))
    shutil.rmtree(here.folder)
    return told == ["nothing", "ok", "ok"]


def built(folder):
    """Build the wheel of this checkout."""
    done = run("uv", "build", "--wheel", "--out-dir", folder, ROOT)
    if done.returncode:
        sys.exit(f"The wheel cannot be built: {done.stderr.strip()}")
    return next(folder.glob("perfkit-*.whl"))


def run(*command, cwd=None):
    """Run a command to its end; its output is kept."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )


def print_line(cells):
    """Print a row."""
    padded = (f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=False))
    print("  ".join(padded), flush=True)


if __name__ == "__main__":
    sys.exit(main())
