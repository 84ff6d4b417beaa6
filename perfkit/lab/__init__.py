"""JupyterLab as a workshop wants it, and the copies of the notebooks that it shows.

It starts without touching the user's own Jupyter, by becoming a JupyterLab whose
configuration, settings, workspaces and data live in a folder of the kit's own. No
``JUPYTER*`` variable gets through to it: one of them may turn the token off or bring in
another installation's extensions.

Running a notebook changes its file, and a changed file is in the way of the next
``git pull``. So the lab shows a folder that git ignores, with a copy of each notebook.
A copy in which a cell was changed is the learner's, and is never written to.

``settings/`` holds what JupyterLab itself reads: ``overrides.json`` changes defaults
(no news, no update check, the table of contents in front), ``page_config.json`` leaves
out whole parts (announcements, extension manager, terminals).
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from perfkit.engine.alone import private_folder
from perfkit.errors import BadFileError, need
from perfkit.findings.store import write_whole
from perfkit.questions.replay import REPLAY_VARIABLE
from perfkit.questions.runs import BUDGET_VARIABLE, seconds

FIRST_NOTEBOOK = "notebooks/00_start_here.ipynb"
# Beside the folder of the notebooks: the seconds of every run, for a whole class.
BUDGET_FILE = "budget.txt"
_HERE = Path(__file__).resolve().parent
_SETTINGS = _HERE / "settings"
# What JupyterLab calls the file of the workspace that it opens by default.
_WORKSPACE = "default-37a8.jupyterlab-workspace"
COPIES = "my-notebooks"
# Else a cell that imports TensorFlow begins with lines in red that tell of no fault.
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "1"}
# Which files come along with the notebooks.
_BESIDE = ("*.md", "*.py", "pictures/*.svg")
# Which version each copy was made from, by the copy's name.
_MADE_FROM = ".made-from.json"


def open_lab(root: Path, *, browser: bool = True, port: int | None = None) -> NoReturn:
    """Become a JupyterLab server for the files under ``root``; does not return.

    In a checkout of perfkit it shows copies of the notebooks, the first of them open;
    see ``refresh``. Where ``root`` has a ``budget.txt``, its seconds are the budget of
    every run that is given none, unless PERFKIT_BUDGET is set already.

    Args:
        root: The folder that JupyterLab shows.
        browser: Whether to open a browser on it.
        port: The first port to try; the next free one is taken. None for 8888.

    Raises:
        BadFileError: ``root`` is no folder, or something cannot be written.
        BadParameterError: ``budget.txt`` holds no number of seconds.
        MissingPartError: JupyterLab is not installed.
    """
    need("jupyterlab", "The lab", "lab")
    root = root.expanduser().resolve()
    if not root.is_dir():
        raise BadFileError(f"{root} is not a folder; give the one with the notebooks.")
    budget = _class_budget(root / BUDGET_FILE)
    if os.environ.get(REPLAY_VARIABLE):
        print("The notebooks show recordings instead of runs.")
    shipped, url = root / FIRST_NOTEBOOK, "/lab"
    if shipped.is_file():
        root, url = root / COPIES, f"/lab/tree/{shipped.name}"
        for sentence in refresh(shipped.parent, root):
            print(sentence)
    folders = _make_folders(root)
    command = _command(root, url, browser=browser, port=port)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    ours = budget | {k: str(v) for k, v in folders.items()}
    sys.stdout.flush()
    os.execve(sys.executable, command, _QUIET | inherited | ours)


def _class_budget(file: Path) -> dict[str, str]:
    """The variable that a file sets for all notebooks, if there is that file."""
    if BUDGET_VARIABLE in os.environ or not file.is_file():
        return {}
    # Editors on Windows begin a file with a mark of its encoding.
    text = file.read_text(encoding="utf-8-sig", errors="replace").strip()
    budget_s = seconds(BUDGET_FILE, text)
    if not os.environ.get(REPLAY_VARIABLE):
        print(
            f"{BUDGET_FILE} gives every run in all notebooks {budget_s:g} s; delete "
            "that file for the usual budgets."
        )
    return {BUDGET_VARIABLE: text}


def _command(root: Path, url: str, *, browser: bool, port: int | None) -> list[str]:
    options = {
        "config": _HERE / "jupyter_server_config.py",
        "LabApp.app_settings_dir": _SETTINGS,
        "ServerApp.root_dir": root,
        "ServerApp.open_browser": browser,
        "ServerApp.port": 8888 if port is None else port,
        "LabApp.default_url": url,
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "jupyterlab", *flags]


def _make_folders(root: Path) -> Mapping[str, Path]:
    """Make where Jupyter keeps what, by the variable that tells it so.

    On the first start it gets the layout of the first screen.
    """
    import platformdirs

    state = platformdirs.user_state_path("perfkit", appauthor=False) / "lab"
    # What is open in one folder must not come up in another one.
    workspace = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    folders = {
        "JUPYTER_CONFIG_DIR": state / "config",
        "JUPYTER_DATA_DIR": state / "data",
        "JUPYTERLAB_SETTINGS_DIR": state / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": state / "workspaces" / workspace,
    }
    try:
        for folder in folders.values():
            private_folder(folder)
        layout = folders["JUPYTERLAB_WORKSPACES_DIR"] / _WORKSPACE
        if not layout.exists():
            shutil.copyfile(_SETTINGS / "workspace.json", layout)
    except OSError as error:
        raise BadFileError(
            f"Cannot write to {error.filename} ({error.strerror}), where the lab keeps "
            "its settings; set XDG_STATE_HOME to a folder that you can write to."
        ) from error
    return folders


def refresh(shipped: Path, copies: Path) -> tuple[str, ...]:
    """Bring the copies up to the shipped notebooks.

    A notebook that has no copy gets one. A copy that was run at most is replaced where
    the shipped notebook is newer; one that was changed stays. It gives what a learner
    has to know, a sentence each.

    Raises:
        BadFileError: The copies cannot be written.
    """
    try:
        first = not copies.is_dir()
        copies.mkdir(exist_ok=True)
        with contextlib.ExitStack() as stack:
            # Held, so that two labs that start at once do not write one file.
            lock = os.open(copies, os.O_RDONLY)
            stack.callback(os.close, lock)
            # Some network folders cannot be held.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            sentences = tuple(_refreshed(shipped, copies))
    except OSError as error:
        raise BadFileError(
            f"Cannot write to {error.filename or copies} ({error.strerror}), where the "
            f"lab keeps the notebooks that you work in; make {copies.parent} a folder "
            "that you can write to, or copy it to one."
        ) from error
    where = f"Your notebooks are in {COPIES}/, which git leaves alone."
    return (where, *sentences) if first else sentences


def _refreshed(shipped: Path, copies: Path) -> Iterator[str]:
    before = _read_versions(copies)
    made_from = dict(before)
    # What notebooks link to comes along, and the training that they speed up.
    beside = itertools.chain(*map(shipped.glob, _BESIDE))
    for path in sorted((*shipped.rglob("*.ipynb"), *beside)):
        name = path.relative_to(shipped)
        # Hidden folders are Jupyter's own.
        if any(part.startswith(".") for part in name.parts):
            continue
        if sentence := _put(path.read_bytes(), name, copies, made_from):
            yield sentence
    if made_from != before:
        write_whole(copies / _MADE_FROM, json.dumps(made_from, indent=1).encode())


def _put(data: bytes, name: Path, copies: Path, made_from: dict[str, str]) -> str:
    """Put a notebook among the copies, but never in the place of a changed one.

    What a learner has to know of that is a sentence, "" for nothing.
    """
    version, copy, key = _version(data), copies / name, name.as_posix()
    before = _version(copy.read_bytes()) if copy.exists() else None
    if before not in (None, version, made_from.get(key)):
        if made_from.get(key) == version:
            return ""
        return (
            f"There is a newer {name}. Your changed copy stays as it is: rename it, "
            "and the next start brings the newer one."
        )
    made_from[key] = version
    if before == version:
        return ""
    write_whole(copy, data)
    return f"Replaced by a newer {name}: yours was unchanged." if before else ""


def _read_versions(copies: Path) -> dict[str, str]:
    """Which version each copy was made from; one of which it is not known is kept."""
    try:
        versions = json.loads((copies / _MADE_FROM).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return versions if isinstance(versions, dict) else {}


def _version(data: bytes) -> str:
    """What was written in a notebook's cells: running it leaves that as it is."""
    try:
        cells = json.loads(data)["cells"]
        # Running the last cell adds an empty one.
        sources = [
            (cell["cell_type"], text)
            for cell in cells
            if (text := "".join(cell["source"])).strip()
        ]
    except (ValueError, LookupError, TypeError):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()
