"""What are the GPUs of this machine, and how are they set? Asked of the driver once."""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from perfkit.machine import environment, readings
from perfkit.machine import nvml as machine_nvml
from perfkit.machine.gpu import Clocks, Driver, Gpu, Holder, Link, Power, State
from perfkit.machine.nvml import (
    FUNCTION_NOT_FOUND,
    NOT_FOUND,
    Device,
    Nvml,
    Read,
    RefusedError,
    above_zero,
    flag,
    found,
    given,
    lost,
    number,
    topology,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


UNKNOWN_HOLDER = "unknown program"
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
        return UNKNOWN_HOLDER
    # A program may call itself what it likes, its command line or a path included.
    first = name.replace("\\", "/").rpartition("/")[2].split(" ")[0]
    return environment.cleaned(first, names, _LONGEST_NAME) or UNKNOWN_HOLDER


def _is_own(pid: int) -> bool:
    """Whether it is this process or one that it started, near or far."""
    try:
        process = psutil.Process(pid)
        return os.getpid() in (pid, *(parent.pid for parent in process.parents()))
    except (psutil.Error, OSError, ValueError):
        return False


Subject = TypeVar("Subject")

UNKNOWN = "unknown NVIDIA GPU"

# The library's own numbers.
_SM, _MEMORY = 1, 2
_GPU_SENSOR, _SLOWDOWN = 0, 1
_BY_POWER, _BY_HEAT = 0, 1
_LOWEST, _HIGHEST = 0, 1
_PENDING, _FAILED = 2, 3
_ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_COMPUTE_MODES = {
    0: "default",
    1: "exclusive thread",
    2: "prohibited",
    3: "exclusive process",
}
_DRIVER_MODELS = {0: "WDDM", 1: "TCC", 2: "MCDM"}

_GPU: dict[str, Read] = {
    "name": readings.name,
    "memory": machine_nvml.memory_total,
    "memory_used": machine_nvml.memory_used,
    "memory_bus": above_zero("nvmlDeviceGetMemoryBusWidth"),
    "memory_window": readings.memory_window,
    "compute_capability": readings.capability,
    "architecture": word(
        "nvmlDeviceGetArchitecture", _ARCHITECTURES, "architecture {}"
    ),
    "cores": readings.cores,
    "multiprocessors": readings.multiprocessors,
    "pci_bus": readings.pci_bus,
    "busy": machine_nvml.busy,
    "tells_fill": readings.tells_fill,
}
_LINK: dict[str, Read] = {
    "generation": above_zero("nvmlDeviceGetCurrPcieLinkGeneration"),
    "width": above_zero("nvmlDeviceGetCurrPcieLinkWidth"),
    "generation_max": above_zero("nvmlDeviceGetMaxPcieLinkGeneration"),
    "width_max": above_zero("nvmlDeviceGetMaxPcieLinkWidth"),
    "generation_card": above_zero("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    "replays": number("nvmlDeviceGetPcieReplayCounter"),
    "nvlinks": readings.nvlinks,
}
_CLOCKS: dict[str, Read] = {
    "sm": above_zero("nvmlDeviceGetClockInfo", _SM, times=1e6),
    "sm_max": above_zero("nvmlDeviceGetMaxClockInfo", _SM, times=1e6),
    "sm_set": readings.sm_set,
    "memory": above_zero("nvmlDeviceGetClockInfo", _MEMORY, times=1e6),
    "memory_max": above_zero("nvmlDeviceGetMaxClockInfo", _MEMORY, times=1e6),
    "throttle": readings.throttle,
    "throttle_known": readings.throttle_known,
    "slowed_power": partial(readings.slowed, by=_BY_POWER),
    "slowed_heat": partial(readings.slowed, by=_BY_HEAT),
}
_POWER: dict[str, Read] = {
    "draw": above_zero("nvmlDeviceGetPowerUsage", per=1e3),
    "limit": readings.limit,
    "limit_set": above_zero("nvmlDeviceGetPowerManagementLimit", per=1e3),
    "limit_default": above_zero("nvmlDeviceGetPowerManagementDefaultLimit", per=1e3),
    "limit_min": partial(readings.limit_bound, which=_LOWEST),
    "limit_max": partial(readings.limit_bound, which=_HIGHEST),
    "energy": number("nvmlDeviceGetTotalEnergyConsumption", per=1e3),
    "temperature": number("nvmlDeviceGetTemperature", _GPU_SENSOR),
    "slowdown": above_zero("nvmlDeviceGetTemperatureThreshold", _SLOWDOWN),
    "fan": number("nvmlDeviceGetFanSpeed", per=100),
}
_STATE: dict[str, Read] = {
    "persistence": flag("nvmlDeviceGetPersistenceMode"),
    "compute_mode": word("nvmlDeviceGetComputeMode", _COMPUTE_MODES, "mode {}"),
    "ecc": flag("nvmlDeviceGetEccMode"),
    "mig": flag("nvmlDeviceGetMigMode"),
    "performance": readings.performance,
    "driver_model": word("nvmlDeviceGetDriverModel", _DRIVER_MODELS, "model {}"),
    "accounting": flag("nvmlDeviceGetAccountingMode"),
    "errors": readings.errors,
    "rows_remapped": readings.rows_remapped,
    "remap_pending": partial(readings.rows_flag, which=_PENDING),
    "remap_failed": partial(readings.rows_flag, which=_FAILED),
    "numa_node": readings.numa_node,
    "cores_near": readings.cores_near,
}
_DRIVER: dict[str, Callable[[Nvml], Any]] = {
    "version": lambda nvml: nvml.ask("nvmlSystemGetDriverVersion"),
    "library": lambda nvml: nvml.ask("nvmlSystemGetNVMLVersion"),
    "cuda": lambda nvml: _cuda(nvml.ask("nvmlSystemGetCudaDriverVersion")),
}
_PROCESSES: dict[str, Read] = {
    "": computing,
    ".drawing": drawing,
    ".busy": busy,
}


@functools.cache
def gpus_here() -> tuple[tuple[Gpu, ...], str]:
    """The GPUs of this machine, asked for once, and why there are none."""
    _, found, why = gpus()
    return found, why


def gpus() -> tuple[Driver | None, tuple[Gpu, ...], str]:
    """Describe the driver and every GPU.

    Returns:
        The driver, None where there is none; a record for each GPU in the driver's
        order, for cards that it gives no access to as well; where there are none, why,
        in a sentence.
    """
    nvml = Nvml()
    try:
        devices, why = found(nvml)
        if nvml.problem in ("no reader", "no driver"):
            return None, (), why
        driver = _driver(nvml, devices)
        return driver, tuple(_gpu(device, driver.version) for device in devices), why
    finally:
        nvml.close()


def _driver(nvml: Nvml, devices: tuple[Device, ...]) -> Driver:
    refused = dict[str, str]()
    # A driver that does not answer still has a library with a version.
    asked = {"library": _DRIVER["library"]} if nvml.problem else _DRIVER
    told = _told(asked, nvml, refused)
    told |= _told({"topology": topology}, devices, refused)
    return Driver(problem=nvml.problem, refused=refused, **told)


def _cuda(version: int) -> str:
    thousands, rest = divmod(machine_nvml.not_zero(version), 1000)
    return f"{thousands}.{rest // 10}"


def _gpu(device: Device, driver: str | None) -> Gpu:
    if device.refused:
        return Gpu(name=UNKNOWN, driver=driver, refused={"card": device.refused})
    refused = dict[str, str]()
    told = {"name": UNKNOWN} | _told(_GPU, device, refused)
    state = _told(_STATE, device, refused, "state.")
    gpu = Gpu(
        driver=driver,
        link=Link(**_told(_LINK, device, refused, "link.")),
        clocks=Clocks(**_told(_CLOCKS, device, refused, "clocks.")),
        power=Power(**_told(_POWER, device, refused, "power.")),
        state=State(instance=device.is_instance, **state),
        holders=_holders(device, refused),
        **told,
    )
    # It may have fallen off the bus meanwhile.
    word = lost(device)
    return replace(gpu, refused=refused | ({"card": word} if word else {}))


def _holders(device: Device, refused: dict[str, str]) -> tuple[Holder, ...] | None:
    told = _told(_PROCESSES, device, refused, "holders")
    if "" not in told:
        return None
    return holders(told[""], told.get(".drawing", ()), told.get(".busy", {}))


def _told(
    wanted: Mapping[str, Callable[[Subject], Any]],
    subject: Subject,
    refused: dict[str, str],
    prefix: str = "",
) -> dict[str, Any]:
    """What the driver gives; its words for the others go to ``refused``."""
    told = dict[str, Any]()
    for name, read in wanted.items():
        try:
            told[name] = read(subject)
        except RefusedError as error:
            refused[f"{prefix}{name}"] = str(error)
    return told
