"""What two machines are, side by side: hardware, software, load."""

import functools
import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from perfkit import units
from perfkit.findings.text import plain
from perfkit.machine.gpu import computing
from perfkit.machine.record import Machine, Processor
from perfkit.machines.comparison import Held
from perfkit.machines.ratios import (
    CORES,
    DISK,
    GPU,
    KERNELS,
    LINK,
    MEMORY,
    PYTHON,
    SPEED,
    THREADS,
    MachineDiffers,
    Side,
)

Columns = dict[str, tuple[float | None, ...]]
Value = float | str | None

# What a reading may differ by from one look to the next.
_SAME = 0.05
# Topics that microbenchmarks show.
_SIGNS = {CORES, SPEED, KERNELS, DISK, GPU, LINK}
_PROCESSOR = ("input", "dispatch", "compute")
_EVERYTHING = ("input", "dispatch", "transfer", "compute")
_CLOCKS = "clock settings"
# Memory that is enough for any reference training: more brings nothing.
_ENOUGH_MEMORY = 16e9


class _Reading(NamedTuple):
    """What is read of both machines: a number of which less is slower, or words.

    Attributes:
        what: It is called.
        where: In the record, such as ``"processor.governor"``.
        topic: See ``MachineDiffers``, and so ``parts`` and ``sign``.
        write: Writes a number.
    """

    what: str
    where: str
    topic: str
    parts: tuple[str, ...] = ()
    sign: str = ""
    write: Callable[[float], str] = units.significant


def _per_second(unit: str) -> Callable[[float], str]:
    return lambda rate: units.rate(rate, unit)


# Of the GPU that computes.
_OF_GPU = (
    _Reading("GPU memory", "memory", "GPU memory", write=units.size),
    _Reading("link lanes under load", "link.busy_width", LINK, ("transfer",)),
    _Reading("link generation under load", "link.busy_generation", LINK, ("transfer",)),
    _Reading("highest GPU clock in Hz", "clocks.sm_max", GPU, ("compute",)),
)
_DRIVER = _Reading("NVIDIA driver", "driver.version", "driver", ("compute",))


def _read(one: _Reading, a: object, b: object) -> Iterator[MachineDiffers]:
    what, where, topic, parts, sign, write = one
    both = _value(a, where), _value(b, where)
    yield from _unlike(what, both, topic, parts, sign=sign, write=write)


def _value(of: object, where: str) -> Value:
    """One value of a record; None where what it belongs to is not known."""

    def inside(one: object, name: str) -> object:
        return None if one is None else getattr(one, name)

    found = functools.reduce(inside, where.split("."), of)
    if isinstance(found, bool):
        return "yes" if found else "no"
    return found  # type: ignore[return-value]


def _unlike(
    what: str,
    values: tuple[Value, Value],
    topic: str,
    parts: tuple[str, ...] = (),
    *,
    sign: str = "",
    slower: Side = "",
    write: Callable[[float], str] = units.significant,
) -> Iterator[MachineDiffers]:
    """Of a number less is slower; of words the records alone do not say."""
    a, b = values
    if a is None or b is None or a == b:
        return
    if isinstance(a, str) or isinstance(b, str):
        texts = [plain(str(value), 80) or "none" for value in values]
    elif abs(a - b) <= _SAME * max(abs(a), abs(b)):
        return
    else:
        texts, slower = [write(a), write(b)], slower or ("B" if b < a else "A")
    yield MachineDiffers(
        what=what,
        a=texts[0],
        b=texts[1],
        topic=topic,
        parts=parts,
        slower=slower,
        sign=sign or (topic if topic in _SIGNS else ""),
    )


def _gpus(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    one, other = (", ".join(gpu.name for gpu in m.gpus[:8]) or "none" for m in (a, b))
    yield from _unlike("GPUs", (one, other), GPU, ("compute", "transfer"))
    cards = [computing(m.gpus, m.environment)[1] for m in (a, b)]
    for reading in _OF_GPU:
        yield from _read(reading, *cards)
    if a.gpus and b.gpus:
        yield from _read(_DRIVER, a, b)


def _instructions(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    known = (m.processor.instructions if m.processor else None for m in (a, b))
    mine, theirs = (None if one is None else {*one} for one in known)
    if mine is None or theirs is None:
        return
    # Who lacks instructions that the other has is slower, where only one does.
    slower: Side = "A" if mine < theirs else "B" if theirs < mine else ""
    one, other = (" ".join(sorted(n)) or "none" for n in (mine - theirs, theirs - mine))
    what = "instruction sets that only one has"
    yield from _unlike(what, (one, other), SPEED, ("compute",), slower=slower)


def _memory(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    least = min(a.memory, b.memory)
    parts = ("input", "compute") if least < _ENOUGH_MEMORY else ()
    memory = a.memory, b.memory
    yield from _unlike("memory granted", memory, MEMORY, parts, write=units.size)


def _battery(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    both = _value(a, "load.on_battery"), _value(b, "load.on_battery")
    slower: Side = "B" if both[1] == "yes" else "A"
    yield from _unlike(
        "on battery", both, _CLOCKS, _PROCESSOR, sign=SPEED, slower=slower
    )


# Variables by the start of their names: what they can slow, and which rates show it.
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
# TensorFlow's and Keras' versions come first.
_LIBRARIES = {
    "tensorflow": (_EVERYTHING, KERNELS),
    "keras": (("dispatch", "compute"), ""),
    "numpy": ((), ""),
}


def _variables(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    """Those that are set otherwise; those that can slow something come first."""
    one, other = a.environment, b.environment
    found = list[MachineDiffers]()
    for name in dict.fromkeys((*one, *other)):
        known = (told for start, told in _VARIABLES.items() if name.startswith(start))
        parts, sign = next(known, ((), ""))
        found += _unlike(
            plain(name, 60),
            (one.get(name, "not set"), other.get(name, "not set")),
            plain(name, 60),
            parts,
            sign=sign,
            slower=_switched_off(name, a, b),
        )
    yield from sorted(found, key=lambda one: not one.parts)


def _switched_off(name: str, a: Machine, b: Machine) -> Side:
    """Who turned the faster kernels off; of other variables the records do not say."""
    if name != "TF_ENABLE_ONEDNN_OPTS":
        return ""
    off = [
        one.environment.get(name, "").strip().lower() in _OFF
        and (one.processor or Processor()).uses_onednn
        for one in (a, b)
    ]
    return "" if off[0] == off[1] else "A" if off[0] else "B"


def _libraries(a: Machine, b: Machine) -> Iterator[MachineDiffers]:
    for name in dict.fromkeys((*_LIBRARIES, *a.versions, *b.versions)):
        parts, sign = _LIBRARIES.get(name, ((), ""))
        one, other = (m.versions.get(name, "not installed") for m in (a, b))
        yield from _unlike(plain(name, 60), (one, other), name, parts, sign=sign)


# What can matter most first: what is read, and what takes more than a reading.
_IN_ORDER: tuple[
    _Reading | Callable[[Machine, Machine], Iterator[MachineDiffers]], ...
] = (
    _Reading("cores granted", "cores_granted", CORES, _PROCESSOR),
    _Reading("cores present", "cores", "cores present"),
    _gpus,
    _Reading("processor", "cpu", SPEED, _PROCESSOR),
    _instructions,
    _Reading(
        *("highest frequency", "processor.frequency_max", SPEED, _PROCESSOR),
        write=_per_second("Hz"),
    ),
    _memory,
    _Reading("file system of the data", "disk.filesystem", DISK, ("input",)),
    _Reading("governor", "processor.governor", _CLOCKS, _PROCESSOR, SPEED),
    _Reading("energy preference", "processor.preference", _CLOCKS, _PROCESSOR, SPEED),
    _battery,
    _variables,
    _libraries,
    _Reading("TensorFlow build", "software.build", "build"),
    _Reading("Python", "python", "Python", ("dispatch",), PYTHON),
    _Reading("system", "system", "system"),
)


def differences(a: Machine, b: Machine) -> tuple[MachineDiffers, ...]:
    """In what two machines differ, what can matter most first."""
    found = list[MachineDiffers]()
    for one in _IN_ORDER:
        found += _read(one, a, b) if isinstance(one, _Reading) else one(a, b)
    return tuple(found)


# Fewer samples than this say nothing.
_ENOUGH = 5
# Cores that others keep busy, as a share of those granted; less is always there.
_LEAST = 0.05
# Into so many a run is cut to see whether the machine slowed down.
_STRETCHES = 10
# A core of a healthy machine falls so far below its best speed, at most.
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
        core_speed: The speed of the cores, as a share of their best; None if unknown.
        reasons: Why the GPU was slowed.
    """

    load: float | None = None
    throttling: float | None = None
    gpu: float = 0.0
    others: float = 0.0
    core_speed: float | None = None
    reasons: tuple[str, ...] = ()


def losses(a: Held, b: Held) -> tuple[Lost, Lost]:
    """What each of the two lost; what one of them does not tell is told of neither."""
    one, other = _lost(a, b), _lost(b, a)
    if one.load is None or other.load is None:
        one, other = replace(one, load=None), replace(other, load=None)
    if one.throttling is None or other.throttling is None:
        one, other = replace(one, throttling=None), replace(other, throttling=None)
    return one, other


def _lost(held: Held, other: Held) -> Lost:
    """What one machine lost; the other shows how many cores the same jobs can fill."""
    core_speed = _core_speed(held.samples)
    gpu, reasons = _gpu(held.machine, held.samples)
    return Lost(
        load=_taken(held, other),
        throttling=core_speed and (1 - core_speed if core_speed < _STEADY else 0.0),
        gpu=gpu,
        others=_mean(held.samples, "cpu_other") or 0.0,
        core_speed=core_speed,
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
    filled = _mean(other.samples, "cpu_trial") or 0.0
    wanted = min(machine.cores_granted, max(used, filled))
    # Cores that stood idle all the same would have done what others kept from it.
    idle = max(0.0, machine.cores_granted - gone - used)
    missed = min(gone, wanted - used) - idle
    if gone < _LEAST * machine.cores_granted or missed <= 0:
        return 0.0
    return min(_MOST, missed / (used + missed))


def _core_speed(samples: Columns) -> float | None:
    """The usual speed of the cores as a share of the best that was seen.

    A core that shares its arithmetic with another is slower whenever that one works,
    and so are clocks when all cores do: the training itself moves it. In every
    stretch of a run the other core rests at times. What keeps even the best moments of
    most stretches below those of others is the machine.
    """
    known = [v for v in samples.get("core_speed", ()) if v is not None and v > 0]
    count = min(_STRETCHES, len(known) // _ENOUGH)
    if count < 2:
        return None
    edges = [number * len(known) // count for number in range(count + 1)]
    stretches = [sorted(known[a:b]) for a, b in itertools.pairwise(edges)]
    best = [stretch[int(0.9 * (len(stretch) - 1))] for stretch in stretches]
    return statistics.median(best) / max(best)


def _gpu(machine: Machine, samples: Columns) -> tuple[float, tuple[str, ...]]:
    """How far the GPU's clock lay below its highest while it worked, and why."""
    number, card = computing(machine.gpus, machine.environment)
    if card is None:
        return 0.0, ()
    clocks = card.clocks
    columns = (samples.get(f"gpu{number}_{name}", ()) for name in ("sm_clock", "busy"))
    # An idle GPU lets its clock fall of its own accord.
    seen = [clock for clock, busy in zip(*columns, strict=False) if clock and busy]
    if not clocks.busy_throttle or not clocks.sm_max or len(seen) < _ENOUGH:
        return 0.0, ()
    usual = statistics.median(seen) / clocks.sm_max
    return min(_MOST, max(0.0, 1 - usual)), tuple(clocks.busy_throttle)


def _mean(samples: Columns, name: str) -> float | None:
    known = [value for value in samples.get(name, ()) if value is not None]
    return statistics.fmean(known) if len(known) >= _ENOUGH else None
