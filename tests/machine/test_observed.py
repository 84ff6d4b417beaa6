import pytest

from perfkit.machine.gpu import Clocks, Gpu, Link
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


def test_a_link_is_judged_by_what_it_did_while_the_gpu_worked():
    gpu = seen(
        busy=[0.0, 0.0, 0.9, 0.9, 0.8, 0.0],
        link_generation=[1, 1, 3, 4, 4, 1],
        link_width=[16, 16, 8, 8, 8, 16],
    )
    assert (gpu.link.busy_generation, gpu.link.busy_width) == (4, 8)
    assert (gpu.link.generation, gpu.link.generation_max) == (1, 4)


def test_copies_are_work_though_no_kernel_runs():
    gpu = seen(
        busy=[0.0] * 5,
        pcie_rx=[0.0, 6e9, None, 6e9, 6e9],
        link_generation=[1, 3, 3, 3, 3],
    )
    assert gpu.link.busy_generation == 3


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


def test_no_samples_tell_nothing():
    assert observed([CARD, CARD], {}) == (CARD, CARD)


def test_what_slowed_the_work_is_told_in_words_and_what_idling_did_is_not():
    gpu = seen(busy=[0.9] * 8 + [0.0] * 9, throttle=[POWER] * 8 + [HOT | IDLE] * 9)
    assert gpu.clocks.busy_throttle == ("power limit reached",)
    assert gpu.link.busy_generation is None


def test_a_reason_that_shows_once_in_a_while_slowed_nothing():
    gpu = seen(busy=[0.9] * 21, throttle=[HOT, HOT] + [0] * 19)
    assert gpu.clocks.busy_throttle == ()
    gpu = seen(busy=[0.9] * 20, throttle=[HOT, HOT] + [0] * 18)
    assert len(gpu.clocks.busy_throttle) == 1


def test_without_a_reading_of_throttling_nothing_is_said_of_it():
    assert seen(busy=[0.9] * 9).clocks.busy_throttle is None


def test_where_the_driver_hides_how_busy_it_is_not_being_idle_is_work():
    gpu = seen(throttle=[IDLE, 0, 0, 0x2], link_generation=[1, 4, 4, 4])
    assert gpu.link.busy_generation == 4
    assert gpu.clocks.busy_throttle == ()


def test_each_gpu_is_told_of_by_its_own_number():
    columns = {
        "gpu1_busy": (0.9,) * 5,
        "gpu1_link_generation": (2,) * 5,
        "gpu0_busy": (0.0,) * 5,
        "gpu0_link_generation": (1,) * 5,
    }
    first, second = observed([CARD, CARD], columns)
    assert first == CARD
    assert second.link.busy_generation == 2


def test_columns_of_unlike_length_are_read_as_far_as_they_go():
    gpu = seen(busy=[0.9] * 9, link_generation=[3] * 4, link_width=[])
    assert (gpu.link.busy_generation, gpu.link.busy_width) == (3, None)
