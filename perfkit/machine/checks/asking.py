"""What the rules ask of a machine again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.machine.checks.compatibility import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Gpu
    from perfkit.machine.record import Machine, Platform

_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tf-nightly")


def platform(machine: Machine) -> Platform:
    """What kind of system this is, from its name where nothing better is known."""
    if machine.software is not None:
        inside = machine.software.container and machine.software.platform == "linux"
        return "container" if inside else machine.software.platform
    system = machine.system
    if "WSL" in system:
        return "wsl2" if "WSL2" in system else "wsl1"
    kinds: dict[str, Platform] = {
        "Linux": "linux",
        "macOS": "macos",
        "Windows": "windows",
    }
    return kinds.get(system.split(" ")[0], "other")


def tensorflow(machine: Machine) -> str | None:
    """The version of TensorFlow that is installed."""
    return machine.versions.get(distribution(machine))


def distribution(machine: Machine) -> str:
    """The package that it came in, such as ``"tensorflow-cpu"``; "" if not known."""
    packages = machine.software.packages if machine.software else ()
    names = (*packages, *_TENSORFLOWS)
    return next((name for name in names if name in machine.versions), "")


def built_for(machine: Machine) -> str | None:
    """The version of CUDA that TensorFlow was built with; None without one."""
    software = machine.software
    return software.cuda if software and software.build == "cuda" else None


def without_gpu(machine: Machine) -> str:
    """What TensorFlow trains on where no NVIDIA GPU answers."""
    build = machine.software.build if machine.software else ""
    trains = "TensorFlow trains on the processor"
    if other := {"rocm": "AMD", "metal": "Apple"}.get(build):
        trains = f"TensorFlow is built for GPUs of {other}, which are not looked at"
    # Some systems keep their bus to themselves: a card may be there all the same.
    if machine.nvidia_cards == 0:
        return f"{trains}: there is no NVIDIA GPU here"
    return f"{trains}: no NVIDIA GPU is seen here"


def driver_version(machine: Machine) -> str | None:
    """The version of NVIDIA's driver."""
    if machine.driver and machine.driver.version:
        return machine.driver.version
    return next((gpu.driver for gpu in machine.gpus if gpu.driver), None)


def cuda_libraries(machine: Machine) -> str | None:
    """The version of the CUDA libraries that pip installed: somebody wants a GPU."""
    return _of_package(machine, "nvidia-cuda-runtime")


def cudnn(machine: Machine) -> str | None:
    """The version of the cuDNN that pip installed."""
    return _of_package(machine, "nvidia-cudnn")


def visible(machine: Machine) -> tuple[int, ...]:
    """The indices of the GPUs that CUDA_VISIBLE_DEVICES leaves to programs."""
    every = tuple(range(len(machine.gpus)))
    chosen = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None or chosen.strip().startswith(("GPU-", "MIG-", "<")):
        return every
    left = tuple(_chosen(chosen, len(every)))
    by_bus = machine.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    alike = len({gpu.name for gpu in machine.gpus}) < 2
    # CUDA numbers unlike cards by their speed, the driver by their place on the bus.
    return left if by_bus or alike or not left else every


def seen(machine: Machine) -> Iterator[tuple[str, str, Gpu]]:
    """Every GPU that programs see: its place for a command, its name, and itself."""
    divided = any(gpu.state.instance for gpu in machine.gpus)
    for index in visible(machine):
        gpu = machine.gpus[index]
        # Instances have numbers of their own; the card they are on has its bus.
        place = gpu.pci_bus if divided and gpu.pci_bus else str(index)
        several = len(machine.gpus) > 1
        yield place, f"GPU {index} ({gpu.name})" if several else gpu.name, gpu


def gpu_computes(machine: Machine) -> bool:
    """Whether TensorFlow was seen to compute on every GPU that it found."""
    proofs = machine.start.proofs if machine.start else ()
    on_gpu = [proof for proof in proofs if proof.device.startswith("GPU")]
    return bool(on_gpu) and all(
        not proof.problem and proof.ran_on == proof.device for proof in on_gpu
    )


def at_least(version: str | None, lowest: str) -> bool:
    """Whether a version is known and not older than ``lowest``."""
    return version is not None and numbers(version) >= numbers(lowest)


def _of_package(machine: Machine, begins: str) -> str | None:
    found = (v for name, v in machine.versions.items() if name.startswith(begins))
    return next(found, None)


def _chosen(indices: str, count: int) -> Iterator[int]:
    """As CUDA reads it: the first index that does not exist ends the list."""
    for index in indices.split(","):
        if not index.strip().isdecimal() or int(index) >= count:
            return
        yield int(index)
