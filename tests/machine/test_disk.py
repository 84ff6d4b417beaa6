import os
import types

import psutil
import pytest

from perfkit.errors import BadParameterError
from perfkit.machine.collect import bytes_fetched, disk, drop_cached_file


@pytest.mark.parametrize("name", ["gone", "a file", "\0", "~nobody-of-this-name/x"])
def test_a_folder_that_is_not_there_is_refused_in_a_sentence(tmp_path, name):
    (tmp_path / "a file").write_text("")
    folder = name if name.startswith("~") else tmp_path / name
    with pytest.raises(BadParameterError, match="give a folder that can"):
        disk(folder)


ROOT = ("/", "ext4", "rw")
# How WSL 2 and WSL 1 show the drives of Windows.
DRIVE = ("/mnt/c", "9p", "rw,dirsync,aname=drvfs;path=C:\\;uid=1000")
OLD_DRIVE = ("/mnt/c", "drvfs", "rw")


@pytest.mark.parametrize(
    ("mounts", "kind", "windows"),
    [
        ([ROOT], "ext4", False),
        ([ROOT, DRIVE], "9p", True),
        ([OLD_DRIVE, ROOT], "drvfs", True),
        # The deepest counts, and a name that begins alike is another place.
        ([ROOT, DRIVE, ("/mnt/c/my disk", "exfat", "rw")], "exfat", False),
        ([ROOT, ("/mnt/c/my", "nfs4", "rw")], "ext4", False),
        ([], None, False),
    ],
)
def test_the_file_system_is_told(tmp_path, monkeypatch, mounts, kind, windows):
    told = [
        types.SimpleNamespace(mountpoint=place, fstype=fstype, opts=opts)
        for place, fstype, opts in mounts
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: told)
    place = "/mnt/c/my disk/data"
    monkeypatch.setattr(os.path, "realpath", lambda *_, **__: place)
    monkeypatch.setattr(os, "scandir", lambda _: types.SimpleNamespace(close=list))
    found = disk(tmp_path)
    assert (found.filesystem, found.windows) == (kind, windows)


def test_what_is_cold_here_was_fetched_from_the_disk(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(os.urandom(2_000_000))
    before = bytes_fetched()
    if before is None or not drop_cached_file(str(file)):
        pytest.skip("nobody counts here, or forgets")
    file.read_bytes()
    if bytes_fetched() == before:
        pytest.skip("this file system keeps its files in memory")
    assert bytes_fetched() - before >= 2_000_000
    # What lies in memory by now is not fetched again.
    before = bytes_fetched()
    file.read_bytes()
    assert bytes_fetched() == before
