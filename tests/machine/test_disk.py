import itertools
import os
from unittest.mock import Mock

import pytest

from perfkit.errors import BadParameterError
from perfkit.machine import disk as disks
from perfkit.machine.disk import disk
from tests.machine.trees import computer, grow, windows_drive

MEGABYTE = 10**6


def filled(folder, *sizes):
    folder.mkdir(parents=True, exist_ok=True)
    for number, size in enumerate(sizes):
        (folder / f"{number}.bin").write_bytes(os.urandom(size))
    return folder


def clock(step=0.125):
    """A clock that goes on by the same step each time it is looked at."""
    return itertools.count(0, step).__next__


@pytest.fixture
def fetching(monkeypatch):
    """Lets each file seem to fetch so many bytes from the disk."""

    def each(size):
        told = itertools.count(0, size)
        monkeypatch.setattr(disks, "fetched", lambda _: next(told))

    return each


def test_a_folder_is_read_at_bytes_per_second(tmp_path, fetching):
    filled(tmp_path / "data", 2 * MEGABYTE)
    filled(tmp_path / "data/more", 3 * MEGABYTE)
    fetching(3 * MEGABYTE)
    found = disk(tmp_path / "data", clock=clock())
    # For each file the clock is looked at before each piece, at its end and after it;
    # what is known to be all of it has no end to be found.
    assert found.cold == 5 * MEGABYTE / (0.125 * (4 + 5))
    assert found.cached == 5 * MEGABYTE / (0.125 * (3 + 4))


@pytest.mark.parametrize("missing", ["", "posix_fadvise", "the count"])
def test_what_came_from_memory_is_not_cold(tmp_path, monkeypatch, fetching, missing):
    if missing == "posix_fadvise":
        monkeypatch.delattr(os, missing, raising=False)
    elif missing:
        monkeypatch.setattr(disks, "fetched", lambda _: None)
    else:
        fetching(4 * MEGABYTE)
    found = disk(filled(tmp_path, 5 * MEGABYTE, 5 * MEGABYTE), clock=clock())
    assert found.cold is None
    assert found.cached > 0


def test_reading_ends_when_its_time_is_up(tmp_path, monkeypatch):
    filled(tmp_path, *[2 * MEGABYTE] * 5)
    read = Mock(side_effect=disks._read)
    monkeypatch.setattr(disks, "_read", read)
    disk(tmp_path, tmp_path / "no proc", clock(1.0))
    # A look at the clock is a second: the first file takes all the time there is.
    assert read.call_count == 2


def test_what_is_cold_here_was_fetched_from_the_disk(tmp_path):
    filled(tmp_path, *[2 * MEGABYTE] * 4)
    before = disks.fetched()
    found = disk(tmp_path)
    if found.cold is None:
        pytest.skip("this file system keeps its files in memory")
    assert disks.fetched() - before >= 0.9 * 4 * MEGABYTE


@pytest.mark.parametrize("sizes", [(), (1000,), (0, 0)])
def test_too_little_to_read_says_nothing(tmp_path, sizes):
    found = disk(filled(tmp_path / "data", *sizes))
    assert (found.cold, found.cached) == (None, None)


def test_the_usual_size_of_its_files_is_told(tmp_path):
    assert disk(filled(tmp_path, 1000, 3000, 90_000)).file_size == 3000


@pytest.mark.parametrize("name", ["gone", "a file", "\0", "~nobody-of-this-name/x"])
def test_a_folder_that_is_not_there_is_refused_in_a_sentence(tmp_path, name):
    (tmp_path / "a file").write_text("")
    folder = name if name.startswith("~") else tmp_path / name
    with pytest.raises(BadParameterError, match="give a folder that can"):
        disk(folder)


SPACED = "1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / /mnt/c/my\\040disk rw - exfat y rw\n"


def mounts(text):
    return {"proc/self/mountinfo": text}


@pytest.mark.parametrize(
    ("files", "kind", "windows"),
    [
        (computer(), "ext4", False),
        (windows_drive(), "9p", True),
        (mounts("1 1 0:1 / / rw - drvfs C: rw\n"), "drvfs", True),
        (mounts("1 1 0:1 / /mn rw - nfs4 x:/y rw\n"), None, False),
        (mounts("spoiled - \n - \n\0"), None, False),
        ({}, None, False),
        # A place with a space in its name is found.
        (mounts(SPACED), "exfat", False),
    ],
)
def test_the_file_system_is_told(tmp_path, monkeypatch, files, kind, windows):
    monkeypatch.setattr(os.path, "realpath", lambda _: "/mnt/c/my disk/data")
    found = disk(filled(tmp_path / "data"), grow(tmp_path / "root", files))
    assert (found.filesystem, found.windows) == (kind, windows)
