"""Which notebook does a machine not run, and what keeps it back otherwise?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments import experiments
from perfkit.experiments.base import Experiment
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Machine
    from perfkit.passports.record import Passport

# The experiment that each notebook runs first, or one that needs the same of a machine.
NOTEBOOKS = {
    "00_start_here": "data-pipeline",
    "01_gpu_verification": "machine-ladder",
    "02_data_pipelines": "data-pipeline",
    "03_batch_size": "batch-size",
    "04_convolution": "convolution",
    "05_mixed_precision": "mixed-precision",
    "06_eager_graph_xla": "execution-mode",
    "07_cpu_or_gpu": "cpu-or-gpu",
    "08_busy_machine": "contention",
    "09_two_machines": "reference-trainings",
    "11_your_training": "reference-trainings",
    "12_many_gpus": "scaling",
}


def unable(passport: Passport) -> dict[str, str]:
    """The notebooks that a machine cannot run, by name, with the reason."""
    known = experiments()
    found = {}
    for notebook, name in NOTEBOOKS.items():
        # An experiment whose file cannot be imported is left out.
        needs = known[name].needs if name in known else Experiment.needs
        reasons = [_missing(passport.machine, one) for one in needs]
        why = next(filter(None, reasons), "")
        if why:
            found[notebook] = why
    return found


def held_back(passport: Passport) -> Iterator[str]:
    """What fails on a machine, and what to do about it, a sentence each."""
    for check in passport.checks:
        if check.status == "fail":
            remedy = f": {plain(check.remedy)}" if check.remedy else ""
            yield f"{plain(check.title)}{remedy}"


def _missing(machine: Machine, library: str) -> str:
    """Why a library cannot be used on a machine; "" where it can."""
    if library != "tensorflow":
        there = library in machine.versions
        return "" if there or not machine.versions else f"{library} is not installed"
    if machine.start is not None and machine.start.problem:
        return f"TensorFlow does not start: {plain(machine.start.problem)}"
    if machine.software is not None and machine.software.build == "none":
        return "TensorFlow is not installed"
    if not any("tensorflow" in n or n.startswith("tf-") for n in machine.versions):
        return "TensorFlow is not installed"
    return ""
