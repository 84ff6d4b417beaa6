import pytest

from perfkit.machine.checks import cores as sharing
from perfkit.machine.record import Disk
from tests.machine.checks.computers import changed, workstation


def judged(rule, **facts):
    return list(rule(changed(workstation(), disk=Disk(**facts))))


@pytest.mark.parametrize(("speed", "status"), [(3e9, "ok"), (2e8, "ok"), (9e7, "warn")])
def test_a_disk_is_judged_by_what_it_gave_cold(speed, status):
    (found,) = judged(sharing.slow, cold=speed, cached=9e9, filesystem="ext4")
    assert found.status == status


def test_a_slow_disk_is_told_in_files():
    (found,) = judged(sharing.slow, cold=50e6)
    assert "500 files of 100 KB" in found.why
    assert found.evidence == "The folder is on a disk, read at 50 MB/s from the disk."


def test_a_slow_network_drive_is_called_one():
    (found,) = judged(sharing.slow, cold=50e6, filesystem="nfs4")
    assert "network drive" in found.title


def test_a_windows_drive_in_wsl_is_told_whatever_its_speed():
    (found,) = judged(sharing.windows_drive, windows=True, filesystem="9p")
    assert found.evidence == "The folder is on 9p."
    assert judged(sharing.slow, windows=True, cold=1e6) == []


def test_a_disk_that_was_not_read_is_not_judged():
    assert judged(sharing.slow, cached=9e9) == []
    for rule in sharing.DISK:
        assert list(rule(changed(workstation(), disk=None))) == []


def test_small_files_are_blamed_for_their_number_and_not_the_disk():
    (found,) = judged(sharing.slow, cold=36e6, file_size=60e3)
    assert "small files" in found.title
    assert "600 files/s" in found.title
    assert "record file" in found.remedy
    (found,) = judged(sharing.slow, cold=36e6, file_size=6e3)
    assert found.status == "ok"
    (found,) = judged(sharing.slow, cold=36e6, file_size=2e6)
    assert "18 files of 2 MB" in found.why
