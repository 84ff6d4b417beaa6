import os
import types
from pathlib import Path

import psutil
import pytest

from perfkit.machine.load import load, look
from tests.machine.trees import (
    ME,
    WINDOW,
    Times,
    battery,
    busy,
    computer,
    counters,
    grow,
    meminfo,
    process,
    quota_v1,
    quota_v2,
)

ANY = counters()


def between(root, before, after=None):
    """The load between two states of the files."""
    first = look(grow(root, before), ANY)
    return load(first, look(grow(root, after or {}), ANY), root, ANY)


CHILDREN = busy(others=[("python", 60), ("python", 30), ("cc", 15)]) | {
    "proc/500/stat": process(500, "python", parent=ME, used=60),
    "proc/501/stat": process(501, "python", parent=500, used=30),
}
ENDED = {f"proc/{ME}/stat": process(ME, "python", used=6, ended=24)}
MAKE = {"proc/500/stat": process(500, "make", used=15, ended=3000)}
OLD = {"proc/500/stat": process(500, "old", used=9000)}
NEW = {"proc/500/stat": process(500, "new", used=30, started=77)}


@pytest.mark.parametrize(
    ("before", "after", "others", "top"),
    [
        # 30 ticks passed: 90 of them are three cores.
        ({}, busy(mine=100, others=[("chrome", 90), ("backup", 45)]), 4.5,
         [("chrome", 3.0), ("backup", 1.5)]),
        # What this process started is not others, nor is a child that ended.
        ({}, CHILDREN, 0.5, [("cc", 0.5)]),
        ({}, busy(mine=30, others=[("chrome", 30)]) | ENDED, 1.0, [("chrome", 1.0)]),
        # Children that others ended are not counted twice.
        ({}, busy(others=[("make", 15)]) | MAKE, 0.5, [("make", 0.5)]),
        # A number that was given again is another program.
        (OLD, busy(others=[("new", 30)]) | NEW, 1.0, [("new", 1.0)]),
        # Programs of one name are told together.
        ({}, busy(others=[("python3", 12)] * 5), 2.0, [("python3", 2.0)]),
        # Only the busiest are named, and none that hardly works.
        ({}, busy(others=[*((f"p{n}", 30 - 3 * n) for n in range(7)), ("clock", 2)]),
         4.967, [("p0", 1.0), ("p1", 0.9), ("p2", 0.8), ("p3", 0.7), ("p4", 0.6)]),
        ({}, busy(others=[("clock", 2)]), 0.067, []),
        # A program may call itself anything.
        ({}, busy(others=[("x) R 1 (y", 30)]), 1.0, [("x) R 1 (y", 1.0)]),
    ],
)  # fmt: skip
def test_other_programs_are_counted_in_cores(tmp_path, before, after, others, top):
    found = between(tmp_path, computer() | before, after)
    assert (found.seconds, found.others) == (0.3, others)
    assert [(b.program, b.cores) for b in found.top] == top


def test_what_a_hypervisor_gave_to_others_is_a_share_of_the_time(tmp_path):
    found = between(tmp_path, computer(cores=4), busy(cores=4, steal=3 * WINDOW))
    assert found.steal == 0.75
    assert found.others == 0


def test_an_old_kernel_does_not_tell_of_it(tmp_path):
    stat = "cpu  {} 0 0 100\ncpu0 1 0 0 1\n"
    before = computer() | {"proc/stat": stat.format(10)}
    found = between(tmp_path, before, {"proc/stat": stat.format(40)})
    assert (found.steal, found.seconds, found.others) == (None, 0.3, 1.0)


@pytest.mark.parametrize("text", ["", "cpu  0 0 0 0 0 0 0 0\n", "cpu  1 2\n", "\0\xff"])
def test_without_counters_nothing_is_claimed(tmp_path, text):
    found = between(tmp_path, computer() | {"proc/stat": text}, {"proc/stat": text})
    assert (found.seconds, found.others, found.steal, found.top) == (None,) * 3 + ((),)
    assert found.swap_present == 2 * 1024 * 10**6


def test_counters_that_were_set_back_claim_nothing(tmp_path):
    found = between(tmp_path, computer() | busy(others=[("x", 60)]), computer())
    assert (found.seconds, found.others, found.top) == (None, None, ())


def test_where_this_process_is_not_seen_others_are_unknown(tmp_path):
    files = computer() | {"proc/self/stat": process(9999, "python")}
    found = between(tmp_path, files, busy(others=[("chrome", 60)]))
    assert (found.others, found.top) == (None, ())
    assert found.seconds == 0.3


KIB = 1024 * 10**6


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"proc/meminfo": meminfo(16, swap=8, swap_free=5)},
         {"swap": 3 * KIB, "swap_present": 8 * KIB}),
        # No swap is known to be none.
        ({"proc/meminfo": meminfo(16, swap=0)}, {"swap": 0, "swap_present": 0}),
        ({"proc/meminfo": meminfo(16, available=6)}, {"memory_free": 6 * KIB}),
        # Of the 2 GB in use a quarter is files that were read, and can be let go.
        (quota_v1(cores=2, gigabytes=3, used=2), {"memory_free": 1.5e9}),
        (quota_v2(cores=2, gigabytes=3, used=2), {"memory_free": 1.5e9}),
    ],
)  # fmt: skip
def test_memory_is_what_the_system_and_the_limits_leave(tmp_path, files, told):
    found = between(tmp_path, computer() | files)
    assert {name: getattr(found, name) for name in told} == told


@pytest.mark.parametrize(
    ("files", "on_battery"),
    [
        ({}, None),
        (battery(), True),
        (battery(plugged=True), False),
        (battery("Charging", plugged=True), False),
        (battery("Not charging", plugged=True), False),
        (battery("Full"), False),
        ({k: v for k, v in battery().items() if "hidpp" in k}, None),
    ],
)
def test_a_laptop_on_its_battery_is_told(tmp_path, files, on_battery):
    assert between(tmp_path, computer() | files).on_battery is on_battery


def test_a_system_without_proc_is_asked(tmp_path):
    def program(pid, name, parent, seconds):
        info = {
            "name": name,
            "ppid": parent,
            "cpu_times": None if seconds is None else (seconds, 0.0),
            "create_time": 5.0,
        }
        return types.SimpleNamespace(pid=pid, info=info)

    def told(mine, other, idle):
        return counters(
            cpu_times=lambda: Times(mine + other, 0, idle),
            process_iter=lambda _: [
                program(os.getpid(), "python", 1, mine),
                program(77, "Xcode", 1, other),
                program(78, None, None, None),
            ],
            sensors_battery=lambda: types.SimpleNamespace(power_plugged=False),
        )

    before, after = told(1.0, 2.0, 100.0), told(1.5, 3.5, 102.0)
    found = load(look(tmp_path, before), look(tmp_path, after), tmp_path, after)
    # 4 s of 4 cores passed: one second, in which Xcode used one and a half.
    assert (found.seconds, found.others) == (1.0, 1.5)
    assert [(b.program, b.cores) for b in found.top] == [("Xcode", 1.5)]
    assert (found.swap, found.memory_free, found.on_battery) == (10**8, 5 * 10**9, True)


@pytest.mark.parametrize(
    "call",
    ["cpu_times", "process_iter", "virtual_memory", "swap_memory", "sensors_battery"],
)
@pytest.mark.parametrize("error", [OSError, RuntimeError, psutil.AccessDenied])
def test_what_such_a_system_refuses_is_unknown(tmp_path, call, error):
    def refuse(*_):
        raise error

    system = counters(**{call: refuse})
    found = load(look(tmp_path, system), look(tmp_path, system), tmp_path, system)
    known = {"memory_free", "swap", "swap_present", "top"}
    lost = {
        "virtual_memory": {"memory_free"},
        "swap_memory": {"swap", "swap_present"},
    }.get(call, set())
    told = {n for n in found.__dataclass_fields__ if getattr(found, n) is not None}
    assert told == known - lost


def test_this_computer_is_looked_at():
    first = look(Path("/"), psutil)
    # Work of our own between the looks, until the counters have moved.
    while (second := look(Path("/"), psutil)).total < first.total + 0.2:
        sum(range(10_000))
    found = load(first, second, Path("/"), psutil)
    assert found.seconds == pytest.approx(
        (second.total - first.total) / second.cores, abs=2e-3
    )
    assert 0 <= found.others <= psutil.cpu_count()
    assert found.memory_free == pytest.approx(
        psutil.virtual_memory().available, rel=0.2
    )
