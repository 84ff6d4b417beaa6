import pytest

from perfkit.machine.checks import card as cards
from perfkit.machine.checks import checks
from perfkit.machine.gpu import Clocks, Holder, Link, throttle_reasons
from tests.machine.checks.computers import (
    GB,
    card,
    changed,
    desktop,
    looked_at,
    says,
    with_card,
    workstation,
)

WITH = workstation()
MAXWELL = card("NVIDIA GTX 970", compute_capability="5.2")


def visible(value, *gpus, **environment):
    environment |= {"CUDA_VISIBLE_DEVICES": value}
    return changed(workstation(*gpus), environment=environment)


@pytest.mark.parametrize(
    ("value", "said"),
    [(value, "hidden-gpu:fail") for value in ("", "-1", "1", "x", "-1,0")]
    + [(v, "visible-gpus:ok") for v in ("0", "0,1", "0,-1", "GPU-1234...", "MIG-12")],
)
def test_a_value_that_names_no_card_hides_all(value, said):
    says(cards.hidden, visible(value), said, f'"{value}"')


def test_what_is_hidden_is_left_out_of_all_other_rules():
    machine = visible("0", card(), MAXWELL, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    says(cards.kernels, machine, "kernels:ok")
    # Unlike cards are all looked at where their numbers are not those of CUDA.
    says(cards.kernels, visible("0", card(), MAXWELL), "kernels:ok no-kernels:fail")


def of_capability(capability, **facts):
    return changed(with_card(WITH, compute_capability=capability), **facts)


UNTOLD = {"software": {"capabilities": None}}
OLDER = {"versions": {"tensorflow": "2.19.0"}}


@pytest.mark.parametrize(
    ("machine", "said", "piece"),
    [
        (of_capability("2.1"), "no-kernels:fail", " built for 2.1 (NVIDIA RTX A4000)."),
        (of_capability("5.2"), "no-kernels:fail", "capability 5.2"),
        (of_capability("8.9"), "kernels:ok", "capability 8.9"),
        (of_capability("9.0"), "kernels:ok", "capability 9.0"),
        (of_capability("12.0"), "compiled-kernels:warn", "capability 12.0"),
        # A build that does not tell is looked up by its version.
        (of_capability("12.0", **UNTOLD), "compiled-kernels:warn", ""),
        (of_capability("12.0", **UNTOLD, **OLDER), "", ""),
        # A version that is reported to fail is to be replaced.
        (of_capability("12.0", versions={"tensorflow": "2.20.0"}),
         "compiled-kernels:warn", 'install "tensorflow[and-cuda]>=2.21"'),
        # A driver that may not compile leaves the card without kernels.
        (of_capability("9.0", driver={"cuda": "12.2"}), "uncompiled-kernels:fail", ""),
        (of_capability("9.0", environment={"CUDA_DISABLE_PTX_JIT": "1"}),
         "uncompiled-kernels:fail", ""),
        (of_capability("9.0", environment={"CUDA_DISABLE_PTX_JIT": "0"}), "kernels:ok",
         ""),
        (of_capability("8.6", driver={"cuda": "12.2"}), "kernels:ok", ""),
    ],
)  # fmt: skip
def test_the_wheel_is_held_against_the_card(machine, said, piece):
    says(cards.kernels, machine, said, piece)


@pytest.mark.parametrize(
    ("machine", "said", "piece"),
    [
        (workstation(card(multiprocessors=3)), "", ""),
        (workstation(card(multiprocessors=None)), "", ""),
        (workstation(card(), card("GT 1030", multiprocessors=3)), "small-gpu:ok",
         "GPU 1 (GT 1030) has 3 multiprocessors"),
        (changed(WITH, environment={"TF_MIN_GPU_MULTIPROCESSOR_COUNT": "50"}),
         "small-gpu:fail", "TF_MIN_GPU_MULTIPROCESSOR_COUNT=48"),
    ],
)  # fmt: skip
def test_a_card_that_is_too_small_is_a_fault_where_it_is_the_only_one(
    machine, said, piece
):
    says(cards.small, machine, said, piece)


def slowed(*reasons, busy=True):
    told = {"busy_throttle" if busy else "throttle": reasons}
    return with_card(workstation(card()), clocks=Clocks(**told))


# The driver's bits: heat, a brake and a slowdown are faults, limits by design are not.
@pytest.mark.parametrize(
    ("bit", "status"),
    [
        (0x1, "ok"),
        (0x4, "ok"),
        (0x8, "warn"),
        (0x20, "warn"),
        (0x40, "warn"),
        (0x80, "warn"),
        (0x200, "ok"),
        (0x400, "ok"),
        (0x100000, "unknown"),
    ],
)
def test_heat_and_a_weak_supply_are_faults_and_limits_by_design_are_not(bit, status):
    says(cards.throttled, slowed(*throttle_reasons(bit)), f"throttled:{status}")


WARM, HOT = "too warm, slowed by the driver", "too hot, slowed by the hardware"
COOL = Clocks(throttle=(HOT,), busy_throttle=())


@pytest.mark.parametrize(
    ("machine", "said", "pieces"),
    [
        # What was seen under load counts before what is seen now.
        (with_card(WITH, clocks=COOL), "throttled:ok", ["under load: nothing"]),
        (slowed(WARM, busy=False), "throttled:warn", [", now: too warm"]),
        (slowed(busy=False), "throttled:ok",
         [" | Nothing but its design slows the GPU now | "]),
        (with_card(WITH, clocks=Clocks()), "", []),
        (slowed("power brake (external power supply)"), "throttled:warn",
         ["power cables"]),
        # Each card is told by its number.
        (workstation(looked_at(card()), looked_at(card(), throttle=("hot",))),
         "throttled:ok throttled:warn",
         [" | GPU 1 (NVIDIA RTX A4000), under load: hot", "-i 1 "]),
        # Reasons that hold commas are told apart.
        (slowed(WARM, HOT), "throttled:warn", [f"{WARM}; {HOT}"]),
    ],
)  # fmt: skip
def test_what_slows_a_card_is_told_as_it_was_seen(machine, said, pieces):
    says(cards.throttled, machine, said, *pieces)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (140, "power-limit:ok"),
        (138, "power-limit:ok"),
        (100, "power-limit:warn"),
        (160, "power-limit:ok"),
        (None, ""),
    ],
)
def test_a_limit_is_held_against_that_of_the_card(limit, said):
    machine = with_card(WITH, power={"limit": limit, "limit_default": 140})
    pieces = [f"limit {limit} W, its own 140 W"] if limit else []
    says(cards.power, machine, said, *pieces)


def test_the_lower_a_limit_the_more_it_costs():
    low, lower = (
        next(cards.power(with_card(WITH, power={"limit": watts})))
        for watts in (120, 60)
    )
    assert low.cost < lower.cost


def linked(**link):
    best = {"generation_max": 4, "width_max": 16, "generation_card": 4}
    return with_card(WITH, link=Link(**best | link))


IDLE = {"generation": 1, "width": 16}
INSTANCE = {"instance": True}


@pytest.mark.parametrize(
    ("machine", "said", "pieces"),
    [
        # An idle link is unknown and never a fault.
        (linked(**IDLE), "link:unknown", ["PCIe 1 ×16 (4 GB/s) now",
         "PCIe 4 ×16 (31.5 GB/s)", "link to NVIDIA RTX A4000"]),
        (linked(generation=4, width=16), "link:ok", []),
        # Under load it is held against card and slot.
        (linked(**IDLE, busy_generation=4, busy_width=16), "link:ok", []),
        (linked(**IDLE, busy_generation=3, busy_width=16), "slow-link:warn", []),
        (linked(**IDLE, busy_generation=4, busy_width=8), "slow-link:warn", []),
        (linked(**IDLE, busy_generation=1, busy_width=16), "slow-link:warn", []),
        (linked(**IDLE, busy_generation=5, busy_width=16), "link:ok", []),
        # Missing lanes may be told without a load.
        (linked(generation=1, width=8), "slow-link:warn",
         ["PCIe 4 ×8 (15.8 GB/s) now"]),
        # A slot that is older than the card is no fault.
        (linked(generation_max=3, generation=3, width=16, busy_generation=3), "link:ok",
         ["the card alone could do PCIe 4"]),
        (with_card(WITH, link=Link()), "", []),
        # An instance has no link of its own.
        (with_card(linked(generation=1, width=1), state=INSTANCE), "", []),
    ],
)  # fmt: skip
def test_a_link_is_held_against_what_card_and_slot_can_do(machine, said, pieces):
    says(cards.narrow, machine, said, *pieces)


def test_half_the_speed_of_the_link_costs_half_as_much_as_none():
    (half,) = cards.narrow(linked(**IDLE, busy_generation=3, busy_width=16))
    one = {"width": 1, "busy_generation": 4, "busy_width": 1}
    (sixteenth,) = cards.narrow(linked(generation=1, **one))
    (unknown,) = cards.narrow(linked(**IDLE))
    assert half.cost == pytest.approx(0.5 * (1 - 0.985 / 1.97))
    assert sixteenth.cost == pytest.approx(0.5 * 15 / 16)
    assert unknown.cost == 0


def held(*holders, **facts):
    return with_card(WITH, holders=holders, **facts)


def python(gigabytes, **facts):
    return Holder(program="python", memory=gigabytes * GB, **facts)


def hidden(gigabytes):
    used = None if gigabytes is None else gigabytes * GB
    return with_card(WITH, holders=None, busy=None, memory_used=used)


@pytest.mark.parametrize(
    ("machine", "said", "piece"),
    [
        (held(*desktop(), busy=0.1), "shared-gpu:ok", ""),
        (held(python(2)), "shared-gpu:ok", "taken by python"),
        (held(python(4)), "shared-gpu:warn", "taken by python"),
        (held(python(15)), "shared-gpu:fail", "taken by python"),
        # What this process holds or does is not somebody else.
        (held(python(15, own=True), busy=0.9), "shared-gpu:ok", ""),
        # Somebody who computes without much memory is seen.
        (with_card(WITH, busy=0.7), "shared-gpu:warn", ""),
        # Where the driver names nobody more is allowed for.
        (hidden(5), "shared-gpu:ok", ""),
        (hidden(9), "shared-gpu:warn", ""),
        (hidden(None), "", ""),
    ],
)
def test_what_others_hold_is_held_against_the_memory(machine, said, piece):
    says(cards.others, machine, said, piece)


@pytest.mark.parametrize(
    ("state", "said", "piece"),
    [
        (INSTANCE, "mig:warn", " | This is a part of a GPU | "),
        ({"mig": True}, "mig:warn", " | The GPU is divided into parts | "),
        ({}, "", ""),
    ],
)
def test_an_instance_is_told_from_a_divided_card(state, said, piece):
    says(cards.instance, with_card(WITH, state=state), said, piece)


@pytest.mark.parametrize(
    ("mode", "holders", "said"),
    [
        ("default", (), ""),
        (None, (), ""),
        ("prohibited", (), "no-computing:fail"),
        ("exclusive process", (), "exclusive-gpu:warn"),
        ("exclusive process", (python(1),), "exclusive-gpu:fail"),
        ("exclusive process", desktop(), "exclusive-gpu:warn"),
    ],
)
def test_the_compute_mode_decides_who_may_compute(mode, holders, said):
    machine = with_card(WITH, state={"compute_mode": mode}, holders=holders)
    says(cards.mode, machine, said)


def test_a_card_for_one_program_that_somebody_has_is_one_fault(described):
    driver, gpus, _ = described["exclusive"]
    machine = workstation(*gpus, driver=driver)
    fails = [check.id for check in checks(machine) if check.status == "fail"]
    assert fails == ["exclusive-gpu"]


@pytest.mark.parametrize(
    ("software", "remedy"),
    [
        ({}, " | sudo nvidia-smi -i 0 -c DEFAULT | "),
        ({"container": True}, " | On the host: sudo"),
        ({"platform": "wsl2"}, " | In Windows, in a PowerShell as administrator"),
    ],
)
def test_settings_of_the_card_are_changed_where_its_driver_is(software, remedy):
    prohibited = with_card(WITH, state={"compute_mode": "prohibited"})
    machine = changed(prohibited, software=software)
    says(cards.mode, machine, "no-computing:fail", remedy)
