"""Each call of the driver fails in turn, in several ways."""

import subprocess

import pytest

from perfkit.machine.nvml import UNKNOWN
from tests.machine.drivers import answer_of, leaves, script

# Refusals, errors of the machine, and one that has no name.
CODES = (2, 3, 4, 6, 13, 15, 999, 4711)
FUNCTION_NOT_FOUND, GPU_IS_LOST = 13, 15
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
    str(code): {call: look(f"{call} * !{code}\\n") for call in calls} for code in codes
}
answer = [look(), without]
"""
ASKED = """
import pynvml
from perfkit.machine.nvml import GpuReader, gpus
asked, find = set(), pynvml._nvmlGetFunctionPointer
pynvml._nvmlGetFunctionPointer = lambda name: asked.add(name) or find(name)
gpus(), GpuReader().sample()
answer = sorted(asked)
"""


def by_call(lines):
    """The words behind each call, whose beginning is left out."""
    words = map(str.split, lines.strip().splitlines())
    return {f"nvml{call}": set(names) for call, *names in words}


# What a description loses with each call; all else must not change.
LOST = by_call("""
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
# What a run loses; a card that is lost is asked for nothing more.
LOST_IN_A_RUN = by_call("""
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
# They are asked of the machine.
OF_THE_MACHINE = by_call("""
DeviceGetCount_v2
DeviceGetHandleByIndex_v2
InitWithFlags
SystemGetCudaDriverVersion cuda
SystemGetDriverVersion version
""")


def lost_with(call, code, table=LOST):
    """What is to be refused when this call fails in this way."""
    # Then it is known by its older name.
    renamed = call == "nvmlDeviceGetCurrentClocksEventReasons"
    return set() if renamed and code == FUNCTION_NOT_FOUND else table.get(call, set())


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


@pytest.fixture
def each(looked):
    """The same in one way."""
    whole, without = looked
    return lambda code: (whole, without[str(code)])


def test_the_library_has_every_call_that_is_asked_for(driver, ask):
    asked = {*ask(ASKED, script("hopper"))}
    assert len(asked) > 20
    assert {*asked, *LOST, *LOST_IN_A_RUN, *OF_THE_MACHINE} <= exported(driver)


every_code = pytest.mark.parametrize("code", CODES)


def fields(card):
    """The fields of a card by their dotted names, but for its holders."""
    return leaves({name: value for name, value in card.items() if name != "holders"})


def check_card(card, now, lost):
    was, is_now = fields(card), fields(now)
    gone = lost - {"holders", "drawing"}
    assert {name for name in was if was[name] != is_now[name]} == gone
    assert {is_now[name] for name in gone} <= {None, UNKNOWN}
    if "holders" in lost:
        assert now["holders"] is None
    else:
        drawing = [] if "drawing" in lost else [(False, 900)]
        listed = [(h["own"], h["memory"]) for h in now["holders"]]
        assert listed == [(True, 1000), *drawing]


@every_code
def test_a_call_that_fails_takes_its_own_readings_alone(each, code):
    (_, cards, _, *samples), without = each(code)
    for call in without.keys() - OF_THE_MACHINE.keys():
        for card, now in zip(cards, without[call][1], strict=True):
            check_card(card, now, lost_with(call, code))
    for *_, first, second in without.values():
        assert first.items() <= samples[0].items()
        assert second.items() <= samples[1].items()
    for call in LOST_IN_A_RUN if code != GPU_IS_LOST else ():
        names = lost_with(call, code, LOST_IN_A_RUN)
        lost = {f"gpu{n}_{name}" for n in range(2) for name in names}
        for was, is_now in zip(samples, without[call][-2:], strict=True):
            assert was.keys() - is_now.keys() == was.keys() & lost
    # A name is not read in a run; a second card goes on when the first has its due.
    assert without["nvmlDeviceGetName"][-2:] == samples


@every_code
def test_the_machine_is_told_of_as_far_as_its_driver_goes(each, code):
    (driver, cards, _, *_), without = each(code)
    for call, names in OF_THE_MACHINE.items():
        for field in names:
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


@every_code
@pytest.mark.fault("doctor", "GPU lost", sees="The card, with the driver's reason.")
def test_cards_that_the_driver_gives_no_access_to_are_told_of_all_the_same(each, code):
    (driver, *_), without = each(code)
    _, cards, why, *samples = without["nvmlDeviceGetHandleByIndex_v2"]
    assert (why, samples) == ("", [{}, {}])
    for card in cards:
        assert card["lost"]
        known = {value for value in fields(card).values() if value is not None}
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
