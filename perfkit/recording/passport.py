"""Record this machine: ``perfkit.passport()``."""

from __future__ import annotations

import getpass
import os
import platform
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit import running
from perfkit.displays import display_here
from perfkit.errors import BadParameterError
from perfkit.findings.text import plain
from perfkit.recording.making import Making

if TYPE_CHECKING:
    from perfkit.passports.record import Passport

# Seconds in which both measurements have two rounds or more on two cores.
BUDGET_S = 180.0
_LONGEST_S = 3600.0
_LONGEST_LABEL = 80


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
    if not isinstance(label, str) or len(label) > _LONGEST_LABEL:
        raise BadParameterError(
            f"label is {label!r}; give a name of at most {_LONGEST_LABEL} letters."
        )
    path, seconds = _new_file(out), _seconds(budget)
    names = (platform.node(), _user()) if with_names else ("", "")
    called = plain(label) or (plain(path.stem) if path else "this machine")
    return Making(seconds, called[:_LONGEST_LABEL], path, names)


def _new_file(out: str | Path | None) -> Path | None:
    if out is None:
        return None
    if not isinstance(out, str | Path) or not str(out):
        raise BadParameterError(f"The file is {out!r}; give a name such as lab-7.json.")
    path, name = Path(out).expanduser(), plain(str(out))
    if path.suffix.lower() != ".json":
        raise BadParameterError(
            f"The file is {name!r}; give a name that ends in .json."
        )
    if path.exists():
        raise BadParameterError(
            f"{name} is there already; give another name, or delete it first."
        )
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise BadParameterError(
            f"{name} cannot be written; give a file in a folder that exists and that "
            "you may write to."
        )
    return path


def _seconds(given: float | None) -> float:
    if given is None:
        small = running.BUDGET_VARIABLE in os.environ
        return running.default_budget() if small else BUDGET_S
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not 1 <= given <= _LONGEST_S:
        raise BadParameterError(
            f"budget is {given!r}; give seconds from 1 to {_LONGEST_S:.0f}."
        )
    return float(given)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a user number that has no name.
        return ""
