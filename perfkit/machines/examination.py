"""One look at a machine: the machine, what is to be said of it, and its report."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit import units
from perfkit.errors import BadParameterError, PerfkitError
from perfkit.findings import record as records
from perfkit.findings import store
from perfkit.findings.record import Finding, Shown
from perfkit.findings.report import TO_TYPE, Fold, Report, Table, Verdict
from perfkit.machine.checks import base, checks
from perfkit.machine.checks.base import Check
from perfkit.machine.checks.software import SILENCES
from perfkit.machine.collect import disk, machine, observed
from perfkit.machine.record import Gpu, Machine, Start, names_of
from perfkit.machine.starting import LATE, started
from perfkit.machine.starting.child import is_right
from perfkit.machines.record import MICROBENCHMARKS
from perfkit.progress import Display, display_here
from perfkit.questions import experiment
from perfkit.questions.base import Folder

_SCHEMA = 2
_TOLD = ("id", "status", "title", "evidence", "why", "remedy")


@dataclass(frozen=True, kw_only=True, repr=False)
class Examination(Shown):
    """A machine and its checks; it shows itself as a page.

    Attributes:
        machine: What it is.
        checks: What can be said of it, what costs most first.
        microbenchmarks: How fast each part is; None where that was not measured.
        missed: Why a part of the look did not take place, a sentence each.
        stopped: Whether it was interrupted before it had seen everything.
    """

    machine: Machine
    checks: tuple[Check, ...]
    microbenchmarks: Finding | None = None
    missed: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def wrong(self) -> tuple[Check, ...]:
        """The checks that fail or warn, what costs most first."""
        return tuple(c for c in self.checks if c.status in ("fail", "warn"))

    @property
    def fails(self) -> bool:
        """Whether TensorFlow cannot use what is there; a warning is no failure."""
        return any(check.status == "fail" for check in self.checks)

    @property
    def missing(self) -> str:
        """Why it is not ready for a training, or not known to be; "" where it is."""
        start = self.machine.start
        problem = start.problem if start else "TensorFlow was not started."
        says = "Not known yet, try again" if problem.startswith(LATE) else "Not ready"
        return problem and f"{says}: {problem}"

    def to_json(self) -> str:
        """The machine and its checks, for a program."""
        from msgspec import json

        document: dict[str, Any] = {
            "schema": _SCHEMA,
            "machine": self.machine,
            "checks": [{n: getattr(c, n) for n in _TOLD} for c in self.checks],
        }
        if finding := self.microbenchmarks:
            document["microbenchmarks"] = {
                "file": finding.path.name if finding.path else None,
                "stopped": finding.stopped,
                "verdict": finding.verdict.headline,
            }
        # What JSON has no number for is null.
        return json.format(json.encode(document), indent=1).decode()


# A probe takes under three minutes, and microbenchmarks have their preparing on top.
_PROBE_S, _PREPARING_S = 165.0, 40.0
# What a start that hangs may cost, and what microbenchmarks need at least.
_START_S, _MICROBENCHMARKS_S = 75.0, 45.0


def doctor(
    *,
    prove: bool = False,
    probe: bool = False,
    folder: str | Path | None = None,
    display: Display | None = None,
) -> Examination:
    """Show what this machine is, and what in it slows training.

    Without a probe it takes a second or two. An interrupt ends a probe and returns the
    results so far.

    Args:
        prove: Also start TensorFlow in a separate process and test every device, which
            takes 10 to 30 s.
        probe: Do that, and measure how fast each part of the machine is, in under
            3 minutes. The measurement is saved as a finding.
        folder: The folder of your data; its file system is checked, and a probe reads
            from its disk.
        display: Where to show progress; None for where this runs.

    Raises:
        BadParameterError: There is no such folder.
    """
    if not isinstance(folder, str | Path | None):
        raise BadParameterError(f"The folder is {folder!r}; give its path.")
    Folder().check("folder", folder or "")
    began, display = time.monotonic(), display or display_here()
    this_machine, missed, stopped = machine(), list[str](), False
    measured: Finding | None = None
    if folder:
        this_machine = replace(this_machine, disk=disk(folder))
    try:
        if prove or probe:
            with display.showing("Starting TensorFlow"):
                this_machine = replace(this_machine, start=started(_START_S))
        if probe:
            finding = _measure(folder, display, began, missed)
            # The finding is told which machine it was, and that what its GPUs did.
            this_machine = replace(
                this_machine, gpus=observed(this_machine.gpus, finding.samples)
            )
            measured, stopped = replace(finding, machine=this_machine), finding.stopped
            if finding.path:
                store.save(measured, path=finding.path)
    except KeyboardInterrupt:
        stopped = True
    except PerfkitError as error:
        missed.append(str(error))
    return Examination(
        machine=this_machine,
        checks=checks(this_machine),
        microbenchmarks=measured,
        missed=tuple(missed),
        stopped=stopped,
    )


def _measure(
    folder: str | Path | None, display: Display, began: float, missed: list[str]
) -> Finding:
    """Measure how fast each part is, in the time that a probe has left."""
    from perfkit.questions import runs

    spent = time.monotonic() - began
    remaining_s = max(_MICROBENCHMARKS_S, _PROBE_S - _PREPARING_S - spent)
    small = runs.BUDGET_VARIABLE in os.environ
    microbenchmarks = experiment(MICROBENCHMARKS, data=os.fspath(folder or ""))
    session = runs.open_session(microbenchmarks, None if small else remaining_s)
    finding = runs.watch(session, display)
    if session.unsaved:
        # A command has no memory from which it could be saved again.
        reason, _, _ = session.unsaved.partition(" In a notebook")
        missed.append(f"Microbenchmarks are shown here but not saved: {reason}")
    return finding


_BUILDS = {
    "cpu": "build for CPUs",
    "metal": "with Apple's plugin for its GPUs",
    "rocm": "build for AMD's GPUs",
}


def parts(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Name every part of a machine that is known, with a line about it."""
    cores = f"{units.significant(machine.cores_granted)} of {machine.cores} cores"
    rows = {"Processor": [machine.cpu, cores], "Memory": [*_memory(machine)]}
    for number, gpu in enumerate(machine.gpus):
        rows[f"GPU {number}" if len(machine.gpus) > 1 else "GPU"] = [*_gpu(gpu)]
    if not machine.gpus:
        rows["GPU"] = [machine.no_gpu or "None."]
    if (driver := machine.driver) and driver.version:
        cuda = [f"for CUDA up to {driver.cuda}"] if driver.cuda else []
        rows["Driver"] = [f"NVIDIA {driver.version}", *cuda]
    rows["TensorFlow"] = [*_tensorflow(machine)]
    if machine.start:
        rows["Start-up"] = [*_start(machine.start)]
    inside = machine.software and machine.software.container
    place = ["in a container"] if inside else []
    rows["System"] = [machine.system, *place, f"Python {machine.python}"]
    if machine.disk:
        rows["Disk"] = [machine.disk.filesystem or "unknown"]
    return tuple((name, ", ".join(line) or "unknown") for name, line in rows.items())


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
        for how, right in {"correctly": True, "wrongly": False}.items():
            if kinds := [p.computation for p in proofs if is_right(p) == right]:
                yield f"{device} computes {how}: {' and '.join(kinds)}"


@records.report.register
def report(examination: Examination) -> Report:
    """What a person reads of an examination; what is wrong with it comes first."""
    sentences = [
        *(f"{check.title}." for check in examination.wrong[:1]),
        answer(examination.machine, examination.checks),
    ]
    if not examination.wrong:
        sentences.append("perfkit found nothing here that costs speed.")
    elif examination.wrong[0].status == "warn":
        sentences.insert(1, "What that costs was not measured.")
    well = [check.title for check in examination.checks if check.status == "ok"]
    count = f"{len(well)} {'check is' if len(well) == 1 else 'checks are'} ok."
    unknown = (c.title for c in examination.checks if c.status == "unknown")
    if titles := "; ".join(dict.fromkeys(unknown)):
        count += f" Not known here: {titles}."
    folds = [Fold("What is ok", tuple(dict.fromkeys(well)))]
    if finding := examination.microbenchmarks:
        parts_report = finding.report
        tables = (parts_report.table,) if parts_report.table else ()
        headline = (parts_report.verdict.headline,)
        folds += [Fold("How fast each part is", headline, tables), *parts_report.folds]
    return Report(
        verdict=Verdict(
            headline=sentences[0],
            much=" ".join(sentences[1:]),
            warnings=tuple(map(_check, examination.wrong)),
        ),
        table=Table("This machine", ("part", "what it is"), parts(examination.machine)),
        besides=(
            count,
            *examination.missed,
            *["It was stopped before all checks were done."] * examination.stopped,
        ),
        folds=tuple(folds),
    )


def _check(check: Check) -> str:
    """A check that is not well: what, how that was seen, why it matters, what to do."""
    lines = [f"  {line}" for line in (check.evidence, check.why) if line]
    lines += [f"{TO_TYPE}{check.remedy}"] * bool(check.remedy)
    return "\n".join([f"{check.status.upper()}: {check.title}", *lines])


_PROCESSOR = "TensorFlow trains on the processor"
_AS_IT_IS = "the first FAIL says why"


def answer(machine: Machine, checks: Sequence[Check]) -> str:
    """Say in a sentence whether TensorFlow can use a GPU, and how that is known."""
    fails = [check for check in checks if check.status == "fail"]
    start, seen = machine.start or Start(), [g for _, _, g in base.seen_gpus(machine)]
    gpus = " and ".join(names_of(seen or machine.gpus)) or "a GPU here"
    if any(check.id == "no-tensorflow" for check in fails):
        return "TensorFlow is not installed here, so nothing can be trained."
    if start.devices:
        on_gpu = [p for p in start.proofs if p.device.startswith("GPU")]
        if on_gpu and all(map(is_right, on_gpu)):
            return f"TensorFlow can use {gpus}: it computed correctly there."
        if any(device.startswith("GPU") for device in start.devices):
            return f"TensorFlow finds {gpus}, but no correct result is shown."
        finds = f"does not find {gpus}" if machine.gpus else "finds no GPU here"
        return f"{_PROCESSOR}: it {finds}."
    if start.problem:
        return "TensorFlow did not start here."
    if not machine.gpus:
        silent = any(check.id in SILENCES.values() for check in fails)
        without = f"{_PROCESSOR}: no GPU answers here; {_AS_IT_IS}"
        return f"{without if silent else base.without_gpu(machine)}."
    if fails:
        return f"TensorFlow cannot use {gpus}: {_AS_IT_IS}."
    return (
        f"TensorFlow can probably use {gpus}; `perfkit doctor --probe` lets it compute "
        "there."
    )
