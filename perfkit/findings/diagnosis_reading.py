"""Is this file a diagnosis? It is read with the care that a finding is read with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.findings import reading
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.findings.diagnosis import Gain

# Each has a line in every report; no training has a tenth of it.
_MOST = 500
_COUNTED = (
    "causes",
    "split",
    "untested",
    "unmeasured",
    "aside",
    "hints",
    "because",
)
# Was below 0 in older files, where parts measured apart came to more than the step.
_REST = "unexplained"


def parsed(data: bytes, name: str) -> Diagnosis:
    """Read a diagnosis from the bytes of a file.

    Args:
        data: All of it.
        name: What errors call it.

    Raises:
        BadFileError: It is anything but a diagnosis; the sentence says what.
    """
    return reading.parsed_as(Diagnosis, data, name, faults)


def faults(found: Diagnosis) -> Iterator[str]:
    """What no run can have measured, although each value is of the right type."""
    for field in _COUNTED:
        if len(getattr(found, field)) > _MOST:
            yield f"it has more than {_MOST} {field}"
    yield from reading.faults(found.finding)
    if found.step:
        step = found.step
        yield from _disordered("the step", step.low, step.median_s, step.high)
    for cause in found.causes:
        yield from _faults_of_gain(
            f"the gain of {plain(cause.swap, 80)}", cause.speedup
        )
        if len(cause.edits) > _MOST:
            yield f"it has more than {_MOST} places to change for one cause"
    if found.together:
        yield from _faults_of_gain("the gain of all together", found.together.speedup)
    if found.ceiling:
        yield from _faults_of_gain("the ceiling", found.ceiling)
    for name, part in found.split.items():
        ends = (part.low, part.seconds, part.high)
        known = [end for end in ends if end is not None]
        if name != _REST and min(known, default=0.0) < 0:
            yield "a part of a step is below 0"
        if known != sorted(known):
            yield "a part of a step lies outside its interval"


def _faults_of_gain(name: str, gain: Gain) -> Iterator[str]:
    yield from _disordered(name, gain.low, gain.estimate, gain.high)


def _disordered(name: str, low: float, value: float, high: float) -> Iterator[str]:
    if not 0 < low <= value <= high:
        yield f"{name} lies outside its interval, or is not above 0"
