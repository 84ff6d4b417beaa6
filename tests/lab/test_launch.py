import os
from pathlib import Path

import pytest

from perfkit.errors import BadFileError, BadParameterError
from perfkit.lab import open_lab


class Became(Exception):
    """Stands for the moment at which the process is replaced."""


@pytest.fixture
def state(monkeypatch, tmp_path):
    """Where JupyterLab keeps settings and workspaces."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def opened(monkeypatch, tmp_path, state):
    """Opens a lab; gives the command that it would have become, and the environment."""

    def execve(_, command, environment):
        raise Became(command, environment)

    def opened(root=tmp_path, **options):
        with pytest.raises(Became) as became:
            open_lab(root, **options)
        command, environment = became.value.args
        flags = dict(word[2:].split("=", 1) for word in command if "=" in word)
        return flags, environment

    monkeypatch.setattr(os, "execve", execve)
    return opened


@pytest.mark.fault("lab", "path", sees="The lab opens its first notebook.")
def test_a_folder_with_a_space_is_shown_with_its_first_notebook(tmp_path, opened):
    notebooks = tmp_path / "my course" / "notebooks"
    notebooks.mkdir(parents=True)
    (notebooks / "00_start_here.ipynb").write_text("{}")
    flags, _ = opened(notebooks.parent)
    assert flags["ServerApp.root_dir"] == str(tmp_path / "my course" / "my-notebooks")
    assert flags["LabApp.default_url"] == "/lab/tree/00_start_here.ipynb"
    assert opened()[0]["LabApp.default_url"] == "/lab"


def test_no_variable_about_jupyter_gets_through(tmp_path, opened, monkeypatch):
    monkeypatch.setenv("JUPYTER_TOKEN", "")
    monkeypatch.setenv("JUPYTER_PATH", "/elsewhere")
    monkeypatch.setenv("MINE", "kept")
    _, environment = opened()
    ours = {k: v for k, v in environment.items() if k.startswith("JUPYTER")}
    assert all(Path(v).is_relative_to(tmp_path / "state") for v in ours.values())
    assert environment["MINE"] == "kept"


def test_tensorflow_is_silent_about_what_is_no_fault(opened, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    assert opened()[1]["TF_CPP_MIN_LOG_LEVEL"] == "1"
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    assert opened()[1]["TF_CPP_MIN_LOG_LEVEL"] == "0"


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


@pytest.mark.fault("lab", "home", sees="perfkit asks you to set XDG_STATE_HOME.")
def test_a_state_folder_that_cannot_be_made_is_named(tmp_path, state):
    state.touch()
    with pytest.raises(BadFileError, match="XDG_STATE_HOME"):
        open_lab(tmp_path)
