import pytest

from tests.machine.drivers import script

READER = """
from perfkit.machine.nvml import GpuReader
reader = GpuReader()
sample = reader.sample
"""
GONE = """\
nvmlDeviceGetCount * 2
nvmlDeviceGetHandleByIndex 0 !15
nvmlDeviceGetTemperature * 50
"""
HEALTHY = {
    "gpu0_busy": 0.87,
    "gpu0_memory": 2 * 2**30,
    "gpu0_power": 412.5,
    "gpu0_sm_clock": 1.98e9,
    "gpu0_temperature": 54.0,
    "gpu0_throttle": 0.0,
    "gpu0_link_generation": 5.0,
    "gpu0_link_width": 16.0,
    "gpu0_pcie_tx": 1.5e6,
    "gpu0_pcie_rx": 52e6,
}


@pytest.mark.parametrize(
    ("machine", "readings"),
    [
        (script("data_centre"), HEALTHY),
        # WSL gives what it gives, and no zeros.
        (script("wsl"), {"gpu0_memory": 2**30, "gpu0_temperature": 61.0,
         "gpu0_link_generation": 4.0, "gpu0_link_width": 8.0}),
        # A card that is gone from the start leaves the other its number.
        (GONE, {"gpu1_temperature": 50.0}),
    ],
    ids=["healthy", "WSL", "one gone"],
)  # fmt: skip
def test_a_card_gives_its_readings_in_base_units_and_again(ask, machine, readings):
    lines = f"{READER}answer = [sample(), reader.close(), sample()]"
    first, _, again = ask(lines, machine)
    # One that was closed opens again.
    assert first == again == readings


@pytest.mark.fault("monitor", "GPU lost", sees="The readings of the other card go on.")
def test_a_card_that_falls_off_the_bus_leaves_the_other(ask):
    lines = """
from perfkit.machine.nvml import GpuReader
reader = GpuReader(clock=lambda: 0.0)
answer = [sorted(reader.sample()) for _ in range(3)]
"""
    readings = ["busy", "power", "temperature", "throttle"]
    first, second, third = ask(lines, script("two_cards_one_lost"))
    left = [f"gpu0_{name}" for name in readings]
    assert first == left + [f"gpu1_{name}" for name in readings]
    # Its thirteenth reading, in the middle of the second sample, is refused.
    assert second == [*left, "gpu1_busy", "gpu1_power"]
    assert third == left
