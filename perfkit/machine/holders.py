"""Which programs hold a GPU? Their names alone, as the system gives them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import psutil

from perfkit.machine import environment
from perfkit.machine.gpu import Holder
from perfkit.machine.nvml import (
    FUNCTION_NOT_FOUND,
    NOT_FOUND,
    Device,
    RefusedError,
    given,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNKNOWN = "unknown program"
_LONGEST_NAME = 40


def computing(device: Device) -> list[Any]:
    """Processes that compute on the GPU, as the library describes them."""
    return _processes(device, "nvmlDeviceGetComputeRunningProcesses")


def drawing(device: Device) -> list[Any]:
    """Processes that draw on a screen with the GPU."""
    return _processes(device, "nvmlDeviceGetGraphicsRunningProcesses")


def busy(device: Device) -> dict[int, float]:
    """The share of time in which kernels of a process ran, by its number."""
    try:
        # From the oldest reading that the driver keeps, which is some seconds old.
        samples = device.ask("nvmlDeviceGetProcessUtilization", 0)
    except RefusedError as error:
        if error.code in (0, NOT_FOUND):
            return {}
        raise
    newest = sorted(samples, key=lambda sample: int(sample.timeStamp))
    return {int(sample.pid): given(sample.smUtil) / 100 for sample in newest}


def holders(
    computing: Sequence[Any], drawing: Sequence[Any], busy: Mapping[int, float]
) -> tuple[Holder, ...]:
    """One record for each program, those with most memory first."""
    names = environment.own_names()
    computes = {int(process.pid) for process in computing}
    # One that computes and draws is told of twice, with the same memory.
    memory = {int(p.pid): p.usedGpuMemory or None for p in (*drawing, *computing)}
    found = [
        Holder(
            program=_program(pid, names),
            memory=taken,
            busy=busy.get(pid),
            computes=pid in computes,
            own=_is_own(pid),
        )
        for pid, taken in sorted(memory.items())
    ]
    return tuple(sorted(found, key=lambda holder: -(holder.memory or 0)))


def _processes(device: Device, call: str) -> list[Any]:
    try:
        return list(device.ask_part(f"{call}_v3"))
    except RefusedError as error:
        if error.code != FUNCTION_NOT_FOUND:
            raise
    # Drivers before 510.
    return list(device.ask_part(f"{call}_v2"))


def _program(pid: int, names: Sequence[str]) -> str:
    try:
        name = psutil.Process(pid).name()
    except (psutil.Error, OSError, ValueError):
        return UNKNOWN
    # A program may call itself what it likes, its command line or a path included.
    first = name.replace("\\", "/").rpartition("/")[2].split(" ")[0]
    return environment.cleaned(first, names, _LONGEST_NAME) or UNKNOWN


def _is_own(pid: int) -> bool:
    """Whether it is this process or one that it started, near or far."""
    try:
        process = psutil.Process(pid)
        return os.getpid() in (pid, *(parent.pid for parent in process.parents()))
    except (psutil.Error, OSError, ValueError):
        return False
