from operator import attrgetter

import pytest

from perfkit.machine.gpu import Clocks, Gpu, Link, throttle_reasons
from perfkit.machine.load import observed

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
