"""Race two trainings: the verb, one such race, and that of a patched copy."""

import contextlib
import functools
import importlib.util
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from perfkit.engine import spread
from perfkit.engine.host import Launchers, environment_of
from perfkit.engine.plan import Event, Plan, Preparing
from perfkit.engine.trial import Limits
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Finding
from perfkit.findings.standing import LEAST_ROUNDS, measurement
from perfkit.findings.text import lower
from perfkit.machine import environment
from perfkit.questions import unknown
from perfkit.questions.replay import Replay
from perfkit.questions.runs import check_seed, home_of, open_replay, watch_here
from perfkit.questions.session import Session, check_budget
from perfkit.training.diagnose import look
from perfkit.training.diagnose.change import nothing
from perfkit.training.diagnose.diagnose import LEAST_BUDGET_S, in_seconds
from perfkit.training.diagnose.edits import Patch
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.maker import InFile, assigned, digest, name_of, source_of
from perfkit.training.diagnose.script import Script
from perfkit.training.diagnose.source import UNREADABLE
from perfkit.training.race import learning
from perfkit.training.race.backends import KerasRace
from perfkit.training.race.commits import changed
from perfkit.training.race.question import BRIEF_ROUNDS, Race, in_times, packages
from perfkit.training.race.rounds import WholeRace, budget_for, choose_variants, decided
from perfkit.training.race.sides import Asked, Side, entrants

UNWRITTEN = (
    "Nothing runs yet: {names} returns None. Let it return a compiled Keras model and "
    "its data, then run this cell again."
)
_IMPORTS_TF_KERAS = re.compile(r"^\s*(import|from)\b[^#\n]*\btf_keras\b", re.MULTILINE)
# The side of a race that a patch has changed.
NAME = "the patched copy"

_SLICE_S = 0.1
_LONGEST_LOOK_S = 300.0
_UNKNOWN_S = 600.0


class RaceSession(Session):
    """A race that can be watched and stopped, and that saves what it has.

    It takes what ``perfkit.race`` does, its budget in seconds. It also takes the share
    from which on a side counts as slower, which ends a race that has decided that, and
    what is to be called when it is over.
    """

    def __init__(
        self,
        race: Race,
        *,
        budget: float | None = None,
        worse: float | None = None,
        close: Callable[[], object] = nothing,
        **options: Any,
    ) -> None:
        if budget is not None:
            check_budget(budget, LEAST_BUDGET_S, race.longest_s)
        if worse is not None and not (isinstance(worse, float) and 0 < worse < 1):
            raise BadParameterError(
                f"--worse is {worse!r}; give a share below 100 %, such as 5%."
            )
        self._auto, self._worse, self._close = budget is None, worse, close
        # The variables that the user asked for; a script that changes one is refused.
        self._variables = {side.name: dict(side.place.variables) for side in race.sides}
        # Variables that a script sets before it imports TensorFlow belong to its place.
        self._race = replace(race, sides=tuple(map(_with_variables, race.sides)))
        self._places = {side.place for side in self._race.sides}
        several = self._places if len(self._places) > 1 else ()
        self._environments = {place: environment_of(place) for place in several}
        for side in self._race.sides:
            if side.place in self._environments:
                _check_reaches(side, self._environments[side.place].python)
        if not isinstance(race, WholeRace):
            backends = {side.name: self._backend_of(side) for side in self._race.sides}
            if set(backends.values()) != {"tensorflow"}:
                sides = self._race.sides
                self._race = KerasRace(sides=sides, typed=race.typed, backends=backends)
        self._launchers: Launchers
        seconds = _UNKNOWN_S if budget is None else budget
        super().__init__(self._race, budget=seconds, **options)

    def _backend_of(self, side: Side) -> str:
        if side.place in self._environments:
            return self._environments[side.place].backend
        installed = environment.versions(sys.path)
        return environment.trains_on(side.place.environment, installed)

    def _warm(self) -> None:
        """Load nothing yet: the sides say what TensorFlow is loaded with."""

    @property
    def is_worse(self) -> bool | None:
        """Whether a side is slower by more than was asked; None where that is open."""
        if self.finding is None or self._worse is None:
            return None
        race, measured = self._race, measurement(self.finding)
        if race.has_other_job(measured):
            return None
        noise = measured.noise_floor or race.noise
        return decided(race.compare(measured), self._worse, noise)

    @property
    def cannot_run(self) -> bool:
        """Whether a side failed in each of its trials."""
        trials = self.finding.trials if self.finding else ()
        names = [side.name for side in self._race.sides]
        ends = ([t.has_failed for t in trials if t.variant == name] for name in names)
        return any(failures and all(failures) for failures in ends)

    def events(self) -> Generator[Event]:
        """Race, and tell what happens; at least one event every 0.25 s."""
        try:
            yield from super().events()
        finally:
            self._close()

    def _measure(self) -> Iterator[Event]:
        if self._stopped.is_set():
            return
        self._launchers = Launchers(self._places, self._environments)
        start = tempfile.TemporaryDirectory(prefix="perfkit-start-")
        with contextlib.closing(self._launchers), start as folder:
            if isinstance(self._race, KerasRace):
                self._race = replace(self._race, folder=folder)
            yield from self._look()
            if self._stopped.is_set():
                return
            yield from super()._measure()

    def _starter(self) -> Launchers:
        return self._launchers

    def _plan(self) -> Plan:
        race, options = self._race, dict[str, Any]()
        if isinstance(race, WholeRace):
            options = {"in_turns": False, "overrun": 1.0, "runs": LEAST_ROUNDS}
        else:
            options["in_turns"] = not self.machine.gpus
            options["spread"] = spread.of_this_machine()
            options["ready_s"] = max(facts.ready_s for facts in race.facts.values())
        return Plan(
            variants=(race.make_variants()[race.baseline],),
            baseline=race.baseline,
            budget=self._budget,
            seed=self._seed,
            choose=functools.partial(choose_variants, race, worse=self._worse),
            least_rounds=LEAST_ROUNDS,
            **options,
        )

    def _look(self) -> Iterator[Event]:
        launchers, race = self._starter(), self._race
        while not self._stopped.is_set() and not launchers.wait(_SLICE_S):
            library = "Keras" if isinstance(race, KerasRace) else "TensorFlow"
            yield Preparing(f"Loading {library}, once for each environment")
        race = replace(race, packages=packages(race.sides, self._environments))
        if isinstance(race, WholeRace):
            race = replace(race, auto=self._auto)
        else:
            for side in race.sides:
                facts = yield from self._facts_of(side)
                if facts is None:
                    return
                race = replace(race, facts={**race.facts, side.name: facts})
            if self._auto:
                self._budget = budget_for(race)
        self._race = self.experiment = race

    def _facts_of(self, side: Side) -> Generator[Event, None, Facts | None]:
        """Look at a side; None where the race was stopped meanwhile."""
        if self._stopped.is_set():
            return None
        limits = Limits(silence=_LONGEST_LOOK_S)
        running = self._starter().start(self._race.look(side), self._seed, limits)
        try:
            while not (running.outcome or self._stopped.is_set()):
                running.poll(_SLICE_S)
                doing = f"Looking at {side.name}"
                yield Preparing(running.notes.get(look.UNCONTAINED, doing))
        finally:
            running.kill("stopped", "was stopped")
        if self._stopped.is_set():
            return None
        remedy = f"let its first step end within {_LONGEST_LOOK_S:.0f} s"
        try:
            facts = look.facts_in(running, remedy)
        except RunError as error:
            error.args = (f"{side.name}: {error}",)
            raise
        # Refused before any trial runs.
        _check_holds(side, set(self._variables[side.name]), facts)
        return facts


def _check_reaches(side: Side, python: str) -> None:
    """Refuse a function for a Python of another version, which cannot run its code."""
    theirs, ours = (v.rpartition(".")[0] for v in (python, platform.python_version()))
    if theirs != ours and not isinstance(side.maker, Script | InFile):
        name = name_of(side.maker)
        raise BadParameterError(
            f"Python {theirs} cannot run {name}, a function of this Python {ours}: "
            f'write it into a file, and race "FILE.py:{name}".'
        )


def _check_holds(side: Side, variables: set[str], facts: Facts) -> None:
    """Refuse a variable that the training itself sets to another value."""
    if names := ", ".join(sorted(variables.intersection(facts.late))):
        raise BadParameterError(
            f"{name_of(side.maker)} sets {names} itself, which overrides your value: "
            "remove that line from it, then race the variable."
        )


def _with_variables(side: Side) -> Side:
    # The user's variables win over those of the script.
    variables = assigned(side.maker) | dict(side.place.variables)
    # What another interpreter has is found out when that is asked.
    is_there = side.place.python or importlib.util.find_spec("tf_keras")
    if is_there and _imports_tf_keras(side.maker):
        variables.setdefault(environment.LEGACY, "1")
    place = replace(side.place, variables=tuple(sorted(variables.items())))
    return replace(side, place=place, code=digest(side.maker))


def _imports_tf_keras(maker: Callable[[], Any]) -> bool:
    """Whether code trains with ``tf_keras``, as far as it can be read."""
    try:
        return bool(_IMPORTS_TF_KERAS.search(source_of(maker).text))
    except UNREADABLE:
        return False


def race(
    *trainings: Callable[[], Any] | str | Path,
    commit: str | Sequence[str] = (),
    python: str | Path | Sequence[str | Path] = (),
    env: str | Sequence[str] = (),
    cores: str | Sequence[str] = (),
    arguments: Sequence[str] = (),
    fit: int = 0,
    whole: bool = False,
    budget: float | str | None = None,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
    replay: str | Path | None = None,
) -> Finding | None:
    """Find out whether one training is faster than another, by how much, how surely.

    Both run in fresh processes by turns, and the first runs twice in each round as a
    control. Give two or more trainings, or one training and one thing that differs. A
    kernel interrupt or Ctrl-C is Stop: the finding then holds the results so far. If a
    function only returns None, nothing runs, because somebody still has to write it.

    Args:
        *trainings: Functions that return a compiled Keras model and its data, or files
            as ``diagnose`` takes them. The first is the baseline.
        commit: Git revisions, each compared with the working tree.
        python: Interpreters of other environments.
        env: One side for each entry, with its variables: ``"NAME=VALUE NAME=VALUE"``.
        cores: One side for each entry, with its cores: ``"0-1,3"``.
        arguments: The scripts' own, as on their command line.
        fit: Which call of ``fit`` to take in a script, from 1; 0 for the longest.
        whole: Whether to run scripts to their end, whatever they do, and to compare the
            run times.
        budget: Seconds for rounds; None or ``"auto"`` for as many as the race needs,
            unless PERFKIT_BUDGET says otherwise.
        guess: What you expect; the finding keeps it and the chart draws it.
        seed: Where random order and random numbers start; None draws one.
        folder: Where the finding is saved; None for ``perfkit-findings`` here.
        replay: A recorded race of exactly this code to show instead of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: There are not two sides, or they differ in two things.
        MissingPartError: An environment lacks a part that a training needs, or there is
            no such recording.
        RunError: A side cannot run; the sentence says which, and why.
    """
    ways = {"commit": commit, "python": python, "env": env, "cores": cores}
    options = asked_for(trainings, fit, whole=whole, arguments=arguments, **ways)
    if unwritten := list(filter(is_unwritten, trainings)):
        names = " and ".join(str(getattr(f, "__name__", f)) for f in unwritten)
        print(UNWRITTEN.format(names=names))
        return None
    session = open_race(
        options, budget, guess=guess, seed=seed, folder=folder, replay=replay
    )
    return watch_here(session)


def is_unwritten(training: object) -> bool:
    """Whether it is a function that gives back None and does nothing else."""
    code, nothing_yet = getattr(training, "__code__", None), (lambda: None).__code__
    return code is not None and (code.co_code, code.co_consts) == (
        nothing_yet.co_code,
        nothing_yet.co_consts,
    )


def open_race(
    options: Asked | Race,
    budget: float | str | None = None,
    *,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
    worse: float | None = None,
    replay: str | Path | None = None,
    close: Callable[[], object] = nothing,
) -> RaceSession | Replay:
    """Make a race, not yet begun, or its replay; refuse what cannot succeed.

    ``close`` is called when it is over, or refused.
    """
    with contextlib.ExitStack() as unused:
        if isinstance(options, Asked):
            sides, close = entrants(options)
            options = to_race(sides, options)
        unused.callback(close)
        check_seed(seed)
        home = home_of(folder)
        if recorded := open_replay(options, replay, guess, home):
            return recorded
        session = RaceSession(
            options,
            budget=in_seconds(budget),
            guess=guess,
            seed=seed,
            folder=home,
            worse=worse,
            close=close,
        )
        unused.pop_all()
    return session


def to_race(sides: tuple[Side, ...], options: Asked) -> Race:
    """Put the question to these sides."""
    return (WholeRace if options.whole else Race)(sides=sides, typed=options.typed)


def asked_for(
    trainings: Sequence[Any], fit: int = 0, *, whole: bool = False, **ways: Any
) -> Asked:
    """Make the options of a race; a single value needs no list."""
    names = {field.name for field in fields(Asked)} - {"trainings", "fit", "whole"}
    options: dict[str, Any] = {}
    for name, values in ways.items():
        if name not in names:
            raise BadParameterError(unknown("option of a race", name, sorted(names)))
        several = [values] if isinstance(values, str | int | Path) else values
        options[name] = tuple(map(str, several))
    return Asked(trainings=tuple(trainings), fit=fit, whole=whole, **options)


class Proof(NamedTuple):
    """By how much a patch helps, or that there is none and why; and whether it does."""

    says: str
    helps: bool = False


def open_proof(
    patch: Patch,
    maker: Callable[[], Any],
    seed: int | None = None,
    folder: str | Path | None = None,
) -> RaceSession | Replay:
    """Make the race of a script with a patch against the script as it is."""
    script: Any = maker
    path = Path(script.path)
    copy = changed(path, patch.copy, NAME)
    patched = replace(script, path=str(copy.path_of(path)), lent=str(copy.top))
    sides = (Side(name=name_of(maker), maker=maker), Side(name=NAME, maker=patched))
    typed = shlex.join(["perfkit", "diagnose", "--diff", name_of(maker)])
    race = Race(sides=sides, typed=typed, rounds=BRIEF_ROUNDS)
    # A recording proves nothing of this patch.
    return open_race(race, seed=seed, folder=folder, replay="", close=copy.close)


def proof_of(raced: Finding) -> Proof:
    """Return the gain that the race shows, or why it proves none."""
    verdict, measured = raced.verdict, measurement(raced)
    interval = f" ({verdict.interval})" if verdict.interval else ""
    compared = measured.compare(NAME, raced.baseline)
    if compared is None or verdict.winner != NAME:
        reasons = () if compared else verdict.because
        reason = lower(next(iter(reasons), verdict.headline)).rstrip(".")
        is_open = bool(compared) and verdict.sure == "not known yet"
        return unproved(f"{reason}{interval}", is_open=is_open)
    if learning.alike(measured, NAME, raced.baseline):
        learns = "same first losses"
    elif all(learning.first_losses(measured, NAME, raced.baseline)):
        learns = "no difference shown in first losses"
    else:
        learns = "its losses were not compared"
    gain = f"{in_times(compared.ratio)} times as fast{interval}"
    if not interval:
        gain = "faster, by how much is not known yet"
    return Proof(f"as patched: {gain}, {learns}", helps=True)


def unproved(reason: str, *, is_open: bool = False) -> Proof:
    """Say that there is no patch, for which reason, and what to do."""
    again = "run it again while nothing else runs; " if is_open else ""
    prints = "`--no-race` prints the patch without a race."
    return Proof(f"There is no patch: {reason}; {again}{prints}")
