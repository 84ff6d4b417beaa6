"""How does JupyterLab start without touching the user's own Jupyter?

By becoming a JupyterLab whose configuration, settings, workspaces and data live in a
folder of the kit's own. No ``JUPYTER*`` variable gets through to it: one of them may
turn the token off or bring in another installation's extensions.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from perfkit.errors import BadFileError, need
from perfkit.experiments.replay import REPLAY_VARIABLE
from perfkit.lab import copies
from perfkit.measure.alone import private_folder
from perfkit.runs import BUDGET_VARIABLE, seconds

FIRST_NOTEBOOK = "notebooks/00_start_here.ipynb"
# Beside the folder of the notebooks: the seconds of every run, for a whole class.
BUDGET_FILE = "budget.txt"
_HERE = Path(__file__).resolve().parent
_SETTINGS = _HERE / "settings"
# What JupyterLab calls the file of the workspace that it opens by default.
_WORKSPACE = "default-37a8.jupyterlab-workspace"


def open_lab(
    root: Path,
    *,
    notebook: str = FIRST_NOTEBOOK,
    browser: bool = True,
    port: int | None = None,
    state: Path | None = None,
) -> NoReturn:
    """Become a JupyterLab server for the files under ``root``; does not return.

    In a checkout of perfkit it shows copies of the notebooks; see ``copies``. Where
    ``root`` has a ``budget.txt``, its seconds are the budget of every run that is given
    none, unless PERFKIT_BUDGET is set already.

    Args:
        root: The folder that JupyterLab shows.
        notebook: What is open at the start, relative to ``root``. Where it does not
            exist, its folder is shown, or ``root``.
        browser: Whether to open a browser on it.
        port: The first port to try; the next free one is taken. None for 8888.
        state: Where JupyterLab keeps settings and workspaces; None for the user's
            state folder.

    Raises:
        BadFileError: ``root`` is no folder, or something cannot be written.
        BadParameterError: ``budget.txt`` holds no number of seconds.
        MissingPartError: JupyterLab is not installed.
    """
    need("jupyterlab", "The lab", "lab")
    root = root.expanduser().resolve()
    if not root.is_dir():
        raise BadFileError(f"{root} is no folder; give the one with the notebooks.")
    budget = _class_budget(root / BUDGET_FILE)
    if os.environ.get(REPLAY_VARIABLE):
        print("Recordings are shown in place of runs.")
    if (root / FIRST_NOTEBOOK).is_file():
        shipped, root = root / FIRST_NOTEBOOK, root / copies.FOLDER
        for sentence in copies.refresh(shipped.parent, root):
            print(sentence)
        notebook = notebook.removeprefix(f"{shipped.parent.name}/")
    folders = _folders(root, state or _state_folder())
    _make(folders)
    command = _command(root, first_url(root, notebook), browser=browser, port=port)
    others = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    ours = budget | {k: str(v) for k, v in folders.items()}
    sys.stdout.flush()
    os.execve(sys.executable, command, others | ours)


def _class_budget(file: Path) -> dict[str, str]:
    """The variable that a file sets for all notebooks, if there is that file."""
    if BUDGET_VARIABLE in os.environ or not file.is_file():
        return {}
    # Editors on Windows begin a file with a mark of its encoding.
    text = file.read_text(encoding="utf-8-sig", errors="replace").strip()
    each = seconds(BUDGET_FILE, text)
    if not os.environ.get(REPLAY_VARIABLE):
        print(
            f"A run has a budget of {each:g} s in all notebooks, as {BUDGET_FILE} "
            "says; delete that file for the usual budgets."
        )
    return {BUDGET_VARIABLE: text}


def first_url(root: Path, notebook: str) -> str:
    """The address, below the server's own, of what is open at the start."""
    for path in (Path(notebook), Path(notebook).parent):
        if (root / path).exists() and path.parts:
            return f"/lab/tree/{quote(path.as_posix())}"
    return "/lab"


def _state_folder() -> Path:
    import platformdirs

    return platformdirs.user_state_path("perfkit", appauthor=False) / "lab"


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


def _folders(root: Path, state: Path) -> Mapping[str, Path]:
    """Where Jupyter keeps what, by the variable that tells it so."""
    # What is open in one folder must not come up in another one.
    workspace = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    return {
        "JUPYTER_CONFIG_DIR": state / "config",
        "JUPYTER_DATA_DIR": state / "data",
        "JUPYTERLAB_SETTINGS_DIR": state / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": state / "workspaces" / workspace,
    }


def _make(folders: Mapping[str, Path]) -> None:
    """Make the folders, and on the first start the layout of the first screen."""
    try:
        for folder in folders.values():
            private_folder(folder)
        workspace = folders["JUPYTERLAB_WORKSPACES_DIR"] / _WORKSPACE
        if not workspace.exists():
            shutil.copyfile(_SETTINGS / "workspace.json", workspace)
    except OSError as error:
        raise BadFileError(
            f"Cannot write to {error.filename} ({error.strerror}), where the lab keeps "
            "its settings; set XDG_STATE_HOME to a folder that you can write to."
        ) from error
