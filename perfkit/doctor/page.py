"""What an examination reports: what is wrong, what to type, the machine's parts."""

from collections.abc import Iterator, Sequence

from perfkit import units
from perfkit.doctor.examination import Examination
from perfkit.findings.record import Verdict
from perfkit.findings.report import TO_TYPE, Fold, Report, Table
from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, first_way
from perfkit.machine.checks.cores import limiting
from perfkit.machine.checks.started import meaning
from perfkit.machine.gpu import Gpu, Link
from perfkit.machine.record import Disk, Load, Machine, Processor, Software, Start
from perfkit.machine.starting.child import is_right

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
    return tuple((name, ", ".join(line) or "unknown") for name, line in _lines(machine))


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
    name = base.distribution(machine)
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
    cuda, cudnn = base.cuda_libraries(machine), base.cudnn(machine)
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


_WEIGHTS = ("fatal", "matters", "unexplained")
# A longer way to mend something stands below alone.
_LONGEST_WAY = 80


def report(of: Examination) -> Report:
    """What a person reads of an examination; what is wrong with it comes first."""
    said = [*map(_first, of.wrong[:1]), answer(of.machine, of.checks)]
    if not of.wrong:
        said.append("Nothing was found here that costs speed.")
    elif of.wrong[0].status == "warn":
        said.insert(1, "How much that costs was not measured.")
    rows, rest = log_of(of.machine)
    log = tuple(f"{weight}: {line}" for weight, line in rows)
    start = of.machine.start
    return Report(
        verdict=Verdict(
            headline=said[0],
            much=" ".join(said[1:]),
            warnings=tuple(map(_check, of.wrong)),
        ),
        table=Table("This machine", ("part", "what it is"), parts(of.machine)),
        besides=(
            of.summary(),
            *of.missed,
            *["It was stopped before everything had been looked at."] * of.stopped,
        ),
        folds=(
            Fold("What is ok", of.well),
            Fold(
                "What TensorFlow said as it started",
                (*log, rest) if start and start.said else (),
            ),
            *(_parts(of.microbenchmarks.report) if of.microbenchmarks else ()),
        ),
    )


def _parts(report: Report) -> Iterator[Fold]:
    """How fast each part is: a report within this one."""
    tables = (report.table,) if report.table else ()
    yield Fold("How fast each part is", (report.verdict.headline,), tables)
    yield from report.folds


def _first(check: Check) -> str:
    """What is wrong, and what to do about it where a clause holds that."""
    way = f": {first_way(check.remedy)}" if check.remedy else ""
    return f"{check.title}{way if len(way) <= _LONGEST_WAY else ''}."


def _check(check: Check) -> str:
    """A check that is not well: what, how that was seen, why it matters, what to do."""
    said = [f"  {line}" for line in (check.evidence, check.why) if line]
    said += [f"{TO_TYPE}{check.remedy}"] * bool(check.remedy)
    return "\n".join([f"{check.status.upper()}: {check.title}", *said])


def log_of(machine: Machine) -> tuple[tuple[tuple[str, str], ...], str]:
    """What TensorFlow said that is not harmless, and a word on the rest."""
    start = machine.start or Start()
    told = [one for one in start.said if one.weight in _WEIGHTS]
    told.sort(key=lambda one: _WEIGHTS.index(one.weight))
    # A card for the screen may be left out beside one that computes.
    left_out = bool(start.devices) and not any("GPU" in d for d in start.devices)
    words = {"fatal": "no GPU" if left_out else "noted", "matters": "may be slower"}
    rows = tuple(
        (
            words.get(one.weight, one.weight),
            f'"{one.line}" {meaning(machine, one)}'.rstrip(),
        )
        for one in told
    )
    count = len(start.said) - len(told)
    other = "other " if rows else ""
    return rows, f"{count} {other}{'line is' if count == 1 else 'lines are'} harmless."


_PROCESSOR = "TensorFlow trains on the processor"
_AS_IT_IS = "see the first FAIL"


def answer(machine: Machine, checks: Sequence[Check]) -> str:
    """Say in a sentence whether TensorFlow can use a GPU, and how that is known."""
    fails = [check for check in checks if check.status == "fail"]
    if any(check.id == "no-tensorflow" for check in fails):
        return "TensorFlow is not installed here: nothing can be trained."
    if machine.start and machine.start.devices:
        return _seen(machine)
    if machine.start and machine.start.problem:
        return "TensorFlow did not get through its start here."
    if not machine.gpus:
        return _without(machine, fails)
    if fails:
        return f"TensorFlow cannot use {_named(machine)} as things are: {_AS_IT_IS}."
    return (
        f"TensorFlow can use {_named(machine)}, as far as can be told without trying; "
        "`perfkit doctor --probe` lets it compute."
    )


def _seen(machine: Machine) -> str:
    """What TensorFlow itself showed as it was started."""
    assert machine.start
    on_gpu = [p for p in machine.start.proofs if p.device.startswith("GPU")]
    if on_gpu and all(map(is_right, on_gpu)):
        return f"TensorFlow can use {_named(machine)}: it computed right there."
    if any(device.startswith("GPU") for device in machine.start.devices):
        return f"TensorFlow finds {_named(machine)} and was not seen to compute right."
    if machine.gpus:
        return f"{_PROCESSOR}: it does not find {_named(machine)}."
    return f"{_PROCESSOR}: it finds no GPU here."


def _without(machine: Machine, fails: Sequence[Check]) -> str:
    if any("driver" in check.id or check.id == "no-reader" for check in fails):
        return f"{_PROCESSOR}: no GPU answers here; {_AS_IT_IS}."
    return f"{base.without_gpu(machine)}."


def _named(machine: Machine) -> str:
    names = [gpu.name for _, _, gpu in base.seen(machine)] or [
        gpu.name for gpu in machine.gpus
    ]
    if len(names) == 1:
        return names[0]
    return f"{len(names)} x {names[0]}" if len(set(names)) == 1 else "a GPU here"
