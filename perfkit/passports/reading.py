"""Is this file a passport? It comes from another machine and is not trusted.

It is read with the care that a finding is read with, and is smaller: what is larger
than a passport can be is refused before it costs memory.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import BadFileError
from perfkit.findings import reading, store
from perfkit.findings.text import plain
from perfkit.passports.record import PARTS, Passport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.passports.record import Training

# One takes 20 to 40 KB.
LARGEST_BYTES = 10**6
# Of the samples; more cannot be told apart on a chart.
MOST_SAMPLES = 300
_MOST = {"checks": 500, "rungs": 300, "trainings": 100, "samples": 200, "missed": 100}
_LONGEST_LABEL = 200
_MOST_VISITS = 100


def load(path: str | Path) -> Passport:
    """Read a passport from its file.

    Raises:
        BadFileError: There is no such file, or it is not a passport that this perfkit
            can read.
    """
    path = Path(os.path.expanduser(path))
    passport = parsed(store.whole_file(path, LARGEST_BYTES), plain(path.name))
    store.remember(passport, path)
    return passport


def parsed(data: bytes, name: str) -> Passport:
    """Read a passport from the bytes of a file.

    Args:
        data: All of it.
        name: What errors call it.

    Raises:
        BadFileError: It is anything but a passport; the sentence says what.
    """
    if len(data) > LARGEST_BYTES:
        raise BadFileError(f"{name} is too large to be a passport.")
    return reading.parsed_as(Passport, data, name, faults)


def faults(passport: Passport) -> Iterator[str]:
    """What no machine can have shown, although each value is of the right type."""
    for field, most in _MOST.items():
        if len(getattr(passport, field)) > most:
            yield f"it has more than {most} {field}"
    if len(passport.label) > _LONGEST_LABEL:
        yield "its label is too long"
    for rung in passport.rungs:
        yield from _disordered(f"rung {rung.name}", rung.low, rung.rate, rung.high)
        if rung.limit is not None and rung.limit <= 0:
            yield f"the limit of rung {plain(rung.name, 80)} is not above 0"
    for training in passport.trainings:
        yield from _faults_of(training)
    if min(passport.noise_floors.values(), default=1.0) <= 0:
        yield "a noise floor is not above 0"
    if max(map(len, (passport.visits, *passport.visits.values()))) > _MOST_VISITS:
        yield f"it has more than {_MOST_VISITS} visits"
    if min(passport.drift.values(), default=0.0) < 0:
        yield "a drift is below 0"
    spans = (*passport.phases.values(), *itertools.chain(*passport.visits.values()))
    if any(end < began for began, end in spans):
        yield "a measurement ends before it begins"
    yield from _faults_of_samples(passport)


def _faults_of(training: Training) -> Iterator[str]:
    name = f"training {training.name}"
    yield from _disordered(name, training.low, training.seconds, training.high)
    if training.batch <= 0:
        yield f"the batch of {plain(name, 80)} is not above 0"
    if training.parts and tuple(part.name for part in training.parts) != PARTS:
        yield f"the parts of {plain(name, 80)} are not {', '.join(PARTS)}"
    for part in training.parts:
        known = [n for n in (part.low, part.seconds, part.high) if n is not None]
        if known != sorted(known):
            yield f"a part of {plain(name, 80)} lies outside its interval"


def _disordered(
    name: str, low: float | None, value: float | None, high: float | None
) -> Iterator[str]:
    """A rate, or the seconds of a step: above 0 and within its interval."""
    known = [number for number in (low, value, high) if number is not None]
    if value is not None and value <= 0:
        yield f"{plain(name, 80)} is not above 0"
    elif min(known, default=0.0) < 0 or known != sorted(known):
        yield f"{plain(name, 80)} lies outside its interval"


def _faults_of_samples(passport: Passport) -> Iterator[str]:
    lengths = {len(values) for values in passport.samples.values()}
    if max(lengths, default=0) > MOST_SAMPLES:
        yield f"it has more than {MOST_SAMPLES} samples"
    if len(lengths) > 1 or (lengths and "t" not in passport.samples):
        yield "the samples do not fit together"
    times = passport.samples.get("t", ())
    if None in times:
        yield "a sample has no time"
    elif any(b < a for a, b in itertools.pairwise(times)):  # type: ignore[operator]
        yield "the samples are not in order"
