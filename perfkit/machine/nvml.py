"""What do the GPUs do right now? NVIDIA's management library, one reading at a time.

On WSL, in containers and on consumer cards the driver refuses some of the readings.
Each is asked on its own: one that is refused is absent, never 0, and none takes
another with it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perfkit.machine.gpu import Gpu

if TYPE_CHECKING:
    from types import ModuleType

Read = Callable[[Any, Any], float]

# The driver measures PCIe traffic over 20 ms while the caller waits.
_PCIE_EVERY_S = 1.0
# What NVML fills in where it has no value: all bits set, in 32 or 64 of them.
_NO_VALUE = (2**32 - 1, 2**64 - 1)

_READINGS: dict[str, Read] = {
    "busy": lambda n, gpu: n.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "memory": lambda n, gpu: _given(n.nvmlDeviceGetMemoryInfo(gpu).used),
    "power": lambda n, gpu: _given(n.nvmlDeviceGetPowerUsage(gpu)) / 1e3,
    "sm_clock": lambda n, gpu: (
        _given(n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM)) * 1e6
    ),
    "temperature": lambda n, gpu: _given(
        n.nvmlDeviceGetTemperature(gpu, n.NVML_TEMPERATURE_GPU)
    ),
    "throttle": lambda n, gpu: _throttle(n, gpu),
}
_PCIE_READINGS: dict[str, Read] = {
    "pcie_rx": lambda n, gpu: (
        _given(n.nvmlDeviceGetPcieThroughput(gpu, n.NVML_PCIE_UTIL_RX_BYTES)) * 1e3
    ),
    "pcie_tx": lambda n, gpu: (
        _given(n.nvmlDeviceGetPcieThroughput(gpu, n.NVML_PCIE_UTIL_TX_BYTES)) * 1e3
    ),
}
_THROTTLES = {
    0x4: "power limit reached",
    0x8: "hardware slowdown (heat or power)",
    0x20: "too warm, slowed by the driver",
    0x40: "too hot, slowed by the hardware",
    0x80: "power brake (external power supply)",
    0x200: "board limit",
    0x400: "voltage limit",
}
# Idle, clocks that somebody set, cards in step, a display: settings, not faults.
_NOT_THROTTLING = 0x1 | 0x2 | 0x10 | 0x100


class _NoValueError(Exception):
    """The driver answered, with its mark for "no value"."""


class GpuReader:
    """Reads every GPU, from one thread, as often as asked.

    Attributes:
        why: Why there are no GPUs to read, in one sentence; "" where there are some or
            nothing was read yet.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.why = ""
        self._clock = clock
        self._nvml: ModuleType | None = None
        self._asked = False
        self._gpus = dict[int, Any]()
        self._refused = set[tuple[int, str]]()
        self._pcie_read = dict[int, float]()

    def sample(self) -> dict[str, float]:
        """Read all GPUs now; keys such as ``"gpu0_busy"``, only what the driver gives.

        Busy is a share of time (0 to 1), memory is in bytes, power in watts, the SM
        clock in hertz, the temperature in degrees Celsius, PCIe traffic in bytes per
        second (at most once a second), throttle the bit mask of ``throttle_reasons``.
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
            _quietly(self._nvml, self._nvml.nvmlShutdown)
        self._nvml, self._asked = None, False
        self._gpus, self._refused, self._pcie_read = {}, set(), {}

    def _open(self) -> None:
        if self._asked:
            return
        self._asked = True
        self._nvml, self.why = _opened()
        if self._nvml is not None:
            self._gpus = _handles(self._nvml)
            self.why = "" if self._gpus else "The NVIDIA driver reports no GPU."

    def _read(self, index: int, readings: dict[str, Read]) -> dict[str, float]:
        nvml, values = self._nvml, dict[str, float]()
        assert nvml is not None
        for name, read in readings.items():
            if index not in self._gpus or (index, name) in self._refused:
                continue
            try:
                value = float(read(nvml, self._gpus[index]))
            except nvml.NVMLError as error:
                self._note(index, name, error.value)
            except _NoValueError:
                continue
            else:
                if math.isfinite(value):
                    values[f"gpu{index}_{name}"] = value
        return values

    def _note(self, index: int, name: str, code: int) -> None:
        """Never ask again for what this driver lacks, nor a card that is gone."""
        nvml = self._nvml
        assert nvml is not None
        if code in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            self._refused.add((index, name))
        elif code == nvml.NVML_ERROR_GPU_IS_LOST:
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


def gpus() -> tuple[tuple[Gpu, ...], str]:
    """Describe every GPU; where there is none, the second value says why."""
    nvml, why = _opened()
    if nvml is None:
        return (), why
    try:
        found = tuple(_described(nvml, gpu) for gpu in _handles(nvml).values())
    finally:
        _quietly(nvml, nvml.nvmlShutdown)
    return found, "" if found else "The NVIDIA driver reports no GPU."


def throttle_reasons(mask: float) -> tuple[str, ...]:
    """What slows the GPU's clocks, in words; nothing for idle or clocks set by hand."""
    bits = int(mask) & ~_NOT_THROTTLING
    known = [words for bit, words in _THROTTLES.items() if bits & bit]
    unknown = bits & ~sum(_THROTTLES)
    return (*known, *([f"reason {unknown:#x}"] if unknown else []))


def _opened() -> tuple[ModuleType | None, str]:
    try:
        import pynvml
    except ImportError:
        return None, "nvidia-ml-py is missing: python -m pip install nvidia-ml-py"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, _why(pynvml, error)
    return pynvml, ""


def _why(nvml: ModuleType, error: Any) -> str:
    sentences = {
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND: "No NVIDIA driver is installed.",
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: (
            "The NVIDIA driver is installed but not loaded: restart the machine."
        ),
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "The NVIDIA driver was updated while it ran and no longer fits its library:"
            " restart the machine."
        ),
        nvml.NVML_ERROR_NO_PERMISSION: (
            "The NVIDIA driver refuses this user: the device files need read and write"
            " permission."
        ),
    }
    return sentences.get(
        error.value, f"The NVIDIA driver does not answer: {str(error).rstrip('.')}."
    )


def _handles(nvml: ModuleType) -> dict[int, Any]:
    count = _quietly(nvml, nvml.nvmlDeviceGetCount) or 0
    handles = {
        i: _quietly(nvml, nvml.nvmlDeviceGetHandleByIndex, i) for i in range(count)
    }
    return {i: handle for i, handle in handles.items() if handle is not None}


def _described(nvml: ModuleType, gpu: Any) -> Gpu:
    memory = _quietly(nvml, nvml.nvmlDeviceGetMemoryInfo, gpu)
    capability = _quietly(nvml, nvml.nvmlDeviceGetCudaComputeCapability, gpu)
    return Gpu(
        name=_quietly(nvml, nvml.nvmlDeviceGetName, gpu) or "unknown NVIDIA GPU",
        memory=memory.total if memory and memory.total not in _NO_VALUE else None,
        driver=_quietly(nvml, nvml.nvmlSystemGetDriverVersion),
        compute_capability=".".join(map(str, capability)) if capability else None,
    )


def _quietly(nvml: ModuleType, call: Callable[..., Any], *args: Any) -> Any:
    """The answer of one call; None where the driver refuses it."""
    try:
        return call(*args)
    except (nvml.NVMLError, UnicodeDecodeError):
        return None


def _given(value: int) -> int:
    if value in _NO_VALUE:
        raise _NoValueError
    return value


def _throttle(nvml: Any, gpu: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu))
    except nvml.NVMLError_FunctionNotFound:
        # Drivers before 535 know it by its first name only.
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
