"""What could this machine do at most? Worked out from what it is, not measured.

Each peak comes with the words it is derived from, and is None where a number would be a
guess: a limit that is too low or too high makes a healthy part look broken.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from perfkit import units
from perfkit.machine.collect import processor
from perfkit.machine.limits import text_of
from perfkit.machine.record import Gpu, link_rate

_FAMILY_ZEN_4, _FAMILIES_ZEN_1 = 25, (23, 24)
# Zen 2 shares its family with Zen 1 and has the higher models.
_FIRST_ZEN_2 = 0x30
# FLOP per second of products without sparsity, from NVIDIA's data sheets, by the name
# that the driver gives the card. Numbers of 16 bits are added up in float32. A card
# that is not here has no such limit.
_KINDS = ("float32", "TF32", "float16", "bfloat16")
_DATA_SHEETS: dict[str, tuple[float | None, ...]] = {
    # Cards before Ampere have no units for TF32 and bfloat16.
    "Tesla V100-SXM2-16GB": (15.7e12, None, 125e12, None),
    "Tesla V100-SXM2-32GB": (15.7e12, None, 125e12, None),
    "Tesla T4": (8.1e12, None, 65e12, None),
    "NVIDIA A10": (31.2e12, 62.5e12, 125e12, 125e12),
    "NVIDIA A100-PCIE-40GB": (19.5e12, 156e12, 312e12, 312e12),
    "NVIDIA A100-SXM4-40GB": (19.5e12, 156e12, 312e12, 312e12),
    "NVIDIA A100-SXM4-80GB": (19.5e12, 156e12, 312e12, 312e12),
    "NVIDIA A100 80GB PCIe": (19.5e12, 156e12, 312e12, 312e12),
    "NVIDIA RTX A6000": (38.7e12, 77.4e12, 154.8e12, 154.8e12),
    "NVIDIA GeForce RTX 3090": (35.6e12, 35.6e12, 71e12, 71e12),
    "NVIDIA GeForce RTX 4090": (82.6e12, 82.6e12, 165.2e12, 165.2e12),
    "NVIDIA L4": (30.3e12, 60e12, 121e12, 121e12),
    "NVIDIA L40S": (91.6e12, 183e12, 362e12, 362e12),
    "NVIDIA H100 80GB HBM3": (67e12, 495e12, 989e12, 989e12),
    "NVIDIA H200": (67e12, 495e12, 989e12, 989e12),
}


@dataclass(frozen=True, kw_only=True)
class Peak:
    """Units per second that are possible in theory, and where that is from."""

    rate: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What peaks are worked out from.

    The instructions are spelt as Linux does. Second threads are not among the cores;
    the clock is a core's in hertz, at most, and None where nobody knows.
    """

    vendor: str = ""
    family: int = 0
    model: int = 0
    instructions: frozenset[str] = field(default_factory=frozenset)
    cores: float = 1.0
    clock: float | None = None
    clock_from: str = ""
    gpu: Gpu | None = None


def hardware(
    root: Path, cores: float, clock: float | None, gpu: Gpu | None = None
) -> Hardware:
    """Look at this machine, whose ``proc`` and ``sys`` lie in ``root``.

    Second threads count among ``cores``; ``clock`` is in hertz, as it was counted.
    """
    first, *_ = text_of(root / "proc/cpuinfo").split("\n\n")
    lines = re.findall(r"^([\w ]+?)[\t ]*:[\t ]*(.*)$", first, re.MULTILINE)
    fields, cpu = dict(lines), processor(root)
    family, model = (fields.get(name, "") for name in ("cpu family", "model"))
    clocks = {
        "the highest clock that the system states": cpu.frequency_max or 0.0,
        "the clock that a chain of additions showed": clock or 0.0,
    }
    # Some drivers state the clock without its boost.
    words = max(clocks, key=clocks.__getitem__)
    return Hardware(
        vendor=fields.get("vendor_id", ""),
        family=int(family) if family.isdecimal() else 0,
        model=int(model) if model.isdecimal() else 0,
        instructions=frozenset(cpu.instructions or ()),
        # Two threads of a core share what it multiplies with.
        cores=min(cores, cpu.physical_cores or cores),
        clock=clocks[words] or None,
        clock_from=words,
        gpu=gpu,
    )


def on_cpu(machine: Hardware, *, one_core: bool) -> Peak | None:
    """FLOP per second of a processor's products in float32."""
    flop, unit = _per_tick(machine)
    if not flop or machine.clock is None:
        return None
    cores = 1.0 if one_core else machine.cores
    return Peak(
        rate=cores * flop * machine.clock,
        words=f"{units.significant(cores)} {'core' if cores == 1 else 'cores'} at "
        f"{flop:,} FLOP a tick ({unit}) at {units.rate(machine.clock, 'Hz')}, "
        f"{machine.clock_from}",
    )


def link(machine: Hardware) -> Peak | None:
    """Bytes per second to or from a GPU over PCI Express."""
    gpu = machine.gpu
    if gpu is None:
        return None
    generation = gpu.link.generation_max or gpu.link.generation
    width = gpu.link.width_max or gpu.link.width
    rate = link_rate(generation, width)
    words = f"PCI Express {generation}.0 with {width} lanes, one direction"
    return Peak(rate=rate, words=words) if rate else None


def on_gpu(machine: Hardware, *, kind: str) -> Peak | None:
    """FLOP per second of a GPU's products: float32, TF32, float16 or bfloat16."""
    gpu = machine.gpu
    if gpu is None or gpu.divided:
        return None
    rates = dict(zip(_KINDS, _DATA_SHEETS.get(gpu.name, ()), strict=False))
    if rate := rates.get(kind):
        return Peak(rate=rate, words=f"the data sheet of {gpu.name}, {kind}, dense")
    if kind != "float32" or not gpu.cores or not gpu.clocks.sm_max:
        return None
    clock = units.rate(gpu.clocks.sm_max, "Hz")
    words = f"{gpu.cores:,} cores, each 2 FLOP a tick, at {clock} at most"
    return Peak(rate=2 * gpu.cores * gpu.clocks.sm_max, words=words)


def gpu_memory(machine: Hardware) -> Peak | None:
    """Bytes per second that a GPU's own memory gives or takes."""
    gpu = machine.gpu
    # Of a divided card a program has a part of the bus that the driver tells of.
    if gpu is None or gpu.divided or not gpu.memory_bus or not gpu.clocks.memory_max:
        return None
    clock = units.rate(gpu.clocks.memory_max, "Hz")
    return Peak(
        rate=2 * gpu.clocks.memory_max * gpu.memory_bus / 8,
        words=f"a bus of {gpu.memory_bus:,} bits, twice a tick, at {clock}",
    )


def _per_tick(machine: Hardware) -> tuple[int, str]:
    """FLOP of 32 bits that a core does in a tick, and with what; 0 if unknown."""
    has, intel = machine.instructions, machine.vendor == "GenuineIntel"
    zen_4 = not intel and machine.family == _FAMILY_ZEN_4
    zen_1 = not intel and machine.family in _FAMILIES_ZEN_1
    if "avx512f" in has and not zen_4:
        return 64, "two AVX-512 units at most, each multiplies and adds 16 numbers"
    if {"fma", "avx2"} <= has and not (zen_1 and machine.model < _FIRST_ZEN_2):
        return 32, "two AVX2 units, each multiplies and adds 8 numbers"
    return 0, ""
