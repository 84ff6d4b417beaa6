"""What is this GPU? Every reading is None where the driver gives none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

# The driver's bit for a GPU that has nothing to do.
IDLE = 0x1
# One that is busy for half of the time has left its idle clocks and its idle link.
BUSY = 0.5
_THROTTLES = {
    0x4: "power limit reached",
    0x8: "hardware slowdown (heat or power)",
    0x20: "too warm, slowed by the driver",
    0x40: "too hot, slowed by the hardware",
    0x80: "power brake (external power supply)",
    0x200: "board limit",
    0x400: "voltage limit",
}
# Idle, clocks that somebody set, cards in step, a display: settings, not faults.
_NOT_THROTTLING = IDLE | 0x2 | 0x10 | 0x100


def throttle_reasons(mask: float) -> tuple[str, ...]:
    """What slows the GPU's clocks, in words; nothing for idle or clocks set by hand."""
    bits = int(mask) & ~_NOT_THROTTLING
    known = [words for bit, words in _THROTTLES.items() if bits & bit]
    unknown = bits & ~sum(_THROTTLES)
    return (*known, *([f"reason {unknown:#x}"] if unknown else []))


# Bits per second of one lane in one direction, by generation: transfers times the share
# of them that carries data (8 of 10, 128 of 130, 242 of 256 bits).
_BITS = {
    1: 2.5e9 * 8 / 10,
    2: 5e9 * 8 / 10,
    3: 8e9 * 128 / 130,
    4: 16e9 * 128 / 130,
    5: 32e9 * 128 / 130,
    6: 64e9 * 242 / 256,
}


def rate(generation: int | None, width: int | None) -> float | None:
    """Bytes per second in one direction, in theory; None if it is not known."""
    if generation not in _BITS or not width:
        return None
    return _BITS[generation] / 8 * width


Problem = Literal[
    "",
    "no reader",
    "no driver",
    "not loaded",
    "mismatch",
    "no permission",
    "no answer",
]


@dataclass(frozen=True, kw_only=True)
class Link:
    """The way between a GPU and the rest of the machine: PCI Express.

    Attributes:
        generation: In use at the moment of asking; it falls while the GPU idles.
        width: Lanes in use.
        generation_max: The highest that card and slot can use together, and so
            ``width_max``.
        busy_generation: The highest seen while the GPU worked, and so
            ``busy_width``; None until a run observed it.
    """

    generation: int | None = None
    width: int | None = None
    generation_max: int | None = None
    width_max: int | None = None
    busy_generation: int | None = None
    busy_width: int | None = None


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """How fast a GPU may run, in hertz, and what holds it back.

    Attributes:
        sm_max: The highest clock of the multiprocessors; ``memory_max`` is that of the
            memory.
        throttle: What slows it at the moment of asking, in words; idling and clocks
            that somebody set are not among them.
        busy_throttle: What slowed it in a tenth of the time or more while it worked;
            None until a run observed it.
    """

    sm_max: float | None = None
    memory_max: float | None = None
    throttle: tuple[str, ...] | None = None
    busy_throttle: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A program that holds a GPU, by name alone.

    Attributes:
        program: ``"unknown program"`` where it is out of sight, as in a container that
            does not see the programs outside.
        memory: Bytes; None where the driver hides it.
        own: Whether it is this process or one that it started; None where it is out
            of sight: in a container one's own has another number than on the host.
    """

    program: str
    memory: int | None = None
    own: bool | None = False


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU as its driver describes it; None where the driver says nothing.

    Attributes:
        memory: Bytes; ``memory_used`` is what is taken, by anybody.
        driver: The version of the driver.
        compute_capability: Such as ``"8.9"``.
        cores: CUDA cores.
        memory_bus: Width of the memory's bus in bits.
        busy: Share of the time in which at least one kernel ran.
        divided: Whether the card is divided (MIG), so that a program sees a part of it.
        holders: Programs that hold it, those with most memory first; None where the
            driver does not say.
        lost: The driver's word where it gives no access to the card; "" where it does.
    """

    name: str
    memory: int | None = None
    driver: str | None = None
    compute_capability: str | None = None
    cores: int | None = None
    memory_bus: int | None = None
    memory_used: int | None = None
    busy: float | None = None
    divided: bool = False
    link: Link = field(default_factory=Link)
    clocks: Clocks = field(default_factory=Clocks)
    holders: tuple[Holder, ...] | None = None
    lost: str = ""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """NVIDIA's driver.

    Attributes:
        version: Such as ``"570.133.20"``.
        cuda: The highest CUDA version it supports, such as ``"12.8"``.
        topology: How the GPUs are joined, a sentence for each pair.
        problem: What keeps it from answering; "" where it answers.
    """

    version: str | None = None
    cuda: str | None = None
    topology: tuple[str, ...] = ()
    problem: Problem = ""


def chosen(
    gpus: Sequence[Gpu], environment: Mapping[str, str]
) -> tuple[int, ...] | None:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to programs, by CUDA's numbers.

    None where it names some of several by something else.
    """
    every = tuple(range(len(gpus)))
    said = environment.get("CUDA_VISIBLE_DEVICES")
    if said is None:
        return every
    if said.strip().startswith(("GPU-", "MIG-", "<")):
        return every if len(every) < 2 else None
    left = []
    # As CUDA reads it: the first index that does not exist ends the list.
    for index in said.split(","):
        if not index.strip().isdecimal() or int(index) >= len(every):
            break
        left.append(int(index))
    return tuple(left)


def visible(
    gpus: Sequence[Gpu], environment: Mapping[str, str]
) -> tuple[int, ...] | None:
    """The same by the driver's numbers; None where it is not known which those are."""
    left = chosen(gpus, environment)
    by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    alike = len({gpu.name for gpu in gpus}) < 2
    # CUDA numbers unlike cards by their speed, the driver by their place on the bus.
    return left if by_bus or alike or not left else None


def computing(
    gpus: Sequence[Gpu], environment: Mapping[str, str]
) -> tuple[int | None, Gpu | None]:
    """TensorFlow's first GPU: the driver's number of it, and what it is.

    None and None where programs see no GPU, or it is not known which is the first.
    """
    left = visible(gpus, environment)
    return (left[0], gpus[left[0]]) if left else (None, None)
