import pytest

from perfkit.machine import limits
from tests.machine.trees import computer, grow

V2 = "sys/fs/cgroup"
USER = f"{V2}/user.slice"
SESSION = f"{USER}/user-1000.slice/session.scope"
# The path is the host's and not mounted inside; the mounted root is the container.
DOCKER_V1 = {
    "proc/self/cgroup": "5:memory:/docker/4f2a\n4:cpu,cpuacct:/docker/4f2a\n",
    f"{V2}/memory/memory.limit_in_bytes": "8000000000\n",
}
PERIOD = "cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("files", "cores", "memory"),
    [
        ({}, 8, 32 * 10**9),
        ({f"{V2}/cpu.max": "250000 100000\n", f"{V2}/memory.max": "4294967296\n"},
         2.5, 2**32),
        ({f"{V2}/cpu.max": "max 100000\n", f"{V2}/memory.max": "max\n"},
         8, 32 * 10**9),
        # The tightest group above a process counts.
        ({"proc/self/cgroup": "0::/user.slice/user-1000.slice/session.scope\n",
          f"{USER}/cpu.max": "150000 100000\n",
          f"{USER}/user-1000.slice/cpu.max": "400000 100000\n",
          f"{SESSION}/memory.max": "1000000",
          f"{USER}/memory.max": "2000000",
          f"{V2}/other.slice/cpu.max": "10000 100000\n"}, 1.5, 1_000_000),
        *[(DOCKER_V1 | {f"{V2}/{cpu}/cpu.cfs_quota_us": "300000\n",
           f"{V2}/{cpu}/{PERIOD}": "100000\n"}, 3, 8 * 10**9)
          for cpu in ("cpu,cpuacct", "cpu")],
        # No quota is minus one, and no limit a huge one.
        ({"proc/self/cgroup": "2:memory:/\n1:cpu:/\n",
          f"{V2}/cpu/cpu.cfs_quota_us": "-1\n",
          f"{V2}/cpu/{PERIOD}": "100000\n",
          f"{V2}/memory/memory.limit_in_bytes": "9223372036854771712"},
         8, 32 * 10**9),
        # A file that makes no sense limits nothing.
        *[({f"{V2}/cpu.max": text, f"{V2}/memory.max": "0"}, 8, 32 * 10**9)
          for text in ("", "max", "0 0", "1 0", "many cores", "-1 100000")],
        *[({"proc/self/status": f"Cpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n"},
           cores, 32 * 10**9)
          for allowed, cores in {"0-3": 4, "2": 1, "0-1,4,6-7": 5, "0-7": 8}.items()],
    ],
)  # fmt: skip
def test_groups_and_affinity_limit_what_may_be_used(tmp_path, files, cores, memory):
    grow(tmp_path, computer(8) | files)
    assert limits.cores_granted(tmp_path, 8) == cores
    assert limits.memory_granted(tmp_path, 32 * 10**9) == memory


def test_a_quota_is_told_from_an_affinity_of_as_many_cores(tmp_path):
    # A system without /proc is not limited.
    assert limits.cores_granted(tmp_path, 4) == 4
    assert limits.memory_granted(tmp_path, 10) == 10
    for files, quota, affinity in (
        (computer(8), None, 8),
        ({"sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0, 8),
        ({"proc/self/status": "Cpus_allowed_list:\t0-1\n"}, 2.0, 2),
    ):
        grow(tmp_path, files)
        assert (limits.quota(tmp_path), limits.affinity(tmp_path)) == (quota, affinity)
