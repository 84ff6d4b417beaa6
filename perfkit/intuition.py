"""How good is your intuition? What was guessed before runs, and what they measured."""

import contextlib
import datetime
import os
import statistics
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perfkit import units
from perfkit.errors import BadFileError, PerfkitError
from perfkit.experiments import experiment
from perfkit.findings import reading, store
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding, Verdict
from perfkit.findings.report import Report, Shown, Table
from perfkit.findings.standing import (
    LEAST_ROUNDS,
    SIDES,
    Standing,
    guess,
    has_microbenchmarks,
    measurement,
    ratio_in,
    standings,
)
from perfkit.findings.store import Recorded, finding_of
from perfkit.findings.tables import frame
from perfkit.findings.text import plain
from perfkit.measure.statistics import Comparison

if TYPE_CHECKING:
    from pandas import DataFrame

# What was measured in words, whether the guess held, and by what factor it missed.
Answer = tuple[str, bool | None, float | None]
# Beside the findings: what was guessed where a run leaves none.
_KEPT = "guesses.jsonl"
_COLUMNS = (
    *("recorded", "replayed", "question", "guess"),
    *("measured", "held", "factor"),
)
_TITLE = "Your guesses, the oldest first"
_NONE = 'No run here has a guess yet: put one into "your guess" before you press Run.'
_OPEN = "No guess can be judged yet: what was measured does not say whether it holds."
_NO_GUESS_READ = "No guess could be read: write a ratio as 2x, or a name of the table."
_NOT_READ = "not read: write 2x, or a name"


@dataclass(frozen=True, kw_only=True)
class Guessed:
    """One guess, and what the run measured.

    Attributes:
        recorded: When the run began, or a recording was shown here, ISO 8601.
        question: The experiment, or the training that was diagnosed.
        guess: As the reader wrote it.
        measured: In words; what a ratio lies between with 95 % confidence.
        held: Whether the measurement agrees with it; None where that is not known.
        factor: The guessed ratio over the measured one; None for a name.
        replayed: Whether a recording was shown in place of a run.
        read: Whether it names a ratio, or something that was measured.
    """

    schema: Literal[1] = 1
    kind: Literal["guess"] = "guess"
    recorded: str
    question: str
    guess: str
    measured: str
    held: bool | None = None
    factor: float | None = None
    replayed: bool = False
    read: bool = True


@dataclass(frozen=True, repr=False)
class Guesses(Shown):
    """All guesses of a folder, the oldest first."""

    all: tuple[Guessed, ...] = ()

    def table(self) -> "DataFrame":
        """One row per guess; ``factor`` is the guessed ratio over the measured one."""
        rows = [{name: getattr(one, name) for name in _COLUMNS} for one in self.all]
        return frame(rows, _COLUMNS)

    @property
    def report(self) -> Report:
        """What a person reads of them."""
        said = {True: "held", False: "did not hold", None: units.UNKNOWN}
        rows = tuple(
            (
                plain(one.question, 40) + " (recorded)" * one.replayed,
                plain(one.guess, 40),
                plain(one.measured, 120),
                said[one.held] if one.read else _NOT_READ,
            )
            for one in self.all
        )
        return Report(
            verdict=Verdict(headline=self._headline, much=self._much),
            table=Table(_TITLE, ("question", "your guess", "measured", ""), rows),
        )

    @property
    def _headline(self) -> str:
        judged = [one for one in self.all if one.held is not None]
        if not judged and self.all and not any(one.read for one in self.all):
            return _NO_GUESS_READ
        if not judged:
            return _OPEN if self.all else _NONE
        held = sum(bool(one.held) for one in judged)
        return f"{held} of {len(judged)} guesses held."

    @property
    def _much(self) -> str:
        missed = [one.factor for one in self.all if one.held is False and one.factor]
        if not missed:
            return ""
        usual = statistics.median(max(factor, 1 / factor) for factor in missed)
        high = sum(factor > 1 for factor in missed)
        return (
            f"Of the ratios that did not hold, {high} of {len(missed)} were too high; "
            f"the usual miss was a factor of {units.times(usual)}."
        )


def guesses(folder: str | Path | None = None) -> Guesses:
    """Hold what you guessed against what was measured, over all runs of a folder.

    A ratio holds where it lies within the 95 % interval of what was measured, a name
    where the fastest of the others is shown to bring no more. What a run was too noisy
    to say is not held against anybody. A guess counts once, with the last run that was
    made with it. Recordings count as runs do: they are marked, and stand where they
    were shown.

    Args:
        folder: Of findings; None for ``perfkit-findings`` in the current directory.
    """
    home = Path(os.path.expanduser(folder or store.FOLDER))
    found = [judged for path in home.glob("*.json") for judged in _judged(path)]
    found += [((one.question, one.measured), one) for one in _kept(home / _KEPT)]
    found.sort(key=lambda judged: judged[1].recorded)
    last = {(asked, one.guess.casefold()): one for asked, one in found}
    return Guesses(tuple(sorted(last.values(), key=lambda one: one.recorded)))


def keep(
    question: str,
    guess: str,
    measured: object,
    ratio: Comparison | None = None,
    folder: str | Path | None = None,
) -> None:
    """Keep a guess about something that leaves no finding, where ``guesses`` reads it.

    Without a guess nothing is kept. Where it cannot be written, a warning says so: what
    was measured is not lost for that.

    Args:
        question: What it is about.
        guess: As the reader wrote it; "" for none.
        measured: What came of it: a sentence, or anything that can be written as one.
        ratio: What a guessed ratio is held against; None for nothing.
        folder: Of findings; None for ``perfkit-findings`` in the current directory.
    """
    words = plain(guess, 80)
    if not words:
        return
    held, factor = None, None
    expected = ratio_in(words)
    if ratio and expected and units.is_known(ratio.low, ratio.high):
        held, factor = _holds(ratio, expected), expected / ratio.ratio
    one = Guessed(
        recorded=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        question=question,
        guess=words,
        measured=plain(str(measured), 200),
        held=held,
        factor=factor,
        read=expected is not None,
    )
    path = Path(os.path.expanduser(folder or store.FOLDER)) / _KEPT
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(reading.encode(one) + b"\n")
    except OSError as error:
        warnings.warn(
            f"The guess could not be kept in {path.parent} ({error.strerror}); choose "
            "another folder.",
            stacklevel=3,
        )


def _kept(path: Path) -> Iterator[Guessed]:
    """The guesses that ``keep`` wrote; what is none of them is left out."""
    try:
        lines = store.whole_file(path).splitlines()
    except BadFileError:
        return
    for line in lines:
        with contextlib.suppress(BadFileError):
            yield reading.parse_as(Guessed, line, _KEPT)


def _judged(path: Path) -> Iterator[tuple[object, Guessed]]:
    """What a file asked, and the guess; nothing where there is none."""
    try:
        found = store.load(path)
    except BadFileError:
        return
    finding = finding_of(found)
    if not finding.guess:
        return
    words = guess(finding)
    if words.ratio:
        measured, held, factor = _of_ratio(found, finding, words.ratio)
    else:
        measured, held, factor = _of_name(finding, words.variant)
    recorded, asked = finding.recorded, f"{finding.parameters} {found.code}"
    if finding.replayed:
        # The copy was written when it was shown; what was run, was so long before.
        shown = datetime.datetime.fromtimestamp(path.stat().st_mtime).astimezone()
        recorded, asked = shown.isoformat(timespec="seconds"), finding.recorded
    question = found.training if isinstance(found, Diagnosis) else found.experiment
    yield (
        (question, asked),
        Guessed(
            recorded=recorded,
            replayed=finding.replayed,
            question=question,
            guess=words.words,
            measured=measured,
            held=held,
            factor=factor,
            read=bool(words.ratio or words.variant),
        ),
    )


def _of_ratio(found: Recorded, finding: Finding, expected: float) -> Answer:
    """What the variant reached that a ratio is about."""
    # Of a race, what it says before its rounds are made stands in the comparison.
    raced, about = SIDES in finding.parameters, _about(found, finding)
    reached = {one.variant: one.comparison if raced else one.ratio for one in about}
    known = [compared for compared in reached.values() if compared]
    if not known:
        return units.UNKNOWN, None, None
    compared = max(known, key=lambda one: one.ratio)
    measured = f"{plain(compared.variant, 40)}: {compared.interval}"
    if not units.is_known(compared.low, compared.high):
        return measured, None, None
    return measured, _holds(compared, expected), expected / compared.ratio


def _holds(compared: Comparison, expected: float) -> bool | None:
    """Whether a ratio may be what was guessed; None where that is too noisy to say."""
    held = compared.low <= expected <= compared.high
    return None if held and compared.verdict == "too noisy to say" else held


def _about(found: Recorded, finding: Finding) -> list[Standing]:
    """The variants of which a guessed ratio means the fastest."""
    stood = [one for one in standings(finding) if not one.is_limit]
    if isinstance(found, Diagnosis):
        # What can be changed, not what only shows what is possible.
        changes = {cause.change for cause in found.causes if not cause.is_ceiling}
        return [one for one in stood if one.variant in changes]
    named = _named(finding)
    return [one for one in stood if one.variant == named] if named else stood


def _named(finding: Finding) -> str:
    """The variant that the question says a ratio is about; "" for the fastest."""
    if SIDES in finding.parameters:
        return ""
    try:
        return experiment(finding.experiment, **finding.parameters).guessed
    except PerfkitError:
        # A question of somebody else's, or one that this machine cannot ask.
        return ""


def _of_name(finding: Finding, expected: str) -> Answer:
    """What is fastest, or furthest below its limit, and whether that was named."""
    if has_microbenchmarks(finding):
        return _furthest_below(finding, expected)
    stood = [
        one
        for one in standings(finding)
        if one.timing and not one.is_limit and one.group in (finding.baseline, "")
    ]
    ranked = sorted(stood, key=lambda one: -one.timing.rate if one.timing else 0.0)
    names = [one.variant for one in ranked]
    if len(names) < 2:
        return units.UNKNOWN, None, None
    first, second = names[:2]
    if expected not in names:
        return f"fastest: {plain(first, 40)}", None, None
    rival = first if expected != first else second
    compared = measurement(finding).compare(expected, rival)
    if compared and SIDES in finding.parameters:
        compared = compared.after(LEAST_ROUNDS)
    against = f"{plain(expected, 40)} against {plain(rival, 40)}"
    if compared is None:
        return f"{against}: {units.UNKNOWN}", None, None
    held = {"slower": False, "too noisy to say": None}.get(compared.verdict, True)
    return f"{against}: {compared.judgement}", held, None


def _furthest_below(finding: Finding, expected: str) -> Answer:
    """The part of a machine that reaches the smallest share of its limit."""
    shares = {
        one.variant: (one.timing.low / one.limit, one.timing.high / one.limit)
        for one in standings(finding)
        if one.timing and one.limit
    }
    if not shares:
        return units.UNKNOWN, None, None
    least = min(shares, key=lambda name: shares[name][1])
    most = shares[least][1]
    held = shares[expected][0] <= most if expected in shares else None
    return f"{plain(least, 40)}: at most {units.percent(most)}", held, None
