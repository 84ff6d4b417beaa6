"""The sides of a race: a training each, the place where it runs, and its trials.

They are made from files or functions, a commit, a Python, a variable or cores.
"""

import contextlib
import functools
import os
import re
import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from perfkit.engine.host import Place
from perfkit.engine.trial import Note, Yielded
from perfkit.errors import BadParameterError
from perfkit.machine import environment
from perfkit.questions.shared.loops import Told
from perfkit.training.diagnose.change import nothing
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.look import contained, look
from perfkit.training.diagnose.maker import InFile, contain, maker, name_of
from perfkit.training.diagnose.script import Script, WholeScript, script, whole_script
from perfkit.training.race.commits import Commit, checked_out
from perfkit.training.race.learning import Learning

# A note of a trial: which modules of a commit's trial came from the working tree.
LEFT = "from the working tree"
_MOST_SIDES = 8
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One training of a race.

    Attributes:
        name: In charts and in files; no path.
        maker: Makes the training, in each trial's process.
        place: Where it runs.
        commit: Whose code it is; None for that of the working tree.
        retuned: Whether a batch of another size is meant, and no other job.
        code: As ``digest`` gives it when its race is made; "" before.
    """

    name: str
    maker: Callable[[], Any]
    place: Place = field(default_factory=Place)
    commit: Commit | None = None
    retuned: bool = False
    code: str = ""


@dataclass(frozen=True)
class Work:
    """What a process does in the place of a side: ``act``, given the side.

    It notes which modules of a commit came from the working tree all the same.
    """

    side: Side
    act: Callable[[Side], Iterator[Yielded]]

    @property
    def place(self) -> Place:
        """Where it runs."""
        return self.side.place

    def __call__(self) -> Iterator[Yielded]:
        """Do it, and tell what that tells."""
        commit, before = self.side.commit, set(sys.modules)
        if commit:
            commit.move()
        for number, event in enumerate(self.act(self.side)):
            yield event
            # Once a training has been made, and once a script has ended.
            if commit and (number == 0 or event == 1):
                names = commit.find_leftovers(set(sys.modules) - before)
                if names:
                    yield Note(LEFT, names)


def look_at(side: Side) -> Iterator[Yielded]:
    """Look at a side's training for the first time, as a diagnosis does."""
    return look(side.maker)


def train(side: Side, facts: Facts) -> Generator[Told]:
    """Train, in a process that reaches no file of the user's, and note the losses."""
    contain(side.maker)
    learning = Learning(side.maker, facts.batch)
    with contextlib.closing(contained(learning, facts)) as ticks:
        for tick in ticks:
            yield tick
            yield from learning.news()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of a race; ``perfkit.race`` says what each means."""

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
        makers = [self.maker_of(training) for training in self.trainings]
        names = [name_of(maker) for maker in makers]
        options: dict[str, Sequence[str | int]] = {
            "commit": self.commit,
            "python": [*map(_short_name, self.python)],
            "env": [*map(_without_secrets, self.env)],
            "cores": self.cores,
            "fit": [self.fit] if self.fit else [],
        }
        if not all(isinstance(maker, Script | InFile) for maker in makers):
            for option, values in options.items():
                if values:
                    # One of a kind needs no list.
                    several = [*values] if len(values) > 1 else values[0]
                    names.append(f"{option}={several!r}")
            return f"perfkit.race({', '.join(names)})"
        words = ["--whole"] if self.whole else []
        for option, values in options.items():
            for value in values:
                words += [f"--{option}", str(value)]
        # A script's own arguments may hold a secret.
        suffix = " -- …" if self.arguments else ""
        return shlex.join(["perfkit", "race", *words, *names]) + suffix

    def maker_of(self, training: Any) -> Callable[[], Any]:
        """What makes a training; where whole scripts are raced, a script alone does."""
        if not self.whole:
            read = functools.partial(script, keras_2=True)
            return maker(training, self.arguments, self.fit, read=read)
        whole = maker(training, self.arguments, read=whole_script)
        if not isinstance(whole, WholeScript):
            raise BadParameterError(
                f"--whole runs scripts, and {name_of(whole)} is a function: call it "
                "in a script of its own, or leave --whole out."
            )
        return whole


class Entrants(NamedTuple):
    """The sides of a race, the baseline first; ``close`` is called when it is over."""

    sides: tuple[Side, ...]
    close: Callable[[], object] = nothing


def entrants(options: Asked) -> Entrants:
    """Make the sides; nothing of theirs is run."""
    if options.whole and options.fit:
        raise BadParameterError(
            "--whole runs scripts as they are, with all their calls of fit: leave "
            "--fit or --whole out."
        )
    ways = {
        "two files": (len(options.trainings) > 1, _of_files),
        "--commit": (options.commit, _of_commits),
        "--python": (options.python, _in_places),
        "--env": (options.env, _in_places),
        "--cores": (options.cores, _in_places),
    }
    selected = [way for way, (values, _) in ways.items() if values]
    if not selected:
        raise BadParameterError(
            "A race needs two sides: give a second file, or one of "
            f"{', '.join(list(ways)[1:])}."
        )
    if len(selected) > 1:
        raise BadParameterError(
            f"A race changes one kind of thing: with {' and '.join(selected)} together "
            "you could not tell which made the difference."
        )
    lineup = ways[selected[0]][1](options)
    names = [side.name for side in lineup.sides]
    if len(names) > _MOST_SIDES or len(set(names)) < len(names):
        lineup.close()
        many = len(names) > _MOST_SIDES
        rule = f"at most {_MOST_SIDES} sides" if many else "each side once"
        raise BadParameterError(f"A race has {rule}; these are {', '.join(names)}.")
    return lineup


def _of_files(options: Asked) -> Entrants:
    makers = [options.maker_of(training) for training in options.trainings]
    names = [name_of(maker) for maker in makers]
    if len(set(names)) < len(names):
        # The same name in two folders: the folder tells them apart.
        folders = [Path(getattr(maker, "path", "")).parent for maker in makers]
        names = [
            f"{folder.name}/{name}" if environment.is_named(folder) else name
            for folder, name in zip(folders, names, strict=True)
        ]
    if len(set(names)) < len(names):
        names = _numbered(names)
    sides = (Side(name=n, maker=m) for n, m in zip(names, makers, strict=True))
    return Entrants(tuple(sides))


def _numbered(names: Sequence[str]) -> list[str]:
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


def _of_commits(options: Asked) -> Entrants:
    original = options.maker_of(options.trainings[0])
    if not isinstance(original, Script | InFile):
        raise BadParameterError("--commit needs a file, such as train.py.")
    sides = []
    with contextlib.ExitStack() as refused:
        for revision in options.commit:
            commit = checked_out(revision, Path(original.path))
            refused.callback(commit.close)
            path = commit.path_of(Path(original.path))
            copy = replace(original, path=str(path), lent=str(commit.top))
            if isinstance(copy, Script):
                # A script that runs outside of the repository keeps its folder.
                with contextlib.suppress(BadParameterError):
                    copy = replace(copy, folder=str(commit.path_of(Path(copy.folder))))
            sides.append(Side(name=commit.name, maker=copy, commit=commit))
        close = refused.pop_all().close
    return Entrants((*sides, Side(name="the working tree", maker=original)), close)


def _in_places(options: Asked) -> Entrants:
    places = [
        *((Place(python=_whole_path(p)), _short_name(p)) for p in options.python),
        *((Place(variables=_variables(v)), _without_secrets(v)) for v in options.env),
        *(
            (Place(cores=_numbers(c)), f"core{'' if c.isdigit() else 's'} {c}")
            for c in options.cores
        ),
    ]
    maker = options.maker_of(options.trainings[0])
    label = (
        "this environment" if options.python else "all cores" if options.cores else ""
    )
    names = [name for _, name in places]
    if len(set(names)) < len({place for place, _ in places}):
        # Places may differ in values that their names leave out.
        names = _numbered(names)
    sides = (
        Side(name=name, maker=maker, place=place)
        for name, (place, _) in zip(names, places, strict=True)
    )
    return Entrants((Side(name=label or name_of(maker), maker=maker), *sides))


def _whole_path(python: str) -> str:
    """The path of a Python, links kept: they say which environment it belongs to."""
    return os.path.abspath(os.path.expanduser(python)) if os.sep in python else python


def _short_name(python: str) -> str:
    """An environment by the name of its folder, whoever it belongs to."""
    path = Path(_whole_path(python))
    folder = path.parent.parent
    is_inside = path.parent.name in ("bin", "Scripts") and environment.is_named(folder)
    return folder.name if is_inside else path.name


def _variables(text: str) -> tuple[tuple[str, str], ...]:
    try:
        pairs = shlex.split(text)
    except ValueError:
        pairs = []
    if not pairs or not all(map(_VARIABLE.fullmatch, pairs)):
        raise BadParameterError(
            f"--env is {text!r}; give NAME=VALUE, or several in quotes: "
            '"NAME=VALUE NAME=VALUE".'
        )
    return tuple((name, value) for name, _, value in (p.partition("=") for p in pairs))


def _without_secrets(text: str) -> str:
    """Return variables for a saved file, without values that may be secrets."""
    pairs = dict(p.partition("=")[::2] for p in shlex.split(text))
    names = (*environment.own_names(), *environment.named_in(os.environ))
    safe = environment.that_matter(pairs, names)
    return " ".join(f"{name}={safe.get(name, '<value>')}" for name in pairs)


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers as ``taskset`` takes them, such as ``"0-1,3"``."""
    if not hasattr(os, "sched_setaffinity"):
        # Without a binding both sides would use all cores and show no difference.
        raise BadParameterError(
            "This system cannot bind a process to cores: race a number of threads, "
            "such as --env TF_NUM_INTRAOP_THREADS=1."
        )
    available, cores = os.sched_getaffinity(0), set[int]()
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part, re.ASCII)
        numbers = range(int(ends[1]), int(ends[2] or ends[1]) + 1) if ends else ()
        # -1, which is no core, for text that is no number or an empty range.
        cores.update(numbers or [-1])
    if not cores <= available:
        raise BadParameterError(
            f"--cores is {text!r}; choose from {sorted(available)}, such as 0-1,3."
        )
    return tuple(sorted(cores))
