import psutil
import pytest

from perfkit.machine import limits
from tests.machine.trees import computer, grow

TOP = "sys/fs/cgroup"
USER = f"{TOP}/user.slice"
SESSION = f"{USER}/user-1000.slice/session.scope"
ALL = 32 * 10**9


@pytest.mark.parametrize(
    ("files", "quota", "memory"),
    [
        ({}, None, ALL),
        ({f"{TOP}/cpu.max": "250000 100000\n", f"{TOP}/memory.max": "4294967296\n"},
         2.5, 2**32),
        ({f"{TOP}/cpu.max": "max 100000\n", f"{TOP}/memory.max": "max\n"},
         None, ALL),
        # The tightest group above a process counts.
        ({"proc/self/cgroup": "0::/user.slice/user-1000.slice/session.scope\n",
          f"{USER}/cpu.max": "150000 100000\n",
          f"{USER}/user-1000.slice/cpu.max": "400000 100000\n",
          f"{SESSION}/memory.max": "1000000",
          f"{USER}/memory.max": "2000000",
          f"{TOP}/other.slice/cpu.max": "10000 100000\n"}, 1.5, 1_000_000),
        # The path is the host's and not mounted inside; the mounted root is.
        ({"proc/self/cgroup": "0::/docker/4f2a\n", f"{TOP}/cpu.max": "3 1\n"},
         3, ALL),
        # Of groups of the first version nothing is known.
        ({"proc/self/cgroup": "4:cpu,cpuacct:/docker/4f2a\n",
          f"{TOP}/cpu,cpuacct/cpu.cfs_quota_us": "300000\n"}, None, ALL),
        # A file that makes no sense limits nothing.
        *[({f"{TOP}/cpu.max": text, f"{TOP}/memory.max": "0"}, None, ALL)
          for text in ("", "max", "0 0", "1 0", "many cores", "-1 100000")],
    ],
)  # fmt: skip
def test_groups_and_affinity_limit_what_may_be_used(
    tmp_path, monkeypatch, files, quota, memory
):
    grow(tmp_path, computer(8) | files)
    assert limits.quota(tmp_path) == quota
    assert limits.memory_granted(tmp_path, ALL) == memory
    for allowed in (2, 8):
        monkeypatch.setattr(limits, "affinity", lambda cores=allowed: cores)
        assert limits.cores_granted(tmp_path, 8) == min(quota or 8, allowed)


def test_this_process_may_run_where_the_system_lets_it():
    assert limits.affinity() in (None, len(psutil.Process().cpu_affinity()))
