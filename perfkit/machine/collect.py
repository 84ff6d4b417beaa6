"""What is this computer? Asked of the system itself, in a third of a second."""

import os
import platform
import re
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from perfkit.machine import cards, environment, limits, load, software
from perfkit.machine.gpu import Driver, Gpu
from perfkit.machine.limits import (
    amounts_of,
    call_or_none,
    count_of,
    folders,
    number_of,
    text_of,
    word_of,
)
from perfkit.machine.record import Library, Load, Machine, Processor, Software
from perfkit.machine.software import Built

Names = tuple[str, ...]
Trying = Callable[[Built, Mapping[str, str], Names], Callable[[], tuple[Library, ...]]]

# The variables as they were when TensorFlow was first seen in this process.
_SEEN = dict[str, str]()


def _calls_itself() -> str:
    """Kind and release of a system that has no ``proc``."""
    mac = platform.mac_ver()[0]
    return f"macOS {mac}" if mac else f"{platform.system()} {platform.release()}"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What answers; the fields that are not given are what is really there.

    Attributes:
        root: The folder that holds ``proc`` and ``sys``.
        variables: The environment to report.
        names: Words that tell whose machine this is, to be left out.
        kind: What a system without ``proc`` calls itself, and ``system`` with release.
        cpu: What it calls its processor.
        counters: What tells its load and memory, as psutil does.
        python: Version of Python, and ``prefix``: where its environment lies.
        paths: Where Python looks for packages.
        loaded: The modules of this process.
        seen: The variables as they were at the first look with TensorFlow loaded.
        gpus: Asks the driver: itself, its GPUs, and why there are none.
        trying: Begins to try the libraries that a GPU needs.
        wait: Waits between the two looks at the load, for so many seconds.
    """

    root: Path = Path("/")
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    names: Names = field(default_factory=environment.own_names)
    kind: str = field(default_factory=platform.system)
    system: str = field(default_factory=_calls_itself)
    cpu: str = field(default_factory=lambda: platform.processor() or platform.machine())
    counters: Any = psutil
    python: str = field(default_factory=platform.python_version)
    prefix: str = sys.prefix
    paths: Sequence[str] = field(default_factory=lambda: tuple(sys.path))
    loaded: Container[str] = field(default_factory=lambda: sys.modules)
    seen: dict[str, str] = field(default_factory=lambda: _SEEN)
    gpus: Callable[[], tuple[Driver | None, tuple[Gpu, ...], str]] = cards.gpus
    trying: Trying = software.tried
    wait: Callable[[float], object] = time.sleep


_LONGEST_NAME = 64
_NVIDIA = "0x10de"
# Of a card on the bus: it draws, or it computes only.
_GRAPHICS = ("0x0300", "0x0302")


def machine(around: Surroundings | None = None) -> Machine:
    """Describe this computer, without its host name, its users or their paths.

    What is read is what is really there, unless something else is given.
    """
    around = around or Surroundings()
    root = around.root
    host = text_of(root / "proc/sys/kernel/hostname")[:_LONGEST_NAME]
    names = (*around.names, *environment.named_in(around.variables), host)
    around = replace(around, names=names)
    built = software.tensorflow(around.paths)
    answer = around.trying(built, around.variables, names)
    before = load.look(root, around.counters)
    found, made = _described(around), _software(around, built)
    tried = answer()
    around.wait(max(0.0, load.WINDOW_S - (time.monotonic() - before.taken)))
    after = load.look(root, around.counters)
    return replace(
        found,
        load=_nameless(load.load(before, after, root, around.counters), names),
        software=replace(made, libraries=tried),
    )


def _described(around: Surroundings) -> Machine:
    root, names = around.root, around.names
    cores, memory = _cores(around), _memory(around)
    driver, gpus, no_gpu = around.gpus()
    cards = _nvidia_cards(around)
    if driver and driver.problem == "not loaded" and cards == 0:
        no_gpu = "No NVIDIA card is on the bus, so its driver has nothing to load."
    return Machine(
        cpu=environment.cleaned(_cpu(around), names),
        cores=cores,
        cores_granted=limits.cores_granted(root, cores),
        cores_quota=limits.quota(root),
        cores_affinity=limits.affinity(root),
        memory=limits.memory_granted(root, memory),
        memory_present=memory,
        system=environment.cleaned(_system(around), names),
        python=around.python,
        versions={
            name: environment.cleaned(version, names)
            for name, version in software.versions(around.paths).items()
        },
        environment=environment.that_matter(around.variables, names),
        gpus=gpus,
        no_gpu=no_gpu,
        nvidia_cards=cards,
        driver=driver,
        processor=processor(root, around.counters),
    )


def _software(around: Surroundings, built: Built) -> Software:
    root, variables = around.root, around.variables
    container = software.in_container(root, variables)
    inside, late = _set_here(around)
    backend = software.keras_backend(variables, around.paths)
    return Software(
        platform=software.platform(root, variables, around.kind, container=container),
        container=container,
        keras_backend=backend and environment.cleaned(backend, around.names),
        set_inside=inside,
        set_late=late,
        elsewhere=software.elsewhere(around.prefix, variables),
        **{name: fact for name, fact in vars(built).items() if name != "folder"},
    )


def _set_here(around: Surroundings) -> tuple[Names, Names]:
    """Variables that this process set, and those it certainly set too late."""
    if "tensorflow" not in around.loaded:
        return (), ()
    if not around.seen:
        around.seen.update(around.variables)
    at_start = text_of(around.root / "proc/self/environ")
    late = environment.changed(around.variables, around.seen)
    return environment.set_inside(around.variables, at_start), late


def _nameless(busy: Load, names: Names) -> Load:
    """Programs may be called after people."""
    top = (replace(b, program=environment.cleaned(b.program, names)) for b in busy.top)
    return replace(busy, top=tuple(top))


def _cpu(around: Surroundings) -> str:
    text = text_of(around.root / "proc/cpuinfo")
    # Arm kernels give no model name; some boards give their own instead.
    named = re.search(r"^(?:model name|Hardware|cpu)\s*:\s*(\S.*)$", text, re.MULTILINE)
    name = named[1][:_LONGEST_NAME] if named else around.cpu
    return (
        " ".join(re.sub(r"\((R|TM|tm)\)|\bCPU\b|@.*", " ", name).split()) or "unknown"
    )


def _cores(around: Surroundings) -> int:
    text = text_of(around.root / "proc/cpuinfo")
    listed = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    return listed or around.counters.cpu_count() or 1


def _memory(around: Surroundings) -> int:
    total = amounts_of(around.root / "proc/meminfo").get("MemTotal")
    return total or int(around.counters.virtual_memory().total)


def _system(around: Surroundings) -> str:
    release = text_of(around.root / "proc/sys/kernel/osrelease")[:_LONGEST_NAME]
    if not release:
        return around.system
    # Vendors append names of their own to a kernel's release; two numbers say enough.
    linux = "Linux " + ".".join(re.findall(r"\d+", release)[:2])
    wsl = software.wsl_version(around.root, around.variables)
    return f"{linux} (WSL{'' if wsl == 1 else wsl})" if wsl else linux


def _nvidia_cards(around: Surroundings) -> int | None:
    """How many the bus lists; a guest of Windows does not see its bus."""
    devices = list(folders(around.root / "sys/bus/pci/devices", r"[\w:.]+"))
    if software.wsl_version(around.root, around.variables):
        return None
    found = [(word_of(d / "vendor"), word_of(d / "class")) for d in devices]
    cards = sum(v == _NVIDIA and (c or "").startswith(_GRAPHICS) for v, c in found)
    # One that does not say what it is may be a card as well.
    told = all(re.fullmatch(r"0x\w{4} 0x\w{6}", f"{v} {c}") for v, c in found)
    return cards if cards or (found and told) else None


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
