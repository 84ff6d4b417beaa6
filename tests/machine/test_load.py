import os
from operator import attrgetter
from unittest.mock import Mock, patch

import psutil
import pytest

from perfkit.machine import collect
from perfkit.machine.collect import observed
from perfkit.machine.record import Busy, Clocks, Gpu, Link
from tests.machine.trees import System, Times


def between(root, system):
    """The load of a system."""
    with patch.object(collect, "psutil", system):
        return collect.load(root)


ME = os.getpid()
SELF = (ME, "python", 1, 2.0)
CHILD, GRANDCHILD = (50, "python", ME, 1.0), (51, "cc", 50, 0.5)


def of(*processes):
    return System(processes=processes)


def top(*programs):
    return tuple(Busy(program=name, cores=cores) for name, cores in programs)


@pytest.mark.parametrize(
    ("system", "others", "busiest"),
    [
        # Other programs are counted in cores.
        (of(SELF, (60, "chrome", 1, 3.0), (61, "backup", 1, 1.5)), 4.5,
         top(("chrome", 3.0), ("backup", 1.5))),
        # What this process started is not others.
        (of(SELF, CHILD, GRANDCHILD, (60, "chrome", 1, 1.0)), 1.0,
         top(("chrome", 1.0))),
        # Programs of one name are told together; the clock that ticks is not named.
        (of(SELF, *((n, "python3", 1, 0.4) for n in range(70, 75)),
            (80, "clock", 1, 0.05)), 2.05, top(("python3", 2.0))),
        # Where no process is seen others are unknown.
        (System(process_iter=lambda _: []), None, ()),
        # Without counters nothing is claimed, nor where no time passed.
        (System(cpu_times_percent=Times), None, ()),
    ],
)  # fmt: skip
def test_what_other_programs_take_is_told(tmp_path, system, others, busiest):
    found = between(tmp_path, system)
    assert found.others == (others if others is None else pytest.approx(others))
    assert found.top == busiest


@pytest.mark.parametrize("error", [OSError, RuntimeError, psutil.AccessDenied])
def test_what_a_system_refuses_is_unknown(tmp_path, error):
    refuses = Mock(side_effect=error)
    found = between(tmp_path, System(cpu_times_percent=refuses, virtual_memory=refuses))
    assert found.others is found.memory_free is None


CARD = Gpu(
    name="NVIDIA RTX A4000",
    link=Link(generation=1, width=16, generation_max=4, width_max=16),
    clocks=Clocks(sm_max=2e9, throttle=()),
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
        # What slowed the work is told in words, and what idling did is not.
        ({"busy": [0.9] * 8 + [0.0] * 9, "throttle": [POWER] * 8 + [HOT | IDLE] * 9},
         {"clocks.busy_throttle": ("power limit reached",),
          "link.busy_generation": None}),
        # A reason that shows once in a while slowed nothing.
        ({"busy": [0.9] * 21, "throttle": [HOT, HOT] + [0] * 19},
         {"clocks.busy_throttle": ()}),
        ({"busy": [0.9] * 20, "throttle": [HOT, HOT] + [0] * 18},
         {"clocks.busy_throttle": ("too hot, slowed by the hardware",)}),
        ({"busy": [0.9] * 9}, {"clocks.busy_throttle": None}),
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
        {"busy": [0.1] * 50},
        {"busy": [0.9] * 2 + [0.0] * 48},
        {"busy": [None] * 50},
        {},
    ],
)
def test_a_gpu_that_hardly_worked_tells_nothing(columns):
    idle = {"throttle": [POWER | IDLE] * 50} | columns
    assert seen(link_generation=[1] * 50, **idle) == CARD
    # Each is told of by its own number.
    worked = {"gpu1_busy": (0.9,) * 5, "gpu1_link_generation": (2,) * 5}
    first, second = observed([CARD, CARD], worked)
    assert (first, second.link.busy_generation) == (CARD, 2)
