import json
import os
from pathlib import Path

import pytest

from perfkit import lab
from perfkit.errors import BadFileError, BadParameterError
from perfkit.lab import first_url, open_lab


class Became(Exception):
    """Stands for the moment at which the process is replaced."""


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """Opens a lab; gives the command that it would have become, and the environment."""

    def execve(_, command, environment):
        raise Became(command, environment)

    def opened(root=tmp_path, **options):
        with pytest.raises(Became) as became:
            open_lab(root, state=tmp_path / "state", **options)
        command, environment = became.value.args
        flags = dict(word[2:].split("=", 1) for word in command if "=" in word)
        return flags, environment

    monkeypatch.setattr(os, "execve", execve)
    return opened


@pytest.mark.parametrize(
    ("file", "asked", "url"),
    [
        (lab.FIRST_NOTEBOOK, "", "/lab/tree/notebooks/00_start_here.ipynb"),
        ("notebooks/other.ipynb", "", "/lab/tree/notebooks"),
        ("other.ipynb", "", "/lab"),
        ("other.ipynb", "missing.ipynb", "/lab"),
    ],
    ids=["the notebook", "its folder", "the root", "the root without the asked"],
)
def test_what_is_there_of_the_first_notebook_is_shown(tmp_path, file, asked, url):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    assert first_url(tmp_path, asked or lab.FIRST_NOTEBOOK) == url


@pytest.mark.fault("lab", "path", sees="The notebook is open.")
def test_a_name_with_a_space_becomes_an_address(tmp_path):
    (tmp_path / "my notes.ipynb").touch()
    assert first_url(tmp_path, "my notes.ipynb") == "/lab/tree/my%20notes.ipynb"


@pytest.mark.parametrize("notebook", [lab.FIRST_NOTEBOOK, "00_start_here.ipynb"])
def test_of_a_checkout_the_copies_are_shown(tmp_path, opened, capsys, notebook):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / lab.FIRST_NOTEBOOK).write_text("{}")
    flags, _ = opened(notebook=notebook)
    assert flags["ServerApp.root_dir"] == str(tmp_path / "my-notebooks")
    assert flags["LabApp.default_url"] == "/lab/tree/00_start_here.ipynb"
    assert capsys.readouterr().out.startswith("Your notebooks are in my-notebooks/")


def test_the_options_reach_the_server(tmp_path, opened):
    flags, _ = opened(browser=False, port=9999)
    assert flags["ServerApp.root_dir"] == str(tmp_path)
    assert flags["ServerApp.open_browser"] == "False"
    assert flags["ServerApp.port"] == "9999"


def test_no_variable_about_jupyter_gets_through(tmp_path, opened, monkeypatch):
    monkeypatch.setenv("JUPYTER_TOKEN", "")
    monkeypatch.setenv("JUPYTER_PATH", "/elsewhere")
    monkeypatch.setenv("MINE", "kept")
    _, environment = opened()
    ours = {k: v for k, v in environment.items() if k.startswith("JUPYTER")}
    assert all(Path(v).is_relative_to(tmp_path / "state") for v in ours.values())
    assert environment["MINE"] == "kept"


def test_one_file_sets_the_budget_of_all_notebooks(
    tmp_path, opened, monkeypatch, capsys
):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    (tmp_path / "budget.txt").write_text("20\n")
    assert opened()[1]["PERFKIT_BUDGET"] == "20"
    assert "every run in all notebooks 20 s" in capsys.readouterr().out
    (tmp_path / "budget.txt").write_text("short\n")
    with pytest.raises(BadParameterError, match=r"budget\.txt is 'short'"):
        opened()
    monkeypatch.setenv("PERFKIT_BUDGET", "7")
    assert opened()[1]["PERFKIT_BUDGET"] == "7"
    capsys.readouterr()
    monkeypatch.setenv("PERFKIT_REPLAY", "1")
    assert opened()[1]["PERFKIT_BUDGET"] == "7"
    assert capsys.readouterr().out == "The notebooks show recordings instead of runs.\n"


def test_two_folders_do_not_share_what_is_open(tmp_path, opened):
    seen = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        seen.add(opened(tmp_path / name)[1]["JUPYTERLAB_WORKSPACES_DIR"])
    assert len(seen) == 2


def test_a_second_start_keeps_the_layout_of_the_first(tmp_path, opened):
    opened()
    (layout,) = (tmp_path / "state").rglob("*.jupyterlab-workspace")
    layout.write_text("mine")
    opened()
    assert layout.read_text() == "mine"


@pytest.mark.fault(
    "lab", "home", sees="Set XDG_STATE_HOME to a folder that you can write to."
)
def test_a_state_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(BadFileError, match="XDG_STATE_HOME"):
        open_lab(tmp_path, state=tmp_path / "state")


def test_every_part_that_is_left_out_exists_in_this_jupyterlab():
    import jupyterlab

    page = json.loads((lab._SETTINGS / "page_config.json").read_text())
    core = json.loads(
        (Path(jupyterlab.__file__).parent / "staging" / "package.json").read_text()
    )
    known = core["jupyterlab"]["extensions"]
    names = {name.partition(":")[0] for name in page["disabledExtensions"]}
    assert names <= set(known)
