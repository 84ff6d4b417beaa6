"""Why is my TensorFlow training slow here? Swap one thing, measure both, and see.

perfkit.experiments()                   lists the questions that you can ask
finding = perfkit.run("data-pipeline")  asks one, which takes one to three minutes
finding.verdict.headline                says what to do
perfkit.lines("train.py")               shows where its time goes, line by line
perfkit.diagnose(make_training)         finds what makes your training faster
perfkit.race(make_a, make_b)            finds out which training is faster
perfkit.findings(), .load(path)         list all findings; read one again
perfkit.chart(finding), .export(finding)  draw it; write it as one HTML file
perfkit.compare(a, b)                   shows how two machines differ
perfkit.doctor()                        shows what this computer is, and what slows it

Your own question is an ``Experiment``: a frozen dataclass whose ``@variant`` methods
yield ``READY``, and then, again and again, the number of examples they have done.
"""

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from perfkit.errors import need

if TYPE_CHECKING:
    from perfkit.documents import load as load
    from perfkit.engine.processes import fresh as fresh
    from perfkit.engine.trial import READY as READY
    from perfkit.engine.trial import Note as Note
    from perfkit.engine.trial import Pause as Pause
    from perfkit.engine.trial import Tick as Tick
    from perfkit.engine.trial import every as every
    from perfkit.errors import PerfkitError as PerfkitError
    from perfkit.findings.page import export as export
    from perfkit.findings.record import Finding as Finding
    from perfkit.findings.record import Verdict as Verdict
    from perfkit.findings.store import findings as findings
    from perfkit.machine.collect import machine as machine
    from perfkit.machines.classroom import classroom as classroom
    from perfkit.machines.compare import compare as compare
    from perfkit.machines.examination import doctor as doctor
    from perfkit.machines.record import recorded as recorded
    from perfkit.machines.recording import passport as passport
    from perfkit.panel.panel import panel as panel
    from perfkit.panel.simulation import pipeline_simulator as pipeline_simulator
    from perfkit.questions import experiment as experiment
    from perfkit.questions import experiments as experiments
    from perfkit.questions.base import Choice as Choice
    from perfkit.questions.base import Experiment as Experiment
    from perfkit.questions.base import Folder as Folder
    from perfkit.questions.base import Range as Range
    from perfkit.questions.base import variant as variant
    from perfkit.questions.gallery import chart as chart
    from perfkit.questions.runs import run as run
    from perfkit.training.account.session import lines as lines
    from perfkit.training.diagnose import steps as steps
    from perfkit.training.diagnose.diagnose import diagnose as diagnose
    from perfkit.training.profile.profile import profile as profile
    from perfkit.training.race.ladder import ladder as ladder
    from perfkit.training.race.learning import time_to_loss as time_to_loss
    from perfkit.training.race.race import race as race

__version__ = "0.1.0"
# Which names live where. Each is imported when it is first asked for, so that
# ``import perfkit`` takes milliseconds and loads no numerical library.
_NAMES = {
    "documents": "load",
    "engine.processes": "fresh",
    "engine.trial": "READY Note Pause Tick every",
    "errors": "PerfkitError",
    "findings.page": "export",
    "findings.record": "Finding Verdict",
    "findings.store": "findings",
    "machine.collect": "machine",
    "machines.classroom": "classroom",
    "machines.compare": "compare",
    "machines.examination": "doctor",
    "machines.record": "recorded",
    "machines.recording": "passport",
    "panel.panel": "panel",
    "panel.simulation": "pipeline_simulator",
    "questions": "experiment experiments",
    "questions.base": "Choice Experiment Folder Range variant",
    "questions.gallery": "chart",
    "questions.runs": "run",
    "training.account.session": "lines",
    "training.diagnose": "steps",
    "training.diagnose.diagnose": "diagnose",
    "training.profile.profile": "profile",
    "training.race.ladder": "ladder",
    "training.race.learning": "time_to_loss",
    "training.race.race": "race",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = [*_HOME]


class _Verb(ModuleType):
    """A package that does what its name says when it is called.

    Importing any part of a package binds its name here, over a function of the same
    name. So these packages can be called themselves.
    """

    @property
    def _function(self) -> Callable[..., Any]:
        name = self.__name__.rpartition(".")[2]
        if name == "panel":
            need("anywidget", "perfkit.panel()", "lab")
        home = importlib.import_module(f"perfkit.{_HOME[name]}")
        function: Callable[..., Any] = getattr(home, name)
        return function

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Do it."""
        return self._function(*args, **keywords)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        # Picklers know plain modules by their exact type.
        return importlib.import_module, (self.__name__,)


for _name in ("findings", "machine", "panel"):
    importlib.import_module(f"perfkit.{_name}").__class__ = _Verb


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'perfkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"perfkit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
