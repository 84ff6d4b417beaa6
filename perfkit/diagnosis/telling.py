"""A diagnosis in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.diagnosis.choosing import AS_GIVEN
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.findings.diagnosis import Cause, Seconds
    from perfkit.measure.measurement import Measurement


def told(
    causes: Sequence[Cause],
    step: Seconds | None,
    measured: Measurement,
    facts: Facts,
) -> Verdict:
    """Say what slows the training, on what that rests, and what to do."""
    if step is None:
        return Verdict(headline=f"Nothing is known yet: {_why_not(measured)}")
    defects = [cause for cause in causes if cause.kind == "defect"]
    if not defects:
        headline = "Nothing is wrong with this training: no swap shows a defect."
    else:
        worst = defects[0]
        headline = (
            f"{worst.cause} slows this training most: without it it runs "
            f"{worst.speedup.estimate:.2f}× as fast "
            f"({worst.speedup.low:.2f} to {worst.speedup.high:.2f})."
        )
    return Verdict(
        headline=headline,
        because=(
            f"A step takes {units.seconds(step.median_s)} as given.",
            *(cause.evidence for cause in causes),
        ),
        next=causes[0].fix if causes else "",
    )


def outcome(measured: Measurement) -> str:
    """How the training as given ended, at best."""
    ended = [trial.outcome for trial in measured.of(AS_GIVEN)]
    if "completed" in ended or not ended:
        return "completed"
    return ended[-1]


def _why_not(measured: Measurement) -> str:
    ended = [t.message for t in measured.of(AS_GIVEN) if t.outcome != "completed"]
    return f'"{AS_GIVEN}" {ended[-1].rstrip(".")}.' if ended else "no trial has ended."
