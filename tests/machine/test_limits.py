import pytest

from perfkit.machine import limits
from tests.machine.trees import computer, grow

TOP = "sys/fs/cgroup"
USER = f"{TOP}/user.slice"
SESSION = f"{USER}/user-1000.slice/session.scope"
ALL = 32 * 10**9


def affinity(cores):
    return {"proc/self/status": f"Cpus_allowed:\tff\nCpus_allowed_list:\t{cores}\n"}


@pytest.mark.parametrize(
    ("files", "quota", "affinity", "memory"),
    [
        ({}, None, 8, ALL),
        ({f"{TOP}/cpu.max": "250000 100000\n", f"{TOP}/memory.max": "4294967296\n"},
         2.5, 8, 2**32),
        ({f"{TOP}/cpu.max": "max 100000\n", f"{TOP}/memory.max": "max\n"},
         None, 8, ALL),
        # The tightest group above a process counts.
        ({"proc/self/cgroup": "0::/user.slice/user-1000.slice/session.scope\n",
          f"{USER}/cpu.max": "150000 100000\n",
          f"{USER}/user-1000.slice/cpu.max": "400000 100000\n",
          f"{SESSION}/memory.max": "1000000",
          f"{USER}/memory.max": "2000000",
          f"{TOP}/other.slice/cpu.max": "10000 100000\n"}, 1.5, 8, 1_000_000),
        # The path is the host's and not mounted inside; the mounted root is.
        ({"proc/self/cgroup": "0::/docker/4f2a\n", f"{TOP}/cpu.max": "3 1\n"},
         3, 8, ALL),
        # Of groups of the first version nothing is known.
        ({"proc/self/cgroup": "4:cpu,cpuacct:/docker/4f2a\n",
          f"{TOP}/cpu,cpuacct/cpu.cfs_quota_us": "300000\n"}, None, 8, ALL),
        # A file that makes no sense limits nothing.
        *[({f"{TOP}/cpu.max": text, f"{TOP}/memory.max": "0"}, None, 8, ALL)
          for text in ("", "max", "0 0", "1 0", "many cores", "-1 100000")],
        *[(affinity(cores), None, count, ALL) for cores, count in (
            ("0-3", 4), ("2", 1), ("0-1,4,6-7", 5), ("0-7", 8), ("7-0", None))],
        ({f"{TOP}/cpu.max": "200000 100000\n"} | affinity("0-1"), 2, 2, ALL),
    ],
)  # fmt: skip
def test_groups_and_affinity_limit_what_may_be_used(
    tmp_path, files, quota, affinity, memory
):
    grow(tmp_path, computer(8) | files)
    assert (limits.quota(tmp_path), limits.affinity(tmp_path)) == (quota, affinity)
    assert limits.cores_granted(tmp_path, 8) == min(quota or 8, affinity or 8)
    assert limits.memory_granted(tmp_path, ALL) == memory
