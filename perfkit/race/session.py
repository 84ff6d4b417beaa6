"""One race, from the first look at its sides to the saved finding."""

import contextlib
import os
import platform
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfkit.diagnosis import look
from perfkit.diagnosis.change import nothing
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.maker import InFile, assigned, name_of
from perfkit.diagnosis.script import Script
from perfkit.diagnosis.session import LEAST_BUDGET_S
from perfkit.errors import BadParameterError, RunError
from perfkit.experiments.session import Session, check_budget
from perfkit.findings.standing import measurement
from perfkit.machine.environment import named_in, own_names
from perfkit.measure import spread
from perfkit.measure.host import Environment, Launchers, Place, environment_of
from perfkit.measure.plan import Event, Plan, Preparing
from perfkit.measure.trial import Limits
from perfkit.race import why
from perfkit.race.question import Race
from perfkit.race.rounds import Rounds, budget_for, decided
from perfkit.race.side import First, Side

_SLICE_S = 0.1
_LONGEST_LOOK_S = 300.0
_UNKNOWN_S = 600.0


class RaceSession(Session):
    """A race that can be watched and stopped, and that saves what it has.

    Args:
        race: Its sides.
        budget: Seconds for rounds; None for what the race needs, at most ten minutes.
        seed: Where random order and random numbers start; None draws one.
        folder: Where the finding is saved; None for ``perfkit-findings`` here.
        worse: The share from which on a side counts as slower; a race that has decided
            that is over. None where nobody asked.
        close: Called when it is over.

    Raises:
        BadParameterError: A budget that holds no measurement, or a place that is none.
        MissingPartError: A place has not what a training needs.
    """

    def __init__(
        self,
        race: Race,
        *,
        budget: float | None = None,
        guess: str = "",
        seed: int | None = None,
        folder: Path | None = None,
        worse: float | None = None,
        close: Callable[[], object] = nothing,
    ) -> None:
        if budget is not None:
            check_budget(budget, LEAST_BUDGET_S)
        if worse is not None and not (isinstance(worse, float) and 0 < worse < 1):
            raise BadParameterError(
                f"--worse is {worse!r}; give a share below 100 %, such as 5%."
            )
        self._asked, self._worse, self._close = budget, worse, close
        # What was asked for by hand, and no script may set to something else.
        self._given = {
            side.name: {n for n, _ in side.place.variables} for side in race.sides
        }
        # What a script sets before it imports TensorFlow is set in its place.
        self._race = replace(race, of=tuple(map(_with_variables, race.sides)))
        places = {side.place for side in self._race.sides}
        self._environments: dict[Place, Environment] = (
            {place: environment_of(place) for place in places}
            if len(places) > 1
            else {}
        )
        for side in self._race.sides:
            _check_reaches(side, self._environments)
        self._launchers: Launchers | None = None
        super().__init__(
            self._race,
            budget=_UNKNOWN_S if budget is None else budget,
            guess=guess,
            seed=seed,
            folder=folder,
        )

    def _warm(self) -> None:
        """Load nothing yet: the sides say what TensorFlow is loaded with."""

    @property
    def is_worse(self) -> bool | None:
        """Whether a side is slower by more than was asked; None where that is open.

        Where sides do another job, no rate says.
        """
        found, race = self.finding, self._race
        if found is None or self._worse is None:
            return None
        measured = measurement(found)
        compared = [measured.compare(s.name, race.baseline) for s in race.sides[1:]]
        if any(race.differences(side, measured) for side in race.sides[1:]):
            return None
        return decided(compared, self._worse, measured.noise_floor)

    @property
    def cannot_run(self) -> bool:
        """Whether a side failed in each of its trials."""
        trials = self.finding.trials if self.finding else ()
        # What leaves a part of a side out may fail, and the side runs all the same.
        ended = (
            [trial.has_failed for trial in trials if trial.variant == side.name]
            for side in self._race.sides
        )
        return any(each and all(each) for each in ended)

    def events(self) -> Generator[Event]:
        """Race, and tell what happens; at least one event every 0.25 s.

        Raises:
            RunError: A side cannot be run; the sentence says which, and why.
        """
        try:
            yield from super().events()
        finally:
            self._close()

    def _measure(self) -> Iterator[Event]:
        if self._stopped.is_set():
            return
        places = {side.place for side in self._race.sides}
        self._launchers = Launchers(places, self._environments)
        with contextlib.closing(self._launchers):
            yield from self._look()
            if not self._stopped.is_set():
                yield from super()._measure()

    def _starter(self) -> Launchers:
        assert self._launchers
        return self._launchers

    def _plan(self) -> Plan:
        race = self._race
        choose = Rounds(race.sides, race.facts, self._budget, self._worse)
        return Plan(
            variants=choose.first,
            baseline=self._race.baseline,
            budget=self._budget,
            seed=self._seed,
            in_turns=not self.machine.gpus,
            choose=choose,
            spread=spread.of_this_machine(),
            ready_s=max(facts.ready_s for facts in race.facts.values()),
        )

    def _look(self) -> Iterator[Event]:
        launchers = self._starter()
        facts: dict[str, Facts] = {}
        while not self._stopped.is_set() and not launchers.wait(_SLICE_S):
            yield Preparing("Loading TensorFlow, once for each environment")
        if self._stopped.is_set():
            return
        known: dict[tuple[object, Place], Facts] = {}
        for side in self._race.sides:
            key = side.maker, side.place
            if key not in known:
                found = yield from self._facts_of(side)
                if found is None:
                    return
                known[key] = found
            facts[side.name] = known[key]
            # Refused here, and not in the middle of a run.
            side.make_changes(known[key])
            _check_holds(side, self._given[side.name], known[key])
        logs = {place: host.log for place, host in launchers.hosts.items()}
        environment = why.environments(
            self._race.sides,
            self._environments,
            logs,
            (*own_names(), *named_in(os.environ)),
        )
        self._race = replace(self._race, facts=facts, environment=environment)
        self.experiment = self._race
        if self._asked is None:
            self._budget = budget_for(self._race.sides, facts)

    def _facts_of(self, side: Side) -> Generator[Event, None, Facts | None]:
        """Look at a side; None where the race was stopped meanwhile."""
        longest = Limits(silence=_LONGEST_LOOK_S)
        running = self._starter().start(First(side), self._seed, longest)
        notes: dict[str, Any] = {}
        try:
            while not (running.outcome or self._stopped.is_set()):
                heard = running.poll(_SLICE_S)
                notes |= {m[1]: m[2] for m in heard if m[0] == "note"}
                yield Preparing(look.doing(notes, f"Looking at {side.name}"))
        finally:
            running.kill("stopped", "was stopped")
        if self._stopped.is_set():
            return None
        try:
            return look.facts_in(notes, running.outcome or "completed", running.message)
        except RunError as error:
            named = RunError(f"{side.name}: {error}")
            for note in getattr(error, "__notes__", ()):
                named.add_note(note)
            raise named from None


def _check_reaches(side: Side, environments: Mapping[Place, Environment]) -> None:
    """Refuse a function that would reach a Python that cannot run its code."""
    there, here = (
        version.rpartition(".")[0]
        for version in (
            environments[side.place].python if environments else "",
            platform.python_version(),
        )
    )
    if there in ("", here) or isinstance(side.maker, Script | InFile):
        return
    name = name_of(side.maker)
    raise BadParameterError(
        f"{name} is a function of this Python, {here}, whose code Python {there} "
        f'cannot run: write it into a file, and race "FILE.py:{name}".'
    )


def _check_holds(side: Side, given: set[str], facts: Facts) -> None:
    """Refuse a given variable that the training sets itself, to something else."""
    if names := ", ".join(sorted(given.intersection(facts.late))):
        raise BadParameterError(
            f"{name_of(side.maker)} sets {names} itself, over what was asked for: take "
            "that line out of it, and race the variable then."
        )


def _with_variables(side: Side) -> Side:
    given = dict(side.place.variables)
    # What was asked for by hand counts more than what the script says.
    every = assigned(side.maker) | given
    place = replace(side.place, variables=tuple(sorted(every.items())))
    return replace(side, place=place)
