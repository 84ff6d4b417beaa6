"""Read a folder of passports: ``perfkit.classroom(folder)``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.classroom.record import Classroom
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.text import plain
from perfkit.passports.reading import load

if TYPE_CHECKING:
    from perfkit.passports.record import Passport

# A school has fewer; what is more is a folder that was given by mistake.
_MOST = 5000


def classroom(
    folder: str | Path, you: Passport | str | Path | None = None
) -> Classroom:
    """Hold the machines of a folder of passports against each other.

    Args:
        folder: Where the files lie; each machine's is one ``.json``.
        you: Your own machine's passport, or its file, which the chart then marks. It
            may lie in the folder or elsewhere.

    Raises:
        BadFileError: ``you`` is no passport. In the folder such a file is a row that
            says so.
        BadParameterError: There is no such folder, or more files than a class has.
    """
    passports, problems = _read(_files(Path(os.path.expanduser(folder))))
    if you is None:
        return Classroom(passports=tuple(passports), problems=problems)
    yours = _slim(load(you) if isinstance(you, str | Path) else you)
    place = _place(yours, passports)
    if place is None:
        place, passports = len(passports), [*passports, yours]
    return Classroom(passports=tuple(passports), problems=problems, you=place)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(folder))}; give the one that the passports "
            "lie in."
        )
    paths = sorted(folder.glob("*.json"))
    if len(paths) > _MOST:
        raise BadParameterError(
            f"{plain(str(folder))} holds {len(paths):,} files; give a folder with the "
            f"passports alone, {_MOST:,} at most."
        )
    return paths


def _read(paths: list[Path]) -> tuple[list[Passport], dict[Path, str]]:
    passports, problems = [], {}
    for path in paths:
        try:
            passports.append(_slim(load(path)))
        except BadFileError as error:
            problems[path] = str(error)
    return passports, problems


def _slim(passport: Passport) -> Passport:
    """Without its samples, which nothing of a class shows and a thousand would fill."""
    slim = replace(passport, samples={}, phases={})
    if passport.path:
        store.remember(slim, passport.path)
    return slim


def _place(yours: Passport, passports: list[Passport]) -> int | None:
    """Where it is among those that were read: the same file, or a copy of it."""
    return next((n for n, one in enumerate(passports) if one == yours), None)
