"""One run of an experiment, from preparing its data to the saved finding."""

import datetime
import functools
import importlib.util
import random
import threading
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from perfkit import __version__, units
from perfkit.engine import spread
from perfkit.engine.alone import Alone
from perfkit.engine.launcher import launcher
from perfkit.engine.measurement import Measurement
from perfkit.engine.monitor import Monitor
from perfkit.engine.plan import Event, Finished, Plan, Preparing, Starter, TrialEnded
from perfkit.engine.rounds import Run
from perfkit.errors import BadParameterError, MissingPartError, PerfkitError, installing
from perfkit.findings import store
from perfkit.findings.load import with_next
from perfkit.findings.reading import as_plain
from perfkit.findings.record import MEASURED, Finding, Saved, Verdict
from perfkit.machine.collect import machine
from perfkit.machine.environment import check_trains
from perfkit.machine.record import Machine
from perfkit.questions.base import Experiment, Folder, parameters_of
from perfkit.questions.shared.verdicts import failures

Document = TypeVar("Document", bound=Saved)


class Keeper(Generic[Document]):
    """Has what was found so far, saves it, and can be stopped.

    It saves in ``folder``; None is ``perfkit-findings`` here. ``finding`` is None until
    the first trial has ended; ``unsaved`` says why it could not be saved, "" if it was.
    """

    def __init__(self, folder: Path | None) -> None:
        self.finding: Document | None = None
        self.unsaved = ""
        self._folder = folder
        self._path: Path | None = None
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End what is at work; callable from any thread."""
        self._stopped.set()

    def _save(self, finding: Document) -> None:
        self.finding = finding
        try:
            self._path = store.save(finding, self._folder, self._path)
            self.unsaved = ""
        except PerfkitError as error:
            # A full disk must not cost what was measured: it stays in memory.
            self.unsaved = str(error)


class Measurer(Keeper[Document]):
    """Measures while nobody else does, and saves what it has at every trial.

    Random order and random numbers start at ``seed``; None draws one. The ``budget`` in
    seconds may be known better later.
    """

    def __init__(self, budget: float, seed: int | None, folder: Path | None) -> None:
        super().__init__(folder)
        self._budget = budget
        self._seed = random.randrange(2**31) if seed is None else seed

    @property
    def budget(self) -> float:
        """Seconds to spend; some know them once they have looked at a training."""
        return self._budget

    @property
    def variants(self) -> list[str]:
        """What may be measured, by name; whole once the first trial begins."""
        raise NotImplementedError

    def events(self) -> Generator[Event]:
        """Run, and tell what happens; at least one event every 0.25 s.

        What was found is saved before the event that tells it is given out. Closing
        the iterator ends the run and keeps every trial that finished.

        Raises:
            RunError: Nothing can be run; the sentence says why, and a note holds the
                traceback of what code of the user's own raised.
        """
        self._recorded = datetime.datetime.now().astimezone().isoformat("T", "seconds")
        alone = self._alone()
        try:
            for holder in alone.wait(self._stopped):
                yield Preparing(holder, waiting=True)
            yield from self._measure()
        finally:
            alone.let_go()

    def _alone(self) -> Alone:
        raise NotImplementedError

    def _measure(self) -> Iterator[Event]:
        raise NotImplementedError

    def _keep(self, event: TrialEnded | Finished) -> None:
        raise NotImplementedError

    def _run(self, plan: Plan, starter: Starter) -> Iterator[Event]:
        run = Run(plan, starter, Monitor(), stopped=self._stopped)
        for event in run.events():
            if isinstance(event, TrialEnded | Finished):
                self._keep(event)
            # Runs vary by more than what a rate does.
            if isinstance(event, Finished) and not plan.runs:
                spread.remember(event.measurement.variances)
            yield event


class Session(Measurer[Finding]):
    """A run that can be watched and stopped, and that saves what it has at every trial.

    The ``budget`` is for trials; preparing data comes on top. With ``early`` it ends as
    soon as the experiment says that it is answered.

    Raises:
        BadParameterError: A budget that holds no measurement.
        MissingPartError: The experiment needs a library that is not installed, or
            another Keras.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        budget: float = 60.0,
        guess: str = "",
        seed: int | None = None,
        folder: Path | None = None,
        early: bool = False,
    ) -> None:
        check_budget(budget, 1.0, experiment.longest_s)
        super().__init__(budget, seed, folder)
        for library in experiment.needs:
            if library == "tensorflow":
                check_trains()
            elif importlib.util.find_spec(library) is None:
                raise MissingPartError(
                    f"{library} is not installed in this environment; "
                    f"install it with `{installing(library)}`."
                )
        self.experiment = experiment
        self._guess, self._early = guess, early
        self._warm()

    def _alone(self) -> Alone:
        return Alone(f"the run of {self.experiment.name}", self._budget)

    def _plan(self) -> Plan:
        variants = self.experiment.make_variants()
        if (baseline := self.experiment.baseline) not in variants:
            raise BadParameterError(
                f"The baseline {baseline!r} of {self.experiment.name} is not among its "
                f"variants: {', '.join(variants)}."
            )
        return Plan(
            variants=tuple(variants.values()),
            baseline=baseline,
            budget=self._budget,
            seed=self._seed,
            prepare=self.experiment.prepare,
            in_turns=self.experiment.in_turns and not self.machine.gpus,
            tries=self.experiment.tries if self.experiment.has_tries else None,
            answered=self.experiment.is_answered if self._early else None,
            spread=spread.of_this_machine(),
        )

    def _warm(self) -> None:
        launcher().warm()

    def _starter(self) -> Starter:
        return launcher()

    def _measure(self) -> Iterator[Event]:
        return self._run(self._plan(), self._starter())

    @functools.cached_property
    def machine(self) -> Machine:
        """What it runs on, as it is when it is first asked for."""
        return machine()

    @property
    def variants(self) -> list[str]:
        """What it compares, by name."""
        return [variant.name for variant in self.experiment.make_variants().values()]

    @functools.cached_property
    def _code(self) -> dict[str, str]:
        return self.experiment.code

    def _keep(self, event: TrialEnded | Finished) -> None:
        measured, experiment = event.measurement, self.experiment
        unfinished = isinstance(event, TrialEnded)
        saved = self.finding.trials if self.finding and unfinished else ()
        if measured.trials == saved or not measured.trials:
            return
        refused = [variant for variant in measured.variants if variant.unavailable]
        finding = Finding(
            experiment=experiment.name,
            question=experiment.question,
            parameters=shareable(experiment),
            recorded=self._recorded,
            perfkit=__version__,
            machine=self.machine,
            verdict=self._verdict(measured),
            result=as_plain(experiment.result(measured) or {}),
            unavailable={variant.name: variant.unavailable for variant in refused},
            guess=self._guess,
            notes=measured.notes,
            code=self._code,
            budget_s=self._budget,
            stopped=isinstance(event, Finished) and event.stopped,
            unfinished=unfinished,
            seed=self._seed,
            **{name: getattr(measured, name) for name in MEASURED},
        )
        self._save(replace(finding, verdict=with_next(finding.verdict, finding)))

    def _verdict(self, measured: Measurement) -> Verdict:
        compares = any(v.against not in ("", v.name) for v in measured.variants)
        if measured.comparisons or (measured.timings and not compares):
            return self.experiment.verdict(measured)
        seconds = units.seconds(self._budget)
        hint = f"Give it more than {seconds}, or check how the trials ended."
        if self._stopped.is_set():
            hint = "Run it again, and stop it only after each variant has had a turn."
        return Verdict(
            headline="There is no answer yet: no two variants could be compared.",
            because=failures(measured),
            next=hint,
        )


def check_budget(
    budget: float, least: float, longest: float = Experiment.longest_s
) -> None:
    """Raise ``BadParameterError`` unless it lies between the two, both included."""
    if not least <= budget <= longest:
        raise BadParameterError(
            f"The budget is {budget!r}; give seconds from {least:.0f} to {longest:.0f}."
        )


def shareable(experiment: Experiment) -> dict[str, Any]:
    """The parameters without the paths of folders, which name users and hosts."""
    values = experiment.parameters
    for parameter in parameters_of(type(experiment)):
        if isinstance(parameter.accepts, Folder) and values[parameter.name]:
            values[parameter.name] = "FOLDER"
    return values
