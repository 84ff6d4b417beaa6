from operator import attrgetter

import pytest

from perfkit.machine.record import Clocks, Driver, Gpu, Holder, Link
from tests.machine.drivers import script

ONE = "nvmlDeviceGetCount * 1\n"
KNOWN = (
    "power limit reached",
    "hardware slowdown (heat or power)",
    "too warm, slowed by the driver",
    "too hot, slowed by the hardware",
    "power brake (external power supply)",
)


def card(described, name):
    _, (gpu,), why = described[name]
    assert why == ""
    return gpu


def test_a_card_is_described_by_its_driver_in_base_units(described):
    assert card(described, "data_centre") == Gpu(
        name="NVIDIA H200",
        memory=143771 * 2**20,
        memory_used=2 * 2**30,
        memory_bus=6144,
        driver="580.95.05",
        compute_capability="9.0",
        cores=16896,
        busy=0.87,
        link=Link(generation=5, width=16, generation_max=5, width_max=16),
        clocks=Clocks(sm_max=1.98e9, memory_max=3.201e9, throttle=()),
        holders=(Holder(program="python", memory=2**31, own=True),),
    )


def test_the_driver_tells_its_versions(described):
    driver, _, _ = described["data_centre"]
    assert driver == Driver(version="580.95.05", cuda="13.0")
    assert described["wsl"][0].cuda == "12.8"
    assert described["no_card"][0].version == "570.133.20"


CALLS = (
    *("CurrPcieLinkWidth", "MaxPcieLinkGeneration", "NumGpuCores", "MemoryBusWidth"),
    *("PowerUsage", "MemoryInfo", "MaxClockInfo"),
)


def test_what_the_driver_does_not_tell_of_a_card_is_none(describe):
    zeros = "".join(f"nvmlDeviceGet{call} 0 0 0\n" for call in CALLS)
    (_, (bare,), why), (_, (zero,), _) = describe(ONE, ONE + zeros)
    assert bare == Gpu(name="unknown NVIDIA GPU")
    assert why == ""
    # A 0 that no card can mean is not a value either.
    assert zero == bare


CARDS = (
    # The driver's mark for "no value" is no value.
    *[(f"nvmlDeviceGetMemoryInfo 0 {mark} {mark}",
       {"memory": None, "memory_used": None}) for mark in (2**32 - 1, 2**64 - 1)],
    # A narrow slot shows in the link.
    ("gaming_x8", {"link.generation": 3, "link.generation_max": 3, "link.width": 8,
     "link.width_max": 16}),
    ("idle_link", {"link.generation": 1, "link.generation_max": 4,
     "clocks.throttle": ()}),
    ("laptop_throttled", {"clocks.throttle": (KNOWN[0], KNOWN[2], KNOWN[3])}),
    # Of a divided card nobody tells which part of it is ours.
    ("mig_slice", {"name": "NVIDIA A100-SXM4-80GB", "divided": True, "memory": None,
     "memory_used": None, "cores": None, "link.width": 16, "busy": None}),
    ("wsl", {"memory_used": 2**30, "busy": None, "holders": None}),
)  # fmt: skip


@pytest.mark.parametrize(("of", "told"), CARDS)
def test_each_card_is_told_of_as_it_is(described, looked_at, of, told):
    gpu = card(looked_at if "nvml" in of else described, of)
    assert {place: attrgetter(place)(gpu) for place in told} == told


def test_those_who_hold_a_card_are_told(described):
    gpu = card(described, "held")
    (holder,) = gpu.holders
    assert holder.own is False
    assert holder.memory / gpu.memory > 0.8


def test_a_card_that_is_gone_is_still_told_of_beside_the_other(described):
    _, (good, gone), why = described["card_gone"]
    assert good.memory == 80 * 2**30
    assert gone == Gpu(
        name="unknown NVIDIA GPU", driver="570.133.20", lost="GPU is lost"
    )
    assert why == ""
    # A card that falls off the bus keeps what it had told.
    _, (good, lost), _ = described["two_cards_one_lost"]
    assert good.busy is not None
    assert good.lost == ""
    assert lost.name == good.name
    assert lost.busy is lost.compute_capability is None
    assert lost.lost == "GPU is lost"


def test_unlike_cards_keep_their_order(described):
    _, gpus, _ = described["two_unlike"]
    assert [gpu.name[-8:] for gpu in gpus] == ["RTX 4090", "GTX 1660"]


@pytest.mark.parametrize(
    ("name", "problem", "words"),
    [
        ("not_loaded", "not loaded", "installed but not loaded"),
        ("version_mismatch", "mismatch", "updated while it ran"),
        ("no_permission", "no permission", "refuses this user"),
    ],
)
def test_a_driver_that_does_not_start_says_why(described, name, problem, words):
    driver, found, why = described[name]
    assert found == ()
    assert words in why
    assert driver == Driver(problem=problem)


WITHOUT = (
    ("nvmlInit * !999", "no answer", "driver does not answer: Unknown Error."),
    ("nvmlInit * !4711", "no answer", "driver does not answer: "),
    ("nvmlDeviceGetCount * !999", "",
     "driver does not say which GPUs there are: Unknown Error."),
    ("nvmlDeviceGetCount * 0", "", "driver reports no GPU."),
)  # fmt: skip


@pytest.mark.parametrize(("machine", "problem", "why"), WITHOUT)
def test_a_driver_that_gives_no_cards_is_quoted(looked_at, machine, problem, why):
    driver, found, said = looked_at[machine]
    assert (driver.problem, found) == (problem, ())
    assert said.startswith(f"The NVIDIA {why}")


def test_no_driver_is_none_and_a_sentence(describe, tmp_path):
    # What cannot be loaded stands before a real driver, should this machine have one.
    (tmp_path / "libnvidia-ml.so.1").touch()
    why = "No NVIDIA driver is installed."
    assert describe("", library=tmp_path) == [(None, (), why)]


def test_an_old_driver_names_some_calls_otherwise(describe, old_driver):
    machine = script("laptop_throttled").replace("EventReasons", "ThrottleReasons")
    ((_, (gpu,), _),) = describe(machine, library=old_driver)
    assert gpu.clocks.throttle == (KNOWN[0], KNOWN[2], KNOWN[3])
    assert gpu.holders[0].own


@pytest.fixture(scope="module")
def looked_at(describe):
    """What is told of the machines of these tables, by their lines."""
    machines = [machine for machine, *_ in WITHOUT]
    cards = [lines for lines, *_ in CARDS if "nvml" in lines]
    found = describe(*machines, *(ONE + lines for lines in cards))
    return dict(zip((*machines, *cards), found, strict=True))
