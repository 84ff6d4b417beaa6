"""Two machines compared: from whatever was handed over to the explanation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit import documents
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.profile import Profile
from perfkit.findings.record import Finding
from perfkit.findings.text import plain
from perfkit.machines import comparison_report, ratios
from perfkit.machines.comparison import Explanation, held
from perfkit.machines.explaining import advice, explained
from perfkit.machines.ratios import other_software, same_job
from perfkit.machines.sides import differences
from perfkit.passports.passport import Passport

if TYPE_CHECKING:
    from perfkit.machines.comparison import Document, Held


_KINDS = (Passport, Finding, Diagnosis)


def compare(a: Document | str | Path, b: Document | str | Path) -> Explanation:
    """Say why the same training runs differently on two machines.

    Args:
        a: A passport of the one, or its file. Two findings of one experiment, or two
            diagnoses of one training, are held against each other as well; without
            the rungs of a passport they show less.
        b: The same of the other.

    Raises:
        BadFileError: A file is none of these, or not one that this perfkit can read.
        BadParameterError: The two are of different kinds.
    """
    one, other = _read(a), _read(b)
    if type(one) is not type(other):
        raise BadParameterError(
            f"A is a {one.kind} and B a {other.kind}; give two of a kind, best two "
            "passports: `perfkit passport -o NAME.json` on each machine."
        )
    return _explained(held(one), held(other))


def _explained(a: Held, b: Held) -> Explanation:
    job = same_job(a, b)
    differ = differences(a.machine, b.machine)
    if job:
        return Explanation(
            a=a.one,
            b=b.one,
            verdict="not the same job",
            headline=comparison_report.headline("not the same job", job=job),
            job=job,
            differences=differ,
        )
    rungs = ratios.rungs(a, b)
    works = explained(a, b, differ, rungs)
    verdict = comparison_report.verdict(works)
    return Explanation(
        a=a.one,
        b=b.one,
        verdict=verdict,
        headline=comparison_report.headline(verdict, works, rungs=rungs),
        because=tuple(comparison_report.because(works, other_software(a, b))),
        differences=differ,
        rungs=rungs,
        works=works,
        advice=advice(a, b, works),
        next=tuple(comparison_report.following(works)),
    )


def _read(source: Document | str | Path) -> Document:
    if isinstance(source, _KINDS):
        return source
    if not isinstance(source, str | Path):
        raise BadParameterError(
            f"{plain(repr(source), 60)} is nothing to compare; give the file of a "
            "passport, of a finding or of a diagnosis."
        )
    path = Path(os.path.expanduser(source))
    return parsed(store.whole_file(path), plain(path.name))


def parsed(data: bytes, name: str) -> Document:
    """Read a passport, a finding or a diagnosis from the bytes of a file.

    Raises:
        BadFileError: It is none of these; the sentence says what is wrong.
    """
    found = documents.parsed(data, name)
    if isinstance(found, Profile):
        raise BadFileError(
            f"{name} is a profile, which explains one training; give the file of a "
            "passport, of a finding or of a diagnosis."
        )
    return found
