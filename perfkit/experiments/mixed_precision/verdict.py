"""What the timings of several precisions mean, in words.

Everything is read from a ``Measurement`` and nothing else, so that a verdict can be
worked out again from what was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.mixed_precision import facts, told
from perfkit.experiments.mixed_precision.losses import pairs
from perfkit.experiments.shared.precision import FLOAT32, PRECISIONS
from perfkit.experiments.shared.words import interval, listed, quoted, ratio
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison, Timing

_QUIETER = "End what else runs on this machine, or give the run more seconds."
_LOSSES = {
    "equal within rounding": "; its losses equal those of float32 within rounding",
    "less apart than two seeds": (
        "; its losses differ from those of float32 by less than another seed changes"
    ),
    "too noisy to say": "; whether its losses differ is too noisy to say",
    "differs": "; but its losses differ from those of float32",
    "lost": "; but its loss became something that is no number",
}


def judge(measured: Measurement, *, batch: int) -> Verdict:
    """Say which precision trains fastest, and whether it learns what float32 learns.

    Args:
        measured: The run.
        batch: Examples in a batch.
    """
    names = tuple(p.name for p in PRECISIONS.values() if p.kind == "precision")
    because = tuple(facts.because(measured))
    ranked = measured.fastest(names)
    if not ranked or measured.timing(FLOAT32) is None or len(measured.timings) < 2:
        return Verdict(
            headline="No two precisions could be compared.",
            because=because,
            next="Look at how the trials ended, or give the run more seconds.",
        )
    best, *ties = ranked
    compared = measured.compare(best.variant, FLOAT32)
    if best.variant == FLOAT32 or compared is None or compared.verdict != "faster":
        return Verdict(
            headline=_not_won(measured, ranked, compared, batch),
            because=because,
            next=_stay(measured, ranked, compared),
        )
    return Verdict(
        headline=(
            f"{quoted(best.variant)} trains fastest here{_tied(ties)}: "
            f"{_step(best, batch)}, {ratio(compared)} the examples per "
            f"second of {quoted(FLOAT32)} ({interval(compared)})"
            f"{_losses(measured, best.variant)}."
        ),
        because=because,
        next=_change(measured, best.variant),
        winner=best.variant,
    )


def _not_won(
    measured: Measurement,
    ranked: Sequence[Timing],
    compared: Comparison | None,
    batch: int,
) -> str:
    best = ranked[0]
    if best.variant != FLOAT32 and compared is not None:
        reached = (
            f"the best, {quoted(best.variant)}, reaches {ratio(compared)} "
            f"of it ({interval(compared)})"
        )
        if compared.verdict == "too noisy to say":
            return f"Too noisy to say what is faster than {quoted(FLOAT32)}: {reached}."
        return f"No precision is shown to be faster than {quoted(FLOAT32)}: {reached}."
    takes = _step(best, batch)
    if len(ranked) > 1:
        return (
            f"No precision is shown to be faster than {quoted(FLOAT32)}, which takes "
            f"{takes}."
        )
    return f"{quoted(FLOAT32)} is the fastest precision here: {takes}."


def _stay(
    measured: Measurement, ranked: Sequence[Timing], compared: Comparison | None
) -> str:
    others = (timing.variant for timing in ranked if timing.variant != FLOAT32)
    found = (compared, *(measured.compare(name, FLOAT32) for name in others))
    noisy = any(one and one.verdict == "too noisy to say" for one in found)
    return _QUIETER if noisy else f"Keep `{PRECISIONS[FLOAT32].line}`, the default."


def _change(measured: Measurement, name: str) -> str:
    if _alike(measured, name) in ("differs", "lost"):
        return "Do not change it for speed alone: train longer, and compare the losses."
    line = PRECISIONS[name].line
    if not name.startswith("mixed_"):
        return f"Write `{line}` before the model is built."
    return (
        f"Write `{line}` before the model is built, and give its last layer "
        '`dtype="float32"`.'
    )


def _losses(measured: Measurement, name: str) -> str:
    return _LOSSES.get(_alike(measured, name), "")


def _alike(measured: Measurement, name: str) -> str:
    found = pairs(told.curves(measured.trials))
    return next((one.alike for one in found if one.precision == name), "")


def _tied(ties: Sequence[Timing]) -> str:
    if not ties:
        return ""
    others = listed([tie.variant for tie in ties])
    return f", and is not shown to differ from {others}"


def _step(timing: Timing, batch: int) -> str:
    return f"{units.seconds(batch / timing.rate)} a step"
