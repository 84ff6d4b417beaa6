"""Each call of the driver fails in turn, in several ways."""

import subprocess

import pytest

from tests.machine.drivers import answer_of, script

# Refusals, errors of the machine, and one that has no name.
CODES = (2, 3, 4, 6, 13, 15, 999, 4711)
NOT_FOUND, GPU_IS_LOST = 13, 15
EVERYTHING = """
nvmlDeviceGetMemoryInfo * 1000 400 0
nvmlDeviceGetCurrentClocksThrottleReasons * 0x4
nvmlDeviceGetCurrentClocksEventReasons * 0x4
nvmlDeviceGetComputeRunningProcesses * self:1000
nvmlDeviceGetGraphicsRunningProcesses * parent:900
nvmlDeviceGetUtilizationRates * 70 20
nvmlDeviceGetPcieThroughput * 10 20
"""
# Each fact that is known has a name: of what it is told, the fact, and the sample.
EACH = """
import dataclasses, os
from perfkit.machine.nvml import UNKNOWN, GpuReader, gpus

def look(before=""):
    with open(os.environ["NVML_MACHINE"], "w") as script:
        script.write(before + machine)
    driver, cards, why = gpus()
    facts = {f"driver {name}": value for name, value in vars(driver).items()}
    facts["driver why"] = why
    for number, gpu in enumerate(cards):
        card = dataclasses.asdict(gpu)
        for part in ("link", "clocks"):
            card |= {f"{part}.{name}": value for name, value in card.pop(part).items()}
        holders = card.pop("holders") or ()
        card |= {"ours" if h["own"] else "others": h["memory"] for h in holders}
        facts |= {f"gpu{number} {name}": value for name, value in card.items()}
    reader = GpuReader(clock=lambda: 0.0)
    for number in (1, 2):
        for name, value in reader.sample().items():
            facts[f"{name.replace('_', ' run.', 1)} {number}"] = value
    reader.close()
    return {n: value for n, value in facts.items() if value not in (None, UNKNOWN)}

machine = open(os.environ["NVML_MACHINE"]).read()
without = {
    str(code): {call: look(f"{call} * !{code}\\n") for call in calls} for code in codes
}
answer = [look(), without]
"""
# What is lost with each call, of a description and of a run.
LOST = """
DeviceGetComputeRunningProcesses_v3 ours others
DeviceGetCudaComputeCapability compute_capability
DeviceGetCurrPcieLinkGeneration link.generation run.link_generation
DeviceGetCurrPcieLinkWidth link.width run.link_width
DeviceGetCurrentClocksEventReasons clocks.throttle run.throttle
DeviceGetGraphicsRunningProcesses_v3 others
DeviceGetMaxClockInfo clocks.sm_max clocks.memory_max
DeviceGetMaxPcieLinkGeneration link.generation_max
DeviceGetMaxPcieLinkWidth link.width_max
DeviceGetMemoryBusWidth memory_bus
DeviceGetMemoryInfo memory memory_used run.memory
DeviceGetName name
DeviceGetNumGpuCores cores
DeviceGetUtilizationRates busy run.busy
DeviceGetPowerUsage run.power
DeviceGetClockInfo run.sm_clock
DeviceGetTemperature run.temperature
DeviceGetPcieThroughput run.pcie_rx run.pcie_tx
SystemGetCudaDriverVersion cuda
SystemGetDriverVersion version driver
"""
LOST = {f"nvml{call}": names for call, *names in map(str.split, LOST.split("\n")[1:-1])}
# With these there are no cards; each has a test of its own.
EVERYTHING_LOST = {
    *("nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"),
}


def exported(library):
    """The calls that a library has, as its own table of symbols tells them."""
    table = ["nm", "-D", "--defined-only", library / "libnvidia-ml.so.1"]
    names = subprocess.run(table, check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in names.splitlines() if " nvml" in line}


@pytest.fixture(scope="module")
def looked(driver, tmp_path_factory):
    """A machine whole, and with each call failing in turn, by error."""
    file = tmp_path_factory.mktemp("machine") / "machine.txt"
    file.write_text(EVERYTHING + script("hopper"))
    failing = f"calls, codes = {sorted(exported(driver))}, {CODES}\n"
    return answer_of(failing + EACH, driver, file)


@pytest.fixture(params=CODES)
def each(looked, request):
    """The error, the machine whole, and with each call failing so."""
    whole, without = looked
    return request.param, whole, without[str(request.param)]


def test_a_call_that_fails_takes_its_own_readings_alone(each):
    code, whole, without = each
    for call in without.keys() - EVERYTHING_LOST:
        facts, lost = without[call], LOST.get(call, ())
        if call == "nvmlDeviceGetCurrentClocksEventReasons" and code == NOT_FOUND:
            # It is known by its older name.
            lost = ()
        assert facts.items() <= whole.items()
        expected = {name for name in whole if name.split()[1] in lost}
        missing = whole.keys() - facts.keys()
        if code == GPU_IS_LOST:
            # A run asks a card that is lost for nothing more.
            expected, missing = (
                {name for name in names if " run." not in name}
                for names in (expected, missing)
            )
        assert missing == expected, call


def test_a_driver_that_does_not_start_or_count_has_no_cards_and_a_reason(each):
    _, _, without = each
    for call in ("nvmlInitWithFlags", "nvmlDeviceGetCount_v2"):
        facts = without[call]
        assert facts["driver why"].endswith(".")
        assert bool(facts["driver problem"]) == (call == "nvmlInitWithFlags")
        assert {name.split()[0] for name in facts} == {"driver"}


@pytest.mark.fault("doctor", "GPU lost", sees="The card, with the driver's reason.")
def test_cards_that_the_driver_gives_no_access_to_are_told_of_all_the_same(each):
    _, whole, without = each
    facts = without["nvmlDeviceGetHandleByIndex_v2"]
    assert facts["driver why"] == ""
    for number in range(2):
        gpu = f"gpu{number} "
        card = {n.removeprefix(gpu): v for n, v in facts.items() if n.startswith(gpu)}
        assert card.pop("lost")
        assert card == {"driver": whole["driver version"], "divided": False}


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
