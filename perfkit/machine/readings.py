"""What is asked of a GPU's driver, reading by reading."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from perfkit.machine import nvml
from perfkit.machine.gpu import throttle_reasons
from perfkit.machine.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    Device,
    Nvml,
    Read,
    RefusedError,
    above_zero,
    found,
    given,
    not_zero,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


# The library's own numbers.
_CARD_READINGS_SM_CLOCK = 1
_UNCORRECTED, _SINCE_START, _DEVICE_MEMORY = 1, 0, 2
_NEAREST = 0
_SLOWEST_STATE = 15
_WORD_BITS = 64
# More than anything has.
_MOST_NVLINKS = 36
_MOST_CORES = 4096
# Cores in a multiprocessor, by the first number of the compute capability.
_CORES_IN_EACH = {3: 192, 5: 128, 6: 128, 7: 64} | dict.fromkeys(range(8, 13), 128)
# Data-centre cards whose kin for games differ.
_OF_64_CORES = {(6, 0), (8, 0)}


def name(device: Device) -> str:
    """The card's name, or that of the instance."""
    return str(not_zero(device.ask_part("nvmlDeviceGetName")))


def capability(device: Device) -> str:
    """Such as ``"8.9"``."""
    return "{}.{}".format(*_capability(device))


def cores(device: Device) -> int:
    """CUDA cores, of the instance where it is one."""
    if device.is_instance:
        return multiprocessors(device) * _cores_in_each(device)
    return int(not_zero(given(device.ask("nvmlDeviceGetNumGpuCores"))))


def multiprocessors(device: Device) -> int:
    """What the cores stand in; the driver tells it of instances alone."""
    if not device.is_instance:
        return cores(device) // _cores_in_each(device)
    attributes = device.ask_part("nvmlDeviceGetAttributes_v2")
    return int(not_zero(given(attributes.multiprocessorCount)))


def memory_window(device: Device) -> int:
    """Bytes of its memory that the processor can reach at once."""
    return int(not_zero(given(device.ask("nvmlDeviceGetBAR1MemoryInfo").bar1Total)))


def pci_bus(device: Device) -> str:
    """Where it is plugged in; the domain with 4 digits, as Linux writes it."""
    bus = str(not_zero(device.ask("nvmlDeviceGetPciInfo").busId)).lower()
    return bus[4:] if bus.startswith("0000") and bus.find(":") == 8 else bus


def tells_fill(device: Device) -> bool:
    """Whether it can tell how full it is."""
    return bool(given(device.ask("nvmlGpmQueryDeviceSupport").isSupportedDevice))


def nvlinks(device: Device) -> int:
    """Connections that are up."""
    return sum(_nvlink_states(device))


def sm_set(device: Device) -> float | None:
    """Hertz that applications are given, where they are not the card's own."""
    now = given(device.ask("nvmlDeviceGetApplicationsClock", _CARD_READINGS_SM_CLOCK))
    own = given(
        device.ask("nvmlDeviceGetDefaultApplicationsClock", _CARD_READINGS_SM_CLOCK)
    )
    return None if now == own else float(not_zero(now) * 1e6)


def throttle(device: Device) -> tuple[str, ...]:
    """What slows it now, in words."""
    return throttle_reasons(nvml.throttle_mask(device))


def throttle_known(device: Device) -> tuple[str, ...]:
    """What it would tell of, in words."""
    mask = nvml.either(device, "nvmlDeviceGetSupportedClocks{}Reasons")
    return throttle_reasons(mask)


def slowed(device: Device, by: int) -> float:
    """Seconds that it was slowed since the driver was loaded."""
    lost = device.ask("nvmlDeviceGetViolationStatus", by)
    return float(given(lost.violationTime) / 1e9)


def limit(device: Device) -> float:
    """Watts that it may draw now; what was asked for where only that is told."""
    try:
        return _watts(device, "nvmlDeviceGetEnforcedPowerLimit")
    except RefusedError:
        return _watts(device, "nvmlDeviceGetPowerManagementLimit")


def limit_bound(device: Device, which: int) -> float:
    """Watts: the lowest (0) or the highest (1) limit that may be set."""
    bounds = device.ask("nvmlDeviceGetPowerManagementLimitConstraints")
    return float(not_zero(given(bounds[which])) / 1e3)


def performance(device: Device) -> str:
    """``"P0"`` is the fastest state."""
    state = device.ask("nvmlDeviceGetPerformanceState")
    if state > _SLOWEST_STATE:
        raise RefusedError
    return f"P{state}"


def errors(device: Device) -> int:
    """Uncorrected memory errors; those of the memory alone where no sum is told."""
    kind = (_UNCORRECTED, _SINCE_START)
    try:
        return int(given(device.ask("nvmlDeviceGetTotalEccErrors", *kind)))
    except RefusedError:
        place = (*kind, _DEVICE_MEMORY)
        return int(given(device.ask("nvmlDeviceGetMemoryErrorCounter", *place)))


def rows_remapped(device: Device) -> int:
    """Rows of memory that were replaced, for errors that were corrected or not."""
    corrected, uncorrected, *_ = device.ask("nvmlDeviceGetRemappedRows")
    return int(given(corrected) + given(uncorrected))


def rows_flag(device: Device, which: int) -> bool:
    """Whether more rows will be replaced (2), or one could not be (3)."""
    return bool(given(device.ask("nvmlDeviceGetRemappedRows")[which]))


def numa_node(device: Device) -> int | None:
    """The node of memory that is nearest; None where several are as near."""
    nodes = list(_bits(device.ask("nvmlDeviceGetMemoryAffinity", 1, _NEAREST)))
    if not nodes:
        raise RefusedError
    return nodes[0] if len(nodes) == 1 else None


def cores_near(device: Device) -> str:
    """The processor's cores that are nearest, such as ``"0-15,32-47"``."""
    words = device.ask("nvmlDeviceGetCpuAffinity", _MOST_CORES // _WORD_BITS)
    near = list(_bits(words))
    if not near:
        raise RefusedError
    return ",".join(_ranges(near))


def _capability(device: Device) -> tuple[int, int]:
    major, minor = device.ask("nvmlDeviceGetCudaComputeCapability")
    return int(not_zero(major)), int(minor)


def _cores_in_each(device: Device) -> int:
    numbers = _capability(device)
    if numbers in _OF_64_CORES:
        return 64
    # Of a card that is newer than this table nothing is guessed.
    return int(not_zero(_CORES_IN_EACH.get(numbers[0])))


def _watts(device: Device, call: str) -> float:
    return float(not_zero(given(device.ask(call))) / 1e3)


def _nvlink_states(device: Device) -> Iterator[bool]:
    for place in range(_MOST_NVLINKS):
        try:
            yield bool(given(device.ask("nvmlDeviceGetNvLinkState", place)))
        except RefusedError as error:
            # A card refuses the place after its last one.
            if place and error.code in (INVALID_ARGUMENT, NOT_SUPPORTED):
                return
            raise


def _bits(words: Iterable[Any]) -> Iterator[int]:
    """Places of the bits that are set, over words of 64 bits each."""
    for at, word in enumerate(words):
        for bit in range(_WORD_BITS):
            if int(word) >> bit & 1:
                yield _WORD_BITS * at + bit


def _ranges(numbers: list[int]) -> Iterator[str]:
    first = last = numbers[0]
    for one in [*numbers[1:], -1]:
        if one == last + 1:
            last = one
            continue
        yield str(first) if first == last else f"{first}-{last}"
        first = last = one


# The driver measures PCIe traffic over 20 ms while the caller waits.
_PCIE_EVERY_S = 1.0
_GPU_READER_SM_CLOCK, _GPU_SENSOR, _SENT, _RECEIVED = 1, 0, 0, 1

_READINGS: dict[str, Read] = {
    "busy": nvml.busy,
    "memory": nvml.memory_used,
    "power": above_zero("nvmlDeviceGetPowerUsage", per=1e3),
    "sm_clock": above_zero("nvmlDeviceGetClockInfo", _GPU_READER_SM_CLOCK, times=1e6),
    "temperature": number("nvmlDeviceGetTemperature", _GPU_SENSOR),
    "throttle": nvml.throttle_mask,
    "link_generation": above_zero("nvmlDeviceGetCurrPcieLinkGeneration"),
    "link_width": above_zero("nvmlDeviceGetCurrPcieLinkWidth"),
}
_PCIE_READINGS: dict[str, Read] = {
    "pcie_rx": number("nvmlDeviceGetPcieThroughput", _RECEIVED, times=1e3),
    "pcie_tx": number("nvmlDeviceGetPcieThroughput", _SENT, times=1e3),
}


class GpuReader:
    """Reads every GPU, from one thread, as often as asked.

    Attributes:
        why: Why there are no GPUs to read, in one sentence; "" where there are some or
            nothing was read yet.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.why = ""
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
            values |= self._read(index, _READINGS)
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
        devices, self.why = found(self._nvml)
        self._gpus = {n: gpu for n, gpu in enumerate(devices) if not gpu.refused}
        if devices and not self._gpus:
            self.why = f"The NVIDIA driver gives no access: {devices[0].refused}."

    def _read(self, index: int, wanted: dict[str, Read]) -> dict[str, float]:
        values = dict[str, float]()
        for name, read in wanted.items():
            if index not in self._gpus or (index, name) in self._refused:
                continue
            try:
                values[f"gpu{index}_{name}"] = float(read(self._gpus[index]))
            except RefusedError as error:
                self._note(index, name, error.code)
        return values

    def _note(self, index: int, name: str, code: int) -> None:
        """Never ask again for what this driver lacks, nor a card that is gone."""
        if code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
            self._refused.add((index, name))
        elif code == GPU_IS_LOST:
            del self._gpus[index]

    def _due_for_pcie(self) -> int | None:
        """The GPU that has waited longest, if a second or more; one per sample."""
        now = self._clock()
        waited = {i: now - self._pcie_read.get(i, -math.inf) for i in self._gpus}
        index = max(waited, key=waited.__getitem__, default=None)
        if index is None or waited[index] < _PCIE_EVERY_S:
            return None
        self._pcie_read[index] = now
        return index
