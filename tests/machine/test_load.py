import os
import types
from operator import attrgetter
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from perfkit.machine.gpu import Clocks, Gpu, Link, throttle_reasons
from perfkit.machine.load import load, look, observed
from perfkit.machine.record import Busy
from tests.machine import trees
from tests.machine.trees import (
    battery,
    busy,
    computer,
    counters,
    grow,
    meminfo,
    process,
)

ANY = counters()


def between(root, before, after=None):
    """The load between two states of the files."""
    first = look(grow(root, before), ANY)
    return load(first, look(grow(root, after or {}), ANY), root, ANY)


CHILDREN = busy(others=[("python", 60), ("python", 30), ("cc", 15)]) | {
    "proc/500/stat": process(500, "python", parent=trees.ME, used=60),
    "proc/501/stat": process(501, "python", parent=500, used=30),
}
ENDED = {f"proc/{trees.ME}/stat": process(trees.ME, "python", used=6, ended=24)}
OLD_CHILD = "proc/600/stat"
AT_WORK = {OLD_CHILD: process(600, "python", parent=trees.ME, used=9000)}
# Its 9,000 ticks of before come with the 24 of between.
REAPED = {f"proc/{trees.ME}/stat": process(trees.ME, "python", used=6, ended=9024)}
MAKE = {"proc/500/stat": process(500, "make", used=15, ended=3000)}
OLD = {"proc/500/stat": process(500, "old", used=9000)}
NEW = {"proc/500/stat": process(500, "new", used=30, started=77)}


KIB = 1024 * 10**6
OLD_KERNEL = "cpu  {} 0 0 100\ncpu0 1 0 0 1\n"
MOUSE = {path: text for path, text in battery().items() if "hidpp" in path}


def stat(text):
    return {"proc/stat": text}


def others(cores, *top):
    """What is told of other programs, after 30 ticks: 90 of them are three cores."""
    named = tuple(Busy(program=name, cores=used) for name, used in top)
    return {"seconds": 0.3, "others": cores, "top": named}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        # Other programs are counted in cores.
        ({}, busy(mine=100, others=[("chrome", 90), ("backup", 45)]),
         others(4.5, ("chrome", 3.0), ("backup", 1.5))),
        # What this process started is not others, nor is a child that ended.
        ({}, CHILDREN, others(0.5, ("cc", 0.5))),
        ({}, busy(mine=30, others=[("chrome", 30)]) | ENDED,
         others(1.0, ("chrome", 1.0))),
        (AT_WORK, busy(mine=30, others=[("chrome", 30)]) | REAPED | {OLD_CHILD: ""},
         others(1.0, ("chrome", 1.0))),
        # Children that others ended are not counted twice.
        ({}, busy(others=[("make", 15)]) | MAKE, others(0.5, ("make", 0.5))),
        # A number that was given again is another program.
        (OLD, busy(others=[("new", 30)]) | NEW, others(1.0, ("new", 1.0))),
        # Programs of one name are told together.
        ({}, busy(others=[("python3", 12)] * 5), others(2.0, ("python3", 2.0))),
        # Only the busiest are named, and none that hardly works.
        ({}, busy(others=[*((f"p{n}", 30 - 3 * n) for n in range(7)), ("clock", 2)]),
         others(4.967, *((f"p{n}", round(1 - n / 10, 1)) for n in range(5)))),
        ({}, busy(others=[("clock", 2)]), others(0.067)),
        # A program may call itself anything.
        ({}, busy(others=[("x) R 1 (y", 30)]), others(1.0, ("x) R 1 (y", 1.0))),
        # What a hypervisor gave to others is a share of the time; an old kernel does
        # not tell of it.
        (computer(cores=4), busy(cores=4, steal=3 * trees.WINDOW),
         {"steal": 0.75, "others": 0}),
        (stat(OLD_KERNEL.format(10)), stat(OLD_KERNEL.format(40)),
         {"steal": None, "seconds": 0.3, "others": 1.0}),
        # Without counters nothing is claimed, nor where they were set back.
        *[(stat(text), stat(text), {"seconds": None, "others": None, "steal": None,
           "top": (), "swap_present": 2 * KIB})
          for text in ("", "cpu  0 0 0 0 0 0 0 0\n", "cpu  1 2\n", "\0\xff")],
        (busy(others=[("x", 60)]), computer(),
         {"seconds": None, "others": None, "top": ()}),
        # Where this process is not seen others are unknown.
        ({"proc/self/stat": process(9999, "python")}, busy(others=[("chrome", 60)]),
         {"seconds": 0.3, "others": None, "top": ()}),
        # Memory is what the system and the limits leave; no swap is known to be none.
        ({"proc/meminfo": meminfo(16, swap=8, swap_free=5)}, {},
         {"swap": 3 * KIB, "swap_present": 8 * KIB}),
        ({"proc/meminfo": meminfo(16, swap=0)}, {}, {"swap": 0, "swap_present": 0}),
        ({"proc/meminfo": meminfo(16, available=6)}, {}, {"memory_free": 6 * KIB}),
        # Of the 2 GB in use a quarter is files that were read, and can be let go.
        *[(quota(cores=2, gigabytes=3, used=2), {}, {"memory_free": 1.5e9})
          for quota in (trees.quota_v1, trees.quota_v2)],
        # The swap of a container is its own, where a limit cuts its memory.
        *[(quota(cores=2, gigabytes=gigabytes, swap=7) | {"proc/meminfo":
           meminfo(16, swap=8, swap_free=5)}, {}, {"swap": swap})
          for quota in (trees.quota_v1, trees.quota_v2)
          for gigabytes, swap in ((3, 7), (20, 3 * KIB))],
        (trees.quota_v2(2, 3, swap="hidden"), {}, {"swap": None}),
        # A laptop on its battery is told.
        *[(files, {}, {"on_battery": on_battery}) for files, on_battery in (
            ({}, None), (battery(), True), (battery(plugged=True), False),
            (battery("Charging", plugged=True), False),
            (battery("Not charging", plugged=True), False), (battery("Full"), False),
            (MOUSE, None))],
    ],
)  # fmt: skip
def test_what_changes_between_two_looks_is_told(tmp_path, before, after, told):
    found = between(tmp_path, computer() | before, after)
    assert {name: getattr(found, name) for name in told} == told


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
            cpu_times=lambda: trees.Times(mine + other, 0, idle),
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
    ("call", "lost"),
    [
        ("cpu_times", set()),
        ("process_iter", set()),
        ("virtual_memory", {"memory_free"}),
        ("swap_memory", {"swap", "swap_present"}),
        ("sensors_battery", set()),
    ],
)
@pytest.mark.parametrize("error", [OSError, RuntimeError, psutil.AccessDenied])
def test_what_such_a_system_refuses_is_unknown(tmp_path, call, lost, error):
    system = counters(**{call: Mock(side_effect=error)})
    found = load(look(tmp_path, system), look(tmp_path, system), tmp_path, system)
    told = {n for n in found.__dataclass_fields__ if getattr(found, n) is not None}
    assert told == {"memory_free", "swap", "swap_present", "top"} - lost


def test_this_computer_is_looked_at():
    first = look(Path("/"), psutil)
    # Work of our own between the looks, until the counters have moved.
    while (second := look(Path("/"), psutil)).total < first.total + 0.2:
        sum(range(10_000))
    found = load(first, second, Path("/"), psutil)
    seconds = (second.total - first.total) / second.cores
    assert found.seconds == pytest.approx(seconds, abs=2e-3)
    assert 0 <= found.others <= psutil.cpu_count()
    free = psutil.virtual_memory().available
    assert found.memory_free == pytest.approx(free, rel=0.2)


CARD = Gpu(
    name="NVIDIA RTX A4000",
    link=Link(generation=1, width=16, generation_max=4, width_max=16),
    clocks=Clocks(sm=210e6, throttle=()),
)
IDLE, POWER, HOT = 0x1, 0x4, 0x40


def seen(**columns):
    """The first GPU after a run with these columns."""
    (gpu,) = observed([CARD], {f"gpu0_{n}": tuple(v) for n, v in columns.items()})
    return gpu


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        # A link is judged by what it did while the GPU worked.
        ({"busy": [0.0, 0.0, 0.9, 0.9, 0.8, 0.0],
          "link_generation": [1, 1, 3, 4, 4, 1], "link_width": [16, 16, 8, 8, 8, 16]},
         {"link.busy_generation": 4, "link.busy_width": 8, "link.generation": 1,
          "link.generation_max": 4}),
        # Copies are work though no kernel runs.
        ({"busy": [0.0] * 5, "pcie_rx": [0.0, 6e9, None, 6e9, 6e9],
          "link_generation": [1, 3, 3, 3, 3]}, {"link.busy_generation": 3}),
        # What slowed the work is told in words, and what idling did is not.
        ({"busy": [0.9] * 8 + [0.0] * 9, "throttle": [POWER] * 8 + [HOT | IDLE] * 9},
         {"clocks.busy_throttle": ("power limit reached",),
          "link.busy_generation": None}),
        # A reason that shows once in a while slowed nothing.
        ({"busy": [0.9] * 21, "throttle": [HOT, HOT] + [0] * 19},
         {"clocks.busy_throttle": ()}),
        ({"busy": [0.9] * 20, "throttle": [HOT, HOT] + [0] * 18},
         {"clocks.busy_throttle": ("too hot, slowed by the hardware",)}),
        ({"busy": [0.9] * 9, "throttle": [HOT] + [0] * 8},
         {"clocks.busy_throttle": ()}),
        ({"busy": [0.9] * 9}, {"clocks.busy_throttle": None}),
        # Where the driver hides how busy it is, not being idle is work.
        ({"throttle": [IDLE, 0, 0, 0x2], "link_generation": [1, 4, 4, 4]},
         {"link.busy_generation": 4, "clocks.busy_throttle": ()}),
        # Columns of unlike length are read as far as they go.
        ({"busy": [0.9] * 9, "link_generation": [3] * 4, "link_width": []},
         {"link.busy_generation": 3, "link.busy_width": None}),
    ],
)  # fmt: skip
def test_what_was_seen_while_it_worked_is_told(columns, told):
    gpu = seen(**columns)
    assert {place: attrgetter(place)(gpu) for place in told} == told


@pytest.mark.parametrize(
    "columns",
    [
        {"busy": [0.0] * 50},
        {"busy": [0.1] * 50, "pcie_tx": [1e6] * 50},
        {"busy": [0.9] * 2 + [0.0] * 48},
        {"busy": [None] * 50},
        {"throttle": [IDLE] * 50},
        {},
    ],
)
def test_a_gpu_that_hardly_worked_tells_nothing(columns):
    idle = {"throttle": [POWER | IDLE] * 50} | columns
    assert seen(link_generation=[1] * 50, **idle) == CARD
    assert observed([CARD, CARD], {}) == (CARD, CARD)


def test_each_gpu_is_told_of_by_its_own_number():
    columns = {
        f"gpu{number}_{name}": (value,) * 5
        for number, busy, generation in ((0, 0.0, 1), (1, 0.9, 2))
        for name, value in (("busy", busy), ("link_generation", generation))
    }
    first, second = observed([CARD, CARD], columns)
    assert first == CARD
    assert second.link.busy_generation == 2


def test_each_kind_of_throttling_has_words_of_its_own():
    bits = [0x4, 0x8, 0x20, 0x40, 0x80, 0x200, 0x400, 0x8000]
    words = [throttle_reasons(bit) for bit in bits]
    assert all(len(reasons) == 1 for reasons in words)
    assert len(set(words)) == len(bits)
    assert throttle_reasons(float(0x44 | 0x1)) == (*words[0], *words[3])
    assert throttle_reasons(0x8000) == ("reason 0x8000",)
    # Idle and clocks set by hand are none.
    none = [throttle_reasons(mask) for mask in (0, 0x1, 0x2, 0x10, 0x100, 0x113)]
    assert none == [()] * 6
