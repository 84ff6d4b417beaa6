"""What is this computer? Asked of the system itself, in a third of a second."""

import os
import platform
import re
import sys
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from perfkit.errors import BadParameterError
from perfkit.machine import environment, limits, load, nvml, software
from perfkit.machine.limits import (
    amounts_of,
    call_or_none,
    folders,
    number_of,
    text_of,
    word_of,
)
from perfkit.machine.record import (
    Disk,
    Driver,
    Gpu,
    Machine,
    Processor,
    Software,
)

Names = tuple[str, ...]

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
        counters: What tells its cores, load and memory, as psutil does.
        python: Version of Python.
        paths: Where Python looks for packages.
        loaded: The modules of this process.
        seen: The variables as they were at the first look with TensorFlow loaded.
        gpus: Asks the driver: itself, its GPUs, and why there are none.
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
    paths: Sequence[str] = field(default_factory=lambda: tuple(sys.path))
    loaded: Container[str] = field(default_factory=lambda: sys.modules)
    seen: dict[str, str] = field(default_factory=lambda: _SEEN)
    gpus: Callable[[], tuple[Driver | None, tuple[Gpu, ...], str]] = nvml.gpus
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
    host = text_of(around.root / "proc/sys/kernel/hostname")[:_LONGEST_NAME]
    names = (*around.names, *environment.named_in(around.variables), host)
    around = replace(around, names=names)
    before = load.look(around.counters)
    described = _described(around)
    around.wait(max(0.0, load.WINDOW_S - (time.monotonic() - before.taken)))
    after = load.look(around.counters)
    busy = load.load(before, after, around.root, around.counters)
    # Programs may be called after people.
    top = tuple(
        replace(b, program=environment.anonymize(b.program, names, is_fact=True))
        for b in busy.top
    )
    return replace(described, load=replace(busy, top=top))


def _memory_present(around: Surroundings) -> int:
    """Bytes of RAM, from the system's own file where psutil finds none."""
    if memory := call_or_none(around.counters.virtual_memory):
        return int(memory.total)
    return amounts_of(around.root / "proc/meminfo").get("MemTotal", 0)


def _described(around: Surroundings) -> Machine:
    root, names, counters = around.root, around.names, around.counters
    cores, memory = counters.cpu_count() or 1, _memory_present(around)
    driver, gpus, no_gpu = around.gpus()
    on_bus = _nvidia_cards(around)
    if driver and driver.problem == "not loaded" and on_bus == 0:
        no_gpu = "No NVIDIA card is on the bus, so its driver has nothing to load."
    return Machine(
        cpu=environment.anonymize(_cpu(around), names, is_fact=True),
        cores=cores,
        cores_granted=limits.cores_granted(root, cores),
        cores_quota=limits.quota(root),
        cores_affinity=limits.affinity(root),
        memory=limits.memory_granted(root, memory),
        memory_present=memory,
        system=environment.anonymize(_system(around), names, is_fact=True),
        python=around.python,
        versions={
            name: environment.hide_names(version, names)
            for name, version in software.versions(around.paths).items()
        },
        environment=environment.that_matter(around.variables, names),
        gpus=gpus,
        no_gpu=no_gpu,
        nvidia_cards=on_bus,
        driver=driver,
        processor=processor(root, counters),
        software=_software(around),
    )


def _software(around: Surroundings) -> Software:
    root, variables = around.root, around.variables
    container = software.in_container(root, variables)
    return replace(
        software.tensorflow(around.paths),
        platform=software.platform(root, variables, around.kind, container=container),
        container=container,
        set_late=_set_late(around),
    )


def _set_late(around: Surroundings) -> Names:
    """Variables that changed since TensorFlow was first seen in this process."""
    if "tensorflow" not in around.loaded:
        return ()
    if not around.seen:
        around.seen.update(around.variables)
    return environment.changed(around.variables, around.seen)


def _cpu(around: Surroundings) -> str:
    text = text_of(around.root / "proc/cpuinfo")
    # Arm kernels give no model name; some boards give their own instead.
    named = re.search(r"^(?:model name|Hardware|cpu)\s*:\s*(\S.*)$", text, re.MULTILINE)
    name = named[1][:_LONGEST_NAME] if named else around.cpu
    return (
        " ".join(re.sub(r"\((R|TM|tm)\)|\bCPU\b|@.*", " ", name).split()) or "unknown"
    )


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
    kinds = [(word_of(d / "vendor"), word_of(d / "class")) for d in devices]
    cards = sum(v == _NVIDIA and (c or "").startswith(_GRAPHICS) for v, c in kinds)
    # A device that does not say what it is may be a card as well.
    whole = all(re.fullmatch(r"0x\w{4} 0x\w{6}", f"{v} {c}") for v, c in kinds)
    return cards if cards or (kinds and whole) else None


# Those that TensorFlow's kernels, oneDNN and XLA choose between: x86, then Arm.
_MATTER = re.compile(
    r"sse4_1|sse4_2|avx|f16c|fma|avx2|avx_vnni|avx512(f|bw|dq|vl|_vnni|_bf16|_fp16)"
    r"|amx_(tile|int8|bf16|fp16)|asimd|asimdhp|asimddp|bf16|i8mm|sve|sve2|sme"
)
_CPUS = "sys/devices/system/cpu"


def processor(root: Path, system: Any) -> Processor:
    """Describe the cores; ``system`` answers as psutil does."""
    policies = list(folders(root / _CPUS / "cpufreq", r"policy\d+"))
    highest = max((number_of(p / "cpuinfo_max_freq") or 0 for p in policies), default=0)
    return Processor(
        instructions=_instructions(text_of(root / "proc/cpuinfo")),
        physical_cores=call_or_none(lambda: system.cpu_count(logical=False)),
        # Linux counts it in kHz.
        frequency_max=1e3 * highest or None,
        governor=_first_word(policies, "scaling_governor"),
        frequency_driver=_first_word(policies, "scaling_driver"),
        preference=_first_word(policies, "energy_performance_preference"),
    )


def _instructions(cpuinfo: str) -> tuple[str, ...] | None:
    """What every core knows: where cores differ, a program may run on any."""
    lines = re.findall(r"^(flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    # On x86 "sme" is memory that is encrypted, and multiplies nothing.
    known = [
        set(line.split()) - ({"sme"} if kind == "flags" else set())
        for kind, line in dict.fromkeys(lines)
    ]
    if not known or not all(known):
        return None
    return tuple(
        name for name in sorted(set.intersection(*known)) if _MATTER.fullmatch(name)
    )


def _first_word(policies: list[Path], name: str) -> str | None:
    """The word of the first group of cores; others are set alike."""
    return next((w for policy in policies if (w := word_of(policy / name))), None)


# So WSL mounts the drives of Windows, whatever protocol it uses.
_WINDOWS = "drvfs"


def disk(folder: str | Path) -> Disk:
    """Say which kind of file system a folder lies on.

    Raises:
        BadParameterError: There is no such folder, or it may not be read.
    """
    try:
        place = os.path.realpath(Path(folder).expanduser(), strict=True)
        os.scandir(place).close()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadParameterError(
            f"{str(folder)!r} cannot be read ({reason}); give a folder that can."
        ) from None
    mounts = call_or_none(lambda: psutil.disk_partitions(all=True)) or []
    above = [one for one in mounts if Path(place).is_relative_to(one.mountpoint)]
    mount = max(above, key=lambda one: len(one.mountpoint), default=None)
    if mount is None:
        return Disk()
    windows = _WINDOWS in f"{mount.fstype} {mount.opts}"
    return Disk(filesystem=mount.fstype or None, windows=windows)


def drop_cached_file(file: str) -> bool:
    """Ask the system to drop what it keeps of a file; whether it can be asked."""
    if not hasattr(os, "posix_fadvise"):
        return False
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        # What was just written cannot be dropped before it is on the disk.
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def bytes_fetched() -> int | None:
    """Bytes that disks have given to this thread so far; None where nobody counts."""
    return amounts_of(Path("/proc/thread-self/io")).get("read_bytes")
