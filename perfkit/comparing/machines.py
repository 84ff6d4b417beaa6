"""What differs in two machines, sorted by what it can matter for.

Only what both records tell is compared: a reading that one of them does not give is no
difference. Which parts of a step a difference can slow, and which machine, is written
here; whether it does is for the rungs to show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.comparing.software import libraries, variables
from perfkit.comparing.telling import (
    CORES,
    DISK,
    GPU,
    LINK,
    MEMORY,
    SAME,
    SPEED,
    number,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.comparing.differing import MachineDiffers, Side
    from perfkit.machine.record import Machine

    Reading = Callable[[Machine], float | None]

_PROCESSOR = ("input", "dispatch", "compute")
_EVERYTHING = ("input", "dispatch", "transfer", "compute")
# Memory that is enough for any reference training: more brings nothing.
_ENOUGH_MEMORY = 16e9


def differences(a: Machine, b: Machine) -> tuple[MachineDiffers, ...]:
    """In what two machines differ, what can matter most first."""
    found = (
        *_cores(a, b),
        *_gpus(a, b),
        *_processor(a, b),
        *_memory(a, b),
        *_disk(a, b),
        *_settings(a, b),
        *variables(a, b),
        *libraries(a, b),
    )
    return tuple(found)


def _cores(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    yield from number(
        "cores granted",
        (a.cores_granted, b.cores_granted),
        units.significant,
        CORES,
        _PROCESSOR,
    )
    yield from number(
        "cores present", (a.cores, b.cores), units.significant, "cores present", ()
    )


def _gpus(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    yield from words("GPUs", _named(a), _named(b), GPU, ("compute", "transfer"))
    if not (a.gpus and b.gpus):
        return
    one, other = a.gpus[0], b.gpus[0]
    yield from number(
        "GPU memory", (one.memory, other.memory), units.size, "GPU memory", ()
    )
    pairs: tuple[tuple[str, float | None, float | None, str], ...] = (
        ("link lanes under load", one.link.busy_width, other.link.busy_width, LINK),
        (
            "link generation under load",
            one.link.busy_generation,
            other.link.busy_generation,
            LINK,
        ),
        ("GPU power limit in watts", one.power.limit, other.power.limit, GPU),
        ("highest GPU clock in Hz", one.clocks.sm_max, other.clocks.sm_max, GPU),
    )
    for what, mine, theirs, topic in pairs:
        part = "transfer" if topic == LINK else "compute"
        yield from number(what, (mine, theirs), units.significant, topic, (part,))
    drivers = [m.driver.version if m.driver else None for m in (a, b)]
    yield from words("NVIDIA driver", drivers[0], drivers[1], "driver", ("compute",))


def _processor(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    yield from words("processor", a.cpu, b.cpu, SPEED, _PROCESSOR, sign=SPEED)
    one, other = a.processor, b.processor
    if one is None or other is None:
        return
    if one.instructions is not None and other.instructions is not None:
        mine, theirs = set(one.instructions), set(other.instructions)
        yield from words(
            "instruction sets that only one has",
            " ".join(sorted(mine - theirs)) or "none",
            " ".join(sorted(theirs - mine)) or "none",
            SPEED,
            ("compute",),
            slower=_fewer(mine, theirs),
            sign=SPEED,
        )
    yield from number(
        "highest frequency",
        (one.frequency_max, other.frequency_max),
        lambda hertz: units.rate(hertz, "Hz"),
        SPEED,
        _PROCESSOR,
    )


def _memory(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    scarce = min(a.memory, b.memory) < _ENOUGH_MEMORY
    parts = ("input", "compute") if scarce else ()
    yield from number("memory granted", (a.memory, b.memory), units.size, MEMORY, parts)
    swaps = [m.load.swap if m.load else None for m in (a, b)]
    if None not in swaps and max(filter(None, swaps), default=0) > SAME * min(
        a.memory, b.memory
    ):
        yield from number(
            "bytes in swap", (swaps[0], swaps[1]), units.size, MEMORY, parts, more=True
        )


def _disk(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    one, other = a.disk, b.disk
    if one is None or other is None:
        return
    yield from number(
        "disk of the data, cold",
        (one.cold, other.cold),
        lambda rate: units.rate(rate, "B"),
        DISK,
        ("input",),
    )
    yield from words(
        "file system of the data",
        one.filesystem,
        other.filesystem,
        DISK,
        ("input",),
        sign=DISK,
    )


def _settings(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    one, other = a.processor, b.processor
    if one is not None and other is not None:
        for what, mine, theirs in (
            ("governor", one.governor, other.governor),
            ("energy preference", one.preference, other.preference),
            ("boost", _yes(one.boost), _yes(other.boost)),
        ):
            yield from words(
                what, mine, theirs, "clock settings", _PROCESSOR, sign=SPEED
            )
        yield from number(
            "frequency allowed",
            (one.frequency_allowed, other.frequency_allowed),
            lambda hertz: units.rate(hertz, "Hz"),
            "clock settings",
            _PROCESSOR,
            sign=SPEED,
        )
    if a.load and b.load:
        mine, theirs = _yes(a.load.on_battery), _yes(b.load.on_battery)
        slower: Side = "B" if theirs == "yes" else "A"
        yield from words(
            "on battery",
            mine,
            theirs,
            "clock settings",
            _PROCESSOR,
            slower=slower,
            sign=SPEED,
        )


def _named(machine: Machine) -> str:
    return ", ".join(gpu.name for gpu in machine.gpus[:8]) or "none"


def _fewer(mine: set[str], theirs: set[str]) -> Side:
    """Who lacks instructions that the other has, where only one does."""
    if mine < theirs:
        return "A"
    return "B" if theirs < mine else ""


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
