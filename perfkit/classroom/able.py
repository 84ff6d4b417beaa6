"""Which notebook does a machine not run, and what keeps it back otherwise?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments import experiments
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.machine.record import Machine
    from perfkit.passports.record import Passport


def notebooks() -> tuple[str, ...]:
    """The notebooks that ask any question that there is here, in their order."""
    every = experiments().values()
    return tuple(sorted(notebook for kind in every for notebook in kind.notebooks))


def unable(passport: Passport) -> dict[str, str]:
    """The notebooks that a machine cannot run, by name, with the reason."""
    found = {}
    for kind in experiments().values():
        reasons = [_missing(passport.machine, one) for one in kind.needs]
        why = next(filter(None, reasons), "")
        found.update(dict.fromkeys(kind.notebooks, why))
    return {notebook: why for notebook, why in sorted(found.items()) if why}


def held_back(passport: Passport) -> Iterator[str]:
    """What fails on a machine, and what to do about it, a sentence each."""
    for check in passport.checks:
        if check.status == "fail":
            remedy = f": {plain(check.remedy)}" if check.remedy else ""
            yield f"{plain(check.title)}{remedy}"


def _missing(machine: Machine, library: str) -> str:
    """Why a library cannot be used on a machine; "" where it can."""
    if library != "tensorflow":
        there = library in machine.versions
        return "" if there or not machine.versions else f"{library} is not installed"
    if machine.start is not None and machine.start.problem:
        return f"TensorFlow does not start: {plain(machine.start.problem)}"
    if machine.software is not None and machine.software.build == "none":
        return "TensorFlow is not installed"
    if not any("tensorflow" in n or n.startswith("tf-") for n in machine.versions):
        return "TensorFlow is not installed"
    return ""
