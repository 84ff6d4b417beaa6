import json
import os
from pathlib import Path

import pytest

from perfkit.errors import BadFileError, BadParameterError
from perfkit.lab import launch
from perfkit.lab.launch import first_url, open_lab


class Became(Exception):
    """Stands for the moment at which the process is replaced."""


@pytest.fixture
def became(monkeypatch):
    """What ``open_lab`` would have become: its command and its environment."""
    seen = {}

    def execve(_, command, environment):
        seen.update(command=command, environment=environment)
        raise Became

    monkeypatch.setattr(os, "execve", execve)
    return seen


def flags(became):
    return dict(word[2:].split("=", 1) for word in became["command"] if "=" in word)


def test_the_first_notebook_is_open(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_start_here.ipynb").touch()
    url = first_url(tmp_path, launch.FIRST_NOTEBOOK)
    assert url == "/lab/tree/notebooks/00_start_here.ipynb"


@pytest.mark.parametrize("notebook", [launch.FIRST_NOTEBOOK, "00_start_here.ipynb"])
def test_of_a_checkout_the_copies_are_shown(tmp_path, became, capsys, notebook):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / launch.FIRST_NOTEBOOK).write_text("{}")
    with pytest.raises(Became):
        open_lab(tmp_path, notebook=notebook, state=tmp_path / "state")
    assert flags(became)["ServerApp.root_dir"] == str(tmp_path / "my-notebooks")
    assert flags(became)["LabApp.default_url"] == "/lab/tree/00_start_here.ipynb"
    assert capsys.readouterr().out.startswith("Your notebooks are in my-notebooks/")


def test_without_the_notebook_its_folder_is_shown(tmp_path):
    (tmp_path / "notebooks").mkdir()
    assert first_url(tmp_path, launch.FIRST_NOTEBOOK) == "/lab/tree/notebooks"


def test_without_its_folder_the_root_is_shown(tmp_path):
    assert first_url(tmp_path, launch.FIRST_NOTEBOOK) == "/lab"
    assert first_url(tmp_path, "missing.ipynb") == "/lab"


@pytest.mark.fault("lab", "path", sees="The notebook is open.")
def test_a_name_with_a_space_becomes_an_address(tmp_path):
    (tmp_path / "my notes.ipynb").touch()
    assert first_url(tmp_path, "my notes.ipynb") == "/lab/tree/my%20notes.ipynb"


def test_the_options_reach_the_server(tmp_path, became):
    with pytest.raises(Became):
        open_lab(tmp_path, browser=False, port=9999, state=tmp_path / "state")
    assert flags(became)["ServerApp.root_dir"] == str(tmp_path)
    assert flags(became)["ServerApp.open_browser"] == "False"
    assert flags(became)["ServerApp.port"] == "9999"


def test_no_variable_about_jupyter_gets_through(tmp_path, became, monkeypatch):
    monkeypatch.setenv("JUPYTER_TOKEN", "")
    monkeypatch.setenv("JUPYTER_PATH", "/elsewhere")
    monkeypatch.setenv("MINE", "kept")
    with pytest.raises(Became):
        open_lab(tmp_path, state=tmp_path / "state")
    ours = {k: v for k, v in became["environment"].items() if k.startswith("JUPYTER")}
    assert all(Path(v).is_relative_to(tmp_path / "state") for v in ours.values())
    assert became["environment"]["MINE"] == "kept"


def test_one_file_sets_the_budget_of_all_notebooks(
    tmp_path, became, monkeypatch, capsys
):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    (tmp_path / "budget.txt").write_text("20\n")
    with pytest.raises(Became):
        open_lab(tmp_path, state=tmp_path / "state")
    assert became["environment"]["PERFKIT_BUDGET"] == "20"
    assert "a budget of 20 s in all notebooks" in capsys.readouterr().out
    monkeypatch.setenv("PERFKIT_BUDGET", "7")
    with pytest.raises(Became):
        open_lab(tmp_path, state=tmp_path / "state")
    assert became["environment"]["PERFKIT_BUDGET"] == "7"


def test_where_recordings_are_shown_no_budget_is_said(
    tmp_path, became, monkeypatch, capsys
):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    monkeypatch.setenv("PERFKIT_REPLAY", "1")
    (tmp_path / "budget.txt").write_text("20\n")
    with pytest.raises(Became):
        open_lab(tmp_path, state=tmp_path / "state")
    assert became["environment"]["PERFKIT_BUDGET"] == "20"
    assert capsys.readouterr().out == "Recordings are shown in place of runs.\n"


def test_a_budget_that_is_none_is_refused(tmp_path, became, monkeypatch):
    monkeypatch.delenv("PERFKIT_BUDGET", raising=False)
    (tmp_path / "budget.txt").write_text("short\n")
    with pytest.raises(BadParameterError, match=r"budget\.txt is 'short'"):
        open_lab(tmp_path, state=tmp_path / "state")


def test_two_folders_do_not_share_what_is_open(tmp_path, became):
    seen = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with pytest.raises(Became):
            open_lab(tmp_path / name, state=tmp_path / "state")
        seen.add(became["environment"]["JUPYTERLAB_WORKSPACES_DIR"])
    assert len(seen) == 2


def test_a_second_start_keeps_the_layout_of_the_first(tmp_path, became):
    with pytest.raises(Became):
        open_lab(tmp_path, state=tmp_path / "state")
    (layout,) = (tmp_path / "state").rglob("*.jupyterlab-workspace")
    layout.write_text("mine")
    with pytest.raises(Became):
        open_lab(tmp_path, state=tmp_path / "state")
    assert layout.read_text() == "mine"


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(BadFileError, match="is no folder"):
        open_lab(tmp_path / "missing", state=tmp_path / "state")


@pytest.mark.fault(
    "lab", "home", sees="Set XDG_STATE_HOME to a folder that you can write to."
)
def test_a_state_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(BadFileError, match="XDG_STATE_HOME"):
        open_lab(tmp_path, state=tmp_path / "state")


def test_every_part_that_is_left_out_exists_in_this_jupyterlab():
    import jupyterlab

    page = json.loads((launch._SETTINGS / "page_config.json").read_text())
    core = json.loads(
        (Path(jupyterlab.__file__).parent / "staging" / "package.json").read_text()
    )
    known = core["jupyterlab"]["extensions"]
    names = {name.partition(":")[0] for name in page["disabledExtensions"]}
    assert names <= set(known)
