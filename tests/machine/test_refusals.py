"""Cards that the driver refuses to give access to, and no library that asks it."""

import pytest

from perfkit.machine.nvml import UNKNOWN
from perfkit.machine.record import Gpu
from tests.machine.drivers import script

# Refusals, errors of the machine, and one that has no name.
CODES = (2, 3, 4, 6, 13, 15, 999, 4711)


@pytest.mark.fault("doctor", "GPU lost", sees="The card, with the driver's reason.")
def test_cards_that_the_driver_gives_no_access_to_are_told_of_all_the_same(describe):
    machine = script("hopper")
    refused = [f"nvmlDeviceGetHandleByIndex * !{code}\n{machine}" for code in CODES]
    for driver, gpus, why in describe(*refused):
        assert why == ""
        assert [bool(gpu.lost) for gpu in gpus] == [True, True]
        for gpu in gpus:
            assert gpu == Gpu(name=UNKNOWN, driver=driver.version, lost=gpu.lost)


def test_without_nvidia_ml_py_there_is_a_sentence_that_says_how_to_get_it(ask):
    lines = """
import sys
sys.modules["pynvml"] = None
from perfkit.machine.nvml import GpuReader, gpus
reader = GpuReader()
answer = [*gpus(), reader.sample()]
"""
    driver, found, why, sample = ask(lines, "nvmlDeviceGetCount * 1")
    assert (driver, found, sample) == (None, [], {})
    assert "pip install nvidia-ml-py" in why
