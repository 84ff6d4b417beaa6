"""What are the GPUs of this machine, and how are they set? Asked of the driver once."""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from perfkit.machine import card_readings as card
from perfkit.machine import holders, readings
from perfkit.machine.gpu import Clocks, Driver, Gpu, Link, Power, State
from perfkit.machine.nvml import Device, Nvml, RefusedError, found, lost
from perfkit.machine.readings import Read, above_zero, flag, number, word
from perfkit.machine.topology import topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perfkit.machine.gpu import Holder

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
    "name": card.name,
    "memory": readings.memory_total,
    "memory_used": readings.memory_used,
    "memory_bus": above_zero("nvmlDeviceGetMemoryBusWidth"),
    "memory_window": card.memory_window,
    "compute_capability": card.capability,
    "architecture": word(
        "nvmlDeviceGetArchitecture", _ARCHITECTURES, "architecture {}"
    ),
    "cores": card.cores,
    "multiprocessors": card.multiprocessors,
    "pci_bus": card.pci_bus,
    "busy": readings.busy,
    "tells_fill": card.tells_fill,
}
_LINK: dict[str, Read] = {
    "generation": above_zero("nvmlDeviceGetCurrPcieLinkGeneration"),
    "width": above_zero("nvmlDeviceGetCurrPcieLinkWidth"),
    "generation_max": above_zero("nvmlDeviceGetMaxPcieLinkGeneration"),
    "width_max": above_zero("nvmlDeviceGetMaxPcieLinkWidth"),
    "generation_card": above_zero("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    "replays": number("nvmlDeviceGetPcieReplayCounter"),
    "nvlinks": card.nvlinks,
}
_CLOCKS: dict[str, Read] = {
    "sm": above_zero("nvmlDeviceGetClockInfo", _SM, times=1e6),
    "sm_max": above_zero("nvmlDeviceGetMaxClockInfo", _SM, times=1e6),
    "sm_set": card.sm_set,
    "memory": above_zero("nvmlDeviceGetClockInfo", _MEMORY, times=1e6),
    "memory_max": above_zero("nvmlDeviceGetMaxClockInfo", _MEMORY, times=1e6),
    "throttle": card.throttle,
    "throttle_known": card.throttle_known,
    "slowed_power": partial(card.slowed, by=_BY_POWER),
    "slowed_heat": partial(card.slowed, by=_BY_HEAT),
}
_POWER: dict[str, Read] = {
    "draw": above_zero("nvmlDeviceGetPowerUsage", per=1e3),
    "limit": card.limit,
    "limit_set": above_zero("nvmlDeviceGetPowerManagementLimit", per=1e3),
    "limit_default": above_zero("nvmlDeviceGetPowerManagementDefaultLimit", per=1e3),
    "limit_min": partial(card.limit_bound, which=_LOWEST),
    "limit_max": partial(card.limit_bound, which=_HIGHEST),
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
    "performance": card.performance,
    "driver_model": word("nvmlDeviceGetDriverModel", _DRIVER_MODELS, "model {}"),
    "accounting": flag("nvmlDeviceGetAccountingMode"),
    "errors": card.errors,
    "rows_remapped": card.rows_remapped,
    "remap_pending": partial(card.rows_flag, which=_PENDING),
    "remap_failed": partial(card.rows_flag, which=_FAILED),
    "numa_node": card.numa_node,
    "cores_near": card.cores_near,
}
_DRIVER: dict[str, Callable[[Nvml], Any]] = {
    "version": lambda nvml: nvml.ask("nvmlSystemGetDriverVersion"),
    "library": lambda nvml: nvml.ask("nvmlSystemGetNVMLVersion"),
    "cuda": lambda nvml: _cuda(nvml.ask("nvmlSystemGetCudaDriverVersion")),
}
_PROCESSES: dict[str, Read] = {
    "": holders.computing,
    ".drawing": holders.drawing,
    ".busy": holders.busy,
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
    thousands, rest = divmod(readings.not_zero(version), 1000)
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
    return holders.holders(told[""], told.get(".drawing", ()), told.get(".busy", {}))


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
