"""How a machine is recorded: what is measured for its passport, and in what order."""

import contextlib
import datetime
import getpass
import itertools
import os
import platform
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfkit import __version__, runs
from perfkit.errors import BadParameterError, PerfkitError
from perfkit.experiments import experiment
from perfkit.experiments.session import Session
from perfkit.findings import store
from perfkit.findings.standing import measurement
from perfkit.findings.text import plain
from perfkit.machine import environment
from perfkit.machine.checks import checks
from perfkit.machine.collect import machine
from perfkit.machine.load import observed
from perfkit.machine.starting import started
from perfkit.measure.plan import Preparing, TrialStarted
from perfkit.passports.levels import (
    Levels,
    Visit,
    benchmark_rates,
    joined,
    on_one_scale,
    thinned,
    together,
)
from perfkit.passports.passport import BUDGET_S, Passport, save
from perfkit.progress import Board, Display, display_here

MICROBENCHMARKS, TRAININGS = "machine-ladder", "reference-trainings"
# Below this there is no time to start TensorFlow in a process of its own as well.
_STARTS_FROM_S, _START_S = 90.0, 40.0
# Of a visit; the trainings take the rest.
_MICROBENCHMARKS_SHARE = 0.45
# A machine changes from minute to minute: each thing is measured in so many visits,
# with others in between, if each of them has time for one round of both measurements.
_VISIT_S, _MOST_VISITS = 40.0, 4
# The next visit may have less time than the last one took, down to this share of it.
_SHORTER = 0.7
# What preparing a measurement takes, where its files are there already.
_PREPARING_S = 3.0
# A first round may take longer than its share. It is cut here, and loses nothing.
_LATEST = 1.04
_SHORTEST_S = 1.0
_LONGEST_SENTENCE = 300


@dataclass
class Making:
    """What was measured so far; an interrupt may come at any moment.

    Attributes:
        budget: Seconds for all of it.
        label: What the machine is called.
        path: The file, which is written anew whenever something was measured.
        names: The host's and the user's name where they are to be in it, else "".
        clock: Gives seconds.
        visits: When each experiment was run and what it found, by its name.
        unsaved: Why the file could not be written, in a sentence; "" if it was.
        stopped: Whether it was interrupted.
    """

    budget: float
    label: str
    path: Path | None = None
    names: tuple[str, str] = ("", "")
    clock: Callable[[], float] = time.monotonic
    visits: dict[str, list[Visit]] = field(default_factory=dict)
    unsaved: str = ""
    stopped: bool = False
    _missed: list[str] = field(default_factory=list)
    _began: float = 0.0
    _waited: float = 0.0
    _over: bool = False
    _asked: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End it as an interrupt does, from any thread; what was measured is kept."""
        self._asked.set()

    def make(self, display: Display) -> None:
        """Measure one thing after another, and keep each."""
        self._recorded = datetime.datetime.now().astimezone().isoformat("T", "seconds")
        self._zero = self.clock()
        # Before anything runs on it.
        self._machine = machine()
        try:
            self._start(display)
            count = int((self.budget - self.spent) / _VISIT_S)
            left = max(1, min(_MOST_VISITS, count))
            while left:
                began = self.spent
                self._measure(MICROBENCHMARKS, _MICROBENCHMARKS_SHARE / left, display)
                share = (1 - _MICROBENCHMARKS_SHARE) / (left - _MICROBENCHMARKS_SHARE)
                self._measure(TRAININGS, share, display)
                if self.budget - self.spent < _SHORTER * (self.spent - began):
                    break
                # Where setting up takes more than a visit, so would each of them.
                left = left - 1 if self._trained else min(left - 1, 1)
        except KeyboardInterrupt:
            self.stopped = True
        self._over = True
        self._keep()

    def passport(self) -> Passport:
        """What there is by now."""
        from perfkit.experiments.reference_trainings import trainings_of

        hidden = (*environment.own_names(), *environment.named_in(os.environ))
        findings = {name: together(told) for name, told in self.visits.items()}
        parts, trained = (findings.get(one) for one in (MICROBENCHMARKS, TRAININGS))
        levels = {n: Levels(measurement(one)) for n, one in findings.items()}
        every = sorted(itertools.chain(*self.visits.values()), key=lambda one: one[0])
        samples = joined(on_one_scale(every))
        when = {name: tuple(map(_span, told)) for name, told in self.visits.items()}
        here = replace(self._machine, gpus=observed(self._machine.gpus, samples))
        made = Passport(
            label=self.label,
            recorded=self._recorded,
            perfkit=__version__,
            machine=here,
            checks=checks(here),
            microbenchmarks=benchmark_rates(parts, hidden) if parts else (),
            trainings=trainings_of(trained) if trained else (),
            samples=thinned(samples),
            phases={name: (spans[0][0], spans[-1][1]) for name, spans in when.items()},
            visits=when,
            noise_floors={n: f for n, one in levels.items() if (f := one.noise_floor)},
            drift={name: one.drift for name, one in levels.items()},
            parameters={name: found.parameters for name, found in findings.items()},
            # What fails in one visit may do so in each.
            missed=tuple(
                dict.fromkeys(
                    environment.cleaned(sentence, hidden, _LONGEST_SENTENCE)
                    for sentence in self._missed
                )
            ),
            budget_s=self.budget,
            stopped=self.stopped,
            unfinished=not self._over,
            host=self.names[0],
            user=self.names[1],
        )
        if self.path and self._over and not self.unsaved:
            store.remember(made, self.path)
        return made

    @property
    def spent(self) -> float:
        """Seconds of the budget that are gone; waiting for other runs is not in it."""
        return self.clock() - self._zero - self._waited

    def _start(self, display: Display) -> None:
        """Start TensorFlow, and let every device compute."""
        if self.budget < _STARTS_FROM_S:
            least = f"A budget below {_STARTS_FROM_S:.0f} s"
            self._missed.append(f"{least} leaves out TensorFlow's start.")
            return
        with display.showing("Starting TensorFlow"):
            self._machine = replace(self._machine, start=started(_START_S))

    @property
    def _trained(self) -> bool:
        """Whether a trial of a training was completed by now."""
        visits = self.visits.get(TRAININGS, ())
        trials = itertools.chain(*(found.trials for _, found in visits))
        return any(trial.outcome == "completed" for trial in trials)

    def _measure(self, name: str, share: float, display: Display) -> None:
        """Run one experiment for a share of what is left."""
        left = (self.budget - self.spent) * share
        self.stopped |= self._asked.is_set()
        if self.stopped:
            return
        if left < _SHORTEST_S:
            self._missed.append(f'The budget ended before "{name}".')
            return
        measuring = max(_SHORTEST_S, left - _PREPARING_S)
        try:
            session = runs.open_session(experiment(name), measuring)
        except PerfkitError as error:
            self._missed.append(f'"{name}" was not measured: {error}')
            return
        self._began = self.clock() - self._zero
        try:
            self._watch(session, self._longest(name, left), display)
        except PerfkitError as error:
            self._missed.append(f'"{name}" was not measured to its end: {error}')
        finally:
            if session.finding is not None:
                visit = self._began, session.finding
                self.visits.setdefault(name, []).append(visit)
            self._keep()

    def _longest(self, name: str, share: float) -> float:
        """Seconds after which a measurement is cut."""
        # Trainings that are not all set up yet would be lost: later visits give way.
        left = self.budget - self.spent if name == TRAININGS else share
        return max(share, left) * _LATEST

    def _watch(self, session: Session, longest: float, display: Display) -> None:
        """Run a session; end it where Stop or the time says so."""
        board, began, started = Board(), self.spent, False
        with (
            runs.interrupt_is_stop() as asked,
            display,
            contextlib.closing(session.events()) as events,
        ):
            last = self.clock()
            for event in events:
                now = self.clock()
                # Until another run has ended.
                if isinstance(event, Preparing) and event.message.startswith("Waiting"):
                    self._waited += now - last
                last = now
                if isinstance(event, TrialStarted) and not started:
                    started, self._began = True, now - self._zero - event.at
                self.stopped |= asked.is_set() or self._asked.is_set()
                if self.stopped or self.spent - began > longest:
                    session.stop()
                board.hear(event)
                display.show(board)
            display.show(board, at_once=True)
            self.stopped |= asked.is_set() or self._asked.is_set()

    def _keep(self) -> None:
        """Write the file; where that fails, what was measured stays in memory."""
        if self.path is None:
            return
        try:
            save(self.passport(), self.path)
            self.unsaved = ""
        except PerfkitError as error:
            self.unsaved = str(error)


def _span(visit: Visit) -> tuple[float, float]:
    """From when to when a visit went."""
    began, found = visit
    ends = (trial.started_s + trial.wall_s for trial in found.trials)
    return began, began + max(ends, default=0.0)


_LONGEST_S = 3600.0
LONGEST_LABEL = 80


def passport(
    out: str | Path | None = None,
    *,
    budget: float | None = None,
    label: str = "",
    with_names: bool = False,
) -> Passport:
    """Measure what there is to know of this machine, to hold it against another.

    It describes the machine and checks it, measures how fast each of its parts is, and
    makes the reference trainings. A kernel interrupt or Ctrl-C is Stop: the passport
    then holds what was measured by then, and says so.

    Args:
        out: The file to write, which must not be there yet; None for no file.
        budget: Seconds to spend; 180 unless PERFKIT_BUDGET says otherwise. Waiting
            until another run has ended is not in it.
        label: What to call the machine; "" for the file's name.
        with_names: Whether the host's and the user's name are in it.

    Raises:
        BadParameterError: A value that is not accepted, or a file that is there.
    """
    making = ready(out, budget=budget, label=label, with_names=with_names)
    making.make(display_here())
    if making.unsaved:
        warnings.warn(making.unsaved, stacklevel=2)
    return making.passport()


def ready(
    out: str | Path | None,
    *,
    budget: float | None = None,
    label: str = "",
    with_names: bool = False,
) -> Making:
    """Refuse before measuring what would fail after it; nothing has begun then.

    Raises:
        BadParameterError: A value that is not accepted, or a file that is there.
    """
    if not isinstance(label, str) or len(label) > LONGEST_LABEL:
        raise BadParameterError(
            f"label is {label!r}; give a name of at most {LONGEST_LABEL} letters."
        )
    path, seconds = _new_file(out), _seconds(budget)
    names = ("", "")
    if with_names:
        # A container may run under a user number that has no name.
        with contextlib.suppress(KeyError, OSError, ImportError):
            names = ("", getpass.getuser())
        names = (platform.node(), names[1])
    called = plain(label) or (plain(path.stem) if path else "this machine")
    return Making(seconds, called[:LONGEST_LABEL], path, names)


def _new_file(out: str | Path | None) -> Path | None:
    if out is None:
        return None
    if not isinstance(out, str | Path) or not str(out):
        raise BadParameterError(f"The file is {out!r}; give a name such as lab-7.json.")
    path, name = Path(out).expanduser(), plain(str(out))
    writable = path.parent.is_dir() and os.access(path.parent, os.W_OK)
    wrong = {
        f"The file is {name!r}; give a name that ends in .json.": (
            path.suffix.lower() != ".json"
        ),
        f"{name} is there already; give another name, or delete it first.": (
            path.exists()
        ),
        f"{name} cannot be written; give a file in a folder that exists and that you "
        "may write to.": not writable,
    }
    for why, is_so in wrong.items():
        if is_so:
            raise BadParameterError(why)
    return path


def _seconds(given: float | None) -> float:
    if given is None:
        return runs.default_budget(BUDGET_S)
    seconds = runs.seconds("budget", given)
    if not 1 <= seconds <= _LONGEST_S:
        raise BadParameterError(
            f"budget is {given!r}; give seconds from 1 to {_LONGEST_S:.0f}."
        )
    return seconds
