"""What the GPUs do at this moment, as often as asked."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from perfkit.machine import nvml
from perfkit.machine.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    Device,
    Nvml,
    Read,
    RefusedError,
    ask,
    found,
)

if TYPE_CHECKING:
    from collections.abc import Callable


# The driver measures PCIe traffic over 20 ms while the caller waits.
_PCIE_EVERY_S = 1.0
# The library's own numbers.
_SM_CLOCK, _GPU_SENSOR, _SENT, _RECEIVED = 1, 0, 0, 1

_READINGS: dict[str, Read] = {
    "busy": nvml.busy,
    "memory": nvml.memory_used,
    "power": ask("nvmlDeviceGetPowerUsage", zero=False, per=1e3),
    "sm_clock": ask("nvmlDeviceGetClockInfo", _SM_CLOCK, zero=False, times=1e6),
    "temperature": ask("nvmlDeviceGetTemperature", _GPU_SENSOR),
    "throttle": nvml.throttle_mask,
    "link_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration", zero=False),
    "link_width": ask("nvmlDeviceGetCurrPcieLinkWidth", zero=False),
}
_PCIE_READINGS: dict[str, Read] = {
    "pcie_rx": ask("nvmlDeviceGetPcieThroughput", _RECEIVED, times=1e3),
    "pcie_tx": ask("nvmlDeviceGetPcieThroughput", _SENT, times=1e3),
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
