"""The parts of a machine, a line each: what a person would want to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.machine.checks import asking
from perfkit.machine.checks.cores import limiting
from perfkit.machine.starting.proof import is_right

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.gpu import Gpu, Link
    from perfkit.machine.record import (
        Disk,
        Load,
        Machine,
        Processor,
        Software,
        Start,
    )

# Instructions that tell how fast a core can multiply, by the name that people use.
_SPOKEN = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_bf16": "AVX-512 bf16",
    "amx_bf16": "AMX bf16",
    "asimd": "NEON",
    "sve": "SVE",
}
_BUILDS = {
    "cpu": "build for CPUs",
    "metal": "with Apple's plugin for its GPUs",
    "rocm": "build for AMD's GPUs",
}


def parts(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Name every part of a machine that is known, with a line about it."""
    return tuple((name, _joined(*line)) for name, line in _lines(machine))


def _lines(machine: Machine) -> Iterator[tuple[str, Iterator[str]]]:
    yield "Processor", _processor(machine)
    yield "Memory", _memory(machine)
    for number, gpu in enumerate(machine.gpus):
        name = f"GPU {number}" if len(machine.gpus) > 1 else "GPU"
        yield name, _gpu(gpu)
    if not machine.gpus:
        yield "GPU", iter((machine.no_gpu or "None.",))
    if machine.driver and machine.driver.version:
        yield "Driver", _driver(machine.driver.version, machine.driver.cuda)
    yield "TensorFlow", _tensorflow(machine)
    if machine.start:
        yield "Its start", _start(machine.start)
    yield "System", _system(machine)
    if machine.load:
        yield "Load", _load(machine.load, machine.cores)
    if machine.disk:
        yield "Disk", _disk(machine.disk)


def _processor(machine: Machine) -> Iterator[str]:
    yield machine.cpu
    granted = units.significant(machine.cores_granted)
    by = " and ".join(limiting(machine))
    yield f"{granted} of {machine.cores} cores{f' ({by})' if by else ''}"
    if machine.processor:
        yield from _cores(machine.processor)


def _cores(processor: Processor) -> Iterator[str]:
    if processor.frequency:
        yield units.rate(processor.frequency, "Hz")
    known = processor.instructions or ()
    yield from (spoken for name, spoken in _SPOKEN.items() if name in known)
    if processor.governor:
        yield f"governor {processor.governor}"
    if processor.virtual:
        yield "in a virtual machine"


def _memory(machine: Machine) -> Iterator[str]:
    present = machine.memory_present
    limited = present is not None and present != machine.memory
    of = f" of {units.size(present)}" if limited and present else ""
    yield f"{units.size(machine.memory)}{of}"
    if machine.load and machine.load.memory_free is not None:
        yield f"{units.size(machine.load.memory_free)} free"


def _gpu(gpu: Gpu) -> Iterator[str]:
    yield gpu.name
    if gpu.memory is not None:
        yield units.size(gpu.memory)
    if gpu.compute_capability:
        yield f"compute capability {gpu.compute_capability}"
    yield from _link(gpu.link)
    if gpu.power.limit is not None:
        yield f"{units.significant(gpu.power.limit)} W"
    if gpu.power.temperature is not None:
        yield f"{units.significant(gpu.power.temperature)} °C"


def _link(link: Link) -> Iterator[str]:
    """What is in use, and what is possible; an idle link says nothing of its speed."""
    best = (link.generation_max, link.width_max)
    generation = link.busy_generation or link.generation_max
    width = link.busy_width or link.width or link.width_max
    if generation and width:
        of = f" of {best[0]} ×{best[1]}" if all(best) else ""
        in_use = (generation, width)
        yield f"PCIe {generation} ×{width}{of if in_use != best else ''}"


def _driver(version: str, cuda: str | None) -> Iterator[str]:
    yield f"NVIDIA {version}"
    if cuda:
        yield f"for CUDA up to {cuda}"


def _tensorflow(machine: Machine) -> Iterator[str]:
    software, versions = machine.software, machine.versions
    if software and software.build == "none":
        yield "not installed"
        return
    name = asking.distribution(machine)
    package = f" ({name})" if name not in ("", "tensorflow") else ""
    yield f"{versions.get(name, 'unknown')}{package}"
    if software and software.build == "cuda":
        yield _cuda(machine, software)
    elif software and software.build in _BUILDS:
        yield _BUILDS[software.build]
    if "keras" in versions:
        yield f"Keras {versions['keras']}"


def _cuda(machine: Machine, software: Software) -> str:
    """What there is for a GPU: the same wheel is installed with it and without."""
    cuda, cudnn = asking.cuda_libraries(machine), asking.cudnn(machine)
    if cuda:
        return f"with CUDA {cuda}" + (f" and cuDNN {cudnn}" if cudnn else "")
    found = [one for one in software.libraries if not one.name.startswith("libcuda.")]
    if not found:
        return "without packages of CUDA"
    if any(library.problem for library in found):
        return "without the CUDA libraries that a GPU needs"
    return "with CUDA libraries that are no packages of pip"


def _start(start: Start) -> Iterator[str]:
    if start.problem:
        yield start.problem
    if start.seconds is not None:
        yield f"imported in {units.seconds(start.seconds)}"
    for device in start.devices:
        proofs = [proof for proof in start.proofs if proof.device == device]
        right = [p.computation for p in proofs if is_right(p)]
        wrong = [p.computation for p in proofs if not is_right(p)]
        if right:
            yield f"{device} computes right: {' and '.join(right)}"
        if wrong:
            yield f"{device} does not compute right: {' and '.join(wrong)}"


def _system(machine: Machine) -> Iterator[str]:
    yield machine.system
    if machine.software and machine.software.container:
        yield "in a container"
    yield f"Python {machine.python}"


def _load(load: Load, cores: int) -> Iterator[str]:
    if load.others is not None:
        busy = units.significant(load.others, 2)
        yield f"other programs keep {busy} of {cores} cores busy"
    if load.steal:
        yield f"{units.percent(load.steal)} of the time goes to other machines"
    if load.swap:
        yield f"{units.size(load.swap)} in swap"
    if load.on_battery is not None:
        yield "on battery" if load.on_battery else "on mains power"


def _disk(disk: Disk) -> Iterator[str]:
    if disk.filesystem:
        yield disk.filesystem
    if disk.cold is not None:
        yield f"reads {units.rate(disk.cold, 'B')}"
    if disk.cached is not None:
        yield f"{units.rate(disk.cached, 'B')} from memory"
    if disk.cold is disk.cached is None:
        yield "too few files there to time it"


def _joined(*said: str) -> str:
    return ", ".join(said) or "unknown"
