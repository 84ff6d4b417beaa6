"""What are the GPUs of this machine, and how are they set? Asked of the driver once."""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psutil

from perfkit.machine import environment, nvml
from perfkit.machine.gpu import (
    Clocks,
    Driver,
    Gpu,
    Holder,
    Link,
    Power,
    State,
    throttle_reasons,
)
from perfkit.machine.nvml import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    READINGS,
    Device,
    Nvml,
    Read,
    RefusedError,
    ask,
    either,
    flag,
    found,
    given,
    not_zero,
    renamed,
    word,
)

Subject = TypeVar("Subject")

UNKNOWN = "unknown NVIDIA GPU"
UNKNOWN_HOLDER = "unknown program"
_LONGEST_NAME = 40
# The library's own numbers.
_SM, _MEMORY = 1, 2
_SLOWDOWN = 1
_BY_POWER, _BY_HEAT = 0, 1
_LOWEST, _HIGHEST = 0, 1
_CORRECTED, _UNCORRECTED, _PENDING, _FAILED = 0, 1, 2, 3
_SINCE_START, _DEVICE_MEMORY = 0, 2
_NEAREST = 0
_NOW = 0
_SLOWEST_STATE = 15
_WORD_BITS = 64
# More than anything has.
_MOST_NVLINKS = 36
_MOST_CORES = 4096
_FIRST = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper")
_ARCHITECTURES = dict(enumerate(_FIRST, 2)) | {10: "Blackwell", 13: "Rubin"}
_COMPUTE_MODES = dict(
    enumerate(("default", "exclusive thread", "prohibited", "exclusive process"))
)
_DRIVER_MODELS = {0: "WDDM", 1: "TCC", 2: "MCDM"}
# Cores in a multiprocessor, by the first number of the compute capability.
_CORES_IN_EACH = {3: 192, 5: 128, 6: 128, 7: 64} | dict.fromkeys(range(8, 13), 128)
# Data-centre cards whose kin for games differ.
_OF_64_CORES = {(6, 0), (8, 0)}


def _capability(device: Device) -> tuple[int, int]:
    major, minor = device.ask("nvmlDeviceGetCudaComputeCapability")
    return int(not_zero(major)), int(minor)


def _cores_in_each(device: Device) -> int:
    numbers = _capability(device)
    if numbers in _OF_64_CORES:
        return 64
    # Of a card that is newer than this table nothing is guessed.
    return int(not_zero(_CORES_IN_EACH.get(numbers[0])))


def _cores(device: Device) -> int:
    if device.is_instance:
        return _multiprocessors(device) * _cores_in_each(device)
    return int(ask("nvmlDeviceGetNumGpuCores", zero=False)(device))


def _multiprocessors(device: Device) -> int:
    """What the cores stand in; the driver tells it of instances alone."""
    if not device.is_instance:
        return _cores(device) // _cores_in_each(device)
    attributes = device.ask("nvmlDeviceGetAttributes_v2", part=True)
    return int(not_zero(given(attributes.multiprocessorCount)))


def _pci_bus(device: Device) -> str:
    """Where it is plugged in; the domain with 4 digits, as Linux writes it."""
    bus = str(not_zero(device.ask("nvmlDeviceGetPciInfo").busId)).lower()
    return bus[4:] if bus.startswith("0000") and bus.find(":") == 8 else bus


def _nvlinks(device: Device) -> int:
    """Connections that are up."""
    states = []
    for place in range(_MOST_NVLINKS):
        try:
            states.append(bool(given(device.ask("nvmlDeviceGetNvLinkState", place))))
        except RefusedError as error:
            # A card refuses the place after its last one.
            if place and error.code in (INVALID_ARGUMENT, NOT_SUPPORTED):
                break
            raise
    return sum(states)


def _sm_set(device: Device) -> float | None:
    """Hertz that applications are given, where they are not the card's own."""
    now = given(device.ask("nvmlDeviceGetApplicationsClock", _SM))
    own = given(device.ask("nvmlDeviceGetDefaultApplicationsClock", _SM))
    return None if now == own else float(not_zero(now) * 1e6)


def _performance(device: Device) -> str:
    state = device.ask("nvmlDeviceGetPerformanceState")
    if state > _SLOWEST_STATE:
        raise RefusedError
    return f"P{state}"


def _rows_remapped(device: Device) -> int:
    """Rows of memory that were replaced, for errors that were corrected or not."""
    rows = device.ask("nvmlDeviceGetRemappedRows")
    return int(given(rows[_CORRECTED]) + given(rows[_UNCORRECTED]))


def _numa_node(device: Device) -> int | None:
    """The node of memory that is nearest; None where several are as near."""
    nodes = _bits(device.ask("nvmlDeviceGetMemoryAffinity", 1, _NEAREST))
    return nodes[0] if len(nodes) == 1 else None


def _cores_near(device: Device) -> str:
    """The processor's cores that are nearest, such as ``"0-15,32-47"``."""
    near = _bits(device.ask("nvmlDeviceGetCpuAffinity", _MOST_CORES // _WORD_BITS))
    firsts = [core for core in near if core - 1 not in near]
    lasts = [core for core in near if core + 1 not in near]
    return ",".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in zip(firsts, lasts, strict=True)
    )


def _bits(words: Iterable[Any]) -> list[int]:
    """Places of the bits that are set, over words of 64 bits each; never none."""
    places = [
        _WORD_BITS * at + bit
        for at, word in enumerate(words)
        for bit in range(_WORD_BITS)
        if int(word) >> bit & 1
    ]
    if not places:
        raise RefusedError
    return places


_POWER_LIMIT = ask("nvmlDeviceGetPowerManagementLimit", zero=False, per=1e3)
_throttle_known = renamed(
    "nvmlDeviceGetSupportedClocksEventReasons",
    "nvmlDeviceGetSupportedClocksThrottleReasons",
)

_GPU: dict[str, Read] = {
    "name": lambda device: str(ask("nvmlDeviceGetName", part=True, zero=False)(device)),
    "memory": nvml.memory_total,
    "memory_used": nvml.memory_used,
    "memory_bus": ask("nvmlDeviceGetMemoryBusWidth", zero=False),
    "memory_window": ask("nvmlDeviceGetBAR1MemoryInfo", of="bar1Total", zero=False),
    "compute_capability": lambda device: "{}.{}".format(*_capability(device)),
    "architecture": word(
        "nvmlDeviceGetArchitecture", _ARCHITECTURES, "architecture {}"
    ),
    "cores": _cores,
    "multiprocessors": _multiprocessors,
    "pci_bus": _pci_bus,
    "busy": nvml.busy,
    "tells_fill": flag("nvmlGpmQueryDeviceSupport", of="isSupportedDevice"),
}
_LINK: dict[str, Read] = {
    "generation": READINGS["link_generation"],
    "width": READINGS["link_width"],
    "generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration", zero=False),
    "width_max": ask("nvmlDeviceGetMaxPcieLinkWidth", zero=False),
    "generation_card": ask("nvmlDeviceGetGpuMaxPcieLinkGeneration", zero=False),
    "replays": ask("nvmlDeviceGetPcieReplayCounter"),
    "nvlinks": _nvlinks,
}
_CLOCKS: dict[str, Read] = {
    "sm": READINGS["sm_clock"],
    "sm_max": ask("nvmlDeviceGetMaxClockInfo", _SM, zero=False, times=1e6),
    "sm_set": _sm_set,
    "memory": ask("nvmlDeviceGetClockInfo", _MEMORY, zero=False, times=1e6),
    "memory_max": ask("nvmlDeviceGetMaxClockInfo", _MEMORY, zero=False, times=1e6),
    "throttle": lambda device: throttle_reasons(nvml.throttle_mask(device)),
    "throttle_known": lambda device: throttle_reasons(_throttle_known(device)),
    "slowed_power": ask(
        "nvmlDeviceGetViolationStatus", _BY_POWER, of="violationTime", per=1e9
    ),
    "slowed_heat": ask(
        "nvmlDeviceGetViolationStatus", _BY_HEAT, of="violationTime", per=1e9
    ),
}
_CONSTRAINTS = "nvmlDeviceGetPowerManagementLimitConstraints"
_POWER: dict[str, Read] = {
    "draw": READINGS["power"],
    # What was asked for, where only that is told.
    "limit": either(
        ask("nvmlDeviceGetEnforcedPowerLimit", zero=False, per=1e3), _POWER_LIMIT
    ),
    "limit_set": _POWER_LIMIT,
    "limit_default": ask(
        "nvmlDeviceGetPowerManagementDefaultLimit", zero=False, per=1e3
    ),
    "limit_min": ask(_CONSTRAINTS, of=_LOWEST, zero=False, per=1e3),
    "limit_max": ask(_CONSTRAINTS, of=_HIGHEST, zero=False, per=1e3),
    "energy": ask("nvmlDeviceGetTotalEnergyConsumption", per=1e3),
    "temperature": READINGS["temperature"],
    "slowdown": ask("nvmlDeviceGetTemperatureThreshold", _SLOWDOWN, zero=False),
    "fan": ask("nvmlDeviceGetFanSpeed", per=100),
}
_STATE: dict[str, Read] = {
    "persistence": flag("nvmlDeviceGetPersistenceMode"),
    "compute_mode": word("nvmlDeviceGetComputeMode", _COMPUTE_MODES, "mode {}"),
    # Of these three the driver also tells what will be after its next start.
    "ecc": flag("nvmlDeviceGetEccMode", of=_NOW),
    "mig": flag("nvmlDeviceGetMigMode", of=_NOW),
    "driver_model": word(
        "nvmlDeviceGetDriverModel", _DRIVER_MODELS, "model {}", of=_NOW
    ),
    "performance": _performance,
    "accounting": flag("nvmlDeviceGetAccountingMode"),
    # Those of the memory alone, where no sum is told.
    "errors": either(
        ask("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_START),
        ask(
            "nvmlDeviceGetMemoryErrorCounter",
            _UNCORRECTED,
            _SINCE_START,
            _DEVICE_MEMORY,
        ),
    ),
    "rows_remapped": _rows_remapped,
    "remap_pending": flag("nvmlDeviceGetRemappedRows", of=_PENDING),
    "remap_failed": flag("nvmlDeviceGetRemappedRows", of=_FAILED),
    "numa_node": _numa_node,
    "cores_near": _cores_near,
}
_DRIVER: dict[str, Callable[[Nvml], Any]] = {
    "version": lambda library: library.ask("nvmlSystemGetDriverVersion"),
    "library": lambda library: library.ask("nvmlSystemGetNVMLVersion"),
    "cuda": lambda library: _cuda(library.ask("nvmlSystemGetCudaDriverVersion")),
}


def _cuda(version: int) -> str:
    thousands, rest = divmod(not_zero(version), 1000)
    return f"{thousands}.{rest // 10}"


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
    library = Nvml()
    try:
        devices, why = found(library)
        if library.problem in ("no reader", "no driver"):
            return None, (), why
        driver = _driver(library, devices)
        return driver, tuple(_gpu(device, driver.version) for device in devices), why
    finally:
        library.close()


def _driver(library: Nvml, devices: tuple[Device, ...]) -> Driver:
    refused = dict[str, str]()
    # A driver that does not answer still has a library with a version.
    asked = {"library": _DRIVER["library"]} if library.problem else _DRIVER
    told = _told(asked, library, refused)
    told |= _told({"topology": nvml.topology}, devices, refused)
    return Driver(problem=library.problem, refused=refused, **told)


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
    gone = nvml.lost(device)
    return replace(gpu, refused=refused | ({"card": gone} if gone else {}))


def _busy(device: Device) -> dict[int, float]:
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


# The older names are of drivers before 510.
_COMPUTING = "nvmlDeviceGetComputeRunningProcesses"
_DRAWING = "nvmlDeviceGetGraphicsRunningProcesses"
_PROCESSES: dict[str, Read] = {
    "": renamed(f"{_COMPUTING}_v3", f"{_COMPUTING}_v2", part=True),
    ".drawing": renamed(f"{_DRAWING}_v3", f"{_DRAWING}_v2", part=True),
    ".busy": _busy,
}


def _holders(device: Device, refused: dict[str, str]) -> tuple[Holder, ...] | None:
    """One record for each program, those with most memory first."""
    told = _told(_PROCESSES, device, refused, "holders")
    if "" not in told:
        return None
    names, busy = environment.own_names(), told.get(".busy", {})
    computes = {int(process.pid) for process in told[""]}
    # One that computes and draws is told of twice, with the same memory.
    both = (*told.get(".drawing", ()), *told[""])
    memory = {int(process.pid): process.usedGpuMemory or None for process in both}
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
