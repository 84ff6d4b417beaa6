"""NVIDIA's management library: the cards it describes, and readings of a moment.

On WSL, in containers and on consumer cards the driver refuses some of the readings.
Each is asked for by itself, so none takes another with it; an unknown one is never 0.
"""

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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

Subject = TypeVar("Subject")

UNKNOWN = "unknown NVIDIA GPU"
UNKNOWN_HOLDER = "unknown program"
_LONGEST_NAME = 40

# The library's own numbers; they have never changed.
_NOT_SUPPORTED, _FUNCTION_NOT_FOUND, _GPU_IS_LOST = 3, 13, 15
_NO_PERMISSION, _DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _MISMATCH = 4, 9, 12, 18
# What the library fills in where it has no value: all bits set, in 32 or 64 of them.
_NO_VALUE = (2**32 - 1, 2**64 - 1)
# The library's version of the memory's record: 2, and its 40 bytes.
_MEMORY_V2 = 0x02000028

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


class Nvml:
    """The library, opened.

    ``problem`` keeps the driver from answering, and ``why`` says what to do about it;
    both are "" where it answers.
    """

    def __init__(self) -> None:
        self.problem: Problem = ""
        self.why = ""
        try:
            import pynvml
        except ImportError:
            self.problem = "no reader"
            self.why = "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"
            return
        self._module: Any = pynvml
        try:
            self.ask("nvmlInit")
        except RefusedError as error:
            unknown = f"The NVIDIA driver does not answer: {error}."
            self.problem, self.why = _PROBLEMS.get(error.code, ("no answer", unknown))

    def ask(self, call: str, *arguments: Any) -> Any:
        """The answer of one call.

        Raises:
            RefusedError: The driver refuses, or the library has no such call.
        """
        function = getattr(self._module, call, None)
        if function is None:
            raise RefusedError("Function Not Found", _FUNCTION_NOT_FOUND)
        try:
            return function(*arguments)
        except self._module.NVMLError as error:
            raise RefusedError(_word(error), error.value) from None
        except UnicodeDecodeError:
            raise RefusedError("Not Text") from None

    def close(self) -> None:
        """Let go of the driver."""
        if not self.problem:
            with contextlib.suppress(RefusedError):
                self.ask("nvmlShutdown")


@dataclass(frozen=True)
class Device:
    """A card to ask, by its number as the driver counts.

    ``refused`` is the driver's word where it gives no access to the card.
    """

    nvml: Nvml
    number: int
    handle: Any = None
    refused: str = ""

    def ask(self, call: str, *arguments: Any) -> Any:
        """The answer of the card to one call, whose beginning is left out."""
        return self.nvml.ask(f"nvmlDeviceGet{call}", self.handle, *arguments)

    def value(self, call: str, *arguments: Any) -> Any:
        """The same, refused where the library marks that there is no value."""
        return _value(self.ask(call, *arguments))

    def nonzero(self, call: str, *arguments: Any) -> Any:
        """The same, refused at 0 too: so the driver says that it does not know."""
        return _nonzero(self.ask(call, *arguments))

    @property
    def is_divided(self) -> bool:
        """Whether it is divided into instances (MIG), of which a program sees one."""
        with contextlib.suppress(RefusedError):
            return bool(self.ask("MigMode")[0])
        return False


def _devices(nvml: Nvml) -> tuple[tuple[Device, ...], str]:
    """All cards in the driver's order; where there are none, why, in a sentence."""
    if nvml.problem:
        return (), nvml.why
    try:
        count = int(_value(nvml.ask("nvmlDeviceGetCount")))
    except RefusedError as error:
        return (), f"The NVIDIA driver does not say which GPUs there are: {error}."
    devices = tuple(_device(nvml, number) for number in range(count))
    return devices, "" if devices else "The NVIDIA driver reports no GPU."


def _device(nvml: Nvml, number: int) -> Device:
    try:
        return Device(nvml, number, nvml.ask("nvmlDeviceGetHandleByIndex", number))
    except RefusedError as error:
        return Device(nvml, number, refused=str(error))


def _value(value: Any) -> Any:
    """A number; refused if it is the library's mark for "no value"."""
    if value in _NO_VALUE:
        raise RefusedError
    return value


def _nonzero(value: Any) -> Any:
    """The same; refused if it is 0 or empty."""
    if not _value(value):
        raise RefusedError
    return value


def _word(error: Any) -> str:
    """The driver's word; a number where it has none that can be read."""
    try:
        word = str(error)
    except UnicodeDecodeError:
        word = ""
    # What a library says that gives no text for its error.
    return f"Error {error.value}" if word in ("", "None") else word.rstrip(".")


Read = Callable[[Device], Any]


def _busy(card: Device) -> float:
    """The share of the time in which a kernel ran."""
    return float(_value(card.ask("UtilizationRates").gpu) / 100)


def _throttle_mask(card: Device) -> Any:
    """The bits of ``throttle_reasons``."""
    try:
        return card.value("CurrentClocksEventReasons")
    except RefusedError as error:
        # Drivers before 535 know it by its older name.
        if error.code != _FUNCTION_NOT_FOUND:
            raise
    return card.value("CurrentClocksThrottleReasons")


def _memory_used(card: Device) -> int:
    """Bytes that are taken, by anybody."""
    return int(_value(_memory(card).used))


def _memory(card: Device) -> Any:
    """The memory's record; refused for a divided card: a program has a part of it."""
    if card.is_divided:
        raise RefusedError
    try:
        memory = card.ask("MemoryInfo", _MEMORY_V2)
    except RefusedError:
        # The older record counts what the driver keeps for itself as taken.
        memory = card.ask("MemoryInfo")
    _nonzero(memory.total)
    return memory


# The driver measures PCIe traffic over 20 ms while the caller waits.
_PCIE_EVERY_S = 1.0
# The library's own numbers.
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR, _SENT, _RECEIVED = 1, 2, 0, 0, 1

READINGS: dict[str, Read] = {
    "busy": _busy,
    "memory": _memory_used,
    "power": lambda card: card.nonzero("PowerUsage") / 1e3,
    "sm_clock": lambda card: card.nonzero("ClockInfo", _SM_CLOCK) * 1e6,
    "temperature": lambda card: card.value("Temperature", _GPU_SENSOR),
    "throttle": _throttle_mask,
    "link_generation": lambda card: card.nonzero("CurrPcieLinkGeneration"),
    "link_width": lambda card: card.nonzero("CurrPcieLinkWidth"),
}
_PCIE_READINGS: dict[str, Read] = {
    "pcie_rx": lambda card: card.value("PcieThroughput", _RECEIVED) * 1e3,
    "pcie_tx": lambda card: card.value("PcieThroughput", _SENT) * 1e3,
}


def _cores(card: Device) -> int:
    """CUDA cores; those of an instance are not told."""
    if card.is_divided:
        raise RefusedError
    return int(card.nonzero("NumGpuCores"))


def _capability(card: Device) -> str:
    major, minor = card.ask("CudaComputeCapability")
    return f"{int(_nonzero(major))}.{int(minor)}"


def _cuda(library: Nvml) -> str:
    version = _nonzero(library.ask("nvmlSystemGetCudaDriverVersion"))
    return f"{version // 1000}.{version % 1000 // 10}"


_GPU: dict[str, Read] = {
    "name": lambda card: card.nonzero("Name"),
    "memory": lambda card: int(_memory(card).total),
    "memory_used": _memory_used,
    "memory_bus": lambda card: card.nonzero("MemoryBusWidth"),
    "compute_capability": _capability,
    "cores": _cores,
    "busy": _busy,
}
_LINK: dict[str, Read] = {
    "generation": READINGS["link_generation"],
    "width": READINGS["link_width"],
    "generation_max": lambda card: card.nonzero("MaxPcieLinkGeneration"),
    "width_max": lambda card: card.nonzero("MaxPcieLinkWidth"),
}
_CLOCKS: dict[str, Read] = {
    "sm_max": lambda card: card.nonzero("MaxClockInfo", _SM_CLOCK) * 1e6,
    "memory_max": lambda card: card.nonzero("MaxClockInfo", _MEMORY_CLOCK) * 1e6,
    "throttle": lambda card: throttle_reasons(_throttle_mask(card)),
}
_DRIVER: dict[str, Callable[[Nvml], Any]] = {
    "version": lambda library: library.ask("nvmlSystemGetDriverVersion"),
    "cuda": _cuda,
}


@functools.cache
def gpus_here() -> tuple[tuple[Gpu, ...], str]:
    """The GPUs of this machine, asked for once, and why there are none."""
    return gpus()[1:]


def gpus() -> tuple[Driver | None, tuple[Gpu, ...], str]:
    """Describe the driver and every GPU.

    Returns:
        The driver, None where there is none; a record for each GPU in the driver's
        order, for cards that it gives no access to as well; where there are none, why,
        in a sentence.
    """
    library = Nvml()
    try:
        devices, reason = _devices(library)
        if library.problem in ("no reader", "no driver"):
            return None, (), reason
        driver = Driver(problem=library.problem)
        if not library.problem:
            driver = Driver(**_answers(_DRIVER, library))
        return driver, tuple(_gpu(device, driver.version) for device in devices), reason
    finally:
        library.close()


def _gpu(card: Device, driver: str | None) -> Gpu:
    if card.refused:
        return Gpu(name=UNKNOWN, driver=driver, lost=card.refused)
    gpu = Gpu(
        driver=driver,
        divided=card.is_divided,
        link=Link(**_answers(_LINK, card)),
        clocks=Clocks(**_answers(_CLOCKS, card)),
        holders=_holders(card),
        **{"name": UNKNOWN} | _answers(_GPU, card),
    )
    # It may have fallen off the bus meanwhile.
    return replace(gpu, lost=_device(card.nvml, card.number).refused)


def _holders(card: Device) -> tuple[Holder, ...] | None:
    """One record for each program, those with most memory first."""
    try:
        processes = [*card.ask("ComputeRunningProcesses_v3")]
    except RefusedError:
        return None
    # A program that computes and draws is listed twice, with the same memory.
    with contextlib.suppress(RefusedError):
        processes += card.ask("GraphicsRunningProcesses_v3")
    names = environment.own_names()
    memory = {int(process.pid): process.usedGpuMemory or None for process in processes}
    holders = (
        Holder(program=_program(pid, names), memory=size, own=_is_own(pid))
        for pid, size in sorted(memory.items())
    )
    return tuple(sorted(holders, key=lambda holder: -(holder.memory or 0)))


def _program(pid: int, names: Sequence[str]) -> str:
    try:
        name = psutil.Process(pid).name()
    except (psutil.Error, OSError, ValueError):
        return UNKNOWN_HOLDER
    # A program may call itself what it likes, its command line or a path included.
    first = name.replace("\\", "/").rpartition("/")[2].split(" ")[0]
    return (
        environment.anonymize(first, names, _LONGEST_NAME, is_fact=True)
        or UNKNOWN_HOLDER
    )


def _is_own(pid: int) -> bool | None:
    """Whether it is this process or one that it started; None if out of sight."""
    try:
        process = psutil.Process(pid)
        return os.getpid() in (pid, *(parent.pid for parent in process.parents()))
    except psutil.AccessDenied:
        return False
    except (psutil.Error, OSError, ValueError):
        return None


def _answers(
    calls: Mapping[str, Callable[[Subject], Any]], subject: Subject
) -> dict[str, Any]:
    """The readings that the driver gives; each is asked for by itself."""
    answers = dict[str, Any]()
    for name, read in calls.items():
        try:
            answers[name] = read(subject)
        except RefusedError:
            continue
    return answers


class GpuReader:
    """Reads every GPU, from one thread, as often as asked."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._nvml: Nvml | None = None
        self._gpus = dict[int, Device]()
        self._refused = set[tuple[int, str]]()
        self._pcie_read = dict[int, float]()

    def sample(self) -> dict[str, float]:
        """Read all GPUs now; keys such as ``"gpu0_busy"``, only what the driver gives.

        Busy is a share of time (0 to 1), memory is in bytes, power in watts, the SM
        clock in hertz, the temperature in degrees Celsius, PCIe traffic in bytes per
        second (at most once a second), throttle the bit mask of ``throttle_reasons``,
        the link's generation and width those of the moment.
        """
        self._open()
        values = dict[str, float]()
        for index in tuple(self._gpus):
            values |= self._read(index, READINGS)
        due = self._due_for_pcie()
        if due is not None:
            values |= self._read(due, _PCIE_READINGS)
        return values

    def close(self) -> None:
        """Let go of the driver; the next sample opens it again."""
        if self._nvml is not None:
            self._nvml.close()
        self._nvml = None
        self._gpus, self._refused, self._pcie_read = {}, set(), {}

    def _open(self) -> None:
        if self._nvml is not None:
            return
        self._nvml = Nvml()
        devices, _ = _devices(self._nvml)
        self._gpus = {n: gpu for n, gpu in enumerate(devices) if not gpu.refused}

    def _read(self, index: int, readings: dict[str, Read]) -> dict[str, float]:
        values = dict[str, float]()
        for name, read in readings.items():
            if index not in self._gpus or (index, name) in self._refused:
                continue
            try:
                values[f"gpu{index}_{name}"] = float(read(self._gpus[index]))
            except RefusedError as error:
                # Never ask again for what this driver lacks, nor a card that is gone.
                if error.code in (_NOT_SUPPORTED, _FUNCTION_NOT_FOUND):
                    self._refused.add((index, name))
                elif error.code == _GPU_IS_LOST:
                    del self._gpus[index]
        return values

    def _due_for_pcie(self) -> int | None:
        """The GPU that has waited longest, if a second or more; one per sample."""
        now_s = self._clock()
        waited = {i: now_s - self._pcie_read.get(i, -math.inf) for i in self._gpus}
        index = max(waited, key=waited.__getitem__, default=None)
        if index is None or waited[index] < _PCIE_EVERY_S:
            return None
        self._pcie_read[index] = now_s
        return index
