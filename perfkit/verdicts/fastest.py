"""The verdict of an experiment whose variants are different lines for the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Verdict
from perfkit.verdicts.words import failures, listed, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Comparison


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
    best, *ties = measured.fastest(tuple(timed))
    compared = measured.compare(best.variant, baseline)
    because = (*_told(measured), *failures(measured))
    rate = units.rate(best.rate, unit)
    if best.variant == baseline or compared is None or compared.is_noise:
        return Verdict(
            headline=f"Nothing is shown to be faster than {quoted(baseline)}; the best "
            f"rate is that of {quoted(best.variant)}: {rate}.",
            because=because,
            next=f"Keep `{lines[baseline]}`.",
        )
    tied = listed([tie.variant for tie in ties]) if ties else ""
    also = f", and no difference to {tied} is shown" if tied else ""
    return Verdict(
        headline=f"{quoted(best.variant)} is fastest here{also}: {rate}, "
        f"{_against(compared)}.",
        because=because,
        next=f"Change this line: `{lines[best.variant]}`.",
        winner=best.variant,
    )


def _told(measured: Measurement) -> list[str]:
    return [
        f"{quoted(c.variant)} reaches {_against(c)}: {c.verdict}."
        for c in measured.comparisons
    ]


def _against(compared: Comparison) -> str:
    return (
        f"{units.ratio(compared.ratio)} the rate of {quoted(compared.baseline)} (95 % "
        f"interval {units.significant(compared.low)} to "
        f"{units.significant(compared.high)}, {compared.rounds} rounds)"
    )
