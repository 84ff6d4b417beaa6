"""What is this computer? Asked of the system itself, in a third of a second.

What else it does is seen by two looks at its counters. Between the looks the rest of
the machine is described, so that nobody waits for them.
"""

import contextlib
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from perfkit.errors import BadParameterError
from perfkit.machine import environment, limits, nvml, record
from perfkit.machine.limits import amounts_of, call_or_none, number_of, text_of, word_of
from perfkit.machine.record import BUSY, throttle_reasons

# The variables as they were when TensorFlow was first seen in this process.
_SEEN = dict[str, str]()

_LONGEST_NAME = 64
_NVIDIA = "0x10de"
# Of a card on the bus: it draws, or it computes only.
_GRAPHICS = ("0x0300", "0x0302")


def machine(root: Path = Path("/")) -> record.Machine:
    """Describe this computer, without its host name, its users or their paths."""
    host = text_of(root / "proc/sys/kernel/hostname")[:_LONGEST_NAME]
    names = (*environment.own_names(), *environment.named_in(os.environ), host)
    began = time.monotonic()
    # Says nothing yet: psutil counts from here.
    load(root)
    described = _describe(root, names)
    time.sleep(max(0.0, began + WINDOW_S - time.monotonic()))
    busy = load(root)
    # Programs may be called after people.
    top = tuple(
        replace(b, program=environment.anonymize(b.program, names, is_fact=True))
        for b in busy.top
    )
    return replace(described, load=replace(busy, top=top))


def _describe(root: Path, names: tuple[str, ...]) -> record.Machine:
    cores = psutil.cpu_count() or 1
    memory = call_or_none(lambda: int(psutil.virtual_memory().total)) or 0
    driver, gpus, no_gpu = nvml.gpus()
    on_bus = _nvidia_cards(root)
    if driver and driver.problem == "not loaded" and on_bus == 0:
        no_gpu = "No NVIDIA card is on the bus, so its driver has nothing to load."
    return record.Machine(
        cpu=environment.anonymize(_cpu(root), names, is_fact=True),
        cores=cores,
        cores_granted=limits.cores_granted(root, cores),
        memory=limits.memory_granted(root, memory),
        memory_present=memory,
        system=environment.anonymize(_system(root), names, is_fact=True),
        python=platform.python_version(),
        versions={
            name: environment.hide_names(version, names)
            for name, version in environment.versions(sys.path).items()
        },
        environment=environment.that_matter(os.environ, names),
        gpus=gpus,
        no_gpu=no_gpu,
        nvidia_cards=on_bus,
        driver=driver,
        processor=processor(root),
        software=_software(root),
    )


def _software(root: Path) -> record.Software:
    container = environment.in_container(root, os.environ)
    kind, loaded = platform.system(), "tensorflow" in sys.modules
    if loaded and not _SEEN:
        _SEEN.update(os.environ)
    system = environment.kind_of_system(root, os.environ, kind, container=container)
    return replace(
        environment.tensorflow(sys.path),
        platform=system,
        container=container,
        set_late=environment.changed(os.environ, _SEEN) if loaded else (),
    )


def _cpu(root: Path) -> str:
    text = text_of(root / "proc/cpuinfo")
    # Arm kernels give no model name; some boards give their own instead.
    match = re.search(r"^(?:model name|Hardware|cpu)\s*:\s*(\S.*)$", text, re.MULTILINE)
    name = match[1] if match else _mac() or platform.processor() or platform.machine()
    # Where it has a part for graphics, that is named behind it.
    besides = r"\((R|TM|tm)\)|\bCPU\b|@.*|\bw(/|ith) ?Radeon.*"
    return " ".join(re.sub(besides, " ", name[:_LONGEST_NAME]).split()) or "unknown"


def _mac() -> str:
    """The processor of a Mac, which Python calls "arm"; "" where nobody says."""
    ask = ("sysctl", "-n", "machdep.cpu.brand_string")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if platform.system() == "Darwin":
            told = subprocess.run(ask, capture_output=True, timeout=1).stdout
            return told.decode(errors="replace").strip()
    return ""


def _system(root: Path) -> str:
    release = text_of(root / "proc/sys/kernel/osrelease")[:_LONGEST_NAME]
    if not release:
        mac = platform.mac_ver()[0]
        return f"macOS {mac}" if mac else f"{platform.system()} {platform.release()}"
    # Vendors append names of their own to a kernel's release; two numbers say enough.
    linux = "Linux " + ".".join(re.findall(r"\d+", release)[:2])
    return f"{linux} (WSL)" if environment.is_wsl(root, os.environ) else linux


def _nvidia_cards(root: Path) -> int | None:
    """How many the bus lists; a guest of Windows does not see its bus."""
    if environment.is_wsl(root, os.environ):
        return None
    devices = root.glob("sys/bus/pci/devices/*")
    kinds = [(word_of(d / "vendor"), word_of(d / "class")) for d in devices]
    cards = sum(v == _NVIDIA and (c or "").startswith(_GRAPHICS) for v, c in kinds)
    # A device that does not say what it is may be a card as well.
    is_complete = all(re.fullmatch(r"0x\w{4} 0x\w{6}", f"{v} {c}") for v, c in kinds)
    return cards if cards or (kinds and is_complete) else None


# Those that TensorFlow's kernels, oneDNN and XLA choose between: x86, then Arm.
_RELEVANT = re.compile(
    r"sse4_1|sse4_2|avx|f16c|fma|avx2|avx_vnni|avx512(f|bw|dq|vl|_vnni|_bf16|_fp16)"
    r"|amx_(tile|int8|bf16|fp16)|asimd|asimdhp|asimddp|bf16|i8mm|sve|sve2|sme"
)


def processor(root: Path = Path("/")) -> record.Processor:
    """Describe the cores."""
    policies = sorted(root.glob("sys/devices/system/cpu/cpufreq/policy*"))
    highest = max((number_of(p / "cpuinfo_max_freq") or 0 for p in policies), default=0)

    def first_word(name: str) -> str | None:
        # Of the first group of cores; others are set alike.
        return next((w for policy in policies if (w := word_of(policy / name))), None)

    return record.Processor(
        instructions=_instructions(text_of(root / "proc/cpuinfo")),
        physical_cores=call_or_none(lambda: psutil.cpu_count(logical=False)),
        # Linux counts it in kHz.
        frequency_max=1e3 * highest or None,
        governor=first_word("scaling_governor"),
        frequency_driver=first_word("scaling_driver"),
        preference=first_word("energy_performance_preference"),
    )


def _instructions(cpuinfo: str) -> tuple[str, ...] | None:
    """What every core knows: where cores differ, a program may run on any."""
    lines = re.findall(r"^(flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    # On x86 "sme" is memory that is encrypted, and multiplies nothing.
    feature_sets = [
        set(line.split()) - ({"sme"} if kind == "flags" else set())
        for kind, line in dict.fromkeys(lines)
    ]
    if not feature_sets or not all(feature_sets):
        return None
    return tuple(filter(_RELEVANT.fullmatch, sorted(set.intersection(*feature_sets))))


def disk(folder: str | Path) -> record.Disk:
    """Say which kind of file system a folder lies on; one that is none is refused."""
    try:
        place = os.path.realpath(Path(folder).expanduser(), strict=True)
        os.scandir(place).close()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadParameterError(
            f"{str(folder)!r} cannot be read ({reason}); give a readable folder."
        ) from None
    mounts = call_or_none(lambda: psutil.disk_partitions(all=True)) or []
    above = [mount for mount in mounts if Path(place).is_relative_to(mount.mountpoint)]
    # Of several at one place the last hides the others.
    mount = max(reversed(above), key=lambda mount: len(mount.mountpoint), default=None)
    if mount is None:
        return record.Disk()
    # So WSL mounts the drives of Windows, whatever protocol it uses.
    windows = "drvfs" in f"{mount.fstype} {mount.opts}"
    return record.Disk(filesystem=mount.fstype or None, windows=windows)


def drop_cached_file(file: str) -> bool:
    """Ask the system to drop what it keeps of a file; whether it can be asked."""
    if not hasattr(os, "posix_fadvise"):
        return False
    try:
        with Path(file).open("rb") as opened:
            # What was just written cannot be dropped before it is on the disk.
            os.fdatasync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        return False
    return True


def bytes_fetched() -> int | None:
    """Bytes that disks have given to this thread so far; None where nobody counts."""
    return amounts_of(Path("/proc/thread-self/io")).get("read_bytes")


# Samples with work, below which nothing is said.
_ENOUGH = 3
# Share of the samples in which the same reason slowed it. One alone proves nothing.
_OFTEN = 0.1


def observed(
    gpus: Sequence[record.Gpu], samples: Mapping[str, Sequence[float | None]]
) -> tuple[record.Gpu, ...]:
    """The GPUs, in the driver's order, with what a run's samples saw of their work."""
    return tuple(_with_what_was_seen(gpu, n, samples) for n, gpu in enumerate(gpus))


def _with_what_was_seen(
    gpu: record.Gpu, number: int, columns: Mapping[str, Sequence[float | None]]
) -> record.Gpu:
    busy = columns.get(f"gpu{number}_busy", ())
    working = [place for place, share in enumerate(busy) if (share or 0.0) >= BUSY]
    if len(working) < _ENOUGH:
        return gpu

    def readings(name: str) -> list[int]:
        column = columns.get(f"gpu{number}_{name}", ())
        values = (column[place] for place in working if place < len(column))
        return [int(value) for value in values if value is not None]

    masks = readings("throttle")
    reasons = Counter(reason for mask in masks for reason in throttle_reasons(mask))
    often = max(2, len(masks) * _OFTEN)
    slowed_by = tuple(reason for reason, count in reasons.items() if count >= often)
    link = replace(
        gpu.link,
        busy_generation=max(readings("link_generation"), default=None),
        busy_width=max(readings("link_width"), default=None),
    )
    clocks = replace(gpu.clocks, busy_throttle=slowed_by if masks else None)
    return replace(gpu, link=link, clocks=clocks)


# Counters move in steps of 10 ms: this long, they tell a thirtieth of a core.
WINDOW_S = 0.3
# Fewer cores than this are a clock that ticks, or a window that is drawn.
_NAMED_FROM = 0.1
_MOST_NAMED = 5
_WANTED = ["name", "cpu_percent"]
# Guest time is counted in user time already; stolen time is no program's.
_NOT_BUSY = ("idle", "iowait", "steal", "guest", "guest_nice")


def _has_battery(root: Path) -> bool:
    """Whether one feeds this computer, as far as is told: that of a mouse does not."""
    supplies = root.glob("sys/class/power_supply/*")
    told = [(word_of(s / "type"), word_of(s / "scope")) for s in supplies]
    return not told or any(k == "Battery" and scope != "Device" for k, scope in told)


def load(root: Path) -> record.Load:
    """Say what went on since the call before, and how memory stands."""
    memory = call_or_none(psutil.virtual_memory)
    # There is no such function where the system tells of no batteries.
    battery = call_or_none(lambda: psutil.sensors_battery())
    # psutil may see a battery and not know whether it is in use.
    plugged = battery.power_plugged if battery and _has_battery(root) else None
    current = record.Load(
        memory_free=memory and limits.memory_free(root, memory.available),
        on_battery=None if plugged is None else not plugged,
    )
    times = call_or_none(psutil.cpu_times_percent)
    programs = call_or_none(lambda: list(psutil.process_iter(_WANTED))) or []
    started = call_or_none(lambda: psutil.Process().children(recursive=True)) or []
    # What this process and those that it started do is not what others do.
    family = {os.getpid(), *(process.pid for process in started)}
    cores = call_or_none(psutil.cpu_count)
    # All are 0 where no time passed.
    if not times or not any(times) or not cores or not programs:
        return current
    shares = times._asdict().items()
    busy = sum(share for name, share in shares if name not in _NOT_BUSY) * cores / 100
    others = defaultdict[str, float](float)
    for program in programs:
        used = (program.info["cpu_percent"] or 0.0) / 100
        if program.pid in family:
            busy -= used
        else:
            others[(program.info["name"] or "")[:40]] += used
    busiest = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    top = tuple(
        record.Busy(program=program, cores=round(used, 3))
        for program, used in busiest[:_MOST_NAMED]
        if used >= _NAMED_FROM
    )
    # Counters are not read all at once, so a difference may come out below 0.
    return replace(current, others=round(max(0.0, busy), 3), top=top)
