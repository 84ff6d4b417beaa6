"""What perfkit keeps is its user's own, whatever the user's umask lets others do."""

import importlib
import os
import stat
import threading

import pytest

from perfkit import lab
from perfkit.engine import alone, spread
from perfkit.engine import launcher as launchers
from perfkit.engine.trial import Note
from perfkit.findings import store
from perfkit.findings.page import export
from perfkit.questions.shared import cache
from perfkit.training.race import commits
from tests.findings.made import finding
from tests.machines.passports import passport

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS_AT_ALL = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture
def everywhere(tmp_path, monkeypatch):
    """A user without any care: all that is made may be read and written by all."""
    # Matplotlib's own list of fonts is made before, and elsewhere.
    importlib.import_module("matplotlib.font_manager")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", cache.VARIABLE):
        monkeypatch.setenv(name, str(tmp_path / "homes" / name))
    monkeypatch.setattr(alone, "lock_file", lambda: tmp_path / "measuring.lock")
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


def hold_the_lock(folder):
    held = alone.Alone()
    assert list(held.wait(threading.Event())) == []
    held.let_go()


def make_images(folder):
    def fill(into):
        (into / "one").mkdir(0o700)
        yield Note("progress", "all")

    assert list(cache.make("images", fill, size=1, label="images"))
    cache.write("lists/one.json", "[]", label="a list")


def start_the_lab(folder):
    lab._make_folders(folder)
    # The layout of the first screen is no secret.
    (made,) = folder.rglob("*.jupyterlab-workspace")
    made.unlink()


@pytest.mark.parametrize(
    ("make", "closed"),
    [
        # Nobody else writes to what may be shared.
        (lambda at: store.save(finding(), at / "perfkit-findings"), OTHERS_WRITE),
        (lambda at: export(finding(), at / "page.html"), OTHERS_WRITE),
        (lambda at: store.save(passport(), path=at / "lab-7.json"), OTHERS_WRITE),
        # What is no document is closed to others.
        (hold_the_lock, OTHERS_AT_ALL),
        (lambda _: spread.remember([(1.0, 3)]), OTHERS_AT_ALL),
        (make_images, OTHERS_AT_ALL),
        (start_the_lab, OTHERS_AT_ALL),
    ],
    ids=["finding", "page", "passport", "lock", "spread", "images", "lab"],
)
def test_what_is_made_is_closed_to_others(make, closed, everywhere):
    make(everywhere)
    made = [path for path in everywhere.rglob("*") if not path.is_symlink()]
    assert made
    assert [path for path in made if path.lstat().st_mode & closed] == []


def test_a_folder_that_is_there_stays_as_it_is(everywhere):
    everywhere.chmod(0o755)
    alone.private_folder(everywhere)
    assert stat.S_IMODE(everywhere.stat().st_mode) == 0o755
    (everywhere / "file").touch()
    with pytest.raises(OSError, match="exists"):
        alone.private_folder(everywhere / "file")


@pytest.fixture
def another(monkeypatch):
    """All files there are belong to somebody else."""
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)


def test_a_lock_that_somebody_else_laid_there_keeps_nobody_waiting(everywhere, request):
    held = alone.Alone()
    list(held.wait(threading.Event()))
    request.getfixturevalue("another")
    assert list(alone.Alone().wait(threading.Event())) == []
    held.let_go()


@pytest.mark.parametrize(
    ("prefix", "inside"),
    [(launchers._FOLDER, launchers.worker.LOG), (commits._PREFIX, commits._LOCK)],
)
def test_what_another_left_is_left_alone(
    prefix, inside, everywhere, monkeypatch, request
):
    left = everywhere / f"{prefix}x"
    left.mkdir()
    # Whoever opens it waits for somebody to write.
    os.mkfifo(left / inside)
    monkeypatch.setattr(alone.tempfile, "tempdir", str(everywhere))
    request.getfixturevalue("another")
    alone.remove_left(prefix, inside)
    assert left.is_dir()
