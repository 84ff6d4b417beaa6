import errno
import os
import shutil
import sys
import time
from unittest.mock import Mock

import pytest

from perfkit.engine.trial import Note
from perfkit.errors import MissingPartError
from perfkit.questions.shared import cache
from tests.questions.conftest import ended

pytestmark = pytest.mark.usefixtures("own_cache")


def fill(folder):
    (folder / "one").write_text("1")
    yield Note("progress", "half")
    (folder / "two").write_text("2")


def make(name="thing", using=fill, size=10):
    return ended(cache.make(name, using, size=size, label="two numbers"))


def test_a_folder_is_made_once_and_read_where_none_can_be_written(monkeypatch):
    told, folder = make()
    assert told == [Note("progress", "half")]
    assert sorted(path.name for path in folder.iterdir()) == ["one", "two"]
    told, again = make(using=None)
    assert (told, again) == ([], folder)
    monkeypatch.setattr(shutil, "disk_usage", None)
    assert make()[1] == folder


def test_an_interrupted_making_is_never_taken_for_a_whole_one(own_cache):
    # Killed, the generator neither ends nor cleans up.
    making = cache.make("thing", fill, size=10, label="two numbers")
    next(making)
    assert not (own_cache / "thing").exists()
    _, folder = make()
    assert len(list(folder.iterdir())) == 2
    assert ended(making)[1] == folder
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


def test_what_a_killed_one_left_goes_after_a_day(own_cache):
    old, new = own_cache / ".unfinished-old", own_cache / ".unfinished-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    yesterday = time.time() - 90_000
    os.utime(old, (yesterday, yesterday))
    make()
    assert (old.exists(), new.exists()) == (False, True)


def test_too_little_room_before_or_meanwhile_is_said(monkeypatch, own_cache):
    # Other errors are not hidden.
    with pytest.raises(OSError, match="the disk is broken"):
        make(using=Mock(side_effect=OSError(errno.EIO, "the disk is broken")))
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(MissingPartError, match="PERFKIT_CACHE to a folder on another"):
        make(using=full)
    usage = shutil.disk_usage("/")._replace(free=999)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(MissingPartError, match=r"No room for two numbers \(1 KB\)"):
        make(size=1000)
    assert not list(own_cache.iterdir())


@pytest.mark.parametrize("place", ["file/cache", "/proc/perfkit"])
def test_a_place_that_cannot_be_written_is_said(monkeypatch, tmp_path, place):
    if place.startswith("/proc") and sys.platform != "linux":
        pytest.skip("there is no /proc")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / place))
    with pytest.raises(MissingPartError, match="set PERFKIT_CACHE to a folder"):
        make()


def test_a_file_is_written_whole_or_not_at_all(own_cache, monkeypatch):
    cache.write("lists/a.json", "old", label="a list")
    fails = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(MissingPartError, match="No room for a list"):
        cache.write("lists/a.json", "new", label="a list")
    assert [path.name for path in (own_cache / "lists").iterdir()] == ["a.json"]
    assert (own_cache / "lists" / "a.json").read_text() == "old"
