"""Readings of a card that take more than one call, or more than its number.

Each raises ``RefusedError`` where the driver gives no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.machine import readings
from perfkit.machine.nvml import INVALID_ARGUMENT, NOT_SUPPORTED, RefusedError, given
from perfkit.machine.readings import not_zero
from perfkit.machine.throttling import throttle_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.machine.nvml import Device

# The library's own numbers.
_SM_CLOCK = 1
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
    now = given(device.ask("nvmlDeviceGetApplicationsClock", _SM_CLOCK))
    own = given(device.ask("nvmlDeviceGetDefaultApplicationsClock", _SM_CLOCK))
    return None if now == own else float(not_zero(now) * 1e6)


def throttle(device: Device) -> tuple[str, ...]:
    """What slows it now, in words."""
    return throttle_reasons(readings.throttle_mask(device))


def throttle_known(device: Device) -> tuple[str, ...]:
    """What it would tell of, in words."""
    mask = readings.either(device, "nvmlDeviceGetSupportedClocks{}Reasons")
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
    for number in [*numbers[1:], -1]:
        if number == last + 1:
            last = number
            continue
        yield str(first) if first == last else f"{first}-{last}"
        first = last = number
