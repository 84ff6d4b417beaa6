import pytest

from perfkit.machine import limits
from tests.machine.trees import computer, grow

NO_LIMIT_V1 = "9223372036854771712"


def granted(root, files, cores=8, memory=32 * 10**9):
    grow(root, computer(cores) | files)
    return limits.cores_granted(root, cores), limits.memory_granted(root, memory)


def test_nothing_limits_a_plain_computer(tmp_path):
    assert granted(tmp_path, {}) == (8, 32 * 10**9)


def test_a_system_without_proc_is_not_limited(tmp_path):
    assert limits.cores_granted(tmp_path, 4) == 4
    assert limits.memory_granted(tmp_path, 10) == 10


@pytest.mark.parametrize(
    ("allowed", "cores"), [("0-3", 4), ("2", 1), ("0-1,4,6-7", 5), ("0-7", 8)]
)
def test_affinity_limits_the_cores(tmp_path, allowed, cores):
    status = f"Cpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n"
    assert granted(tmp_path, {"proc/self/status": status})[0] == cores


def test_a_container_of_cgroup_v2_has_a_quota_and_a_limit(tmp_path):
    files = {
        "sys/fs/cgroup/cpu.max": "250000 100000\n",
        "sys/fs/cgroup/memory.max": "4294967296\n",
    }
    assert granted(tmp_path, files) == (2.5, 2**32)


def test_no_quota_in_cgroup_v2_is_max(tmp_path):
    files = {
        "sys/fs/cgroup/cpu.max": "max 100000\n",
        "sys/fs/cgroup/memory.max": "max\n",
    }
    assert granted(tmp_path, files) == (8, 32 * 10**9)


def test_the_tightest_group_above_a_process_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/user.slice/user-1000.slice/session.scope\n",
        "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/user.slice/user-1000.slice/cpu.max": "400000 100000\n",
        "sys/fs/cgroup/user.slice/user-1000.slice/session.scope/memory.max": "1000000",
        "sys/fs/cgroup/user.slice/memory.max": "2000000",
        "sys/fs/cgroup/other.slice/cpu.max": "10000 100000\n",
    }
    assert granted(tmp_path, files) == (1.5, 1_000_000)


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
def test_a_container_of_cgroup_v1_has_a_quota_and_a_limit(tmp_path, folder):
    # The path is the host's and not mounted inside; the mounted root is the container.
    files = {
        "proc/self/cgroup": "5:memory:/docker/4f2a\n4:cpu,cpuacct:/docker/4f2a\n",
        f"sys/fs/cgroup/{folder}/cpu.cfs_quota_us": "300000\n",
        f"sys/fs/cgroup/{folder}/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "8000000000\n",
    }
    assert granted(tmp_path, files) == (3, 8 * 10**9)


def test_no_quota_in_cgroup_v1_is_minus_one_and_a_huge_limit(tmp_path):
    files = {
        "proc/self/cgroup": "2:memory:/\n1:cpu:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1,
    }
    assert granted(tmp_path, files) == (8, 32 * 10**9)


@pytest.mark.parametrize("text", ["", "max", "0 0", "1 0", "many cores", "-1 100000"])
def test_a_file_that_makes_no_sense_limits_nothing(tmp_path, text):
    files = {"sys/fs/cgroup/cpu.max": text, "sys/fs/cgroup/memory.max": "0"}
    assert granted(tmp_path, files) == (8, 32 * 10**9)


def test_a_quota_is_told_from_an_affinity_of_as_many_cores(tmp_path):
    grow(tmp_path, computer(8))
    assert (limits.quota(tmp_path), limits.affinity(tmp_path)) == (None, 8)
    grow(tmp_path, {"sys/fs/cgroup/cpu.max": "200000 100000\n"})
    assert (limits.quota(tmp_path), limits.affinity(tmp_path)) == (2.0, 8)
    grow(tmp_path, {"proc/self/status": "Cpus_allowed_list:\t0-1\n"})
    assert (limits.quota(tmp_path), limits.affinity(tmp_path)) == (2.0, 2)
