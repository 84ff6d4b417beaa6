"""What kept the machine busy while it measured, from the samples of a finding."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfkit import units
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.standing import has_microbenchmarks
from perfkit.findings.text import as_budget
from perfkit.machine.record import throttle_reasons

# Whose each reading is, in the order in which they are stacked.
CPU = {
    "cpu_trial": "the trial",
    "cpu_other": "other programs",
    "cpu_perfkit": "perfkit",
}
GPUS = 16
# The note of a question that keeps the machine busy itself, and means to.
MEANT = "busy on purpose"
# Of all cores; less disturbs little.
_LITTLE = 0.1
# The share of its best speed below which a core was slowed.
_STEADY = 0.95
# So many times the seconds are worth giving to a run that left the answer open.
_MORE = 3

Point = tuple[float, float]


def in_words(finding: Finding) -> Iterator[str]:
    """The load as sentences without their full stops."""
    for name in CPU:
        if readings_of(finding, name):
            busy_cores = mean_cores(finding, name)
            programs = name_programs(finding, name)
            if _is_meant(finding, name):
                programs += ", including the loads of this question,"
            yield f"{programs} kept {busy_cores} busy on average"
    speeds = [value for _, value in readings_of(finding, "core_speed")]
    if speeds:
        mostly, slowest = units.percent(statistics.median(speeds)), min(speeds)
        slowed = (
            ". Heat, a battery, a busy core on the same unit, other machines on the "
            "same processor, or waking up slow a core"
        )
        yield (
            f"A core mostly ran at {mostly} of its best speed, and never below "
            f"{units.percent(slowest)}{slowed if slowest < _STEADY else ''}"
        )
    yield from _gpus(finding)
    yield from _throttled(finding)


def _is_meant(finding: Finding, name: str) -> bool:
    return name == "cpu_other" and bool(finding.notes.get(MEANT))


def _gpus(finding: Finding) -> Iterator[str]:
    """How busy each GPU was while the baseline worked."""
    trials = [trial for trial in finding.trials if trial.variant == finding.baseline]
    # Without the first call, and without the turns of others.
    worked = [
        (trial.started_s + began, trial.started_s + ended)
        for trial in trials
        for began, ended, _ in trial.worked[1:]
    ]
    for number in range(GPUS):
        read = readings_of(finding, f"gpu{number}_busy")
        shares = [share for t, share in read if any(a <= t <= b for a, b in worked)]
        if shares:
            busy = units.percent(statistics.fmean(shares))
            yield (
                f'GPU {number} was busy for {busy} of the time in "{finding.baseline}"'
                ", says its driver"
            )


def with_next(verdict: Verdict, finding: Finding, training: str = "") -> Verdict:
    """Say what would settle what noise leaves open, if nothing else is to be done.

    That is to end who took cores, or to measure on. ``training`` is what was diagnosed.
    """
    if verdict.next or verdict.sure != "not known yet":
        return verdict
    again = f"run again with {as_budget(_MORE * finding.budget_s, training)}."
    is_known = readings_of(finding, "cpu_other") and not _is_meant(finding, "cpu_other")
    other_cores = _mean(finding, "cpu_other") if is_known else 0.0
    if other_cores < _LITTLE * finding.machine.cores:
        return replace(verdict, next=f"R{again[1:]}")
    processes = finding.machine.load.top[:2] if finding.machine.load else ()
    names = ", ".join(f"`{process.program}`" for process in processes)
    hint = f" ({names} at the start)" if names else "; `perfkit doctor` names them"
    busy = f"{units.significant(other_cores, 2)} of {finding.machine.cores} cores"
    advice = f"Other programs kept {busy} busy{hint}. End them, or {again}"
    return replace(verdict, next=advice)


def times(finding: Finding) -> tuple[float, ...]:
    """When the machine was sampled, in seconds since the start of the run."""
    return tuple(t for t in finding.samples.get("t", ()) if t is not None)


def readings_of(finding: Finding, name: str) -> list[Point]:
    """When and what, for the samples that hold this reading."""
    pairs = zip(times(finding), finding.samples.get(name, ()), strict=False)
    return [(t, value) for t, value in pairs if value is not None]


def together(finding: Finding, names: Sequence[str]) -> list[list[float]]:
    """When, and a column by name, of the samples that hold all of these readings."""
    columns = [dict(readings_of(finding, name)) for name in names]
    when = [t for t in times(finding) if all(t in column for column in columns)]
    return [when, *([column[t] for t in when] for column in columns)]


def mean_cores(finding: Finding, name: str) -> str:
    """How many cores it kept busy on average, in words."""
    return units.count(units.significant(_mean(finding, name), 2), "core")


def _mean(finding: Finding, name: str) -> float:
    cores = finding.machine.cores
    return statistics.fmean(min(cores, v) for _, v in readings_of(finding, name))


def name_programs(finding: Finding, name: str) -> str:
    """Who kept the cores busy; microbenchmarks train nothing."""
    trains = name == "cpu_trial" and not has_microbenchmarks(finding)
    return "the training" if trains else CPU[name]


def _throttled(finding: Finding) -> Iterator[str]:
    """Why each GPU was slowed during the run."""
    for number in range(GPUS):
        masks = {mask for _, mask in readings_of(finding, f"gpu{number}_throttle")}
        # A file may hold any number.
        sound = sorted(mask for mask in masks if 0 <= mask < 2**53)
        causes = dict.fromkeys(why for mask in sound for why in throttle_reasons(mask))
        if causes:
            yield f"GPU {number} was slowed: {', '.join(causes)}"
