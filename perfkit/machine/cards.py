"""What are the GPUs of this machine, and how are they set? Asked of the driver once."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psutil

from perfkit.machine import environment, nvml
from perfkit.machine.gpu import Clocks, Driver, Gpu, Holder, Link, throttle_reasons
from perfkit.machine.nvml import (
    READINGS,
    Device,
    Nvml,
    Read,
    RefusedError,
    ask,
    either,
    not_zero,
    renamed,
)

Subject = TypeVar("Subject")

UNKNOWN = "unknown NVIDIA GPU"
UNKNOWN_HOLDER = "unknown program"
_LONGEST_NAME = 40
# The library's own numbers.
_SM, _MEMORY = 1, 2


def _cores(device: Device) -> int:
    """CUDA cores; those of an instance are not told."""
    if device.is_divided:
        raise RefusedError
    return int(ask("nvmlDeviceGetNumGpuCores", zero=False)(device))


def _capability(device: Device) -> str:
    major, minor = device.ask("nvmlDeviceGetCudaComputeCapability")
    return f"{int(not_zero(major))}.{int(minor)}"


def _cuda(library: Nvml) -> str:
    version = not_zero(library.ask("nvmlSystemGetCudaDriverVersion"))
    return f"{version // 1000}.{version % 1000 // 10}"


_GPU: dict[str, Read] = {
    "name": ask("nvmlDeviceGetName", zero=False),
    "memory": nvml.memory_total,
    "memory_used": nvml.memory_used,
    "memory_bus": ask("nvmlDeviceGetMemoryBusWidth", zero=False),
    "compute_capability": _capability,
    "cores": _cores,
    "busy": nvml.busy,
}
_LINK: dict[str, Read] = {
    "generation": READINGS["link_generation"],
    "width": READINGS["link_width"],
    "generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration", zero=False),
    "width_max": ask("nvmlDeviceGetMaxPcieLinkWidth", zero=False),
}
_CLOCKS: dict[str, Read] = {
    "sm_max": ask("nvmlDeviceGetMaxClockInfo", _SM, zero=False, times=1e6),
    "memory_max": ask("nvmlDeviceGetMaxClockInfo", _MEMORY, zero=False, times=1e6),
    "throttle": lambda device: throttle_reasons(nvml.throttle_mask(device)),
}
_DRIVER: dict[str, Callable[[Nvml], Any]] = {
    "version": lambda library: library.ask("nvmlSystemGetDriverVersion"),
    "cuda": _cuda,
}


@functools.cache
def gpus_here() -> tuple[tuple[Gpu, ...], str]:
    """The GPUs of this machine, asked for once, and why there are none."""
    _, here, why = gpus()
    return here, why


def gpus() -> tuple[Driver | None, tuple[Gpu, ...], str]:
    """Describe the driver and every GPU.

    Returns:
        The driver, None where there is none; a record for each GPU in the driver's
        order, for cards that it gives no access to as well; where there are none, why,
        in a sentence.
    """
    library = Nvml()
    try:
        devices, why = nvml.devices(library)
        if library.problem in ("no reader", "no driver"):
            return None, (), why
        driver = _driver(library, devices)
        return driver, tuple(_gpu(device, driver.version) for device in devices), why
    finally:
        library.close()


def _driver(library: Nvml, devices: tuple[Device, ...]) -> Driver:
    if library.problem:
        return Driver(problem=library.problem)
    return Driver(**_answers(_DRIVER, library), topology=nvml.topology(devices))


def _gpu(device: Device, driver: str | None) -> Gpu:
    if device.refused:
        return Gpu(name=UNKNOWN, driver=driver, lost=device.refused)
    gpu = Gpu(
        driver=driver,
        divided=device.is_divided,
        link=Link(**_answers(_LINK, device)),
        clocks=Clocks(**_answers(_CLOCKS, device)),
        holders=_holders(device),
        **{"name": UNKNOWN} | _answers(_GPU, device),
    )
    # It may have fallen off the bus meanwhile.
    return replace(gpu, lost=nvml.loss(device))


# The older names are of drivers before 510.
_COMPUTING = renamed(
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
)
_DRAWING = either(
    renamed(
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v2",
    ),
    lambda _: (),
)


def _holders(device: Device) -> tuple[Holder, ...] | None:
    """One record for each program, those with most memory first."""
    try:
        # A program that computes and draws is listed twice, with the same memory.
        processes = (*_COMPUTING(device), *_DRAWING(device))
    except RefusedError:
        return None
    names = environment.own_names()
    memory = {int(process.pid): process.usedGpuMemory or None for process in processes}
    holders = (
        Holder(program=_program(pid, names), memory=taken, own=_is_own(pid))
        for pid, taken in sorted(memory.items())
    )
    return tuple(sorted(holders, key=lambda holder: -(holder.memory or 0)))


def _program(pid: int, names: Sequence[str]) -> str:
    try:
        name = psutil.Process(pid).name()
    except (psutil.Error, OSError, ValueError):
        return UNKNOWN_HOLDER
    # A program may call itself what it likes, its command line or a path included.
    first = name.replace("\\", "/").rpartition("/")[2].split(" ")[0]
    return environment.cleaned(first, names, _LONGEST_NAME) or UNKNOWN_HOLDER


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
