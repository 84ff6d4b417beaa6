"""Where does each variant stand? What the table, the card and the charts all show."""

import collections
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement, Variant
from perfkit.engine.statistics import Comparison, Timing
from perfkit.engine.trial import Trial
from perfkit.findings import record as records
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import note_as
from perfkit.findings.record import Finding
from perfkit.findings.text import one_line, without_marks

if TYPE_CHECKING:
    from pandas import DataFrame

# The note with microbenchmarks, by name as dictionaries.
NOTE = "microbenchmarks"
# The parameter of a race that names its sides, and the rounds before which it claims
# nothing: of two copies of one script 4 in 20 were told apart by one or two.
SIDES, LEAST_ROUNDS = "sides", 3
# The note with the variants that only show what is possible.
LIMITS = "limits"
# No part of a machine does as much in a second; a file may say anything.
_LARGEST = 1e30
_UNIT = 20


@dataclass(frozen=True, kw_only=True)
class Microbenchmark:
    """One piece of work and the most of it that is possible.

    Attributes:
        unit: What is counted, such as ``"FLOP"``, ``"B"`` or ``"calls"``.
        group: The part of the machine that it tries.
        what: What is done, in a line.
        limit: Units per second that are possible in theory; None where nobody knows.
        limit_from: How that was worked out, in words.
    """

    unit: str
    group: str = ""
    what: str = ""
    limit: float | None = None
    limit_from: str = ""


def microbenchmarks(notes: Mapping[str, Any]) -> dict[str, Microbenchmark]:
    """Read the microbenchmarks from a finding's notes; empty where it has none."""
    entries = note_as(dict[str, dict[str, Any]], notes.get(NOTE)) or {}
    return {name: _read(entry) for name, entry in entries.items()}


def has_microbenchmarks(finding: Finding) -> bool:
    """Whether a finding's variants are microbenchmarks."""
    return bool(microbenchmarks(finding.notes))


def counts_runs(finding: Finding) -> bool:
    """Whether its trials are runs of whole scripts."""
    return any(trial.unit == "runs" for trial in finding.trials)


def _read(entry: dict[str, Any]) -> Microbenchmark:
    read = note_as(Microbenchmark, entry) or Microbenchmark(unit="units")
    limit = read.limit if 0 < (read.limit or 0.0) < _LARGEST else None
    return replace(read, unit=one_line(read.unit, _UNIT) or "units", limit=limit)


_ENDED = {
    "out-of-memory": "ran out of memory",
    "crashed": "crashed",
    "timed-out": "timed out",
    "stopped": "was stopped before it could be timed",
    "completed": "was too short to be timed",
}
_MESSAGE = 90


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One variant's part in a finding.

    Attributes:
        group: The baseline that it goes back to, by one change or several; "" if none.
        comparison: Its ratio to what it changes one thing of; None for a baseline.
        ratio: Its ratio to the baseline of its group; None for that, or if unknown.
        is_fastest: Whether the verdict names it as the fastest.
        limit: The most of it that is possible in theory; None where nobody knows.
        is_limit: Whether it only shows what is possible, such as a training without
            its input; nobody can choose it.
    """

    variant: str
    group: str
    timing: Timing | None = None
    comparison: Comparison | None = None
    ratio: Comparison | None = None
    is_fastest: bool = False
    problem: str = ""
    unit: str = "examples"
    limit: float | None = None
    is_limit: bool = False

    @property
    def is_baseline(self) -> bool:
        """Whether all others of its group go back to it."""
        return self.variant == self.group


_RATIO = re.compile(
    r"(?<![\w.,/])(\d{1,6}(?:\.\d{1,6})?)\s*(?:x|\N{MULTIPLICATION SIGN}|times)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Guess:
    """A prediction: the variant, or else the ratio to the baseline, that it names."""

    words: str = ""
    variant: str = ""
    ratio: float | None = None


def guess(finding: Finding) -> Guess:
    """Read the guess of a finding: a variant's name, or a ratio such as ``"3x"``."""
    words = one_line(finding.guess, 80)
    timed_names = [timing.variant for timing in finding.timings]
    variants = [*timed_names, *(trial.variant for trial in finding.trials)]
    names = {variant.casefold(): variant for variant in variants}
    if words.casefold() in names:
        return Guess(words, variant=names[words.casefold()])
    match = _RATIO.search(words)
    return Guess(words, ratio=float(match[1]) or None if match else None)


@functools.lru_cache(maxsize=4)
def standings(finding: Finding) -> tuple[Standing, ...]:
    """Every variant: group by group, the fastest first, then limits and the untimed.

    Microbenchmarks, which nothing compares, come in their own order. Of a race
    only the sides stand there: an old file also has sides without a part of their work.
    """
    if microbenchmarks(finding.notes):
        return _of_parts(finding)
    groups = [finding.baseline, *_groups(finding).values()]
    ranked = sorted(
        _timed_standings(finding), key=lambda s: -s.timing.rate if s.timing else 0.0
    )
    ranked.sort(
        key=lambda s: (s.is_limit, groups.index(s.group) if s.group else len(groups))
    )
    sides = finding.parameters.get(SIDES)
    rows = (*ranked, *_untimed(finding))
    if not isinstance(sides, list | tuple):
        return rows
    unit = "runs" if counts_runs(finding) else "examples"
    return tuple(replace(row, unit=unit) for row in rows if row.variant in sides)


def rate(standing: Standing) -> str:
    """A rate with its interval, or what a run takes.

    The unit stands there unless the column's heading has it.
    """
    timing = standing.timing
    if timing is None:
        return "not timed"
    if standing.unit == "runs":
        run = timing.seconds(1)
        return units.between(run.value, run.low, run.high, units.seconds)
    text = units.rate_between(timing.rate, timing.low, timing.high, standing.unit)
    return text.replace(" examples/s", "")


def share_of(timing: Timing, limit: float, possible: str = "its limit") -> str:
    """A rate as a share of what is possible, with its interval.

    A limit in theory rests on clocks that may be higher, so none is said to be passed.
    """
    if not units.is_known(timing.low, timing.high):
        return units.UNKNOWN
    share = f"{units.percent(min(1.0, timing.rate / limit))} of {possible}"
    if timing.low == timing.high:
        return share
    low = units.percent(min(1.0, timing.low / limit))
    if timing.high >= limit:
        return f"{share} ({low} or more)"
    return f"{share} ({low} to {units.percent(timing.high / limit)})"


def _of_parts(finding: Finding) -> tuple[Standing, ...]:
    """The microbenchmarks in the order of their note, then what it leaves out."""
    benchmarks = microbenchmarks(finding.notes)
    by_name = {s.variant: s for s in (*_timed_standings(finding), *_untimed(finding))}
    rows = []
    for name in dict.fromkeys([*benchmarks, *by_name]):
        if name in by_name:
            part = benchmarks.get(name, Microbenchmark(unit="units"))
            row = replace(by_name[name], is_fastest=False, group=part.group)
            rows.append(replace(row, unit=part.unit, limit=part.limit))
    return tuple(rows)


@functools.lru_cache(maxsize=4)
def measurement(finding: Finding) -> Measurement:
    """What the engine knew at the end of the run, from the finding alone.

    What the run said of two variants stands, although a file does not hold all that it
    was worked out from: so a chart, a table and a sentence never say two numbers. An
    old file of a race claims more than its rounds show.
    """
    against = {c.variant: c.baseline for c in finding.comparisons}
    variants = tuple(
        # The work itself is not in a file.
        Variant(name := timing.variant, lambda: iter(()), against=against.get(name, ""))
        for timing in finding.timings
    )
    result = Measurement(
        variants=variants,
        trials=finding.trials,
        samples=finding.samples,
        notes=finding.notes,
        baseline=finding.baseline,
        least_rounds=LEAST_ROUNDS if SIDES in finding.parameters else 1,
    )
    judged = (c.after(result.least_rounds) for c in finding.comparisons)
    # In the place of what would be worked out anew; no copy with other trials has it.
    vars(result)["comparisons"] = tuple(judged)
    return result


def _timed_standings(finding: Finding) -> Iterator[Standing]:
    groups, measured = _groups(finding), measurement(finding)
    comparisons = {c.variant: c for c in measured.comparisons}
    limits = _limits(finding, groups)
    for name, timing in {timing.variant: timing for timing in finding.timings}.items():
        group = groups[name]
        yield Standing(
            variant=name,
            group=group,
            timing=timing,
            comparison=comparisons.get(name),
            ratio=measured.compare(name, group) if group not in ("", name) else None,
            is_fastest=name == finding.verdict.winner,
            problem=_some_failed(finding, name),
            is_limit=name in limits,
        )


def _limits(finding: Finding, groups: dict[str, str]) -> set[str]:
    """What only shows what is possible.

    It says so itself, or nothing compares it, or it beats what the verdict names as
    fastest: that did not let it compete.
    """
    limits = {*(note_as(list[str], finding.notes.get(LIMITS)) or ())}
    winner = finding.verdict.winner
    for name, group in groups.items():
        compared = None
        if name != winner and group == groups.get(winner):
            # One may have been dropped after quick rounds: its rate alone says nothing.
            compared = measurement(finding).compare(name, winner)
        if (finding.baseline and not group) or (compared and compared.ratio > 1):
            limits.add(name)
    return limits


def _untimed(finding: Finding) -> Iterator[Standing]:
    timed_names = {CONTROL, *(timing.variant for timing in finding.timings)}
    problems = {t.variant: _how_it_ended(t) for t in finding.trials if not t.is_try}
    for name, reason in finding.unavailable.items():
        reason = without_marks(one_line(reason, _MESSAGE))
        problems.setdefault(name, f"was not run: {reason}")
    for name in finding.code:
        problems.setdefault(name, "was not reached")
    for name, problem in problems.items():
        if name not in timed_names:
            yield Standing(variant=name, group="", problem=problem)


def _groups(finding: Finding) -> dict[str, str]:
    """The baseline that each timed variant goes back to."""
    against = {c.variant: c.baseline for c in finding.comparisons}
    baselines = {finding.baseline, *against.values()}

    def root(name: str) -> str:
        # At most as many steps as there are, because a file may lead in rings.
        for _ in against:
            name = against.get(name, name)
        return name

    roots = {t.variant: root(t.variant) for t in finding.timings}
    return {name: group if group in baselines else "" for name, group in roots.items()}


def _how_it_ended(trial: Trial) -> str:
    words = _ENDED[trial.outcome]
    message = without_marks(one_line(trial.message, _MESSAGE))
    if not message or trial.outcome in ("stopped", "completed"):
        return words
    return message if message.startswith(words) else f"{words}: {message}"


def _some_failed(finding: Finding, variant: str) -> str:
    """What went wrong in a variant that was timed all the same."""
    ended = [t.outcome for t in finding.trials if t.variant == variant]
    failed = collections.Counter(e for e in ended if e not in ("completed", "stopped"))
    return ", ".join(f"{n} of {len(ended)} {_ENDED[e]}" for e, n in failed.items())


COLUMNS = (
    *("variant", "rate", "low", "high"),
    *("against", "ratio", "ratio_low", "ratio_high", "verdict"),
    *("trials", "setup_s", "first_call_s", "problem"),
)


@records.table.register(Finding)
def table(finding: Finding) -> "DataFrame":
    """One row per variant, the fastest first; rates in examples per second.

    Microbenchmarks count something else each: two more columns say what, and the
    limit in theory.
    """
    rows = [_row(standing) for standing in standings(finding)]
    extra = ("unit", "limit") if has_microbenchmarks(finding) else ()
    return records.frame(rows, (*COLUMNS, *extra))


def _row(standing: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {"variant": standing.variant, "problem": standing.problem}
    row |= {"unit": standing.unit, "limit": standing.limit}
    if standing.timing:
        row |= vars(standing.timing)
        row["verdict"] = "baseline" if standing.is_baseline else ""
    if compared := standing.comparison:
        row |= {"against": compared.baseline, "verdict": compared.judgement}
        # What is not known is no number here either.
        if units.is_known(compared.low, compared.high):
            row["ratio"] = compared.ratio
            row |= {"ratio_low": compared.low, "ratio_high": compared.high}
    return row


_OF_CAUSE = ("cause", "kind", "fix", "grade")


@records.table.register(Diagnosis)
def diagnosis_table(diagnosis: Diagnosis) -> "DataFrame":
    """One row per change, the largest gain first; its cause is "" where unclaimed.

    The training as given has its row too: its ratio is empty.
    """
    data = table(diagnosis.finding)
    causes = {cause.change: cause for cause in diagnosis.causes}
    for name in _OF_CAUSE:
        data[name] = [
            getattr(causes.get(variant), name, "") for variant in data["variant"]
        ]
    columns = ["variant", *_OF_CAUSE, *COLUMNS[1:]]
    return data[columns].rename(columns={"variant": "change"})


def time_shares(trials: Iterable[Trial]) -> dict[str, float]:
    """The share of each part of a step over completed trials, without first calls."""
    spent, parts = 0.0, dict[str, float]()
    for trial in trials:
        if trial.outcome == "completed":
            spent += sum(ended - began for began, ended, _ in trial.worked[1:])
            for part, seconds in trial.parts.items():
                parts[part] = parts.get(part, 0.0) + sum(seconds[1:])
    return {part: min(1.0, s / spent) for part, s in parts.items()} if spent > 0 else {}
