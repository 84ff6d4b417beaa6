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


def test_other_programs_are_counted_in_cores(tmp_path):
    others = [("chrome", 90), ("backup", 45)]
    found = between(tmp_path, computer(), busy(mine=100, others=others))
    # 30 ticks passed: 90 of them are three cores.
    assert found.seconds == 0.3
    assert found.others == 4.5
    assert [(b.program, b.cores) for b in found.top] == [
        ("chrome", 3.0),
        ("backup", 1.5),
    ]


def test_what_this_process_started_is_not_others(tmp_path):
    after = busy(others=[("python", 60), ("python", 30), ("cc", 15)])
    after["proc/500/stat"] = process(500, "python", parent=ME, used=60)
    after["proc/501/stat"] = process(501, "python", parent=500, used=30)
    found = between(tmp_path, computer(), after)
    assert found.others == 0.5
    assert [b.program for b in found.top] == ["cc"]


def test_a_child_that_ended_meanwhile_is_not_others(tmp_path):
    after = busy(mine=30, others=[("chrome", 30)])
    after[f"proc/{ME}/stat"] = process(ME, "python", used=6, ended=24)
    assert between(tmp_path, computer(), after).others == 1.0


def test_children_that_others_ended_are_not_counted_twice(tmp_path):
    after = busy(others=[("make", 15)])
    after["proc/500/stat"] = process(500, "make", used=15, ended=3000)
    assert between(tmp_path, computer(), after).top[0].cores == 0.5


def test_a_number_that_was_given_again_is_another_program(tmp_path):
    before = computer() | {"proc/500/stat": process(500, "old", used=9000)}
    after = busy(others=[("new", 30)])
    after["proc/500/stat"] = process(500, "new", used=30, started=77)
    assert between(tmp_path, before, after).top[0].cores == 1.0


def test_programs_of_one_name_are_told_together(tmp_path):
    found = between(tmp_path, computer(), busy(others=[("python3", 12)] * 5))
    assert [(b.program, b.cores) for b in found.top] == [("python3", 2.0)]


def test_only_the_busiest_are_named_and_none_that_hardly_works(tmp_path):
    others = [(f"p{n}", 30 - n) for n in range(7)] + [("clock", 2)]
    assert [
        b.program for b in between(tmp_path, computer(), busy(others=others)).top
    ] == [
        "p0",
        "p1",
        "p2",
        "p3",
        "p4",
    ]
    assert between(tmp_path, computer(), busy(others=[("clock", 2)])).top == ()


def test_a_program_may_call_itself_anything(tmp_path):
    name = "x) R 1 (y"
    assert (
        between(tmp_path, computer(), busy(others=[(name, 30)])).top[0].program == name
    )


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


def test_swap_in_use_is_what_is_not_free(tmp_path):
    text = meminfo(16, swap=8, swap_free=5)
    found = between(tmp_path, computer() | {"proc/meminfo": text})
    assert (found.swap, found.swap_present) == (3 * 1024 * 10**6, 8 * 1024 * 10**6)


def test_no_swap_is_known_to_be_none(tmp_path):
    found = between(tmp_path, computer() | {"proc/meminfo": meminfo(16, swap=0)})
    assert (found.swap, found.swap_present) == (0, 0)


def test_free_memory_is_what_the_system_can_give(tmp_path):
    files = computer() | {"proc/meminfo": meminfo(16, available=6)}
    assert between(tmp_path, files).memory_free == 6 * 1024 * 10**6


@pytest.mark.parametrize("quota", [quota_v1, quota_v2])
def test_a_container_has_no_more_than_its_limit_leaves(tmp_path, quota):
    # Of the 2 GB in use a quarter is files that it has read, and can be let go.
    files = computer() | quota(cores=2, gigabytes=3, used=2)
    assert between(tmp_path, files).memory_free == 1.5e9


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
