"""Why is my TensorFlow training slow here? Swap one thing, measure both, and see.

perfkit.experiments()                   the questions that can be asked, by name
finding = perfkit.run("data-pipeline")  asks one of this machine, in a minute or three
finding.verdict.headline                what is so, by how much, and how sure that is
perfkit.lines("train.py")               where its seconds go, line by line
perfkit.diagnose(make_training)         what slows a training of your own, by how much
perfkit.race(make_a, make_b)            whether one training is faster than another
perfkit.findings(), .load(path)         all that was found so far; one of them again
perfkit.chart(finding), .export(finding)  its chart; one HTML file of all of it
perfkit.compare(a, b)                   how two machines differ, from their passports
perfkit.doctor()                        what this computer is, and what slows it here

A question of your own is an ``Experiment``: a frozen dataclass, whose ``@variant``
methods yield ``READY``, then the number of examples each time that many are done.
"""

import importlib
from typing import TYPE_CHECKING, Any

from perfkit import _verbs

if TYPE_CHECKING:
    from perfkit.accounts import lines
    from perfkit.diagnoses import diagnose
    from perfkit.diagnosis.steps import steps
    from perfkit.doctor.examination import doctor
    from perfkit.documents import load
    from perfkit.errors import PerfkitError
    from perfkit.experiments import experiment, experiments
    from perfkit.experiments.base import Experiment, variant
    from perfkit.experiments.parameters import Choice, Folder, Range
    from perfkit.export import export
    from perfkit.findings.record import Finding, Verdict
    from perfkit.findings.store import findings
    from perfkit.gallery import chart
    from perfkit.machine.collect import machine
    from perfkit.machines.classroom import classroom
    from perfkit.machines.compare import compare
    from perfkit.machines.record import recorded
    from perfkit.machines.recording import passport
    from perfkit.measure.processes import fresh
    from perfkit.measure.tick import READY, Note, Pause, Tick, every
    from perfkit.panel.panel import panel
    from perfkit.profiling.profile import profile
    from perfkit.race.learning import time_to_loss
    from perfkit.race.race import race
    from perfkit.runs import run

__version__ = "0.1.0"
__all__ = [
    "READY",
    "Choice",
    "Experiment",
    "Finding",
    "Folder",
    "Note",
    "Pause",
    "PerfkitError",
    "Range",
    "Tick",
    "Verdict",
    "chart",
    "classroom",
    "compare",
    "diagnose",
    "doctor",
    "every",
    "experiment",
    "experiments",
    "export",
    "findings",
    "fresh",
    "lines",
    "load",
    "machine",
    "panel",
    "passport",
    "profile",
    "race",
    "recorded",
    "run",
    "steps",
    "time_to_loss",
    "variant",
]

# Which names live where. Each is imported when it is first asked for, so that
# ``import perfkit`` takes milliseconds and loads no numerical library.
_NAMES = {
    "accounts": "lines",
    "diagnoses": "diagnose",
    "diagnosis.steps": "steps",
    "doctor.examination": "doctor",
    "documents": "load",
    "errors": "PerfkitError",
    "experiments": "experiment experiments",
    "experiments.base": "Experiment variant",
    "experiments.parameters": "Choice Folder Range",
    "export": "export",
    "findings.record": "Finding Verdict",
    "findings.store": "findings",
    "gallery": "chart",
    "machine.collect": "machine",
    "machines.classroom": "classroom",
    "machines.compare": "compare",
    "machines.record": "recorded",
    "machines.recording": "passport",
    "measure.processes": "fresh",
    "measure.tick": "READY Note Pause Tick every",
    "panel.panel": "panel",
    "profiling.profile": "profile",
    "race.learning": "time_to_loss",
    "race.race": "race",
    "runs": "run",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

_PACKAGES = ("doctor", "experiments", "export", "findings", "machine", "race")
for _name in _PACKAGES:
    _verbs.make_callable(f"perfkit.{_name}", f"perfkit.{_HOME[_name]}")
_verbs.make_callable("perfkit.panel", "perfkit.panel.panel", needs="anywidget")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'perfkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"perfkit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
