"""Race two trainings: the verb that notebooks and scripts need."""

import dis
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

from perfkit.diagnoses import in_seconds
from perfkit.errors import BadParameterError
from perfkit.experiments import unknown
from perfkit.experiments.replay import Replay
from perfkit.findings.record import Finding
from perfkit.race.entrants import Asked, entrants
from perfkit.race.question import Race
from perfkit.race.session import RaceSession
from perfkit.runs import check_seed, home_of, open_replay, watch_here

_UNWRITTEN = (
    "Nothing runs yet: {names} gives back None. Let it give back a compiled Keras "
    "model and its data, and run this cell again."
)
# What a function consists of that is still to be written, by Python's own names.
_NOTHING, _CONSTANTS = ("RESUME", "NOP"), ("LOAD_CONST", "RETURN_CONST")
_ENDS = (*_CONSTANTS, "RETURN_VALUE")


def race(
    *trainings: Callable[[], Any] | str | Path,
    commit: str | Sequence[str] = (),
    python: str | Path | Sequence[str | Path] = (),
    env: str | Sequence[str] = (),
    cores: str | Sequence[str] = (),
    batch: int | Sequence[int] = (),
    policy: str | Sequence[str] = (),
    arguments: Sequence[str] = (),
    fit: int = 0,
    budget: float | str | None = None,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
    replay: str | Path | None = None,
) -> Finding | None:
    """Say whether one training is faster than another, by how much, and how sure.

    Both run in fresh processes, by turns, with the first once more in each round as a
    control. Give two or more trainings, or one and one other thing in which the sides
    differ. A kernel interrupt or Ctrl-C is Stop: the finding then holds what was
    measured by then. A function that does nothing but give back None is still to be
    written: it says so, and nothing runs.

    Args:
        *trainings: Functions that return a compiled Keras model and its data, or files
            as ``diagnose`` takes them. The first is the baseline.
        commit: Revisions of git: the working tree is held against each.
        python: Interpreters of other environments.
        env: Variables for a side of its own each: ``"NAME=VALUE NAME=VALUE"``.
        cores: Cores for a side of its own each: ``"0-1,3"``.
        batch: Examples of a step, a side of its own each.
        policy: Dtype policies, a side of its own each.
        arguments: Of the scripts, as on their own command line.
        fit: Which call of ``fit`` to take in a script, from 1; 0 for the longest.
        budget: Seconds for rounds; None or ``"auto"`` for what the race needs, unless
            PERFKIT_BUDGET says otherwise.
        guess: What you expect; it is kept in the finding and drawn into the chart.
        seed: Where random order and random numbers start; None draws one.
        folder: Where the finding is saved; None for ``perfkit-findings`` here.
        replay: A recorded race of this very code to show in place of a run; see
            ``perfkit.run``.

    Raises:
        BadParameterError: There are not two sides, or they differ in two things.
        MissingPartError: An environment has not what a training needs, or there is no
            such recording.
        RunError: A side cannot be run; the sentence says which, and why.
    """
    asked = asked_for(
        trainings,
        commit=commit,
        python=python,
        env=env,
        cores=cores,
        batch=batch,
        policy=policy,
        arguments=arguments,
        fit=fit,
    )
    if unwritten := list(filter(is_unwritten, trainings)):
        names = " and ".join(str(getattr(each, "__name__", each)) for each in unwritten)
        print(_UNWRITTEN.format(names=names))
        return None
    session = open_race(
        asked, budget, guess=guess, seed=seed, folder=folder, replay=replay
    )
    return watch_here(session)


def is_unwritten(training: object) -> bool:
    """Whether it is a function that gives back None and does nothing else."""
    code = getattr(training, "__code__", None)
    if code is None:
        return False
    does = [one for one in dis.get_instructions(code) if one.opname not in _NOTHING]
    gives = does[0].argval if does[0].opname in _CONSTANTS else ...
    return gives is None and all(one.opname in _ENDS for one in does)


def open_race(
    asked: Asked,
    budget: float | str | None = None,
    *,
    guess: str = "",
    seed: int | None = None,
    folder: str | Path | None = None,
    worse: float | None = None,
    replay: str | Path | None = None,
) -> RaceSession | Replay:
    """Make a race, not yet begun, or its replay; refuse what cannot succeed."""
    check_seed(seed)
    home = home_of(folder)
    made = entrants(asked)
    race = Race(of=made.sides, typed=asked.typed)
    with ExitStack() as unused:
        unused.callback(made.close)
        if told := open_replay(race, replay, guess, home):
            return told
        session = RaceSession(
            race,
            budget=in_seconds(budget),
            guess=guess,
            seed=seed,
            folder=home,
            worse=worse,
            close=made.close,
        )
        unused.pop_all()
    return session


def asked_for(trainings: Sequence[Any], fit: int = 0, **given: Any) -> Asked:
    """Put together what a race is asked with; one of a kind stands for itself.

    Raises:
        BadParameterError: There is no such thing to ask for.
    """
    known = {one.name for one in fields(Asked)} - {"trainings", "fit"}
    if wrong := given.keys() - known:
        raise BadParameterError(unknown("option of a race", min(wrong), sorted(known)))
    several = {name: _several(value) for name, value in given.items()}
    for name in ("python", "cores"):
        several[name] = tuple(map(str, several.get(name, ())))
    return Asked(trainings=tuple(trainings), fit=fit, **several)


def _several(given: Any) -> tuple[Any, ...]:
    alone = isinstance(given, str | int | float | Path)
    return (given,) if alone else tuple(given)
