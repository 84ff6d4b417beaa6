"""What two machines are, side by side: hardware, software, load."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.text import plain
from perfkit.machines.ratios import (
    CORES,
    DISK,
    GPU,
    KERNELS,
    LINK,
    MEMORY,
    PYTHON,
    SAME,
    SPEED,
    THREADS,
    MachineDiffers,
    number,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.machine.record import Machine
    from perfkit.machines.comparison import Held
    from perfkit.machines.ratios import Side

    Reading = Callable[[Machine], float | None]
    Columns = dict[str, tuple[float | None, ...]]

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


# Variables by the start of their names: what they can slow, and which rungs show it.
_VARIABLES = {
    "TF_ENABLE_ONEDNN_OPTS": (("compute",), KERNELS),
    "TF_NUM_": (("input", "compute"), THREADS),
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


def variables(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    """Those that are set otherwise; those that can slow something come first."""
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


def libraries(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    """Versions; TensorFlow's and Keras' come first."""
    names = dict.fromkeys((*_LIBRARIES, *a.versions, *b.versions))
    for name in names:
        parts, sign = _LIBRARIES.get(name, ((), ""))
        mine, theirs = (m.versions.get(name, "not installed") for m in (a, b))
        yield from words(plain(name, 60), mine, theirs, name, parts, sign=sign)
    builds = [m.software.build if m.software else None for m in (a, b)]
    yield from words("TensorFlow build", builds[0], builds[1], "build", ())
    yield from words("Python", a.python, b.python, "Python", ("dispatch",), sign=PYTHON)
    yield from words("system", a.system, b.system, "system", ())


def _variable(name: str) -> tuple[tuple[str, ...], str]:
    found = (told for start, told in _VARIABLES.items() if name.startswith(start))
    return next(found, ((), ""))


def _switched_off(name: str, a: str | None, b: str | None) -> Side:
    """Who turned the faster kernels off; of other variables the records do not say."""
    if name != "TF_ENABLE_ONEDNN_OPTS":
        return ""
    off = [value is not None and value.strip().lower() in _OFF for value in (a, b)]
    return "" if off[0] == off[1] else "A" if off[0] else "B"


# Fewer samples than this say nothing.
_ENOUGH = 5
# Cores that others keep busy, as a share of those granted; less is always there.
_LEAST = 0.05
# Into so many a run is cut to see whether the machine slowed down.
_STRETCHES = 10
# The pulse of a healthy machine falls so far below its best, at most.
_STEADY = 0.85
# Nothing is lost beyond this: what is left has to have done the work.
_MOST = 0.95


@dataclass(frozen=True)
class Lost:
    """Shares of a step that were lost, from 0 to 1, and where that is known from.

    Attributes:
        load: To other programs; None if unknown.
        throttling: To slower clocks of the cores, None if unknown; ``gpu`` to those of
            the GPU.
        others: Cores that other programs kept busy.
        pulse: The speed of the cores, as a share of their best; None if unknown.
        reasons: Why the GPU was slowed.
    """

    load: float | None = None
    throttling: float | None = None
    gpu: float = 0.0
    others: float = 0.0
    pulse: float | None = None
    reasons: tuple[str, ...] = ()


def losses(a: Held, b: Held) -> tuple[Lost, Lost]:
    """What each of the two lost; what one of them does not tell is told of neither."""
    one, other = lost(a, b), lost(b, a)
    if one.load is None or other.load is None:
        one, other = replace(one, load=None), replace(other, load=None)
    if one.throttling is None or other.throttling is None:
        one, other = replace(one, throttling=None), replace(other, throttling=None)
    return one, other


def lost(held: Held, other: Held) -> Lost:
    """What one machine lost; the other shows how many cores the same jobs can fill."""
    pulse = _pulse(held.samples)
    slowed = None if pulse is None else (1 - pulse if pulse < _STEADY else 0.0)
    taken = _taken(held, other)
    gpu, reasons = _gpu(held.machine, held.samples)
    others = _mean(held.samples, "cpu_other") or 0.0
    return Lost(
        load=None if taken is None else min(_MOST, taken),
        throttling=slowed,
        gpu=gpu,
        others=others,
        pulse=pulse,
        reasons=reasons,
    )


def _taken(held: Held, other: Held) -> float | None:
    """The share of the step that other programs took; None if unknown."""
    machine = held.machine
    used, others = (_mean(held.samples, name) for name in ("cpu_trial", "cpu_other"))
    if not used or others is None:
        return None
    free = max(0.0, machine.cores - others)
    gone = machine.cores_granted - min(machine.cores_granted, free)
    wanted = min(machine.cores_granted, max(used, _filled(other)))
    # Cores that stood idle all the same would have done what others kept from it.
    idle = max(0.0, machine.cores_granted - gone - used)
    missed = min(gone, wanted - used) - idle
    if gone < _LEAST * machine.cores_granted or missed <= 0:
        return 0.0
    return missed / (used + missed)


def _filled(held: Held) -> float:
    return _mean(held.samples, "cpu_trial") or 0.0


def _pulse(samples: Columns) -> float | None:
    """The usual speed of the cores as a share of the best that was seen.

    A core that shares its arithmetic with another is slower whenever that one works,
    and so are clocks when all cores do: the training itself moves the pulse. In every
    stretch of a run the other core rests at times. What keeps even the best moments of
    most stretches below those of others is the machine.
    """
    known = [v for v in samples.get("pulse", ()) if v is not None and v > 0]
    count = min(_STRETCHES, len(known) // _ENOUGH)
    if count < 2:
        return None
    edges = [number * len(known) // count for number in range(count + 1)]
    stretches = [sorted(known[a:b]) for a, b in itertools.pairwise(edges)]
    best = [stretch[int(0.9 * (len(stretch) - 1))] for stretch in stretches]
    return statistics.median(best) / max(best)


def _gpu(machine: Machine, samples: Columns) -> tuple[float, tuple[str, ...]]:
    """How far the first GPU's clock lay below its highest while it worked, and why."""
    if not machine.gpus:
        return 0.0, ()
    clocks = machine.gpus[0].clocks
    columns = (samples.get(f"gpu0_{name}", ()) for name in ("sm_clock", "busy"))
    # An idle GPU lets its clock fall of its own accord.
    seen = [clock for clock, busy in zip(*columns, strict=False) if clock and busy]
    if not clocks.busy_throttle or not clocks.sm_max or len(seen) < _ENOUGH:
        return 0.0, ()
    usual = statistics.median(seen) / clocks.sm_max
    return min(_MOST, max(0.0, 1 - usual)), tuple(clocks.busy_throttle)


def _mean(samples: Columns, name: str) -> float | None:
    known = [value for value in samples.get(name, ()) if value is not None]
    return statistics.fmean(known) if len(known) >= _ENOUGH else None
