"""What differs in two machines, sorted by what it can matter for.

Only what both records tell is compared: a reading that one of them does not give is no
difference. Which parts of a step a difference can slow, and which machine, is written
here; whether it does is for the rungs to show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.comparing.record import MachineDiffers
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.comparing.record import Side
    from perfkit.machine.record import Machine

    Reading = Callable[[Machine], float | None]

_PROCESSOR = ("input", "dispatch", "compute")
_EVERYTHING = ("input", "dispatch", "transfer", "compute")
CORES, SPEED, KERNELS, PYTHON = "cores", "core speed", "kernels", "interpreter"
MEMORY, DISK, GPU, LINK = "memory", "disk", "GPU", "link"
# Memory that is enough for any reference training: more brings nothing.
_ENOUGH_MEMORY = 16e9
# What a reading may differ by from one look to the next.
_SAME = 0.05
# Variables by the start of their names: what they can slow, and which rungs show it.
_VARIABLES = {
    "TF_ENABLE_ONEDNN_OPTS": (("compute",), KERNELS),
    "TF_NUM_": (("input", "compute"), CORES),
    "OMP_": (("input",), CORES),
    "TF_XLA": (("compute", "dispatch"), ""),
    "XLA": (("compute", "dispatch"), ""),
    "TF_DETERMINISTIC": (("input", "compute"), ""),
    "TF_GPU": (("compute", "input"), GPU),
    "CUDA": (("compute", "transfer"), GPU),
    "NVIDIA": (("compute",), GPU),
    "TF_CUDNN": (("compute",), GPU),
    "ONEDNN": (("compute",), KERNELS),
    "DNNL": (("compute",), KERNELS),
}
_OFF = {"0", "false", "off", "no"}
_LIBRARIES = {
    "tensorflow": (_EVERYTHING, KERNELS),
    "keras": (("dispatch", "compute"), ""),
    "numpy": ((), ""),
}


def differences(a: Machine, b: Machine) -> tuple[MachineDiffers, ...]:
    """In what two machines differ, what can matter most first."""
    found = (
        *_cores(a, b),
        *_gpus(a, b),
        *_processor(a, b),
        *_memory(a, b),
        *_disk(a, b),
        *_settings(a, b),
        *_variables(a, b),
        *_software(a, b),
    )
    return tuple(found)


def _cores(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    yield from _number(
        "cores granted",
        (a.cores_granted, b.cores_granted),
        units.significant,
        CORES,
        _PROCESSOR,
    )
    yield from _number(
        "cores present", (a.cores, b.cores), units.significant, "cores present", ()
    )


def _gpus(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    yield from _words("GPUs", _named(a), _named(b), GPU, ("compute", "transfer"))
    if not (a.gpus and b.gpus):
        return
    one, other = a.gpus[0], b.gpus[0]
    yield from _number(
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
        yield from _number(what, (mine, theirs), units.significant, topic, (part,))
    drivers = [m.driver.version if m.driver else None for m in (a, b)]
    yield from _words("NVIDIA driver", drivers[0], drivers[1], "driver", ("compute",))


def _processor(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    yield from _words("processor", a.cpu, b.cpu, SPEED, _PROCESSOR, sign=SPEED)
    one, other = a.processor, b.processor
    if one is None or other is None:
        return
    if one.instructions is not None and other.instructions is not None:
        mine, theirs = set(one.instructions), set(other.instructions)
        yield from _words(
            "instruction sets that only one has",
            " ".join(sorted(mine - theirs)) or "none",
            " ".join(sorted(theirs - mine)) or "none",
            SPEED,
            ("compute",),
            slower=_fewer(mine, theirs),
            sign=SPEED,
        )
    yield from _number(
        "highest frequency",
        (one.frequency_max, other.frequency_max),
        lambda hertz: units.rate(hertz, "Hz"),
        SPEED,
        _PROCESSOR,
    )


def _memory(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    scarce = min(a.memory, b.memory) < _ENOUGH_MEMORY
    parts = ("input", "compute") if scarce else ()
    yield from _number(
        "memory granted", (a.memory, b.memory), units.size, MEMORY, parts
    )
    swaps = [m.load.swap if m.load else None for m in (a, b)]
    if None not in swaps and max(filter(None, swaps), default=0) > _SAME * min(
        a.memory, b.memory
    ):
        yield from _number(
            "bytes in swap", (swaps[0], swaps[1]), units.size, MEMORY, parts, more=True
        )


def _disk(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    one, other = a.disk, b.disk
    if one is None or other is None:
        return
    yield from _number(
        "disk of the data, cold",
        (one.cold, other.cold),
        lambda rate: units.rate(rate, "B"),
        DISK,
        ("input",),
    )
    yield from _words(
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
            yield from _words(
                what, mine, theirs, "clock settings", _PROCESSOR, sign=SPEED
            )
        yield from _number(
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
        yield from _words(
            "on battery",
            mine,
            theirs,
            "clock settings",
            _PROCESSOR,
            slower=slower,
            sign=SPEED,
        )


def _variables(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    one, other = a.environment, b.environment
    names = [n for n in dict.fromkeys((*one, *other)) if one.get(n) != other.get(n)]
    told = [(name, *_variable(name)) for name in names]
    for name, parts, sign in sorted(told, key=lambda found: not found[1]):
        yield MachineDiffers(
            what=plain(name, 60),
            a=plain(one.get(name, "not set"), 80),
            b=plain(other.get(name, "not set"), 80),
            topic=plain(name, 60),
            parts=parts,
            slower=_switched_off(name, one.get(name), other.get(name)),
            sign=sign,
        )


def _software(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    names = dict.fromkeys((*_LIBRARIES, *a.versions, *b.versions))
    for name in names:
        parts, sign = _LIBRARIES.get(name, ((), ""))
        mine, theirs = (m.versions.get(name, "not installed") for m in (a, b))
        yield from _words(plain(name, 60), mine, theirs, name, parts, sign=sign)
    builds = [m.software.build if m.software else None for m in (a, b)]
    yield from _words("TensorFlow build", builds[0], builds[1], "build", ())
    yield from _words(
        "Python", a.python, b.python, "Python", ("dispatch",), sign=PYTHON
    )
    yield from _words("system", a.system, b.system, "system", ())


def _number(
    what: str,
    values: tuple[float | None, float | None],
    write: Callable[[float], str],
    topic: str,
    parts: tuple[str, ...],
    *,
    more: bool = False,
    sign: str = "",
) -> Iterator[MachineDiffers]:
    """A number of which less is slower, unless ``more`` is."""
    a, b = values
    if a is None or b is None or abs(a - b) <= _SAME * max(abs(a), abs(b)):
        return
    slower: Side = "B" if (b > a) is more else "A"
    yield MachineDiffers(
        what=what,
        a=write(a),
        b=write(b),
        topic=topic,
        parts=parts,
        slower=slower,
        sign=sign or (topic if topic in _SIGNS else ""),
    )


def _words(
    what: str,
    a: str | None,
    b: str | None,
    topic: str,
    parts: tuple[str, ...],
    *,
    slower: Side = "",
    sign: str = "",
) -> Iterator[MachineDiffers]:
    if a is None or b is None or a == b:
        return
    yield MachineDiffers(
        what=what,
        a=plain(a, 80) or "none",
        b=plain(b, 80) or "none",
        topic=topic,
        parts=parts,
        slower=slower,
        sign=sign or (topic if topic in _SIGNS else ""),
    )


_SIGNS = {CORES, SPEED, KERNELS, DISK, GPU, LINK}


def _named(machine: Machine) -> str:
    return ", ".join(gpu.name for gpu in machine.gpus[:8]) or "none"


def _fewer(mine: set[str], theirs: set[str]) -> Side:
    """Who lacks instructions that the other has, where only one does."""
    if mine < theirs:
        return "A"
    return "B" if theirs < mine else ""


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _variable(name: str) -> tuple[tuple[str, ...], str]:
    found = (told for start, told in _VARIABLES.items() if name.startswith(start))
    return next(found, ((), ""))


def _switched_off(name: str, a: str | None, b: str | None) -> Side:
    """Who turned the faster kernels off; of other variables the records do not say."""
    if name != "TF_ENABLE_ONEDNN_OPTS":
        return ""
    off = [value is not None and value.strip().lower() in _OFF for value in (a, b)]
    return "" if off[0] == off[1] else "A" if off[0] else "B"
