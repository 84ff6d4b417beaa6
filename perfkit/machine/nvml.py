"""NVIDIA's management library: the cards it describes, and readings of a moment.

On WSL, in containers and on consumer cards the driver refuses some of the readings.
Each is asked for by itself, so none takes another with it; an unknown one is never 0.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psutil

from perfkit.machine import environment
from perfkit.machine.record import (
    Clocks,
    Driver,
    Gpu,
    Holder,
    Link,
    Problem,
    throttle_reasons,
)

UNKNOWN = "unknown NVIDIA GPU"
UNKNOWN_HOLDER = "unknown program"
_LONGEST_NAME = 40

# The library's own numbers; they have never changed.
_FUNCTION_NOT_FOUND, _GPU_IS_LOST = 13, 15
_NO_PERMISSION, _DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _MISMATCH = 4, 9, 12, 18
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0
# The library's version of the memory's record: 2, and its 40 bytes.
_MEMORY_V2 = 0x02000028
# What the library fills in where it has no value: all bits set, in 32 or 64 of them.
_NO_VALUE = (2**32 - 1, 2**64 - 1)

_PROBLEMS: dict[int, tuple[Problem, str]] = {
    _LIBRARY_NOT_FOUND: ("no driver", "No NVIDIA driver is installed."),
    _DRIVER_NOT_LOADED: (
        "not loaded",
        "The NVIDIA driver is installed but not loaded: restart the machine.",
    ),
    _MISMATCH: (
        "mismatch",
        "The NVIDIA driver was updated while it ran and no longer fits its library:"
        " restart the machine.",
    ),
    _NO_PERMISSION: (
        "no permission",
        "The NVIDIA driver refuses access: this user needs read and write permission"
        " for its device files.",
    ),
}


class RefusedError(Exception):
    """The driver gives no value; the message is its word for that.

    ``code`` is the library's number for it, 0 where it answered without a value.
    """

    def __init__(self, word: str = "No Value", code: int = 0) -> None:
        super().__init__(word)
        self.code = code


def ask(call: str, *arguments: Any) -> Any:
    """The library's answer to one call, whose beginning is left out.

    Raises:
        RefusedError: The driver refuses, or the library has no such call.
    """
    try:
        import pynvml
    except ImportError:
        # Trials may run in an environment that lacks it.
        raise RefusedError("no library", _LIBRARY_NOT_FOUND) from None
    function = getattr(pynvml, f"nvml{call}", None)
    if function is None:
        raise RefusedError("Function Not Found", _FUNCTION_NOT_FOUND)
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise RefusedError(str(error).rstrip("."), error.value) from None
    except UnicodeDecodeError:
        raise RefusedError("Not Text") from None


def _value(value: Any) -> Any:
    """A number; refused if it is the library's mark for "no value"."""
    if value in _NO_VALUE:
        raise RefusedError
    return value


def _nonzero(value: Any) -> Any:
    """The same; refused if it is 0 or empty: so the driver says it does not know."""
    if not _value(value):
        raise RefusedError
    return value


# A card as the library hands it out.
Card = Any
Read = Callable[[Card], Any]


def _nonzero_of(call: str, *arguments: int, times: float = 1) -> Read:
    """A reading in base units, of which the driver's are so many times as large."""
    return lambda card: times * _nonzero(ask(f"DeviceGet{call}", card, *arguments))


def _is_divided(card: Card) -> bool:
    """Whether it is divided into instances (MIG), of which a program sees one."""
    with contextlib.suppress(RefusedError):
        return bool(ask("DeviceGetMigMode", card)[0])
    return False


def _busy(card: Card) -> float:
    """The share of the time in which a kernel ran."""
    return float(_value(ask("DeviceGetUtilizationRates", card).gpu) / 100)


def _throttle_mask(card: Card) -> Any:
    """The bits of ``throttle_reasons``."""
    try:
        return _value(ask("DeviceGetCurrentClocksEventReasons", card))
    except RefusedError as error:
        # Drivers before 535 know it by its older name.
        if error.code != _FUNCTION_NOT_FOUND:
            raise
    return _value(ask("DeviceGetCurrentClocksThrottleReasons", card))


def _memory(card: Card) -> Any:
    """The memory's record; refused for a divided card: a program has a part of it."""
    if _is_divided(card):
        raise RefusedError
    try:
        memory = ask("DeviceGetMemoryInfo", card, _MEMORY_V2)
    except RefusedError:
        # The older record counts what the driver keeps for itself as taken.
        memory = ask("DeviceGetMemoryInfo", card)
    _nonzero(memory.total)
    return memory


def _capability(card: Card) -> str:
    major, minor = ask("DeviceGetCudaComputeCapability", card)
    return f"{int(_nonzero(major))}.{int(minor)}"


READINGS: dict[str, Read] = {
    "busy": _busy,
    "memory": lambda card: int(_value(_memory(card).used)),
    "power": _nonzero_of("PowerUsage", times=1e-3),
    "sm_clock": _nonzero_of("ClockInfo", _SM_CLOCK, times=1e6),
    "temperature": lambda card: _value(ask("DeviceGetTemperature", card, _GPU_SENSOR)),
    "throttle": _throttle_mask,
    "link_generation": _nonzero_of("CurrPcieLinkGeneration"),
    "link_width": _nonzero_of("CurrPcieLinkWidth"),
}
_GPU: dict[str, Read] = {
    "name": lambda card: _nonzero(ask("DeviceGetName", card)),
    "memory": lambda card: int(_memory(card).total),
    "memory_used": READINGS["memory"],
    "memory_bus": _nonzero_of("MemoryBusWidth"),
    "compute_capability": _capability,
    "cores": _nonzero_of("NumGpuCores"),
    "busy": _busy,
    "divided": _is_divided,
}
_LINK: dict[str, Read] = {
    "generation": READINGS["link_generation"],
    "width": READINGS["link_width"],
    "generation_max": _nonzero_of("MaxPcieLinkGeneration"),
    "width_max": _nonzero_of("MaxPcieLinkWidth"),
}
_CLOCKS: dict[str, Read] = {
    "sm_max": _nonzero_of("MaxClockInfo", _SM_CLOCK, times=1e6),
    "memory_max": _nonzero_of("MaxClockInfo", _MEMORY_CLOCK, times=1e6),
    "throttle": lambda card: throttle_reasons(_throttle_mask(card)),
}


def _answers(reads: Mapping[str, Read], card: Card) -> dict[str, Any]:
    """The readings that the driver gives; each is asked for by itself."""
    answers = dict[str, Any]()
    for name, read in reads.items():
        with contextlib.suppress(RefusedError):
            answers[name] = read(card)
    return answers


@functools.cache
def gpus_here() -> tuple[tuple[Gpu, ...], str]:
    """The GPUs of this machine, asked for once, and why there are none."""
    return gpus()[1:]


def gpus() -> tuple[Driver | None, tuple[Gpu, ...], str]:
    """Describe the driver, if any, and every GPU; where there is none, say why.

    Cards are in the driver's order, those that it gives no access to among them.
    """
    try:
        ask("Init")
    except RefusedError as error:
        unknown = f"The NVIDIA driver does not answer: {error}."
        problem, why = _PROBLEMS.get(error.code, ("no answer", unknown))
        return None if problem == "no driver" else Driver(problem=problem), (), why
    driver, found = Driver(), tuple[Gpu, ...]()
    why = "The NVIDIA driver reports no GPU."
    try:
        with contextlib.suppress(RefusedError):
            cuda = _nonzero(ask("SystemGetCudaDriverVersion"))
            driver = Driver(
                version=ask("SystemGetDriverVersion"),
                cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
            )
        count = int(_value(ask("DeviceGetCount")))
        found = tuple(_gpu(number, driver.version) for number in range(count))
    except RefusedError as error:
        why = f"The NVIDIA driver does not say which GPUs there are: {error}."
    finally:
        _close()
    return driver, found, "" if found else why


def _close() -> None:
    with contextlib.suppress(RefusedError):
        ask("Shutdown")


def _gpu(number: int, driver: str | None) -> Gpu:
    try:
        card = ask("DeviceGetHandleByIndex", number)
    except RefusedError as error:
        return Gpu(name=UNKNOWN, driver=driver, lost=str(error))
    return Gpu(
        driver=driver,
        link=Link(**_answers(_LINK, card)),
        clocks=Clocks(**_answers(_CLOCKS, card)),
        holders=_holders(card),
        **{"name": UNKNOWN} | _answers(_GPU, card),
    )


def _holders(card: Card) -> tuple[Holder, ...] | None:
    """One record for each program, those with most memory first."""
    try:
        processes = [*ask("DeviceGetComputeRunningProcesses_v3", card)]
    except RefusedError:
        return None
    # A program that computes and draws is listed twice, with the same memory.
    with contextlib.suppress(RefusedError):
        processes += ask("DeviceGetGraphicsRunningProcesses_v3", card)
    names = environment.own_names()
    memory = {int(process.pid): process.usedGpuMemory or None for process in processes}
    holders = (_holder(pid, size, names) for pid, size in sorted(memory.items()))
    return tuple(sorted(holders, key=lambda holder: -(holder.memory or 0)))


def _holder(pid: int, memory: int | None, names: Sequence[str]) -> Holder:
    unknown = Holder(program=UNKNOWN_HOLDER, memory=memory)
    try:
        process = psutil.Process(pid)
        name = process.name()
        own = os.getpid() in (pid, *(parent.pid for parent in process.parents()))
    except psutil.AccessDenied:
        return unknown
    except (psutil.Error, OSError, ValueError):
        return replace(unknown, own=None)
    # A program may call itself what it likes, its command line or a path included.
    first = name.replace("\\", "/").rpartition("/")[2].split(" ")[0]
    program = environment.anonymize(first, names, _LONGEST_NAME, is_fact=True)
    return Holder(program=program or UNKNOWN_HOLDER, memory=memory, own=own)


class GpuReader:
    """Reads every GPU, from one thread, as often as asked."""

    def __init__(self) -> None:
        self._cards: dict[int, Card] | None = None

    def sample(self) -> dict[str, float]:
        """Read all GPUs now; keys such as ``"gpu0_busy"``, only what the driver gives.

        Busy is a share of time (0 to 1), memory is in bytes, power in watts, the SM
        clock in hertz, the temperature in degrees Celsius, throttle the bit mask of
        ``throttle_reasons``, the link's generation and width those of the moment.
        """
        if self._cards is None:
            self._cards = {}
            with contextlib.suppress(RefusedError):
                ask("Init")
                for number in range(int(_value(ask("DeviceGetCount")))):
                    with contextlib.suppress(RefusedError):
                        self._cards[number] = ask("DeviceGetHandleByIndex", number)
        values = dict[str, float]()
        for number, card in tuple(self._cards.items()):
            for name, read in READINGS.items():
                try:
                    values[f"gpu{number}_{name}"] = float(read(card))
                except RefusedError as error:
                    # A card that is gone is never asked again.
                    if error.code == _GPU_IS_LOST:
                        del self._cards[number]
                        break
        return values

    def close(self) -> None:
        """Let go of the driver; the next sample opens it again."""
        if self._cards is not None:
            _close()
        self._cards = None
