"""What an examination reports: what is wrong, what to type, the machine's parts."""

from collections.abc import Iterator, Sequence

from perfkit import units
from perfkit.findings import shown
from perfkit.findings.report import TO_TYPE, Fold, Report, Table, Verdict
from perfkit.machine.checks import base
from perfkit.machine.checks.base import Check, first_way
from perfkit.machine.checks.hardware import limiting
from perfkit.machine.checks.software import SILENCES, meaning
from perfkit.machine.record import Gpu, Load, Machine, Start
from perfkit.machine.starting.child import is_right
from perfkit.machines.examination import Examination

_BUILDS = {
    "cpu": "build for CPUs",
    "metal": "with Apple's plugin for its GPUs",
    "rocm": "build for AMD's GPUs",
}


def parts(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Name every part of a machine that is known, with a line about it."""
    rows: dict[str, list[str]] = {
        "Processor": [*_processor(machine)],
        "Memory": [*_memory(machine)],
    }
    for number, gpu in enumerate(machine.gpus):
        rows[f"GPU {number}" if len(machine.gpus) > 1 else "GPU"] = [*_gpu(gpu)]
    if not machine.gpus:
        rows["GPU"] = [machine.no_gpu or "None."]
    if machine.driver and machine.driver.version:
        cuda = machine.driver.cuda
        rows["Driver"] = [f"NVIDIA {machine.driver.version}"]
        rows["Driver"] += [f"for CUDA up to {cuda}"] if cuda else []
    rows["TensorFlow"] = [*_tensorflow(machine)]
    if machine.start:
        rows["Start-up"] = [*_start(machine.start)]
    inside = machine.software is not None and machine.software.container
    rows["System"] = [machine.system, *(["in a container"] if inside else [])]
    rows["System"] += [f"Python {machine.python}"]
    if machine.load:
        rows["Load"] = [*_load(machine.load, machine.cores)]
    if machine.disk:
        rows["Disk"] = [machine.disk.filesystem or "unknown"]
    return tuple((name, ", ".join(line) or "unknown") for name, line in rows.items())


def _processor(machine: Machine) -> Iterator[str]:
    yield machine.cpu
    granted = units.significant(machine.cores_granted)
    by = " and ".join(limiting(machine))
    yield f"{granted} of {machine.cores} cores{f' ({by})' if by else ''}"
    if machine.processor and machine.processor.governor:
        yield f"governor {machine.processor.governor}"


def _memory(machine: Machine) -> Iterator[str]:
    present = machine.memory_present or machine.memory
    total = f" of {units.size(present)}" if present != machine.memory else ""
    yield f"{units.size(machine.memory)}{total}"
    if machine.load and machine.load.memory_free is not None:
        yield f"{units.size(machine.load.memory_free)} free"


def _gpu(gpu: Gpu) -> Iterator[str]:
    yield gpu.name
    if gpu.memory is not None:
        yield units.size(gpu.memory)
    if gpu.compute_capability:
        yield f"compute capability {gpu.compute_capability}"
    # An idle link says nothing of its speed.
    link, best = gpu.link, (gpu.link.generation_max, gpu.link.width_max)
    generation = link.busy_generation or link.generation_max
    width = link.busy_width or link.width or link.width_max
    if generation and width:
        slower = all(best) and (generation, width) != best
        limit = f" of {best[0]} ×{best[1]}" if slower else ""
        yield f"PCIe {generation} ×{width}{limit}"


def _tensorflow(machine: Machine) -> Iterator[str]:
    build, versions = machine.software and machine.software.build, machine.versions
    if build == "none":
        yield "not installed"
        return
    name = base.distribution(machine)
    package = f" ({name})" if name not in ("", "tensorflow") else ""
    yield f"{versions.get(name, 'unknown')}{package}"
    cuda, cudnn = base.cuda_libraries(machine), base.nvidia_package(machine, "cudnn")
    if build in _BUILDS:
        yield _BUILDS[build]
    elif build == "cuda" and cuda:
        yield f"with CUDA {cuda}{f' and cuDNN {cudnn}' if cudnn else ''}"
    elif build == "cuda":
        # The same wheel is installed with what a GPU needs and without.
        yield "without packages of CUDA"
    if "keras" in versions:
        yield f"Keras {versions['keras']}"


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


def _load(load: Load, cores: int) -> Iterator[str]:
    if load.others is not None:
        busy = units.significant(load.others, 2)
        yield f"other programs keep {busy} of {cores} cores busy"
    if load.on_battery is not None:
        yield "on battery" if load.on_battery else "on mains power"


_WEIGHTS = ("fatal", "matters", "unexplained")
# A longer way to mend something stands below alone.
_LONGEST_WAY = 80


@shown.report.register
def report(examination: Examination) -> Report:
    """What a person reads of an examination; what is wrong with it comes first."""
    sentences = [
        *map(_first, examination.wrong[:1]),
        answer(examination.machine, examination.checks),
    ]
    if not examination.wrong:
        sentences.append("Nothing was found here that costs speed.")
    elif examination.wrong[0].status == "warn":
        sentences.insert(1, "How much that costs was not measured.")
    start = examination.machine.start
    log = log_of(examination.machine) if start and start.said else ()
    well = (check.title for check in examination.checks if check.status == "ok")
    return Report(
        verdict=Verdict(
            headline=sentences[0],
            much=" ".join(sentences[1:]),
            warnings=tuple(map(_check, examination.wrong)),
        ),
        table=Table("This machine", ("part", "what it is"), parts(examination.machine)),
        besides=(
            examination.summary(),
            *examination.missed,
            *["It was stopped before everything had been looked at."]
            * examination.stopped,
        ),
        folds=(
            Fold("What is ok", tuple(dict.fromkeys(well))),
            Fold("What TensorFlow said as it started", log),
            *(
                _parts(examination.microbenchmarks.report)
                if examination.microbenchmarks
                else ()
            ),
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
    lines = [f"  {line}" for line in (check.evidence, check.why) if line]
    lines += [f"{TO_TYPE}{check.remedy}"] * bool(check.remedy)
    return "\n".join([f"{check.status.upper()}: {check.title}", *lines])


def log_of(machine: Machine) -> tuple[str, ...]:
    """What TensorFlow said that is not harmless, and a word on the rest."""
    start = machine.start or Start()
    notes = [note for note in start.said if note.weight in _WEIGHTS]
    notes.sort(key=lambda note: _WEIGHTS.index(note.weight))
    # A card for the screen may be left out beside one that computes.
    left_out = bool(start.devices) and not any("GPU" in d for d in start.devices)
    words = {"fatal": "no GPU" if left_out else "noted", "matters": "may be slower"}
    lines = [
        f'{words.get(note.weight, note.weight)}: "{note.line}" {meaning(machine, note)}'
        for note in notes
    ]
    count = len(start.said) - len(notes)
    qualifier = "other " if lines else ""
    summary = f"{count} {qualifier}{'line is' if count == 1 else 'lines are'} harmless."
    return (*(line.rstrip() for line in lines), summary)


_PROCESSOR = "TensorFlow trains on the processor"
_AS_IT_IS = "see the first FAIL"


def answer(machine: Machine, checks: Sequence[Check]) -> str:
    """Say in a sentence whether TensorFlow can use a GPU, and how that is known."""
    fails = [check for check in checks if check.status == "fail"]
    if any(check.id == "no-tensorflow" for check in fails):
        return "TensorFlow is not installed here: nothing can be trained."
    if machine.start and machine.start.devices:
        return _describe_start(machine)
    if machine.start and machine.start.problem:
        return "TensorFlow did not get through its start here."
    if not machine.gpus:
        silent = any(check.id in SILENCES.values() for check in fails)
        without = f"{_PROCESSOR}: no GPU answers here; {_AS_IT_IS}"
        return f"{without if silent else base.without_gpu(machine)}."
    if fails:
        return (
            f"TensorFlow cannot use {_name_gpus(machine)} as things are: {_AS_IT_IS}."
        )
    return (
        f"TensorFlow can use {_name_gpus(machine)}, as far as can be told without "
        "trying; `perfkit doctor --probe` lets it compute."
    )


def _describe_start(machine: Machine) -> str:
    """What TensorFlow itself showed as it was started."""
    assert machine.start
    on_gpu = [p for p in machine.start.proofs if p.device.startswith("GPU")]
    if on_gpu and all(map(is_right, on_gpu)):
        return f"TensorFlow can use {_name_gpus(machine)}: it computed right there."
    if any(device.startswith("GPU") for device in machine.start.devices):
        return (
            f"TensorFlow finds {_name_gpus(machine)} and was not seen to compute right."
        )
    if machine.gpus:
        return f"{_PROCESSOR}: it does not find {_name_gpus(machine)}."
    return f"{_PROCESSOR}: it finds no GPU here."


def _name_gpus(machine: Machine) -> str:
    names = [gpu.name for _, _, gpu in base.seen_gpus(machine)] or [
        gpu.name for gpu in machine.gpus
    ]
    if len(names) == 1:
        return names[0]
    return f"{len(names)} x {names[0]}" if len(set(names)) == 1 else "a GPU here"
