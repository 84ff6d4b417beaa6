"""Which sides were asked for: by files, a commit, a Python, a variable, cores."""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.diagnosis.change import nothing
from perfkit.diagnosis.maker import InFile, maker, name_of
from perfkit.diagnosis.script import Script, WholeScript, whole_script
from perfkit.errors import BadParameterError
from perfkit.machine import environment
from perfkit.measure.host import Place
from perfkit.race.commits import checked_out
from perfkit.race.side import Side

_NOW = "the working tree"
_MOST = 8
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a race was asked with; ``perfkit.race`` says what each means."""

    trainings: tuple[Any, ...]
    commit: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    fit: int = 0
    whole: bool = False

    @property
    def typed(self) -> str:
        """The command that asks the same, without paths and other people's words."""
        makers = [self._maker(training) for training in self.trainings]
        names = [name_of(made) for made in makers]
        given: dict[str, list[Any]] = {
            "commit": [*self.commit],
            "python": [*map(_in_short, self.python)],
            "env": [*map(_shared, self.env)],
            "cores": [*self.cores],
            "fit": [self.fit] if self.fit else [],
        }
        if not all(isinstance(made, Script | InFile) for made in makers):
            several = [(option, each) for option, each in given.items() if each]
            # One of a kind stands for itself.
            named = [f"{o}={each if each[1:] else each[0]!r}" for o, each in several]
            return f"perfkit.race({', '.join([*names, *named])})"
        words = ["--whole"] if self.whole else []
        for option, each in given.items():
            for value in each:
                words += [f"--{option}", str(value)]
        # A script's own arguments may hold anything, such as a secret.
        rest = " -- …" if self.arguments else ""
        return shlex.join(["perfkit", "race", *words, *names]) + rest

    def _maker(self, training: Any) -> Callable[[], Any]:
        if not self.whole:
            return maker(training, self.arguments, self.fit)
        made = maker(training, self.arguments, read=whole_script)
        if not isinstance(made, WholeScript):
            raise BadParameterError(
                f"--whole runs scripts, and {name_of(made)} is a function: call it in "
                "a script of its own, or leave --whole out."
            )
        return made


@dataclass(frozen=True)
class Entrants:
    """The sides of a race.

    Attributes:
        sides: The baseline first.
        close: To be called when the race is over.
    """

    sides: tuple[Side, ...]
    close: Callable[[], object] = nothing


def entrants(asked: Asked) -> Entrants:
    """Make the sides; nothing of theirs is run.

    Raises:
        BadParameterError: There are not two, or they differ in two things at once.
    """
    kinds = {
        "two files": len(asked.trainings) > 1,
        "--commit": bool(asked.commit),
        "--python": bool(asked.python),
        "--env": bool(asked.env),
        "--cores": bool(asked.cores),
    }
    if asked.whole and asked.fit:
        raise BadParameterError(
            "--whole runs scripts as they are, with all their calls of fit: leave "
            "--fit or --whole out."
        )
    given = [kind for kind, there in kinds.items() if there]
    if not given:
        raise BadParameterError(
            "A race needs two sides: give a second file, or one of "
            f"{', '.join(list(kinds)[1:])}."
        )
    if len(given) > 1:
        raise BadParameterError(
            f"One thing at a time: {' and '.join(given)} together would not show which "
            "of them made the difference."
        )
    made = _ENTRANTS[given[0]](asked)
    names = [side.name for side in made.sides]
    if len(made.sides) > _MOST or len(set(names)) < len(names):
        made.close()
        why = f"at most {_MOST} sides" if len(names) > _MOST else "each side once"
        raise BadParameterError(f"A race has {why}; these are {', '.join(names)}.")
    return made


def _of_files(asked: Asked) -> Entrants:
    makers = [asked._maker(training) for training in asked.trainings]
    names = [name_of(each) for each in makers]
    if len(set(names)) < len(names):
        # The same name in two folders: the folder tells them apart.
        names = [_with_folder(m, n) for m, n in zip(makers, names, strict=True)]
    if len(set(names)) < len(names):
        names = _numbered(names)
    sides = (Side(name=n, maker=m) for n, m in zip(names, makers, strict=True))
    return Entrants(tuple(sides))


def _of_commits(asked: Asked) -> Entrants:
    made = asked._maker(asked.trainings[0])
    if not isinstance(made, Script | InFile):
        raise BadParameterError("--commit needs a file, such as train.py.")
    path, sides = Path(made.path), []
    with ExitStack() as refused:
        for revision in asked.commit:
            commit = checked_out(revision, path)
            refused.callback(commit.close)
            path_there = str(commit.path_of(path))
            there = replace(made, path=path_there, lent=str(commit.top))
            if isinstance(there, Script):
                there = replace(there, folder=_folder_in(commit, there.folder))
            sides.append(Side(name=commit.name, maker=there, moved=commit.moved))
        close = refused.pop_all().close
    now = Side(name=_NOW, maker=made, changes="The files as they are now.")
    return Entrants((*sides, now), close)


def _folder_in(commit: Any, folder: str) -> str:
    """Where a script runs in a commit: the same folder of it, if it lies there."""
    try:
        return str(commit.path_of(Path(folder)))
    except BadParameterError:
        return folder


def _of_pythons(asked: Asked) -> Entrants:
    names = [_in_short(python) for python in asked.python]
    places = [Place(python=_found(python)) for python in asked.python]
    return _in_places(asked, names, places, "this environment")


def _of_variables(asked: Asked) -> Entrants:
    places = [Place(variables=_variables(given)) for given in asked.env]
    return _in_places(asked, [_shared(given) for given in asked.env], places)


def _variables(given: str) -> tuple[tuple[str, str], ...]:
    try:
        pairs = shlex.split(given)
    except ValueError:
        pairs = []
    if not pairs or not all(map(_VARIABLE.fullmatch, pairs)):
        raise BadParameterError(
            f"--env is {given!r}; give NAME=VALUE, or several in quotes: "
            '"NAME=VALUE NAME=VALUE".'
        )
    return tuple((name, value) for name, _, value in (p.partition("=") for p in pairs))


def _of_cores(asked: Asked) -> Entrants:
    names = [f"cores {given}" for given in asked.cores]
    places = [Place(cores=_numbers(given)) for given in asked.cores]
    return _in_places(asked, names, places, "all cores")


def _in_places(
    asked: Asked, names: Sequence[str], places: Sequence[Place], own: str = ""
) -> Entrants:
    made = asked._maker(asked.trainings[0])
    here = Side(name=own or name_of(made), maker=made)
    if len(set(names)) < len(set(places)):
        # Places that differ in what no name holds.
        names = _numbered(names)
    others = (
        Side(name=name, maker=made, place=place, changes=f"{name} besides.")
        for name, place in zip(names, places, strict=True)
    )
    return Entrants((here, *others))


def _numbered(names: Sequence[str]) -> list[str]:
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


_ENTRANTS = {
    "two files": _of_files,
    "--commit": _of_commits,
    "--python": _of_pythons,
    "--env": _of_variables,
    "--cores": _of_cores,
}


def _with_folder(made: Any, name: str) -> str:
    folder = Path(getattr(made, "path", "")).parent
    return f"{folder.name}/{name}" if environment.is_named(folder) else name


def _found(python: str) -> str:
    """Its whole path, links kept: they say which environment it belongs to."""
    return os.path.abspath(os.path.expanduser(python)) if os.sep in python else python


def _in_short(python: str) -> str:
    """An environment by the name of its folder, whoever it belongs to."""
    path = Path(_found(python))
    folder = path.parent.parent
    known = path.parent.name in ("bin", "Scripts") and environment.is_named(folder)
    return folder.name if known else path.name


def _shared(given: str) -> str:
    """Variables as a file may hold them: what may be a secret is left out."""
    pairs = dict(p.partition("=")[::2] for p in shlex.split(given))
    names = (*environment.own_names(), *environment.named_in(os.environ))
    known = environment.that_matter(pairs, names)
    return " ".join(f"{name}={known.get(name, '<value>')}" for name in pairs)


def _numbers(given: str) -> tuple[int, ...]:
    """Numbers as ``taskset`` takes them, such as ``"0-1,3"``."""
    found = set[int]()
    try:
        for part in given.split(","):
            first, dash, last = part.partition("-")
            found.update(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        raise BadParameterError(
            f"--cores is {given!r}; give numbers, such as 0-1,3."
        ) from None
    if not hasattr(os, "sched_setaffinity"):
        # Both sides would have all cores, and no difference would be shown.
        raise BadParameterError(
            "This system binds no process to cores: race a number of threads, such as "
            "--env TF_NUM_INTRAOP_THREADS=1."
        )
    here = os.sched_getaffinity(0)
    if not found or not found <= here:
        raise BadParameterError(
            f"--cores is {given!r}, and this process may use {sorted(here)}."
        )
    return tuple(sorted(found))
