"""Each call of the driver fails in turn, in several ways."""

import subprocess

import pytest

from perfkit.machine.nvml import UNKNOWN
from tests.machine.drivers import answer_of, leaves, script

# Refusals, errors of the machine, and one that has no name.
CODES = (2, 3, 4, 6, 13, 15, 999, 4711)


def calls(lines):
    """By call, whose beginning is left out, the words that stand behind it."""
    told = map(str.split, lines.strip().splitlines())
    return {f"nvml{call}": set(words) for call, *words in told}


def named(text):
    return {f"nvml{call}" for call in text.split()}


EVERYTHING = """
nvmlDeviceGetMemoryInfo * 1000 400 0
nvmlDeviceGetCurrentClocksThrottleReasons * 0x4
nvmlDeviceGetCurrentClocksEventReasons * 0x4
nvmlDeviceGetComputeRunningProcesses * self:1000
nvmlDeviceGetGraphicsRunningProcesses * parent:900
nvmlDeviceGetUtilizationRates * 70 20
nvmlDeviceGetPcieThroughput * 10 20
"""


EACH = """
import dataclasses, os
from perfkit.machine.nvml import GpuReader, gpus

def look(before=""):
    with open(os.environ["NVML_MACHINE"], "w") as script:
        script.write(before + machine)
    driver, found, why = gpus()
    reader = GpuReader(clock=lambda: 0.0)
    samples = [reader.sample(), reader.sample()]
    reader.close()
    cards = [dataclasses.asdict(gpu) for gpu in found]
    return [driver and dataclasses.asdict(driver), cards, why, *samples]

machine = open(os.environ["NVML_MACHINE"]).read()
without = {
    str(code): {call: look(f"{call} * !{code}\\n") for call in CALLS} for code in CODES
}
answer = [look(), without]
"""


# What is lost with each call; whatever else is there must not change.
LOST = calls("""
DeviceGetComputeRunningProcesses_v3 holders
DeviceGetCudaComputeCapability compute_capability
DeviceGetCurrPcieLinkGeneration link.generation
DeviceGetCurrPcieLinkWidth link.width
DeviceGetCurrentClocksEventReasons clocks.throttle
DeviceGetGraphicsRunningProcesses_v3 drawing
DeviceGetMaxClockInfo clocks.sm_max clocks.memory_max
DeviceGetMaxPcieLinkGeneration link.generation_max
DeviceGetMaxPcieLinkWidth link.width_max
DeviceGetMemoryBusWidth memory_bus
DeviceGetMemoryInfo memory memory_used
DeviceGetName name
DeviceGetNumGpuCores cores
DeviceGetUtilizationRates busy
""")


NOTHING_LOST = named("""
DeviceGetComputeRunningProcesses_v2 DeviceGetMemoryInfo_v2 DeviceGetMigMode
DeviceGetCurrentClocksThrottleReasons DeviceGetGraphicsRunningProcesses_v2 ErrorString
Shutdown DeviceGetClockInfo DeviceGetPcieThroughput DeviceGetPowerUsage
DeviceGetTemperature
""")
# They are asked of the machine; each has a test of its own.
OF_THE_MACHINE = named("""
DeviceGetCount_v2 DeviceGetHandleByIndex_v2 InitWithFlags SystemGetCudaDriverVersion
SystemGetDriverVersion
""")
# An older driver knows these by another name only, and that is asked then.
RENAMED = named("""
DeviceGetComputeRunningProcesses_v3 DeviceGetGraphicsRunningProcesses_v3
DeviceGetCurrentClocksEventReasons
""")


# What a run loses with each call; a card that is lost is asked for nothing more.
OF_A_RUN = calls("""
DeviceGetUtilizationRates busy
DeviceGetMemoryInfo memory
DeviceGetPowerUsage power
DeviceGetClockInfo sm_clock
DeviceGetTemperature temperature
DeviceGetCurrentClocksEventReasons throttle
DeviceGetCurrPcieLinkGeneration link_generation
DeviceGetCurrPcieLinkWidth link_width
DeviceGetPcieThroughput pcie_rx pcie_tx
""")


GPU_IS_LOST = 15


def exported(library):
    """The calls that a library has, as its own table of symbols tells them."""
    table = ["nm", "-D", "--defined-only", library / "libnvidia-ml.so.1"]
    names = subprocess.run(table, check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in names.splitlines() if " nvml" in line}


def lost_with(call, code):
    """What is to be refused when this call fails in this way."""
    if call in RENAMED and code == 13:
        return set()
    return LOST.get(call, set())


def told(card):
    """The fields of a card by their dotted names, but for those told of apart."""
    return leaves({k: v for k, v in card.items() if k != "holders"})


def look(driver, folder, machine, codes=CODES):
    """Look at a machine whole, and with each call failing in turn, by error."""
    file = folder / "machine.txt"
    file.write_text(machine)
    failing = repr(sorted(exported(driver)))
    lines = EACH.replace("CODES", repr(codes)).replace("CALLS", failing)
    return answer_of(lines, driver, file)


@pytest.fixture(scope="module")
def looked(driver, tmp_path_factory):
    machine = EVERYTHING + script("hopper")
    return look(driver, tmp_path_factory.mktemp("machine"), machine)


@pytest.fixture
def each(looked):
    """A machine whole, and with each call failing in turn in one way."""
    whole, without = looked
    return lambda code: (whole, without[str(code)])


def test_every_call_that_the_library_has_is_known_here(driver, ask):
    known = {*LOST, *NOTHING_LOST, *OF_THE_MACHINE}
    assert exported(driver) == known
    assert len(known) == len(LOST) + len(NOTHING_LOST) + len(OF_THE_MACHINE)
    # The library has every call that is asked for.
    lines = """
import pynvml
from perfkit.machine.nvml import GpuReader, gpus
asked, find = set(), pynvml._nvmlGetFunctionPointer
pynvml._nvmlGetFunctionPointer = lambda name: asked.add(name) or find(name)
gpus(), GpuReader().sample()
answer = sorted(asked)
"""
    asked = {*ask(lines, script("hopper"))}
    assert len(asked) > 20
    assert asked <= exported(driver)


@pytest.mark.parametrize("code", CODES)
def test_a_call_that_fails_takes_its_own_readings_alone(each, code):
    whole, without = each(code)
    _, cards, _, *_ = whole
    for call in {*LOST, *NOTHING_LOST}:
        for card, now in zip(cards, without[call][1], strict=True):
            check_card(card, now, lost_with(call, code))


def check_card(card, now, lost):
    was, is_now = told(card), told(now)
    gone = lost - {"holders", "drawing"}
    assert {name for name in was if was[name] != is_now[name]} == gone
    assert {is_now[name] for name in gone} <= {None, UNKNOWN}
    check_holders(now["holders"], lost)


def check_holders(holders, lost):
    if "holders" in lost:
        assert holders is None
    else:
        drawing = [] if "drawing" in lost else [(False, 900)]
        assert [(h["own"], h["memory"]) for h in holders] == [(True, 1000), *drawing]


@pytest.mark.parametrize("code", CODES)
def test_a_call_that_fails_leaves_the_readings_of_a_run_as_they_are(each, code):
    whole, without = each(code)
    for *_, first, second in without.values():
        assert first.items() <= whole[-2].items()
        assert second.items() <= whole[-1].items()
    for call, names in OF_A_RUN.items() if code != GPU_IS_LOST else ():
        lost = {f"gpu{n}_{name}" for n in range(2) for name in names}
        lost = set() if call in RENAMED and code == 13 else lost
        for was, is_now in zip(whole[-2:], without[call][-2:], strict=True):
            assert was.keys() - is_now.keys() == was.keys() & lost
    # A name is not read in a run; a second card goes on when the first has its due.
    assert without["nvmlDeviceGetName"][-2:] == whole[-2:]


OF_THE_DRIVER = {
    "nvmlSystemGetCudaDriverVersion": "cuda",
    "nvmlSystemGetDriverVersion": "version",
}


@pytest.mark.parametrize("code", CODES)
def test_the_machine_is_told_of_as_far_as_its_driver_goes(each, code):
    (driver, cards, _, *_), without = each(code)
    for call, field in OF_THE_DRIVER.items():
        now, cards_now, *_ = without[call]
        assert now == driver | {field: None}
        gone = {"driver": None} if field == "version" else {}
        assert cards_now == [card | gone for card in cards]
    # One that does not start or count has no cards, and a reason.
    for call in ("nvmlInitWithFlags", "nvmlDeviceGetCount_v2"):
        driver, cards, why, *samples = without[call]
        assert (cards, samples) == ([], [{}, {}])
        assert why.endswith(".")
        assert bool(driver["problem"]) == (call == "nvmlInitWithFlags")


@pytest.mark.parametrize("code", CODES)
@pytest.mark.fault("doctor", "GPU lost", sees="The card, with the driver's reason.")
def test_cards_that_the_driver_gives_no_access_to_are_told_of_all_the_same(each, code):
    (driver, *_), without = each(code)
    _, cards, why, *samples = without["nvmlDeviceGetHandleByIndex_v2"]
    assert (why, samples) == ("", [{}, {}])
    for card in cards:
        assert card["lost"]
        known = {value for value in told(card).values() if value is not None}
        assert known == {UNKNOWN, driver["version"], False, card["lost"]}


UNPRINTABLE = """
with open(os.environ["NVML_MACHINE"], "rb+") as script:
    text = script.read().replace(b"NVIDIA H200", b"NVIDIA \\xff200")
    script.seek(0)
    script.write(text)
"""


@pytest.mark.parametrize(
    ("before", "machine", "field", "value"),
    [
        # A card whose name is no text, and an error without one.
        (UNPRINTABLE, "", "name", UNKNOWN),
        ("", "nvmlErrorString * !1\nnvmlDeviceGetMemoryBusWidth * !4711\n",
         "memory_bus", None),
        # A reading that this nvidia-ml-py does not know.
        ("import pynvml; del pynvml.nvmlDeviceGetMemoryBusWidth", "", "memory_bus",
         None),
    ],
)  # fmt: skip
def test_a_reading_that_cannot_be_asked_for_is_unknown(
    ask, before, machine, field, value
):
    lines = f"""
import os
from perfkit.machine.nvml import gpus
{before}
answer = gpus()[1][0].{field}
"""
    assert ask(lines, machine + script("data_centre")) == value


def test_without_nvidia_ml_py_there_is_a_sentence_that_says_how_to_get_it(ask):
    lines = """
import sys
sys.modules["pynvml"] = None
from perfkit.machine.nvml import GpuReader, gpus
reader = GpuReader()
answer = [*gpus(), reader.sample(), reader.why]
"""
    driver, found, why, sample, again = ask(lines, "nvmlDeviceGetCount * 1")
    assert (driver, found, sample) == (None, [], {})
    assert why == again
    assert "pip install nvidia-ml-py" in why
