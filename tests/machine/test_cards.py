from dataclasses import asdict
from operator import attrgetter

import pytest

from perfkit.machine.gpu import Clocks, Driver, Gpu, Holder, Link, Power, State
from tests.machine.drivers import leaves, script

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
        memory_window=256 * 2**30,
        driver="580.95.05",
        compute_capability="9.0",
        architecture="Hopper",
        cores=16896,
        multiprocessors=132,
        pci_bus="0000:1b:00.0",
        busy=0.87,
        tells_fill=True,
        link=Link(
            generation=5,
            width=16,
            generation_max=5,
            width_max=16,
            generation_card=5,
            replays=0,
            nvlinks=18,
        ),
        clocks=Clocks(
            sm=1.98e9,
            sm_max=1.98e9,
            memory=3.201e9,
            memory_max=3.201e9,
            throttle=(),
            throttle_known=KNOWN,
            slowed_power=3.0,
            slowed_heat=0.0,
        ),
        power=Power(
            draw=412.5,
            limit=700.0,
            limit_set=700.0,
            limit_default=700.0,
            limit_min=200.0,
            limit_max=700.0,
            energy=981234.567,
            temperature=54.0,
            slowdown=89.0,
        ),
        state=State(
            persistence=True,
            compute_mode="default",
            ecc=True,
            mig=False,
            performance="P0",
            accounting=False,
            errors=0,
            rows_remapped=0,
            remap_pending=False,
            remap_failed=False,
            numa_node=0,
            cores_near="0-31",
        ),
        holders=(Holder(program="python", memory=2**31, busy=0.87, own=True),),
        refused={"power.fan": "Not Supported", "state.driver_model": "Not Supported"},
    )


def test_the_driver_tells_its_versions(described):
    driver, _, _ = described["data_centre"]
    assert driver == Driver(version="580.95.05", library="13.580.95.05", cuda="13.0")
    assert described["wsl"][0].cuda == "12.8"
    assert described["no_card"][0].version == "570.133.20"


CALLS = (
    *("CurrPcieLinkWidth", "MaxPcieLinkGeneration", "NumGpuCores", "MemoryBusWidth"),
    *("EnforcedPowerLimit", "PowerUsage", "MemoryInfo", "BAR1MemoryInfo"),
)


def test_what_the_driver_does_not_tell_of_a_card_is_none_and_its_word_is_kept(describe):
    zeros = "".join(f"nvmlDeviceGet{call} 0 0 0\n" for call in CALLS)
    (_, (bare,), why), (_, (zero,), _) = describe(ONE, ONE + zeros)
    gpu = asdict(bare)
    refused = gpu.pop("refused")
    assert gpu.pop("name") == "unknown NVIDIA GPU"
    assert gpu["state"].pop("instance") is False
    assert set(leaves(gpu).values()) == {None}
    # These are not asked for: they belong to a run, or are told of the driver.
    seen = {"link.busy_generation", "link.busy_width", "clocks.busy_throttle", "driver"}
    about = {"name", "holders.drawing", "holders.busy"}
    assert set(refused) == (set(leaves(gpu)) - seen) | about
    assert set(refused.values()) == {"Not Supported"}
    assert why == ""
    # A 0 that no card can mean is not a value either.
    gpu = asdict(zero)
    assert gpu["state"].pop("instance") is False
    assert 0 not in leaves(gpu).values()


OF_CAPABILITY = """
nvmlDeviceGetCudaComputeCapability 0 {}
nvmlDeviceGetNumGpuCores 0 {}
"""
OF_ITS_OWN = "nvmlDeviceGetDefaultApplicationsClock 0 "
CARDS = (
    # The driver's mark for "no value" is no value.
    *[(f"nvmlDeviceGetMemoryInfo 0 {mark} {mark}\nnvmlDeviceGetPowerUsage 0 "
       f"{2**32 - 1}\nnvmlDeviceGetPerformanceState 0 32",
       {"memory": None, "memory_used": None, "power.draw": None,
        "state.performance": None}, {"memory": "No Value"})
      for mark in (2**32 - 1, 2**64 - 1)],
    # A limit that is told only as it was asked for is the limit.
    ("nvmlDeviceGetPowerManagementLimit 0 80000",
     {"power.limit": 80.0, "power.limit_set": 80.0}, {"power.limit": None}),
    # Multiprocessors follow from cores and capability.
    *[(OF_CAPABILITY.format(capability, cores), {"multiprocessors": count}, {})
      for capability, cores, count in (("3.5", 2880, 15), ("6.0", 3584, 56),
                                       ("6.1", 3584, 28), ("12.0", 21760, 170))],
    # Of a card that is newer than any known they are not guessed.
    (OF_CAPABILITY.format("99.0", 50000), {"cores": 50000, "multiprocessors": None},
     {"multiprocessors": "No Value"}),
    # Its place is written as Linux writes it.
    ("nvmlDeviceGetPciInfo 0 00000000:1B:00.0", {"pci_bus": "0000:1b:00.0"}, {}),
    ("nvmlDeviceGetPciInfo 0 00010000:1B:00.0", {"pci_bus": "00010000:1b:00.0"}, {}),
    # One that is near several nodes has none of its own.
    ("nvmlDeviceGetMemoryAffinity 0 0x3", {"state.numa_node": None},
     {"state.numa_node": None}),
    # Clocks count as set where they are not its own.
    *[(script("ampere").replace(f"{OF_ITS_OWN}1275", f"{OF_ITS_OWN}{own}"),
       {"clocks.sm_set": given}, {"clocks.sm_set": None})
      for own, given in ((1275, None), (1410, 1.275e9))],
    # A narrow slot shows in the link.
    ("gaming_x8", {"link.generation": 3, "link.generation_max": 3,
     "link.generation_card": 4, "link.width": 8, "link.width_max": 16,
     "link.replays": 17}, {}),
    ("idle_link", {"link.generation": 1, "link.generation_max": 4,
     "clocks.throttle": (), "power.fan": 0.0, "state.performance": "P8"}, {}),
    ("laptop_throttled", {"clocks.throttle": (KNOWN[0], KNOWN[2], KNOWN[3]),
     "clocks.slowed_power": 94.0, "clocks.slowed_heat": 311.0, "power.limit": 45.0,
     "power.limit_default": 95.0}, {"power.limit_set": "Not Supported"}),
    # An instance has its own memory and cores, and its card's link.
    ("mig_slice", {"name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "state.mig": True,
     "state.instance": True, "memory": 9856 * 2**20, "memory_used": 13 * 2**20,
     "multiprocessors": 14, "cores": 14 * 64, "link.width": 16, "busy": None},
     {"busy": "Not Supported"}),
    ("wsl", {"memory_used": 2**30, "power.temperature": 61.0,
     "state.driver_model": "WDDM", "busy": None, "power.draw": None,
     "holders": None}, {"holders": "Not Supported"}),
    ("exclusive", {"state.compute_mode": "exclusive process"}, {}),
    ("small_card", {"multiprocessors": 3}, {}),
    # Cores near are told over more than one word.
    ("ampere", {"state.numa_node": 3, "state.cores_near": "48-63,240-255"}, {}),
)  # fmt: skip


@pytest.mark.parametrize(("of", "told", "refused"), CARDS)
def test_each_card_is_told_of_as_it_is(described, looked_at, of, told, refused):
    gpu = card(looked_at if "nvml" in of else described, of)
    assert {place: attrgetter(place)(gpu) for place in told} == told
    assert {place: gpu.refused.get(place) for place in refused} == refused


def test_those_who_hold_a_card_are_told(described):
    (holder,) = card(described, "exclusive").holders
    assert (holder.memory, holder.own, holder.computes) == (15569256448, False, True)
    gpu = card(described, "held")
    (holder,) = gpu.holders
    assert (holder.own, holder.busy) == (False, 0.98)
    assert holder.memory / gpu.memory > 0.8


def test_a_divided_card_is_as_many_gpus_as_it_has_instances(describe):
    divided = script("mig_slice")
    more = f"{divided}nvmlDeviceGetName 0:4 NVIDIA A100-SXM4-80GB MIG 2g.20gb\n"
    none = "\n".join(line for line in divided.splitlines() if "0:1" not in line)
    (_, found, _), (_, (gpu,), _) = describe(more, none)
    assert [gpu.name[-7:] for gpu in found] == ["1g.10gb", "2g.20gb"]
    # Without any it is told of whole.
    assert (gpu.state.mig, gpu.state.instance) == (True, False)


def test_a_card_that_is_gone_is_still_told_of_beside_the_other(described):
    _, (good, gone), why = described["card_gone"]
    assert good.memory == 80 * 2**30
    assert gone == Gpu(
        name="unknown NVIDIA GPU", driver="570.133.20", refused={"card": "GPU is lost"}
    )
    assert why == ""
    # A card that falls off the bus keeps what it had told.
    _, (good, lost), _ = described["two_cards_one_lost"]
    assert good.power.draw == 120.0
    assert lost.compute_capability == "8.6"
    assert lost.busy is lost.power.draw is None
    assert lost.refused["power.draw"] == lost.refused["card"] == "GPU is lost"
    assert "card" not in good.refused


def test_unlike_cards_keep_their_order_and_the_way_between_them(described):
    driver, gpus, _ = described["two_unlike"]
    assert [gpu.name[-8:] for gpu in gpus] == ["RTX 4090", "GTX 1660"]
    assert [gpu.multiprocessors for gpu in gpus] == [128, 22]
    way = "over PCI Express, through one bridge of a processor, by way of main memory"
    assert driver.topology == (f"GPU 0 and GPU 1: {way}.",)


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
    assert driver == Driver(library="12.570.133.20", problem=problem)


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
    assert gpu.clocks.throttle_known == KNOWN
    assert gpu.holders[0].own


ANCESTOR = "nvmlDeviceGetTopologyCommonAncestor"
REACH = "nvmlDeviceGetP2PStatus"
COUNT = "nvmlDeviceGetCount *"
GONE = "nvmlDeviceGetHandleByIndex 1 !15"
DIVIDED = """
nvmlDeviceGetMigMode 0 1 1
nvmlDeviceGetMaxMigDeviceCount 0 7
nvmlDeviceGetName 0:0 A
nvmlDeviceGetName 0:1 B
"""
EXPRESS = "over PCI Express, through"
PAIRS = (
    (f"{COUNT} 3\n{ANCESTOR} 0 - 10 50\n{ANCESTOR} 1 10 - 40\n{REACH} * 0 0 5 0 0",
     (f"GPU 0 and GPU 1: {EXPRESS} one switch, directly.",
      f"GPU 0 and GPU 2: {EXPRESS} two processors, directly.",
      f"GPU 1 and GPU 2: {EXPRESS} one processor, directly."), None),
    # NVLink is told whatever else joins them.
    (f"{COUNT} 2\n{REACH} * 0 0 0 0 0", ("GPU 0 and GPU 1: joined by NVLink.",), None),
    # What the driver hides of a way is left out.
    (f"{COUNT} 2\n{ANCESTOR} 0 - 20",
     (f"GPU 0 and GPU 1: {EXPRESS} several switches.",), None),
    # A way without a name keeps its number.
    (f"{COUNT} 2\n{ANCESTOR} 0 - 37",
     ("GPU 0 and GPU 1: in a way that the driver numbers 37.",), None),
    *((f"{COUNT} {few}", (), None) for few in (0, 1)),
    # A card that is gone is joined to none, nor are instances of one card.
    (f"{COUNT} 3\n{GONE}\n{ANCESTOR} 0 - 0 0",
     ("GPU 0 and GPU 2: on one board.",), None),
    (f"{COUNT} 1{DIVIDED}", (), None),
    # The driver's word is kept where it tells of no pair.
    (f"{COUNT} 2", (), "Not Supported"),
)  # fmt: skip


@pytest.mark.parametrize(("machine", "said", "refused"), PAIRS)
def test_each_pair_of_cards_has_its_sentence(looked_at, machine, said, refused):
    driver, _, _ = looked_at[machine]
    assert (driver.topology, driver.refused.get("topology")) == (said, refused)


@pytest.fixture(scope="module")
def looked_at(describe):
    """What is told of the machines of these tables, by their lines."""
    machines = [machine for machine, *_ in (*WITHOUT, *PAIRS)]
    cards = [lines for lines, *_ in CARDS if "nvml" in lines]
    found = describe(*machines, *(ONE + lines for lines in cards))
    return dict(zip((*machines, *cards), found, strict=True))
