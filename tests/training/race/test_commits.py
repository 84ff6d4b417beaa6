"""Repositories made here: what a race reads of them, and that it leaves them alone."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import types
from dataclasses import replace
from pathlib import Path

import pytest

from perfkit.errors import BadParameterError
from perfkit.training.race.commits import Commit, checked_out
from perfkit.training.race.sides import Asked, entrants
from tests.training.race.repositories import SCRIPT, commit_all, git, state, write


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where commits are written: a folder that only this test has."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def shared_repository(tmp_path_factory):
    top = tmp_path_factory.mktemp("shared") / "mine"
    write(
        top,
        train_py=SCRIPT,
        model_py="SIZE = 1\n",
        gone_py="GONE = True\n",
        inner__train_py=SCRIPT,
    )
    (top / ".gitignore").write_text("data/\n*.bin\n__pycache__/\nperfkit-findings/\n")
    commit_all(top, "one")
    git(top, "tag", "v1")
    write(top, model_py="SIZE = 2\n", later_py="LATER = True\n")
    commit_all(top, "two")
    # Changed, staged, deleted, untracked, ignored.
    write(top, train_py=SCRIPT + "# mine\n", model_py="SIZE = 3\n", new_py="NEW = 1\n")
    git(top, "add", "model.py")
    (top / "gone.py").unlink()
    write(top, data__images="pixels", notes__plan="mine", inner__weights_py="W = 1")
    (top / "inner" / "cache.bin").write_bytes(b"\0\1")
    write(top, **{"perfkit-findings__race": "{}", "inner____pycache__x": "x"})
    return top


@pytest.fixture
def repository(shared_repository, tmp_path, temporary):
    """Two commits and a working tree that has gone on from there."""
    return shutil.copytree(shared_repository, tmp_path / "mine")


@pytest.fixture
def take():
    """Check commits out; what a test leaves open is closed."""
    with contextlib.ExitStack() as closing:

        def take(revision, script):
            commit = checked_out(revision, script)
            closing.callback(lambda: commit.folder.exists() and commit.close())
            return commit

        yield take


def test_a_commit_with_submodules_is_refused(repository, tmp_path, temporary):
    other = tmp_path / "other"
    write(other, layers_py="LAYERS = 1\n")
    commit_all(other, "one")
    local = ("-c", "protocol.file.allow=always")
    git(repository, *local, "submodule", "add", "-q", str(other), "other")
    git(repository, "commit", "-qm", "three")
    with pytest.raises(BadParameterError, match="That commit has submodules"):
        checked_out("HEAD", repository / "train.py")
    assert list(temporary.iterdir()) == []


def test_a_commit_has_its_own_files_and_all_that_git_does_not_keep(repository, take):
    # Any script of the tree finds its place.
    script = repository / "inner" / "train.py"
    number = git(repository, "rev-parse", "HEAD~1").strip()
    commit = take("v1", script)
    assert commit.name == f"v1 ({number[:7]})"
    assert commit.path_of(script) == commit.tree / "inner" / "train.py"
    files = {p.name: p.read_text() for p in commit.tree.iterdir() if p.suffix == ".py"}
    assert files == {
        "train.py": SCRIPT,
        "model.py": "SIZE = 1\n",
        "gone.py": "GONE = True\n",
        "new.py": "NEW = 1\n",
    }
    for name in ("data", "notes", "new.py", "inner/weights.py", "inner/cache.bin"):
        assert (commit.tree / name).resolve() == repository / name
    # Files that git keeps are copies: whoever writes there writes into no tree of ours.
    assert not (commit.tree / "train.py").is_symlink()
    assert not (commit.tree / "inner").is_symlink()
    left = (".git", "perfkit-findings", "inner/__pycache__")
    assert not any(os.path.lexists(commit.tree / name) for name in left)
    for lacking, said in (
        (repository / "later.py", f"{commit.name} has no later.py in that folder."),
        (Path("/x/train.py"), "train.py is not in the repository mine."),
    ):
        with pytest.raises(BadParameterError) as caught:
            commit.path_of(lacking)
        assert str(caught.value) == said


@pytest.mark.parametrize("was", ["a link", "a file"])
def test_nothing_is_linked_behind_what_was_no_folder_then(
    repository, take, tmp_path, was
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(repository, sets="a file")
    if was == "a link":
        (repository / "sets").unlink()
        (repository / "sets").symlink_to(elsewhere)
    commit_all(repository, "three")
    git(repository, "rm", "-q", "sets")
    write(repository, sets__labels="mine", sets__images="pixels")
    git(repository, "add", "sets/labels")
    there = take("HEAD", repository / "train.py").tree / "sets"
    assert there.is_symlink() is (was == "a link")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "revision", ["nothing-of-the-kind", "HEAD~9", "--help", "-h", "main:train.py", ""]
)
def test_what_is_no_commit_is_refused_and_leaves_nothing(
    repository, temporary, revision
):
    with pytest.raises(BadParameterError) as caught:
        checked_out(revision, repository / "train.py")
    said = str(caught.value)
    assert said.startswith("git refused (fatal: ")
    assert said.endswith("such as main or HEAD~1.")
    assert "\n" not in said
    assert list(temporary.iterdir()) == []


@pytest.mark.fault("race", "path", sees="The race works as in any other folder.")
def test_a_folder_with_a_strange_name_is_one_like_any_other(tmp_path, take, temporary):
    top = tmp_path / "mein ärger\nhere"
    write(top, train_py=SCRIPT)
    commit_all(top, "one")
    write(top, **{"ein bild\n": "pixels"})
    commit = take("main", top / "train.py")
    assert commit.path_of(top / "train.py").read_text() == SCRIPT
    assert (commit.tree / "ein bild\n").read_text() == "pixels"


def test_a_worktree_is_a_working_tree_whatever_a_hook_of_git_has_set(
    repository, take, tmp_path, monkeypatch
):
    added = ("-q", "-b", "other", str(tmp_path / "other"), "v1")
    git(repository, "worktree", "add", *added)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, "/nowhere")
    assert take("main", repository / "train.py").top == repository
    commit = take("main", tmp_path / "other" / "train.py")
    assert commit.top == tmp_path / "other"
    assert (commit.tree / "model.py").read_text() == "SIZE = 2\n"


def test_nothing_of_the_users_is_touched_and_no_hook_runs(repository, take, temporary):
    git(repository, "config", "core.fsmonitor", ".git/hooks/monitor")
    for name in ("post-checkout", "post-index-change", "post-merge", "monitor"):
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {temporary}/hook-{name}\n")
        hook.chmod(0o755)
    before = state(repository)
    for revision in ("main", "v1"):
        commit = take(revision, repository / "train.py")
        assert state(repository) == before
        commit.close()
    assert state(repository) == before
    assert list(temporary.iterdir()) == []


_HOLDS = """
import sys, tempfile, time
from pathlib import Path
from perfkit.training.race.commits import checked_out
tempfile.tempdir = sys.argv[1]
print(checked_out("v1", Path(sys.argv[2])).folder, flush=True)
time.sleep(3600)
"""


@pytest.mark.fault("race", "SIGKILL", sees="The next race removes its leftover files.")
@pytest.mark.fault("race", "two at once", sees="No race removes the other's files.")
def test_a_killed_race_leaves_the_user_alone_and_the_next_one_tidies(
    repository, take, temporary
):
    before = state(repository)
    script = repository / "train.py"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(temporary), str(script)],
        stdout=subprocess.PIPE,
        text=True,
    ) as holding:
        folder = Path(holding.stdout.readline().strip())
        assert folder.parent == temporary
        # Of a race that goes on nothing is taken.
        beside = take("main", script)
        assert folder.is_dir()
        holding.send_signal(signal.SIGKILL)
    assert folder.is_dir()
    assert state(repository) == before
    after = take("main", script)
    assert not folder.exists()
    assert beside.folder.is_dir()
    assert after.folder.is_dir()
    assert state(repository) == before


@pytest.mark.parametrize("inside", [".", "inner"])
def test_a_race_holds_the_working_tree_against_commits_in_the_same_folder(
    repository, temporary, monkeypatch, inside
):
    monkeypatch.chdir(repository / inside)
    # One commit by two names is two sides.
    commits = ("HEAD~1", "main", "HEAD")
    asked = Asked(trainings=(str(repository / "train.py"),), commit=commits)
    made = entrants(asked)
    then, main, head, now = made.sides
    old, new, _ = (n[:7] for n in git(repository, "rev-parse", *commits).split())
    assert [then.name, now.name] == [f"HEAD~1 ({old})", "the working tree"]
    assert [main.name, head.name] == [f"main ({new})", f"HEAD ({new})"]
    assert Path(now.maker.path) == repository / "train.py"
    assert Path(then.maker.path).read_text() == SCRIPT
    # Modules of the one are not taken from the other.
    tree = Path(then.maker.path).parent
    assert (then.commit.top, then.commit.tree) == (repository, tree)
    assert now.commit is None
    assert Path(now.maker.folder).resolve() == repository / inside
    assert Path(then.maker.folder) == tree / inside
    # One that runs elsewhere goes on running there.
    monkeypatch.chdir(repository.parent)
    made.close()
    assert not tree.exists()
    made = entrants(replace(asked, commit=("main",)))
    made.close()
    other, here = made.sides
    assert other.maker.folder == here.maker.folder


def test_what_came_from_the_working_tree_all_the_same_is_named(tmp_path, monkeypatch):
    top, then = tmp_path / "mine", tmp_path / "then" / "mine"
    write(top, src__x="", built_py="")
    write(then, kept_py="")
    (tmp_path / "link").symlink_to(top)
    (then / "built.py").symlink_to(top / "built.py")
    monkeypatch.setattr(sys, "prefix", str(top / "env"))
    # A module without a file lies nowhere, not in the current folder.
    monkeypatch.chdir(top)
    files = {
        "mine": top / "src" / "mine" / "__init__.py",
        "mine.layers": top / "src" / "mine" / "layers.py",
        "env_code": top / "env_code" / "x.py",
        "helpers": then / "helpers.py",
        "installed": top / "env" / "lib" / "installed.py",
        "numpy_like": top / "other" / "lib" / "site-packages" / "numpy_like.py",
        "like_the_tree": tmp_path / "mine2" / "x.py",
        "built_in": None,
        # A link into the working tree leads to code of it.
        "built": then / "built.py",
        "kept": then / "kept.py",
    }
    for name, file in files.items():
        module = types.ModuleType(name)
        module.__file__ = str(file) if file else None
        monkeypatch.setitem(sys.modules, name, module)
    commit = Commit("main", top, then, then.parent, 0)
    assert commit.find_leftovers([*files, "not_there"]) == ["built", "env_code", "mine"]
    monkeypatch.setattr(sys, "path", [str(tmp_path / "link" / "src")])
    commit.move()
    assert sys.path == [str(then / "src")]
