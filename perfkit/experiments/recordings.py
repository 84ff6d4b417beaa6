"""Which recorded finding can stand in for a run?

A recording is a finding's file: of the same experiment, with the same parameters. One
with other parameters answers another question, and none is shown in its place.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfkit.errors import BadFileError, MissingPartError
from perfkit.experiments.parameters import parameters_of
from perfkit.experiments.session import shareable
from perfkit.findings.store import load_finding
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.experiments.base import Experiment
    from perfkit.findings.record import Finding

# What perfkit brings along: a recording for every panel of its notebooks.
BROUGHT = Path(__file__).parents[1] / "replays"
_Found = TypeVar("_Found")


def recording(experiment: Experiment, where: str | Path) -> Finding:
    """Find the recording that answers an experiment as it is set.

    Args:
        experiment: What is asked.
        where: A file, a folder of files, or ``"1"`` for what perfkit brings along. Of
            several that fit the newest counts, a whole run before one that was broken
            off.

    Raises:
        BadFileError: A file was given, and it is no finding.
        MissingPartError: There is no such recording; the sentence says what there is.
    """
    place = place_of(where)
    found = list(read_all(place, load_finding))
    asked = [finding for finding in found if finding.experiment == experiment.name]
    if not asked:
        raise MissingPartError(_none(experiment, place, found))
    fitting = [finding for finding in asked if not differences(experiment, finding)]
    if not fitting:
        nearest = min(asked, key=lambda one: len(differences(experiment, one)))
        raise MissingPartError(_other(experiment, place, nearest))
    return max(fitting, key=lambda one: (not one.ended_early, one.recorded))


def differences(experiment: Experiment, finding: Finding) -> dict[str, Any]:
    """The recorded values of the parameters that are set otherwise."""
    usual = {p.name: p.default for p in parameters_of(type(experiment))}
    recorded = usual | finding.parameters
    asked = shareable(experiment)
    return {name: recorded[name] for name in asked if recorded[name] != asked[name]}


def place_of(where: str | Path) -> Path:
    """Find the file or the folder that recordings are to come from.

    Raises:
        MissingPartError: There is none.
    """
    place = BROUGHT if where == "1" else Path(os.path.expanduser(where))
    if not (place.is_dir() or place.is_file()):
        raise MissingPartError(
            f"There is no recording {plain(str(where), 80)}: give a finding's file, a "
            "folder of them, or 1 for those that perfkit brings along."
        )
    return place


def read_all(place: Path, read: Callable[[Path], _Found]) -> Iterator[_Found]:
    """Read a file, or those of a folder that can be read; other files are none.

    Raises:
        BadFileError: A file was given, and it cannot be read.
    """
    if place.is_file():
        yield read(place)
        return
    for path in sorted(place.glob("*.json")):
        with contextlib.suppress(BadFileError):
            yield read(path)


def _none(experiment: Experiment, place: Path, found: list[Finding]) -> str:
    known = ", ".join(sorted({plain(finding.experiment, 40) for finding in found}))
    return (
        f"{plain(place.name, 80)} holds no recording of {experiment.name}"
        f"{f', but of {known}' if known else ''}: record one where it can be run, "
        f"with `perfkit run {experiment.name} --out FOLDER`, or run it here without a "
        "replay."
    )


def _other(experiment: Experiment, place: Path, nearest: Finding) -> str:
    asked = shareable(experiment)
    told = differences(experiment, nearest)
    wanted = ", ".join(f"{name}={plain(repr(asked[name]), 60)}" for name in told)
    there = ", ".join(
        f"{name}={plain(repr(value), 60)}" for name, value in told.items()
    )
    return (
        f"{plain(place.name, 80)} holds no recording of {experiment.name} with "
        f"{wanted}, but one with {there}: ask for that, or run it here without a "
        "replay."
    )
