"""Does perfkit work in an environment that has another TensorFlow, and leave it alone?

    python benchmarks/environments.py [--tensorflow 2.16] [--python 3.11] [--newest]
    python benchmarks/environments.py --hosted [colab] [kaggle] [vscode] [notebook]

This needs a checkout, uv, the network, a GB of disk and some minutes for each
environment. Each gets that TensorFlow and what came with it in its day (``--newest``:
what comes with it today), then perfkit's wheel by pip, which may change no package.
Then the command asks data-pipeline and diagnoses a training of ``tests/guilty``, with
small budgets: both have to end well, and no trial may crash. What they claim is not
judged.

``--hosted`` tries notebooks instead: each environment gets the packages of a place
where people have theirs, as far as the index of packages has them, then perfkit and
anywidget by pip. The cells of ``binder/colab.ipynb`` run in a kernel of it, and after
them a run and a panel.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

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
# By place: Python, and what is there before perfkit comes. Of Colab as
# googlecolab/backend-info said on 2026-08-19; of Kaggle as Kaggle/docker-python did on
# 2026-08-12, which adds to Colab's image of May.
HOSTS = {
    "colab": (
        "3.13",
        *("tensorflow==2.20.0", "keras==3.13.2", "numpy==2.1.3", "scipy==1.16.3"),
        *("ipython==7.34.0", "ipykernel==6.17.1", "ipywidgets==7.7.1"),
        *("anywidget==0.9.21", "traitlets==5.7.1", "jupyter_client==7.4.9"),
        *("tornado==6.5.7", "pandas==2.2.3", "matplotlib==3.10.0", "pillow==11.3.0"),
        *("psutil==5.9.5", "rich==13.9.4", "nh3==0.3.6", "nbconvert==7.17.1"),
        *("cloudpickle==3.1.2", "greenlet==3.5.5", "setuptools==75.2.0"),
    ),
    "kaggle": (
        "3.12",
        *("tensorflow==2.20.0", "keras==3.13.2", "numpy==2.0.2", "scipy==1.16.3"),
        *("ipython==7.34.0", "ipykernel==6.17.1", "ipywidgets==8.1.5"),
        *("anywidget==0.9.21", "traitlets==5.7.1", "jupyter_client==7.4.9"),
        *("jupyter_server==2.12.5", "nbconvert==6.4.5", "setuptools==75.2.0"),
    ),
    "vscode": ("3.11", "tensorflow-cpu==2.20.*", "ipykernel"),
    "notebook": ("3.12", "tensorflow-cpu", "notebook>=7"),
}
SHOWN = (
    *("tensorflow", "tensorflow_cpu", "numpy", "ipython", "ipykernel"),
    *("ipywidgets", "anywidget"),
)
# After the cells of the notebook: a run, and a panel whose Run is pressed.
MORE_CELLS = (
    'perfkit.run("vectorised", budget=5)',
    'panel = perfkit.panel("vectorised", budget=5)\npanel',
    "panel.result()",
)
VIEW = "application/vnd.jupyter.widget-view+json"


def main():
    """Try each environment, print a row of it, and fail where one does not hold."""
    options = asked()
    with tempfile.TemporaryDirectory(prefix="perfkit-environments-") as folder:
        wheel = built(Path(folder))
        if options.hosted is not None:
            hosts = options.hosted or list(HOSTS)
            return int(not all([hosted(Path(folder), wheel, host) for host in hosts]))
        print_line(COLUMNS)
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
    parser.add_argument("--hosted", nargs="*", choices=HOSTS, help="notebooks instead")
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

    def make(self, python, *packages):
        """Make it with packages; say in short why not, "" where it is there."""
        made = run("uv", "venv", "--seed", "--python", python, self.folder)
        if made.returncode:
            return "no such Python here"
        installed = run("uv", "pip", "install", "--python", self.python, *packages)
        if installed.returncode:
            print(installed.stderr.strip(), file=sys.stderr)
            return "not to be had"
        return ""

    def packages(self):
        """Versions by name."""
        told = run(self.python, "-m", "pip", "list", "--format", "json").stdout
        return {one["name"].lower(): one["version"] for one in json.loads(told)}

    def add(self, *packages):
        """Install perfkit as a user does; "" or in short why not."""
        done = run(self.python, "-m", "pip", "install", *packages)
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

    def cells(self, sources):
        """Run cells in a kernel of it, in its folder; the notebook with its outputs."""
        install = ("ipykernel", "install", "--prefix", self.folder, "--name", "hosted")
        run(self.python, "-m", *install)
        os.environ["JUPYTER_PATH"] = str(self.folder / "share" / "jupyter")
        notebook = nbformat.v4.new_notebook(
            cells=list(map(nbformat.v4.new_code_cell, sources))
        )
        where = {"metadata": {"path": str(self.folder)}}
        client = NotebookClient(
            notebook, kernel_name="hosted", timeout=LONGEST_S, resources=where
        )
        try:
            client.execute()
        except CellExecutionError as error:
            print(error, file=sys.stderr)
        return notebook


def tried(folder, wheel, tensorflow, python, options):
    """Try one environment, print its row; whether all of it holds or cannot be had."""
    here = Environment(folder / f"{tensorflow}-{python}")
    until = [] if options.newest else ["--exclude-newer", DAYS[tensorflow]]
    if missing := here.make(python, *until, f"tensorflow=={tensorflow}.*"):
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


def hosted(folder, wheel, host):
    """Try the notebooks of one place, print what came out; whether all of it holds."""
    python, *packages = HOSTS[host]
    here = Environment(folder / host)
    if missing := here.make(python, *packages):
        print(f"{host}: Python {python}: {missing}", flush=True)
        return False
    before = here.packages()
    refused = here.add("anywidget", wheel)
    after = here.packages()
    changed = [f"{n} {after.get(n)}" for n, v in before.items() if after.get(n) != v]
    names = [f"{n} {after[n]}" for n in SHOWN if n in after]
    print(f"{host}: Python {python}, {', '.join(names)}")
    print(f"  changed: {refused or ', '.join(changed) or 'nothing'}", flush=True)
    if refused:
        return False
    colab = nbformat.read(ROOT / "binder" / "colab.ipynb", as_version=4)
    sources = [cell.source for cell in colab.cells if cell.cell_type == "code"]
    # What it installs is there.
    sources[0] = "import perfkit"
    notebook = here.cells([*sources, *MORE_CELLS])
    results = [came_of(cell) for cell in notebook.cells]
    for cell, result in zip(notebook.cells, results, strict=True):
        print(f"  {cell.source.splitlines()[0]}: {result}", flush=True)
    shutil.rmtree(here.folder)
    return not any(result.startswith(("error", "not run")) for result in results)


def came_of(cell):
    """What the outputs of a cell show, in short."""
    if cell.execution_count is None:
        return "not run"
    kinds = [output.output_type for output in cell.outputs]
    if "error" in kinds:
        return f"error {cell.outputs[kinds.index('error')].ename}"
    shown = [output.data for output in cell.outputs if "data" in output]
    said = ["a panel"] if any(VIEW in data for data in shown) else []
    # The live chart of a run leaves an empty place.
    said += ["a live chart, gone"] if {} in shown else []
    said += ["an answer"] if any("<" in d.get("text/html", "") for d in shown) else []
    said += [f"stderr: {o.text}" for o in cell.outputs if o.get("name") == "stderr"]
    return ", ".join(said) or "ok"


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
