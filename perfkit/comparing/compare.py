"""Hold two machines against each other: ``perfkit.compare(a, b)``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.comparing import headlines, ratios, words
from perfkit.comparing.advising import advice
from perfkit.comparing.explaining import explained
from perfkit.comparing.jobs import other_software, same_job
from perfkit.comparing.machines import differences
from perfkit.comparing.reading import parsed
from perfkit.comparing.record import Explanation
from perfkit.comparing.works import held
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.text import plain
from perfkit.passports.record import Passport

if TYPE_CHECKING:
    from perfkit.comparing.works import Document, Held

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
            headline=headlines.headline("not the same job", job=job),
            job=job,
            differences=differ,
        )
    rungs = ratios.rungs(a, b)
    works = explained(a, b, differ, rungs)
    verdict = headlines.verdict(works, same=True)
    return Explanation(
        a=a.one,
        b=b.one,
        verdict=verdict,
        headline=headlines.headline(verdict, works, rungs=rungs),
        because=tuple(words.because(works, other_software(a, b))),
        differences=differ,
        rungs=rungs,
        works=works,
        advice=advice(a, b, works),
        next=tuple(words.following(works)),
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
