"""Why a trace holds nothing of a GPU, and what to do about it.

What a GPU does is told by NVIDIA's CUPTI, which the driver may keep to administrators,
and which WSL and containers often lack. The sentences come from NVIDIA's documents; no
machine that refuses was at hand to try them on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfkit.machine.record import Machine

_PRIVILEGES = re.compile(
    r"INSUFFICIENT_PRIVILEGES|ERR_NVGPUCTRPERM|elevated privileges|permission issue",
    re.IGNORECASE,
)
_CUPTI = re.compile(r"cupti", re.IGNORECASE)
_NO_GPU = "TensorFlow computes on no GPU here, so there are no kernels."
_REST = "All else is here, and what perfkit.diagnose measures needs none of it."
_ON_WSL = (
    "in Windows, open NVIDIA's control panel as administrator, enable the developer "
    "settings there, and let all users access the GPU performance counters"
)
_ON_LINUX = (
    "write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file in "
    "/etc/modprobe.d, as root, and restart the machine"
)
_IN_CONTAINER = "start the container with `--cap-add=SYS_ADMIN`; if that does not do, "


def why_no_kernels(said: str, gpus: int, machine: Machine) -> str:
    """Say why there are no kernels, with the remedy.

    Args:
        said: What TensorFlow logged while it started and stopped the profiler, and the
            warnings in the trace.
        gpus: How many TensorFlow saw.
        machine: Where it ran.
    """
    if not gpus:
        return _NO_GPU
    if _PRIVILEGES.search(said):
        return (
            "The driver keeps what its GPU does from this user (CUPTI): "
            f"{_remedy(machine)}. {_REST}"
        )
    if _CUPTI.search(said):
        line = next(line for line in said.splitlines() if _CUPTI.search(line))
        return (
            f"CUPTI, which tells what a GPU does, did not work ({_words(line)}): "
            'python -m pip install "tensorflow[and-cuda]" brings the one that this '
            f"TensorFlow needs. {_REST}"
        )
    where = "; on WSL and in containers that is often so" if _boxed(machine) else ""
    return f"The trace holds nothing of the GPU, and no reason{where}. {_REST}"


def _remedy(machine: Machine) -> str:
    software = machine.software
    if software and software.platform in ("wsl1", "wsl2"):
        return _ON_WSL
    inside = software is not None and software.container
    return f"{_IN_CONTAINER}on the host {_ON_LINUX}" if inside else _ON_LINUX


def _boxed(machine: Machine) -> bool:
    software = machine.software
    return software is not None and (
        software.container or software.platform in ("wsl1", "wsl2")
    )


def _words(line: str) -> str:
    """What a line of the log says, without its head."""
    return line.split("] ", 1)[-1].strip().rstrip(".")[:160]
