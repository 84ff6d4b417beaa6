import pytest

from perfkit.machine.checks import hardware as cards
from perfkit.machine.record import Clocks, Holder, Link, computing, throttle_reasons
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


def linked(**link):
    return with_card(WITH, link=Link(**{"generation_max": 4, "width_max": 16} | link))


def held(*holders, **facts):
    return with_card(WITH, holders=holders, **facts)


def python(gigabytes, **facts):
    memory = None if gigabytes is None else gigabytes * GB
    return Holder(program="python", memory=memory, **facts)


def hidden(used):
    return with_card(WITH, holders=None, busy=None, memory_used=used)


UNTOLD = {"software": {"capabilities": None}}
WARM, HOT = "too warm, slowed by the driver", "too hot, slowed by the hardware"
COOL = Clocks(throttle=(HOT,), busy_throttle=())
IDLE = {"generation": 1, "width": 16}
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
        (of_capability("5.2"), "dropped-kernels:fail", "capability 5.2"),
        (of_capability("8.9"), "kernels:ok", "capability 8.9"),
        (of_capability("9.0"), "kernels:ok", "capability 9.0"),
        (of_capability("12.0"), "compiled-kernels:warn", "capability 12.0",
         'install "tensorflow[and-cuda]>=2.21"'),
        # Of a build that does not tell nothing is said.
        (of_capability("12.0", **UNTOLD), ""),
        # A driver that may not compile leaves the card without kernels.
        (of_capability("9.0", driver={"cuda": "12.2"}), "uncompiled-kernels:fail"),
        (of_capability("9.0", **compiling("1")), "uncompiled-kernels:fail"),
        (of_capability("9.0", **compiling("0")), "kernels:ok"),
        (of_capability("8.6", driver={"cuda": "12.2"}), "kernels:ok"),
        # What is hidden is left out. Unlike cards are all looked at where their
        # numbers are not those of CUDA.
        (visible("0", card(), MAXWELL, CUDA_DEVICE_ORDER="PCI_BUS_ID"), "kernels:ok"),
        (visible("0", card(), MAXWELL), "kernels:ok dropped-kernels:warn"),
        # Beside a newer card that has kernels an older one is left out.
        (workstation(MAXWELL, card()), "dropped-kernels:warn kernels:ok"),
        (workstation(MAXWELL, MAXWELL), "dropped-kernels:fail dropped-kernels:fail"),
    ],
    cards.throttled: [
        # Heat and a weak supply are faults, and limits by design are not; of a reason
        # without a name nothing is said.
        *[(slowed(*throttle_reasons(bit)), said)
          for said, bits in {"throttled:ok": (0x1, 0x4, 0x200, 0x400),
                             "": (0x100000,),
                             "throttled:warn": (0x8, 0x20, 0x40)}.items()
          for bit in bits],
        # What was seen under load counts before what is seen now, and an idle clock
        # tells nothing.
        (with_card(WITH, clocks=COOL), "throttled:ok", "under load: nothing"),
        (slowed(WARM, busy=False), ""),
        (with_card(slowed(WARM, busy=False), busy=0.9), "throttled:warn",
         ", now: too warm"),
        (with_card(slowed(busy=False), busy=0.9), "throttled:ok",
         " | Nothing but its design slows the GPU now | "),
        (with_card(WITH, clocks=Clocks()), ""),
        (slowed("power brake (external power supply)"), "weak-supply:warn",
         "power cables"),
        # Each card is told by its number.
        (workstation(looked_at(card()), looked_at(card(), throttle=("hot",))),
         "throttled:ok throttled:warn",
         " | GPU 1 (NVIDIA RTX A4000), under load: hot", "-i 1 "),
        # Reasons that hold commas are told apart.
        (slowed(WARM, HOT), "throttled:warn", f"{WARM}; {HOT}"),
    ],
    # A link is held against what card and slot can do.
    cards.narrow: [
        # An idle link is no fault, nor is one whose lanes rest.
        *[(linked(generation=1, width=width), "") for width in (16, 8)],
        # Under load it is held against card and slot.
        *[(linked(**IDLE, busy_generation=generation, busy_width=width), said)
          for generation, width, said in (
              (4, 16, "link:ok"), (5, 16, "link:ok"), (3, 16, "slow-link:warn"),
              (4, 8, "slow-link:warn"), (1, 16, "slow-link:warn"))],
        (with_card(linked(generation=3, width=8), busy=0.9), "slow-link:warn",
         "PCIe 3 ×8 (7.88 GB/s) now"),
        (linked(**IDLE, busy_width=8), "slow-link:warn", ": PCIe 4 ×8 (15.8 GB/s)"),
        # A slot that is older than the card is no fault.
        (linked(generation_max=3, width=16, busy_generation=3), "link:ok"),
        (with_card(WITH, link=Link()), ""),
        # A part of a divided card has no link of its own.
        (with_card(linked(busy_generation=1, busy_width=1), divided=True), ""),
    ],
    # A card at rest shows neither.
    cards.unwatched: [
        (workstation(card()), "unseen-load:unknown", "perfkit doctor --probe",
         "link of NVIDIA RTX A4000 under load"),
        (workstation(card(busy=0.9)), ""),
        (WITH, ""),
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
           said, f": {taken}", " memory is taken and")
          for facts in ({"own": None, "memory": 15 * GB}, {"memory": None})
          for used, taken, said in (
              (5, 31, "shared-gpu:ok"), (15, 94, "used-gpu:warn"))],
        (held(python(15, own=None), memory_used=15 * GB), "used-gpu:warn",
         " | The GPU is in use, by others or by yourself | "),
        (held(python(None, own=True), memory_used=15 * GB), "shared-gpu:ok"),
        # Where the driver names nobody more is allowed for.
        (hidden(5 * GB), "shared-gpu:ok"),
        (hidden(9 * GB), "used-gpu:warn"),
        (hidden(None), ""),
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


def test_half_the_speed_of_the_link_costs_half_as_much_as_none():
    (half,) = cards.narrow(linked(**IDLE, busy_generation=3, busy_width=16))
    (sixteenth,) = cards.narrow(linked(**IDLE, busy_generation=4, busy_width=1))
    assert half.cost == pytest.approx(0.5 * (1 - 0.985 / 1.97))
    assert sixteenth.cost == pytest.approx(0.5 * 15 / 16)
