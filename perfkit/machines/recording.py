"""How a machine is recorded: what is measured for its passport, and in what order."""

import datetime
import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import __version__
from perfkit.errors import BadParameterError, PerfkitError
from perfkit.findings.record import Finding
from perfkit.findings.standing import measurement, microbenchmarks
from perfkit.findings.store import save
from perfkit.findings.text import plain
from perfkit.findings.training import why_missing
from perfkit.machine import environment
from perfkit.machine.checks import checks
from perfkit.machine.collect import machine, observed
from perfkit.machine.record import Machine
from perfkit.machine.starting import started
from perfkit.machines.record import (
    BUDGET_S,
    MICROBENCHMARKS,
    TRAININGS,
    BenchmarkRate,
    Passport,
)
from perfkit.progress import Display, display_here
from perfkit.questions import experiment, runs

if TYPE_CHECKING:
    from perfkit.questions.session import Session

# Of what is left when each begins: the trainings take all that the first left.
_SHARES = {MICROBENCHMARKS: 0.45, TRAININGS: 1.0}
# Below this there is no time to start TensorFlow in a process of its own as well.
_STARTS_FROM_S, _START_S = 90.0, 40.0
# What preparing a measurement takes, where its files are there already.
_PREPARING_S = 3.0
_SHORTEST_S, _LONGEST_S = 1.0, 3600.0
_LONGEST_LABEL, _LONGEST_SENTENCE = 80, 300
# Enough to know the load by; half of what a file may hold.
SAMPLES = 150


@dataclass
class Recorder:
    """Measures one thing after another on this machine, and makes its passport.

    The budget is the seconds for all of it, the label what the machine is called.
    """

    budget: float
    label: str
    clock: Callable[[], float] = time.monotonic
    _findings: dict[str, Finding] = field(default_factory=dict)
    _missed: list[str] = field(default_factory=list)
    _stopped: bool = False

    def record(self, display: Display) -> Passport:
        """Look at the machine, then measure for the whole budget."""
        recorded = datetime.datetime.now().astimezone().isoformat("T", "seconds")
        began = self.clock()
        # Before anything runs on it.
        this_machine = machine()
        try:
            if self.budget >= _STARTS_FROM_S:
                with display.showing("Starting TensorFlow"):
                    this_machine = replace(this_machine, start=started(_START_S))
            else:
                minimum = f"A budget below {_STARTS_FROM_S:.0f} s"
                self._missed.append(f"{minimum} leaves out TensorFlow's start.")
            for name, share in _SHARES.items():
                remaining_s = began + self.budget - self.clock()
                self._measure(name, remaining_s * share, display)
        except KeyboardInterrupt:
            self._stopped = True
        return self._passport(this_machine, recorded)

    def _passport(self, this_machine: Machine, recorded: str) -> Passport:
        from perfkit.questions.reference_trainings import trainings

        hidden = (*environment.own_names(), *environment.named_in(os.environ))
        findings = self._findings
        rates, trained = findings.get(MICROBENCHMARKS), findings.get(TRAININGS)
        floors = {name: finding.noise_floor for name, finding in findings.items()}
        watched = trained or rates
        samples = watched.samples if watched else {}
        step = max(1, -(-len(samples.get("t", ())) // SAMPLES))
        for finding in findings.values():
            this_machine = replace(
                this_machine, gpus=observed(this_machine.gpus, finding.samples)
            )
        return Passport(
            label=self.label,
            recorded=recorded,
            perfkit=__version__,
            machine=this_machine,
            checks=checks(this_machine),
            microbenchmarks=benchmark_rates(rates, hidden) if rates else (),
            trainings=trainings(measurement(trained), trained.unavailable)
            if trained
            else (),
            samples={name: values[::step] for name, values in samples.items()},
            noise_floors={name: floor for name, floor in floors.items() if floor},
            missed=tuple(
                environment.anonymize(sentence, hidden, _LONGEST_SENTENCE)
                for sentence in self._missed
            ),
            budget_s=self.budget,
            stopped=self._stopped,
        )

    def _measure(self, name: str, seconds: float, display: Display) -> None:
        """Run one experiment for so many seconds of those that are left."""
        if self._stopped:
            return
        if seconds < _SHORTEST_S:
            self._missed.append(f'The budget ended before "{name}".')
            return
        session: Session | None = None
        extent = "measured"
        try:
            measuring = max(_SHORTEST_S, seconds - _PREPARING_S)
            session = runs.open_session(experiment(name), measuring)
            extent = "measured to its end"
            self._stopped = runs.watch(session, display).stopped
        except PerfkitError as error:
            self._missed.append(f'"{name}" was not {extent}: {error}')
        finally:
            if session is not None and session.finding is not None:
                self._findings[name] = session.finding


def benchmark_rates(
    finding: Finding, hidden: Iterable[str] = ()
) -> tuple[BenchmarkRate, ...]:
    """The microbenchmarks of a finding, measured or not, without hidden names."""
    measured, names = measurement(finding), tuple(hidden)
    rates = list[BenchmarkRate]()
    for name, benchmark in microbenchmarks(finding.notes).items():
        values: dict[str, Any] = {"name": name, **vars(benchmark)}
        if timing := measured.timing(name):
            values |= {n: getattr(timing, n) for n in ("rate", "low", "high", "trials")}
        else:
            reason = why_missing(t for t in finding.trials if t.variant == name)
            if name in finding.unavailable:
                reason = f"{finding.unavailable[name].rstrip('.')}."
            values["missing"] = environment.anonymize(reason, names, _LONGEST_SENTENCE)
        rates.append(BenchmarkRate(**values))
    return tuple(rates)


def passport(out: str | Path | None = None, *, budget: float | None = None) -> Passport:
    """Measure this machine, to compare it with another.

    It describes and checks the machine, measures how fast each of its parts is, and
    runs the reference trainings. A kernel interrupt or Ctrl-C is Stop: the passport
    then holds the results so far, and says so.

    Args:
        out: The file to write, which must not exist yet; None for no file.
        budget: Seconds to spend; 180 unless PERFKIT_BUDGET says otherwise.

    Raises:
        BadParameterError: A value is not accepted, or the file exists.
    """
    path = None if out is None else new_file(out)
    passport = new_recorder(path, budget).record(display_here())
    if path:
        try:
            save(passport, path=path)
        except PerfkitError as error:
            # What was measured is worth more than the file.
            warnings.warn(str(error), stacklevel=2)
    return passport


def new_recorder(path: Path | None = None, budget: float | None = None) -> Recorder:
    """Refuse before measuring what would fail after it; nothing has begun then.

    It takes what ``passport`` takes; ``path`` only names the machine.
    """
    label = plain(path.stem) if path else "this machine"
    seconds = runs.default_budget(BUDGET_S)
    if budget is not None:
        seconds = runs.seconds("budget", budget)
        if not 1 <= seconds <= _LONGEST_S:
            raise BadParameterError(
                f"budget is {budget!r}; give seconds from 1 to {_LONGEST_S:.0f}."
            )
    return Recorder(seconds, label[:_LONGEST_LABEL])


def new_file(out: str | Path) -> Path:
    """The path of a passport that can be written and is not there yet."""
    if not isinstance(out, str | Path) or not str(out):
        raise BadParameterError(f"The file is {out!r}; give a name such as lab-7.json.")
    path, name = Path(out).expanduser(), plain(str(out))
    if path.suffix.lower() != ".json":
        raise BadParameterError(
            f"The file is {name!r}; give a name that ends in .json."
        )
    if path.exists():
        raise BadParameterError(
            f"{name} already exists; give another name, or delete it first."
        )
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise BadParameterError(
            f"{name} cannot be written; give a file in an existing folder that you may "
            "write to."
        )
    return path
