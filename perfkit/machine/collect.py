"""What is this computer? Asked of the system itself, in well under a second."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.machine import cards, environment, limits
from perfkit.machine.record import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIBRARIES = (
    "perfkit",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-metal",
    "tf-nightly",
    "keras",
    "numpy",
    "scipy",
    "pandas",
    "psutil",
    "jupyterlab",
    "ipykernel",
    "nvidia-ml-py",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cudnn-cu12",
)


def machine(
    root: Path = Path("/"), variables: Mapping[str, str] = os.environ
) -> Machine:
    """Describe this computer, without its host name, its users or their paths.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
        variables: The environment to report.
    """
    cores = _cores(root)
    memory = _memory(root)
    driver, gpus, no_gpu = cards.gpus()
    return Machine(
        cpu=_cpu(root),
        cores=cores,
        cores_granted=limits.cores_granted(root, cores),
        memory=limits.memory_granted(root, memory),
        memory_present=memory,
        system=_system(root),
        python=platform.python_version(),
        versions=_versions(),
        environment=environment.that_matter(variables, environment.own_names()),
        gpus=gpus,
        no_gpu=no_gpu,
        driver=driver,
    )


def _cpu(root: Path) -> str:
    text = limits.text_of(root / "proc/cpuinfo")
    # Arm kernels give no model name; some boards give their own instead.
    named = re.search(r"^(?:model name|Hardware|cpu)\s*:\s*(\S.*)$", text, re.MULTILINE)
    name = named[1] if named else platform.processor() or platform.machine()
    return (
        " ".join(re.sub(r"\((R|TM|tm)\)|\bCPU\b|@.*", " ", name).split()) or "unknown"
    )


def _cores(root: Path) -> int:
    text = limits.text_of(root / "proc/cpuinfo")
    listed = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    return listed or os.cpu_count() or 1


def _memory(root: Path) -> int:
    text = limits.text_of(root / "proc/meminfo")
    total = re.search(r"^MemTotal:\s*(\d+) kB", text, re.MULTILINE)
    if total:
        return int(total[1]) * 1024
    import psutil

    return int(psutil.virtual_memory().total)


def _system(root: Path) -> str:
    release = limits.text_of(root / "proc/sys/kernel/osrelease")
    if not release:
        version = platform.mac_ver()[0] or platform.release()
        return f"{'macOS' if platform.mac_ver()[0] else platform.system()} {version}"
    # Vendors append names of their own to a kernel's release; two numbers say enough.
    linux = "Linux " + ".".join(re.findall(r"\d+", release)[:2])
    if "microsoft" not in release.lower():
        return linux
    return f"{linux} (WSL{'2' if 'wsl2' in release.lower() else ''})"


def _versions() -> dict[str, str]:
    found = dict[str, str]()
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
