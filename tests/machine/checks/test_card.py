import pytest

from perfkit.machine.checks import card as cards
from perfkit.machine.checks import checks
from perfkit.machine.gpu import Clocks, Holder, Link, computing, throttle_reasons
from tests.machine.checks import computers
from tests.machine.checks.computers import GB, by_rule, card, changed, with_card

looked_at, workstation = computers.looked_at, computers.workstation
WITH = workstation()
MAXWELL = card("NVIDIA GTX 970", compute_capability="5.2")


def visible(value, *gpus, **environment):
    environment |= {"CUDA_VISIBLE_DEVICES": value}
    return changed(workstation(*gpus), environment=environment)


def of_capability(capability, **facts):
    return changed(with_card(WITH, compute_capability=capability), **facts)


def compiling(value):
    return {"environment": {"CUDA_DISABLE_PTX_JIT": value}}


def slowed(*reasons, busy=True):
    told = {"busy_throttle" if busy else "throttle": reasons}
    return with_card(workstation(card()), clocks=Clocks(**told))


def limited(watts):
    return with_card(WITH, power={"limit": watts, "limit_default": 140})


def linked(**link):
    best = {"generation_max": 4, "width_max": 16, "generation_card": 4}
    return with_card(WITH, link=Link(**best | link))


def held(*holders, **facts):
    return with_card(WITH, holders=holders, **facts)


def python(gigabytes, **facts):
    memory = None if gigabytes is None else gigabytes * GB
    return Holder(program="python", memory=memory, **facts)


def hidden(used):
    return with_card(WITH, holders=None, busy=None, memory_used=used)


def mode(name, **facts):
    return with_card(WITH, state={"compute_mode": name}, **facts)


UNTOLD = {"software": {"capabilities": None}}
WARM, HOT = "too warm, slowed by the driver", "too hot, slowed by the hardware"
COOL = Clocks(throttle=(HOT,), busy_throttle=())
IDLE = {"generation": 1, "width": 16}
INSTANCE = {"instance": True}
EXCLUSIVE, PROHIBITED = "exclusive process", mode("prohibited")
CASES = {
    # A value that names no card hides all.
    cards.hidden: [
        *[(visible(value), "hidden-gpu:fail", f'"{value}"')
          for value in ("", "-1", "1", "x", "-1,0")],
        *[(visible(value), "visible-gpus:ok", f'"{value}"')
          for value in ("0", "0,1", "0,-1", "GPU-1234...", "MIG-12")],
        # By its identity one of two is chosen; which one is not known.
        (visible("GPU-1234", card(), card()), "visible-gpus:ok", ": 1 of 2 GPUs"),
        (visible("1", card(), MAXWELL), "visible-gpus:ok", ": 1 of 2 GPUs"),
    ],
    # The wheel is held against the card.
    cards.kernels: [
        (of_capability("2.1"), "no-kernels:fail", " built for 2.1 (NVIDIA RTX A4000)."),
        (of_capability("5.2"), "no-kernels:fail", "capability 5.2"),
        (of_capability("8.9"), "kernels:ok", "capability 8.9"),
        (of_capability("9.0"), "kernels:ok", "capability 9.0"),
        (of_capability("12.0"), "compiled-kernels:warn", "capability 12.0"),
        # A build that does not tell is looked up by its version.
        (of_capability("12.0", **UNTOLD), "compiled-kernels:warn"),
        (of_capability("12.0", **UNTOLD, versions={"tensorflow": "2.19.0"}), ""),
        # A version that is reported to fail is to be replaced.
        (of_capability("12.0", versions={"tensorflow": "2.20.0"}),
         "compiled-kernels:warn", 'install "tensorflow[and-cuda]>=2.21"'),
        # A driver that may not compile leaves the card without kernels.
        (of_capability("9.0", driver={"cuda": "12.2"}), "uncompiled-kernels:fail"),
        (of_capability("9.0", **compiling("1")), "uncompiled-kernels:fail"),
        (of_capability("9.0", **compiling("0")), "kernels:ok"),
        (of_capability("8.6", driver={"cuda": "12.2"}), "kernels:ok"),
        # What is hidden is left out. Unlike cards are all looked at where their
        # numbers are not those of CUDA.
        (visible("0", card(), MAXWELL, CUDA_DEVICE_ORDER="PCI_BUS_ID"), "kernels:ok"),
        (visible("0", card(), MAXWELL), "kernels:ok no-kernels:fail"),
        # Beside a newer card that has kernels an older one is left out.
        (workstation(MAXWELL, card()), "no-kernels:warn kernels:ok",
         "TensorFlow leaves it out and uses what is newer. | "),
        (workstation(MAXWELL, MAXWELL), "no-kernels:fail no-kernels:fail"),
    ],
    # A card that is too small is a fault where it is the only one.
    cards.small: [
        (workstation(card(multiprocessors=3)), ""),
        (workstation(card(multiprocessors=None)), ""),
        (workstation(card(), card("GT 1030", multiprocessors=3)), "small-gpu:ok",
         "GPU 1 (GT 1030) has 3 multiprocessors"),
        (changed(WITH, environment={"TF_MIN_GPU_MULTIPROCESSOR_COUNT": "50"}),
         "small-gpu:fail", "TF_MIN_GPU_MULTIPROCESSOR_COUNT=48"),
    ],
    cards.throttled: [
        # Heat and a weak supply are faults, and limits by design are not.
        *[(slowed(*throttle_reasons(bit)), f"throttled:{status}")
          for status, bits in {"ok": (0x1, 0x4, 0x200, 0x400), "unknown": (0x100000,),
                               "warn": (0x8, 0x20, 0x40, 0x80)}.items()
          for bit in bits],
        # What was seen under load counts before what is seen now, and an idle clock
        # tells nothing.
        (with_card(WITH, clocks=COOL), "throttled:ok", "under load: nothing"),
        *[(slowed(*reasons, busy=False), "throttled:unknown", f", now: {said} (")
          for reasons, said in (((WARM,), WARM), ((), "nothing"))],
        (with_card(slowed(WARM, busy=False), busy=0.9), "throttled:warn",
         ", now: too warm"),
        (with_card(slowed(busy=False), busy=0.9), "throttled:ok",
         " | Nothing but its design slows the GPU now | "),
        (with_card(WITH, clocks=Clocks()), ""),
        (slowed("power brake (external power supply)"), "throttled:warn",
         "power cables"),
        # Each card is told by its number.
        (workstation(looked_at(card()), looked_at(card(), throttle=("hot",))),
         "throttled:ok throttled:warn",
         " | GPU 1 (NVIDIA RTX A4000), under load: hot", "-i 1 "),
        # Reasons that hold commas are told apart.
        (slowed(WARM, HOT), "throttled:warn", f"{WARM}; {HOT}"),
    ],
    # A limit is held against that of the card.
    cards.power: [
        *[(limited(watts), f"power-limit:{status}",
           f"limit {watts} W, its own 140 W")
          for watts, status in {138: "ok", 140: "ok", 160: "ok", 100: "warn"}.items()],
        (limited(None), ""),
        # A laptop's GPU refuses another.
        (with_card(limited(100), name="NVIDIA RTX A4000 Laptop GPU"),
         "power-limit:warn", "charger", "~nvidia-smi"),
    ],
    # A link is held against what card and slot can do.
    cards.narrow: [
        # An idle link is unknown and never a fault.
        (linked(**IDLE), "link:unknown", "PCIe 1 ×16 (4 GB/s) now",
         "PCIe 4 ×16 (31.5 GB/s)", "link to NVIDIA RTX A4000"),
        (linked(generation=4, width=16), "link:ok"),
        # Under load it is held against card and slot.
        *[(linked(**IDLE, busy_generation=generation, busy_width=width), said)
          for generation, width, said in (
              (4, 16, "link:ok"), (5, 16, "link:ok"), (3, 16, "slow-link:warn"),
              (4, 8, "slow-link:warn"), (1, 16, "slow-link:warn"))],
        # An idle link may let lanes rest, too; that of a card at work does not.
        (linked(generation=1, width=8), "link:unknown", "PCIe 1 ×8 (2 GB/s) now"),
        (with_card(linked(generation=3, width=8), busy=0.9), "slow-link:warn",
         "PCIe 3 ×8 (7.88 GB/s) now"),
        (linked(**IDLE, busy_width=8), "slow-link:warn", ": PCIe ×8 while data were"),
        # A slot that is older than the card is no fault.
        (linked(generation_max=3, generation=3, width=16, busy_generation=3), "link:ok",
         "the card alone could do PCIe 4"),
        (with_card(WITH, link=Link()), ""),
        # An instance has no link of its own.
        (with_card(linked(generation=1, width=1), state=INSTANCE), ""),
    ],
    # What others hold is held against the memory.
    cards.others: [
        (held(*computers.desktop(), busy=0.1), "shared-gpu:ok"),
        (held(python(2)), "shared-gpu:ok", "taken by python"),
        (held(python(4)), "shared-gpu:warn", "taken by python"),
        (held(python(15)), "shared-gpu:fail", "taken by python"),
        # What this process holds or does is not somebody else.
        (held(python(15, own=True), busy=0.9), "shared-gpu:ok"),
        # Somebody who computes without much memory is seen.
        (with_card(WITH, busy=0.7), "shared-gpu:warn"),
        # What may be our own, or is hidden, counts with all that is in use.
        *[(held(Holder(program="x", **facts), memory_used=used * GB),
           f"shared-gpu:{status}", f": {taken}", " memory is taken and")
          for facts in ({"own": None, "memory": 15 * GB}, {"memory": None})
          for used, taken, status in ((5, 31, "ok"), (15, 94, "warn"))],
        (held(python(15, own=None), memory_used=15 * GB), "shared-gpu:warn",
         " | The GPU is in use, by others or by yourself | "),
        (held(python(None, own=True), memory_used=15 * GB), "shared-gpu:ok"),
        # Where the driver names nobody more is allowed for.
        (hidden(5 * GB), "shared-gpu:ok"),
        (hidden(9 * GB), "shared-gpu:warn"),
        (hidden(None), ""),
    ],
    cards.instance: [
        (with_card(WITH, state=INSTANCE), "mig:warn", " | This is a part of a GPU | "),
        (with_card(WITH, state={"mig": True}), "mig:warn",
         " | The GPU is divided into parts | "),
        (WITH, ""),
    ],
    # The compute mode decides who may compute.
    cards.mode: [
        (mode("default"), ""),
        (mode(None), ""),
        (mode(EXCLUSIVE), "exclusive-gpu:warn"),
        (mode(EXCLUSIVE, holders=(python(1),)), "exclusive-gpu:fail"),
        (mode(EXCLUSIVE, holders=(python(1, own=None),)), "exclusive-gpu:warn"),
        (mode(EXCLUSIVE, holders=computers.desktop()), "exclusive-gpu:warn"),
        # Settings of the card are changed where its driver is.
        (PROHIBITED, "no-computing:fail", " | sudo nvidia-smi -i 0 -c DEFAULT | "),
        (changed(PROHIBITED, software={"container": True}), "no-computing:fail",
         " | On the host: sudo"),
        (changed(PROHIBITED, software={"platform": "wsl2"}), "no-computing:fail",
         " | In Windows, in a PowerShell as administrator"),
    ],
}  # fmt: skip

test_a_card_is_judged_by_what_is_known_of_it = by_rule(CASES)


@pytest.mark.parametrize(
    ("machine", "number"),
    [
        (WITH, 0),
        (visible("1", card(), card()), 1),
        (visible("1", card(), MAXWELL, CUDA_DEVICE_ORDER="PCI_BUS_ID"), 1),
        # The numbers of unlike cards are CUDA's own.
        (visible("1", card(), MAXWELL), None),
        (workstation(card(), MAXWELL), None),
        (visible("GPU-1234", card(), card()), None),
        (visible("GPU-1234"), 0),
        (visible("-1"), None),
        (computers.without_card(), None),
    ],
)
def test_the_first_card_that_programs_see_is_the_one_that_computes(machine, number):
    card = None if number is None else machine.gpus[number]
    assert computing(machine.gpus, machine.environment) == (number, card)


def test_the_lower_a_limit_the_more_it_costs():
    low, lower = (with_card(WITH, power={"limit": watts}) for watts in (120, 60))
    assert next(cards.power(low)).cost < next(cards.power(lower)).cost


def test_half_the_speed_of_the_link_costs_half_as_much_as_none():
    (half,) = cards.narrow(linked(**IDLE, busy_generation=3, busy_width=16))
    one = {"width": 1, "busy_generation": 4, "busy_width": 1}
    (sixteenth,) = cards.narrow(linked(generation=1, **one))
    (unknown,) = cards.narrow(linked(**IDLE))
    assert half.cost == pytest.approx(0.5 * (1 - 0.985 / 1.97))
    assert sixteenth.cost == pytest.approx(0.5 * 15 / 16)
    assert unknown.cost == 0


def test_a_card_for_one_program_that_somebody_has_is_one_fault(described):
    driver, gpus, _ = described["exclusive"]
    machine = workstation(*gpus, driver=driver)
    fails = [check.id for check in checks(machine) if check.status == "fail"]
    assert fails == ["exclusive-gpu"]
