"""A finding in words and numbers, for a terminal: verdict, reasons, table, machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.table import Table

    from perfkit.findings.record import Finding
    from perfkit.measure.statistics import Comparison, Timing


@dataclass(frozen=True)
class Row:
    """One variant's line in the table, as text.

    Attributes:
        variant: Its name.
        rate: Examples per second with the 95 % interval.
        against: The ratio to its baseline with the 95 % interval; "" for a baseline.
        verdict: ``faster``, ``slower`` and so on, or how its trials ended.
    """

    variant: str
    rate: str
    against: str = ""
    verdict: str = ""


def rows(finding: Finding) -> list[Row]:
    """Put a finding into lines, the fastest variant first, untimed ones last."""
    compared = {c.variant: c for c in finding.comparisons}
    several = len({c.baseline for c in finding.comparisons}) > 1
    timings = sorted(finding.timings, key=lambda t: t.rate, reverse=True)
    timed = [_timed(t, compared.get(t.variant), several) for t in timings]
    return timed + list(_untimed(finding, {t.variant for t in timings}))


def interval(value: str, low: str, high: str) -> str:
    """Write a value with its 95 % interval, as ``"1,240 (1,190 to 1,300)"``."""
    return f"{value} ({low} to {high})"


def rate(timing: Timing) -> str:
    """Write a rate with its interval, without its unit."""
    texts = [units.significant(v) for v in (timing.rate, timing.low, timing.high)]
    return interval(*texts)


def write(finding: Finding, console: Console) -> None:
    """Write the verdict, what it rests on, what to do next, and the table."""
    verdict = finding.verdict
    say = sayer(console)
    say(verdict.headline, style="bold")
    if verdict.because:
        say("")
        say("Because")
        for reason in verdict.because:
            say(f"- {reason}")
    if verdict.next:
        say("")
        say("Next")
        say(verdict.next)
    say("")
    console.print(_table(finding))
    for line in _footnotes(finding):
        say(line)


def _timed(timing: Timing, comparison: Comparison | None, several: bool) -> Row:
    if comparison is None:
        return Row(timing.variant, rate(timing), "", "baseline")
    ratios = (comparison.ratio, comparison.low, comparison.high)
    against = interval(*(units.ratio(ratio) for ratio in ratios))
    if several:
        against += f" of {comparison.baseline}"
    return Row(timing.variant, rate(timing), against, comparison.verdict)


def _untimed(finding: Finding, timed: set[str]) -> Iterator[Row]:
    ended = {t.variant: t.outcome for t in finding.trials if t.variant not in timed}
    for variant, outcome in ended.items():
        yield Row(variant, "not timed", "", outcome)


def _table(finding: Finding) -> Table:
    from rich import box
    from rich.table import Table

    baselines = {c.baseline for c in finding.comparisons}
    against = f"against {baselines.pop()}" if len(baselines) == 1 else "against"
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("variant", "examples/s (95 % interval)", against, "verdict"):
        table.add_column(heading, overflow="fold")
    for row in rows(finding):
        table.add_row(row.variant, row.rate, row.against, row.verdict)
    return table


def _footnotes(finding: Finding) -> Iterator[str]:
    yield ""
    for variant, outcome, message in sorted(_failures(finding)):
        yield f"{variant} {outcome}: {message}"
    if finding.noise_floor is None:
        yield "Noise floor: unknown; the run was too short to measure it."
    else:
        floor = units.percent(finding.noise_floor - 1)
        yield f"Noise floor: {floor}. No smaller difference is claimed."
    machine = finding.machine
    cores = units.significant(machine.cores_granted)
    gpus = ", ".join(gpu.name for gpu in machine.gpus) or "no GPU"
    tensorflow = machine.versions.get("tensorflow", "not installed")
    yield (
        f"Measured on {machine.cpu}, {cores} cores, {units.size(machine.memory)}, "
        f"{gpus}, TensorFlow {tensorflow}, {finding.recorded}."
    )
    if finding.stopped:
        yield "The run was stopped before its budget was spent."


def _failures(finding: Finding) -> set[tuple[str, str, str]]:
    return {
        (trial.variant, trial.outcome, trial.message)
        for trial in finding.trials
        if trial.outcome not in ("completed", "stopped")
    }


def sayer(console: Console) -> Callable[..., None]:
    """Give what prints text: wrapped for a reader, in whole lines for a file."""

    def say(text: str, style: str = "") -> None:
        console.print(
            text,
            style=style,
            markup=False,
            highlight=False,
            soft_wrap=not console.is_terminal,
        )

    return say
