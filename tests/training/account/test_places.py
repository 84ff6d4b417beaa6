"""What is the user's code, and what the frames of libraries do."""

import json.decoder
import os
import sys
from pathlib import Path

import numpy as np

import perfkit
from perfkit.training.account.places import is_own


def touched(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


FILES = {
    "train.py": True,
    "helpers/layers.py": True,
    # An editable install lies wherever it was checked out.
    "elsewhere/src/mine/data.py": True,
    "lib/site-packages/keras/x.py": False,
    "lib/dist-packages/y.py": False,
    "__autograph_generated_fileab12.py": False,
}
NO_FILES = {
    "<ipython-input-3-0123abcd>": True,
    os.path.join(os.sep, "scratch", "ipykernel_4711", "123.py"): True,
    **dict.fromkeys((os.__file__, json.decoder.__file__, np.__file__), False),
    perfkit.__file__: False,
    "<frozen importlib._bootstrap>": False,
    "<string>": False,
}


def test_a_script_and_its_helpers_are_the_users_own_and_no_library_is(tmp_path):
    files = {touched(tmp_path / name): own for name, own in FILES.items()} | NO_FILES
    assert {file: is_own(file) for file in files} == files


def test_an_environment_inside_of_a_project_is_not_the_projects(tmp_path, monkeypatch):
    environment = tmp_path / "project" / ".venv"
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert is_own(touched(tmp_path / "project" / "train.py"))
    assert not is_own(touched(environment / "lib" / "python3.11" / "sitecustomize.py"))
    # A script may lie beside the environment's folders.
    assert is_own(touched(environment / "train.py"))


def test_a_project_that_is_linked_into_packages_is_told_by_where_it_lies(tmp_path):
    real = touched(tmp_path / "checkout" / "mine" / "model.py")
    link = tmp_path / "lib" / "site-packages" / "mine"
    link.parent.mkdir(parents=True)
    link.symlink_to(Path(real).parent)
    assert is_own(str(link / "model.py"))


def test_packages_installed_into_a_folder_of_the_path_are_not_the_users(
    tmp_path, monkeypatch
):
    target, project = tmp_path / "target", tmp_path / "project"
    for folder in (target, project):
        (folder / "keras-3.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(project), *sys.path, str(target)])
    assert not is_own(touched(target / "keras" / "layers.py"))
    assert is_own(touched(project / "train.py"))
