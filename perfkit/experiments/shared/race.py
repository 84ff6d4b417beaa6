"""The verdict of an experiment whose variants are different lines for the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.shared.words import failures, interval, listed, quoted, ratio
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison


_NOISY = "Too noisy to say whether anything is"
_QUIETER = "End what else runs on this machine, or give the run more seconds."


def judge(measured: Measurement, lines: Mapping[str, str], unit: str) -> Verdict:
    """Name the fastest variant, how much it gains, and the line that has it.

    Args:
        measured: The run.
        lines: The line of code of each variant that may be the fastest, by its name.
        unit: What an example is, such as ``"rows"``.
    """
    baseline = measured.baseline
    timed = {timing.variant for timing in measured.timings} & set(lines)
    if not timed:
        return Verdict(headline="Nothing could be timed.", because=failures(measured))
    ranked, base = measured.fastest(tuple(timed)), measured.timing(baseline)
    best, *ties = ranked
    compared = measured.compare(best.variant, baseline)
    because = (*_told(measured), *failures(measured))
    rate = units.rate(best.rate, unit)
    held = (measured.compare(t.variant, baseline) for t in ranked if t != base)
    noisy = any(one and one.verdict == "too noisy to say" for one in held)
    if best.variant == baseline or compared is None or compared.is_noise:
        return Verdict(
            headline=f"{_NOISY if noisy else 'Nothing is shown to be'} faster than "
            f"{quoted(baseline)}; the best rate is that of {quoted(best.variant)}: "
            f"{rate}.",
            because=because,
            next=_QUIETER if noisy else f"Keep `{lines[baseline]}`.",
        )
    tied = listed([tie.variant for tie in ties]) if ties else ""
    also = f", and is not shown to differ from {tied}" if tied else ""
    return Verdict(
        headline=f"{quoted(best.variant)} is fastest here{also}: {rate}, "
        f"{_against(compared)}.",
        because=because,
        next=f"Change this line: `{lines[best.variant]}`.",
        winner=best.variant,
    )


def _told(measured: Measurement) -> list[str]:
    return [
        f"{quoted(c.variant)} reaches {_against(c)}: {c.judgement}."
        for c in measured.comparisons
    ]


def _against(compared: Comparison) -> str:
    return (
        f"{ratio(compared)} the rate of {quoted(compared.baseline)} "
        f"({interval(compared)})"
    )
