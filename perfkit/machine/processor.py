"""What are the cores? Instruction sets, frequency, and who shares them out."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfkit.machine.limits import (
    call_or_none,
    count_of,
    folders,
    number_of,
    text_of,
    word_of,
)
from perfkit.machine.record import Processor

# Those that TensorFlow's kernels, oneDNN and XLA choose between: x86, then Arm.
_MATTER = re.compile(
    r"sse4_1|sse4_2|avx|f16c|fma|avx2|avx_vnni|avx512(f|bw|dq|vl|_vnni|_bf16|_fp16)"
    r"|amx_(tile|int8|bf16|fp16)|asimd|asimdhp|asimddp|bf16|i8mm|sve|sve2|sme"
)
# Slower and faster than any processor.
_FREQUENCIES = (1e7, 2e10)
_CPUS = "sys/devices/system/cpu"


def processor(root: Path, system: Any) -> Processor:
    """Describe the cores."""
    if not (root / "proc").is_dir():
        return _told(system)
    text = text_of(root / "proc/cpuinfo")
    policies = list(folders(root / _CPUS / "cpufreq", r"policy\d+"))
    return Processor(
        instructions=_instructions(text),
        physical_cores=_physical(root, text),
        numa_nodes=_nodes(root),
        frequency=_frequency(text, policies),
        frequency_max=_highest(policies, "cpuinfo_max_freq"),
        frequency_allowed=_highest(policies, "scaling_max_freq"),
        boost=_boost(root),
        governor=_said(policies, "scaling_governor"),
        frequency_driver=_said(policies, "scaling_driver"),
        preference=_said(policies, "energy_performance_preference"),
        virtual=_virtual(root, text),
    )


def _told(system: Any) -> Processor:
    frequency = call_or_none(lambda: system.cpu_freq())
    return Processor(
        physical_cores=call_or_none(lambda: system.cpu_count(logical=False)),
        frequency=_hertz(frequency.current, 1e6) if frequency else None,
        frequency_max=_hertz(frequency.max, 1e6) if frequency else None,
    )


def _instructions(cpuinfo: str) -> tuple[str, ...] | None:
    """What every core knows: where cores differ, a program may run on any."""
    lines = re.findall(r"^(flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    # On x86 "sme" is memory that is encrypted, and multiplies nothing.
    known = [
        set(line.split()) - {"sme" * (kind == "flags")}
        for kind, line in dict.fromkeys(lines)
    ]
    if not known or not all(known):
        return None
    return tuple(
        name for name in sorted(set.intersection(*known)) if _MATTER.fullmatch(name)
    )


def _physical(root: Path, cpuinfo: str) -> int | None:
    """Cores without their second threads: each is one set of threads."""
    cores = [
        text_of(folder / "topology/thread_siblings_list")
        for folder in folders(root / _CPUS, r"cpu\d+")
    ]
    sets = {threads for threads in cores if threads and count_of(threads)}
    if sets:
        return len(sets)
    ids = re.findall(
        r"^physical id\s*:\s*(\d+)$.*?^core id\s*:\s*(\d+)$",
        cpuinfo,
        re.MULTILINE | re.DOTALL,
    )
    return len(set(ids)) or None


def _nodes(root: Path) -> int | None:
    """Those that have cores: memory alone can be a node too."""
    nodes = folders(root / "sys/devices/system/node", r"node\d+")
    return sum(bool(count_of(text_of(node / "cpulist"))) for node in nodes) or None


def _frequency(cpuinfo: str, policies: list[Path]) -> float | None:
    said = re.findall(r"^cpu MHz\s*:\s*([\d.]{1,15})$", cpuinfo, re.MULTILINE)
    now = [hertz for text in said if (hertz := _hertz(text, 1e6))]
    now = now or list(_frequencies(policies, "scaling_cur_freq"))
    return sum(now) / len(now) if now else None


def _highest(policies: list[Path], name: str) -> float | None:
    return max(_frequencies(policies, name), default=None)


def _frequencies(policies: list[Path], name: str) -> Iterator[float]:
    for policy in policies:
        hertz = _hertz(number_of(policy / name), 1e3)
        if hertz is not None:
            yield hertz


def _hertz(number: Any, unit: float) -> float | None:
    """A frequency, if it is one that a core can have."""
    try:
        hertz = float(number) * unit
    except (TypeError, ValueError):
        return None
    return hertz if _FREQUENCIES[0] <= hertz <= _FREQUENCIES[1] else None


def _said(policies: list[Path], name: str) -> str | None:
    """The word of the first group of cores; others are set alike."""
    return next((w for policy in policies if (w := word_of(policy / name))), None)


def _boost(root: Path) -> bool | None:
    forbidden = word_of(root / _CPUS / "intel_pstate/no_turbo")
    allowed = word_of(root / _CPUS / "cpufreq/boost")
    if forbidden in ("0", "1"):
        return forbidden == "0"
    return allowed == "1" if allowed in ("0", "1") else None


def _virtual(root: Path, cpuinfo: str) -> bool | None:
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    if text_of(root / "sys/hypervisor/type"):
        return True
    # Processors of other kinds have no such flag.
    return "hypervisor" in flags[1].split() if flags else None
