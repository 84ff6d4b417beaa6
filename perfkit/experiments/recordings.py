"""Which recorded finding can stand in for a run?

A recording is a finding's file: of the same experiment, with the same parameters. One
with other parameters answers another question, and none is shown in its place.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadFileError, MissingPartError
from perfkit.experiments.parameters import parameters_of
from perfkit.experiments.session import shareable
from perfkit.findings.store import load_finding
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.base import Experiment
    from perfkit.findings.record import Finding

# Machines that perfkit brings along, each a folder of findings or one file.
REFERENCE = Path(__file__).parents[1] / "reference"


def recording(experiment: Experiment, where: str | Path) -> Finding:
    """Find the recording that answers an experiment as it is set.

    Args:
        experiment: What is asked.
        where: A file, a folder of files, or the name of a machine in
            ``perfkit/reference/``. Of several that fit the newest counts, a whole run
            before one that was broken off.

    Raises:
        BadFileError: A file was given, and it is no finding.
        MissingPartError: There is no such recording; the sentence says what there is.
    """
    place = _place(where)
    found = [load_finding(place)] if place.is_file() else list(_findings(place))
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


def _place(where: str | Path) -> Path:
    given = Path(os.path.expanduser(where))
    brought = (REFERENCE / where, REFERENCE / f"{where}.json")
    for place in (given, *brought):
        if place.is_dir() or place.is_file():
            return place
    known = sorted({path.stem for path in REFERENCE.glob("[!_.]*")})
    others = f" Machines that perfkit brings along: {', '.join(known)}." * bool(known)
    raise MissingPartError(
        f"There is no recording {plain(str(where), 80)}: give a finding's file, or a "
        f"folder of them.{others}"
    )


def _findings(folder: Path) -> Iterator[Finding]:
    """Those of a folder that can be read; other files are none of them."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield load_finding(path)
        except BadFileError:
            continue


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
