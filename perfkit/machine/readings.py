"""One reading of a GPU each: which call, and how its answer is to be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfkit.machine.nvml import FUNCTION_NOT_FOUND, Device, RefusedError, given

Read = Callable[[Device], Any]

# The library's version of the memory's record: 2, and its 40 bytes.
_MEMORY_V2 = 0x02000028


def number(call: str, *arguments: Any, times: float = 1, per: float = 1) -> Read:
    """A number, in the unit that ``times`` or ``per`` make of the driver's."""

    def read(device: Device) -> float:
        value: int = given(device.ask(call, *arguments))
        return value if times == per == 1 else value * times / per

    return read


def above_zero(call: str, *arguments: Any, times: float = 1, per: float = 1) -> Read:
    """The same where 0 can only mean that the driver does not know."""
    read = number(call, *arguments, times=times, per=per)
    return lambda device: not_zero(read(device))


def flag(call: str) -> Read:
    """Whether something is on; the first of two answers, the other is for later."""

    def read(device: Device) -> bool:
        answer = device.ask(call)
        now = answer[0] if isinstance(answer, list) else answer
        return bool(given(now))

    return read


def word(call: str, words: Mapping[int, str], other: str) -> Read:
    """A number as its word; ``other`` with the number where it has none."""

    def read(device: Device) -> str:
        answer = device.ask(call)
        value = given(answer[0] if isinstance(answer, list) else answer)
        return words.get(value, other.format(value))

    return read


def memory_total(device: Device) -> int:
    """Bytes of memory that the GPU has."""
    return int(not_zero(given(_memory(device).total)))


def memory_used(device: Device) -> int:
    """Bytes that are taken, by anybody."""
    memory = _memory(device)
    not_zero(given(memory.total))
    return int(given(memory.used))


def busy(device: Device) -> float:
    """Share of the time in which at least one kernel ran."""
    percent = given(device.ask_part("nvmlDeviceGetUtilizationRates").gpu)
    return float(percent / 100)


def throttle_mask(device: Device) -> int:
    """What slows the clocks now, as the driver's bits."""
    return either(device, "nvmlDeviceGetCurrentClocks{}Reasons")


def either(device: Device, call: str) -> int:
    """Ask by the name that drivers since 535 know, then by the older one."""
    try:
        return int(given(device.ask(call.format("Event"))))
    except RefusedError as error:
        if error.code != FUNCTION_NOT_FOUND:
            raise
    return int(given(device.ask(call.format("Throttle"))))


def not_zero(value: Any) -> Any:
    """The value, where it is one.

    Raises:
        RefusedError: It is 0.
    """
    if not value:
        raise RefusedError
    return value


def _memory(device: Device) -> Any:
    # The older record counts what the driver keeps for itself as taken.
    try:
        return device.ask_part("nvmlDeviceGetMemoryInfo", _MEMORY_V2)
    except RefusedError:
        return device.ask_part("nvmlDeviceGetMemoryInfo")
