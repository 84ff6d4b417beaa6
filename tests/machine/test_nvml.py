import pytest

from perfkit.machine.nvml import throttle_reasons

SAMPLE = """
from perfkit.machine.nvml import GpuReader
answer = GpuReader().sample()
"""
READINGS = {
    "nvmlDeviceGetUtilizationRates": {"gpu0_busy"},
    "nvmlDeviceGetMemoryInfo": {"gpu0_memory"},
    "nvmlDeviceGetPowerUsage": {"gpu0_power"},
    "nvmlDeviceGetClockInfo": {"gpu0_sm_clock"},
    "nvmlDeviceGetTemperature": {"gpu0_temperature"},
    "nvmlDeviceGetCurrentClocksEventReasons": {"gpu0_throttle"},
    "nvmlDeviceGetPcieThroughput": {"gpu0_pcie_rx", "gpu0_pcie_tx"},
}


def test_a_healthy_card_gives_every_reading_in_base_units(ask, scripted):
    assert ask(SAMPLE, scripted("data_centre")) == {
        "gpu0_busy": 0.87,
        "gpu0_memory": 2 * 2**30,
        "gpu0_power": 412.5,
        "gpu0_sm_clock": 1.98e9,
        "gpu0_temperature": 54.0,
        "gpu0_throttle": 4.0,
        "gpu0_pcie_tx": 1.5e6,
        "gpu0_pcie_rx": 52e6,
    }


def test_wsl_gives_what_it_gives_and_no_zeros(ask, scripted):
    sample = ask(SAMPLE, scripted("wsl"))
    assert sample == {"gpu0_memory": 2**30, "gpu0_temperature": 61.0}


@pytest.mark.parametrize("code", [1, 2, 3, 4, 10, 13, 20, 999, 4711])
def test_each_refused_call_takes_only_its_own_reading(ask, scripted, code):
    lines = """
import os
from perfkit.machine.nvml import GpuReader
answer, machine = {}, open(os.environ["NVML_MACHINE"]).read()
for call in CALLS:
    with open(os.environ["NVML_MACHINE"], "w") as script:
        script.write(f"{call} 0 !CODE\\n{machine}")
    reader = GpuReader()
    answer[call] = [sorted(reader.sample()), sorted(reader.sample())]
""".replace("CALLS", repr(list(READINGS))).replace("CODE", str(code))
    answers = ask(lines, scripted("data_centre"))
    every = set().union(*READINGS.values())
    for call, own in READINGS.items():
        first, second = answers[call]
        assert set(first) == every - own
        assert set(second) == every - own - {"gpu0_pcie_rx", "gpu0_pcie_tx"}


@pytest.mark.parametrize("mark", [2**32 - 1, 2**64 - 1])
def test_the_drivers_mark_for_no_value_is_not_a_value(ask, mark):
    machine = f"""
nvmlDeviceGetCount * 1
nvmlDeviceGetMemoryInfo 0 {mark} {mark}
nvmlDeviceGetPowerUsage 0 {2**32 - 1}
nvmlDeviceGetTemperature 0 40
"""
    assert ask(SAMPLE, machine) == {"gpu0_temperature": 40.0}


def test_a_card_that_falls_off_the_bus_leaves_the_other(ask, scripted):
    lines = """
from perfkit.machine.nvml import GpuReader
reader = GpuReader(clock=lambda: 0.0)
answer = [sorted(reader.sample()) for _ in range(3)]
"""
    readings = ["busy", "power", "temperature", "throttle"]
    first, second, third = ask(lines, scripted("two_cards_one_lost"))
    left = [f"gpu0_{name}" for name in readings]
    assert first == left + [f"gpu1_{name}" for name in readings]
    # Its ninth reading, in the middle of the second sample, is refused.
    assert second == [*left, "gpu1_busy", "gpu1_power"]
    assert third == left


def test_a_card_that_is_gone_from_the_start_leaves_the_other_its_number(ask):
    machine = """
nvmlDeviceGetCount * 2
nvmlDeviceGetHandleByIndex 0 !15
nvmlDeviceGetTemperature * 50
"""
    assert ask(SAMPLE, machine) == {"gpu1_temperature": 50.0}


def test_traffic_is_read_once_a_second_and_for_one_card_at_a_time(ask):
    machine = "nvmlDeviceGetCount * 2\nnvmlDeviceGetPcieThroughput * 1 2\n"
    lines = """
from perfkit.machine.nvml import GpuReader
times = iter([0.0, 0.2, 0.4, 1.0, 1.1, 1.2])
reader = GpuReader(clock=lambda: next(times))
answer = [sorted({key[:4] for key in reader.sample()}) for _ in range(6)]
"""
    assert ask(lines, machine) == [["gpu0"], ["gpu1"], [], ["gpu0"], [], ["gpu1"]]


def test_an_old_driver_names_its_throttling_otherwise(ask, old_driver, scripted):
    machine = scripted("data_centre").replace("EventReasons", "ThrottleReasons")
    assert ask(SAMPLE, machine, old_driver)["gpu0_throttle"] == 4.0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "installed but not loaded"),
        (18, "updated while it ran"),
        (4, "refuses this user"),
        (999, "does not answer: Unknown Error"),
        (4711, "does not answer"),
    ],
)
def test_a_driver_that_does_not_start_says_why(ask, code, words):
    lines = """
from perfkit.machine.nvml import GpuReader, gpus
reader = GpuReader()
answer = [reader.sample(), reader.why, *gpus()]
"""
    sample, why, found, again = ask(lines, f"nvmlInit * !{code}")
    assert (sample, found) == ({}, [])
    assert words in why
    assert why == again


def test_no_driver_is_no_gpu_and_a_sentence(ask, tmp_path):
    # What cannot be loaded stands before a real driver, should this machine have one.
    (tmp_path / "libnvidia-ml.so.1").touch()
    lines = """
from perfkit.machine.nvml import GpuReader, gpus
reader = GpuReader()
answer = [reader.sample(), reader.sample(), reader.why, *gpus()]
"""
    why = "No NVIDIA driver is installed."
    assert ask(lines, library=tmp_path) == [{}, {}, why, [], why]


@pytest.mark.parametrize("machine", ["nvmlDeviceGetCount * 0", "", "nonsense"])
def test_a_driver_without_cards_says_so(ask, machine):
    lines = """
from perfkit.machine.nvml import GpuReader
reader = GpuReader()
answer = [reader.sample(), reader.why]
"""
    assert ask(lines, machine) == [{}, "The NVIDIA driver reports no GPU."]


def test_a_closed_reader_opens_again(ask, scripted):
    lines = """
from perfkit.machine.nvml import GpuReader
reader = GpuReader()
reader.close()
first = reader.sample()
reader.close()
answer = [first, reader.sample()]
"""
    first, second = ask(lines, scripted("data_centre"))
    assert first == second
    assert first["gpu0_busy"] == 0.87


DESCRIBE = """
import dataclasses
from perfkit.machine.nvml import gpus
found, why = gpus()
answer = [[dataclasses.asdict(gpu) for gpu in found], why]
"""


def test_a_card_is_described_by_its_driver(ask, scripted):
    assert ask(DESCRIBE, scripted("data_centre")) == [
        [
            {
                "name": "NVIDIA H200",
                "memory": 150754820096,
                "driver": "580.95.05",
                "compute_capability": "9.0",
            }
        ],
        "",
    ]


def test_what_the_driver_does_not_tell_of_a_card_is_none(ask):
    assert ask(DESCRIBE, "nvmlDeviceGetCount * 1") == [
        [
            {
                "name": "unknown NVIDIA GPU",
                "memory": None,
                "driver": None,
                "compute_capability": None,
            }
        ],
        "",
    ]


@pytest.mark.parametrize("mask", [0, 0x1, 0x2, 0x10, 0x100, 0x113])
def test_idle_and_clocks_set_by_hand_are_not_throttling(mask):
    assert throttle_reasons(mask) == ()


def test_each_kind_of_throttling_has_words_of_its_own():
    bits = [0x4, 0x8, 0x20, 0x40, 0x80, 0x200, 0x400, 0x8000]
    words = [throttle_reasons(bit) for bit in bits]
    assert all(len(reasons) == 1 for reasons in words)
    assert len(set(words)) == len(bits)
    assert throttle_reasons(float(0x44 | 0x1)) == (*words[0], *words[3])
    assert throttle_reasons(0x8000) == ("reason 0x8000",)
