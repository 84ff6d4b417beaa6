"""Thirty machines: who they are, what they can run, how fast they are."""

import functools
import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.charts.figure import Figure
from perfkit.errors import BadFileError, BadParameterError
from perfkit.experiments import experiments
from perfkit.experiments.replay import read_all
from perfkit.findings import store
from perfkit.findings.record import Finding
from perfkit.findings.report import Report, Shown, in_html
from perfkit.findings.reports import TYPED
from perfkit.findings.standing import standings
from perfkit.findings.tables import frame
from perfkit.findings.text import minute, plain
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Machine
from perfkit.machines import room
from perfkit.machines.room import Answer
from perfkit.passports.passport import Passport, load, parse, to_json
from perfkit.passports.words import title

if TYPE_CHECKING:
    from pandas import DataFrame


def notebooks() -> tuple[str, ...]:
    """The notebooks that ask any question that there is here, in their order."""
    every = experiments().values()
    return tuple(sorted(notebook for kind in every for notebook in kind.notebooks))


def unable(machine: Machine) -> dict[str, str]:
    """The notebooks that a machine cannot run, by name, with the reason."""
    found = {}
    for kind in experiments().values():
        reasons = [_missing(machine, one) for one in kind.needs]
        why = next(filter(None, reasons), "")
        found.update(dict.fromkeys(kind.notebooks, why))
    return {notebook: why for notebook, why in sorted(found.items()) if why}


def can_run(machine: Machine) -> str:
    """Which notebooks a machine can run, and why not others: the end of a sentence."""
    why = unable(machine)
    reasons = "; ".join(dict.fromkeys(why.values()))
    return f"{_which(tuple(why))}: {reasons}" if why else "can run every notebook"


def _which(cannot: tuple[str, ...]) -> str:
    """The notebooks, the short way round."""
    others = [name for name in notebooks() if name not in cannot]
    if not others:
        return "can run no notebook"
    if len(others) < len(cannot):
        return f"can run only {' and '.join(others)}"
    return f"cannot run {', '.join(cannot)}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, but no more than are read."""
    more = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def held_back(checks: Iterable[Check]) -> Iterator[str]:
    """What fails on a machine, and what to do about it, a sentence each."""
    for check in checks:
        if check.status == "fail":
            remedy = f": {plain(check.remedy)}" if check.remedy else ""
            yield f"{plain(check.title)}{remedy}"


def _missing(machine: Machine, library: str) -> str:
    """Why a library cannot be used on a machine; "" where it can."""
    if library != "tensorflow":
        there = library in machine.versions
        return "" if there or not machine.versions else f"{library} is not installed"
    if machine.start is not None and machine.start.problem:
        return f"TensorFlow does not start: {plain(machine.start.problem)}"
    if machine.software is not None and machine.software.build == "none":
        return "TensorFlow is not installed"
    if not any("tensorflow" in n or n.startswith("tf-") for n in machine.versions):
        return "TensorFlow is not installed"
    return ""


_NAME, _CLAIM = 60, 80
# More names than this are read by nobody; a table has them all.
_NAMED = 12
# More rows than the microbenchmarks and the reference trainings have fit no chart.
_MEASURES_MOST = 60
# The median of one machine is that machine, and of two their mean: each would be held
# against itself.
MEDIAN_FROM = 3
# Five ratios all lie on one side of a machine's true speed once in 16 times, four once
# in 8; and two parts that were disturbed cannot be the middle of five.
SPEED_FROM = 5
Ends = tuple[float | None, float | None]
# What was asked, what is held against what.
Claim = tuple[str, str, str]


@dataclass(frozen=True)
class Measure:
    """One microbenchmark or reference training, over all machines.

    Attributes:
        name: Of the microbenchmark or the training.
        group: The part of the machine that it tries.
        unit: What is counted per second.
        rates: By the place of a machine in its class; those without it are left out.
        ends: The 95 % intervals of the rates; those that are not known are left out.
    """

    name: str
    group: str
    unit: str
    rates: dict[int, float] = field(default_factory=dict)
    ends: dict[int, tuple[float, float]] = field(default_factory=dict)

    @functools.cached_property
    def median(self) -> float | None:
        """The rate of the median machine; None where too few measured it."""
        if len(self.rates) < MEDIAN_FROM:
            return None
        return statistics.median(self.rates.values())

    def ratio(self, place: int | None) -> float | None:
        """A machine's rate over the median; None where either is not known."""
        rate = None if place is None else self.rates.get(place)
        return rate / self.median if rate and self.median else None

    def ratio_ends(self, place: int) -> tuple[float, float] | None:
        """From where to where a machine's ratio may lie; None where it is not known.

        The median rate lies between the medians of all lower and of all upper ends.
        """
        if place not in self.ends or self.median is None:
            return None
        known = [self.ends.get(at, (rate, rate)) for at, rate in self.rates.items()]
        low, high = (statistics.median(some) for some in zip(*known, strict=True))
        return self.ends[place][0] / high, self.ends[place][1] / low

    @property
    def ratios(self) -> list[float]:
        """Every machine's rate over the median, the lowest first; none without one."""
        return sorted(filter(None, map(self.ratio, self.rates)))

    @property
    def spread(self) -> float | None:
        """The ratio that nine in ten reach to the one that one in ten does.

        None for fewer than four machines, of which no tenth can be taken.
        """
        if len(self.rates) < 4:
            return None
        tenths = statistics.quantiles(self.ratios, n=10, method="inclusive")
        return tenths[-1] / tenths[0]


def _rates(passport: Passport) -> Iterator[tuple[Measure, float, Ends]]:
    """What a machine reached, with the ends of its interval where they are known."""
    for one in passport.trainings:
        if one.rate:
            of = Measure(title(one), "reference trainings", "examples")
            # The longest step is the lowest rate.
            low, high = (end and one.batch / end for end in (one.high, one.low))
            yield of, one.rate, (low, high)
    for part in passport.microbenchmarks:
        if part.rate:
            told = plain(part.name, _NAME), plain(part.group, _NAME)
            of = Measure(*told, plain(part.unit, 20))
            yield of, part.rate, (part.low, part.high)


COLUMNS = (
    *("machine", "what", "recorded", "speed", "slowest", "its_speed", "measured"),
    *("cannot_run", "because", "fails", "path", "problem"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Classroom(Shown):
    """Many machines, each with its passport, and what the room check told.

    Attributes:
        passports: Of the machines, by label.
        problems: Why a file could not be read, by its path.
        you: The place of the reader's own machine among them; None if unknown.
        answers: The lines of the class's list, if there is one.
        claims: Of each claim, how many machines say what.
        chosen: The claims of which a machine's verdict named the faster one to take.
    """

    passports: tuple[Passport, ...]
    problems: dict[Path, str]
    you: int | None = None
    answers: tuple[Answer, ...] = ()
    claims: dict[Claim, Counter[str]] = field(default_factory=dict)
    chosen: frozenset[Claim] = frozenset()

    @functools.cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The reference trainings and microbenchmarks, over all machines."""
        found = dict[tuple[str, str], Measure]()
        for place, passport in enumerate(self.passports):
            for of, rate, (low, high) in _rates(passport):
                # Files come from anywhere: what counts something else is another.
                one = found.setdefault((of.name, of.unit), of)
                one.rates[place] = rate
                if low and high:
                    one.ends[place] = low, high
        wanted = sorted(found, key=lambda key: -len(found[key].rates))[:_MEASURES_MOST]
        return tuple(one for key, one in found.items() if key in wanted)

    @functools.cached_property
    def chart(self) -> Figure:
        """Every machine on every microbenchmark, relative to the median machine."""
        from perfkit.machines.class_page import picture

        return picture(self)

    def table(self) -> "DataFrame":
        """One row per file; ``speed`` is the median ratio to the median machine.

        It is left out where a machine shares too few parts with others. A file that is
        no passport has a row too; the last column says what is wrong.
        """
        rows = [self.row(place) for place in range(len(self.passports))]
        rows += [{"path": p, "problem": why} for p, why in self.problems.items()]
        return frame(rows, COLUMNS)

    def export(self, path: str | Path) -> Path:
        """Write all of it as one HTML page that needs no network.

        Raises:
            BadFileError: It cannot be written.
            BadParameterError: ``path`` is no place for a page.
        """
        from perfkit.export.page import save
        from perfkit.machines.class_page import page

        sources = [passport.path for passport in self.passports if passport.path]
        return save(path, lambda: page(self), sources)

    def row(self, place: int) -> dict[str, Any]:
        """One machine, by ``COLUMNS``."""
        passport = self.passports[place]
        ratios = [r for one in self.measures if (r := one.ratio(place)) is not None]
        slowest = self._slowest(place)
        cannot = unable(passport.machine)
        return {
            "machine": self.name(place),
            "what": plain(passport.machine.summary),
            "recorded": minute(passport.recorded),
            "speed": statistics.median(ratios) if len(ratios) >= SPEED_FROM else None,
            "slowest": slowest.name if slowest else "",
            "its_speed": slowest.ratio(place) if slowest else None,
            "measured": sum(place in one.rates for one in self.measures),
            "cannot_run": ", ".join(cannot),
            "because": "; ".join(dict.fromkeys(cannot.values())),
            "fails": "; ".join(held_back(passport.checks)),
            "path": passport.path,
            "problem": "",
        }

    def _slowest(self, place: int) -> Measure | None:
        """What a machine is slowest at, of what it is shown to be slower at."""
        slower = [
            (ratio, at)
            for at, one in enumerate(self.measures)
            if (ratio := one.ratio(place)) and (one.ratio_ends(place) or (1, 1))[1] < 1
        ]
        return self.measures[min(slower)[1]] if slower else None

    def speed_ends(self, place: int) -> tuple[float, float]:
        """From where to where a machine's speed may lie, as a ratio to the median one.

        It is the median of its ratios, and a median lies within the medians of the
        ends. What is not known is (0, infinity).
        """
        measured = [one for one in self.measures if one.ratio(place)]
        ends = [one.ratio_ends(place) or (0.0, math.inf) for one in measured]
        low, high = (statistics.median(some) for some in zip(*ends, strict=True))
        return low, high

    def name(self, place: int) -> str:
        """What a machine is called: as its file, or as its label if that is listed.

        A folder holds no two files of one name, and whoever collects them names each
        after its owner; the label stays as it was when the passport was made.
        """
        passport = self.passports[place]
        file = passport.path.stem if passport.path else ""
        told = [plain(one, _NAME) for one in (file, passport.label)]
        named = [*filter(None, told), f"machine {place + 1}"]
        return next((one for one in named if self.is_listed(one)), named[0])

    def is_listed(self, name: str) -> bool:
        """Whether somebody of the class's list is called so."""
        return name.casefold() in {one.name.casefold() for one in self.answers}

    @functools.cached_property
    def machines(self) -> tuple[tuple[str, Machine], ...]:
        """Every machine that is known, by name: from a passport, else by its code."""
        named = [(self.name(at), one.machine) for at, one in enumerate(self.passports)]
        known = {name.casefold() for name, _ in named}
        told = [one for one in self.answers if one.name.casefold() not in known]
        return (*named, *((one.name, one.laptop.machine) for one in told if one.laptop))

    @property
    def unanswered(self) -> tuple[Answer, ...]:
        """Those of the list whose machine is not known."""
        known = {name.casefold() for name, _ in self.machines}
        return tuple(one for one in self.answers if one.name.casefold() not in known)

    @property
    def unable(self) -> dict[str, list[str]]:
        """What some machines cannot run and why, the end of a sentence, with names."""
        alike = dict[str, list[str]]()
        for name, machine in self.machines:
            if unable(machine):
                alike.setdefault(can_run(machine).rstrip("."), []).append(name)
        return alike

    @property
    def cannot(self) -> tuple[str, ...]:
        """Which machines cannot run which notebooks and why, in sentences."""
        return tuple(f"{listed(names)} {what}." for what, names in self.unable.items())

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        from perfkit.machines.class_page import report

        return report(self)

    def _repr_html_(self) -> str:
        return in_html(self.report, figure=self.chart.in_page())


# A school has fewer; what is more is a folder that was given by mistake.
_READING_MOST = 5000


def classroom(
    folder: str | Path, you: Passport | str | Path | None = None
) -> Classroom:
    """Hold the machines of a folder of passports against each other.

    Args:
        folder: Where the files lie; each machine's is one ``.json``. A list of the
            class with the codes of ``perfkit doctor --workshop``, a name and a code
            per line, is ``codes.txt``. A folder in it is what one machine has found,
            its ``perfkit-findings``.
        you: Your own machine's passport, or its file, which the chart then marks. It
            may lie in the folder or elsewhere.

    Raises:
        BadFileError: ``you`` is no passport. In the folder such a file is a row that
            says so.
        BadParameterError: There is no such folder, or more files than a class has.
    """
    passports: list[Passport] = []
    problems: dict[Path, str] = {}
    place = Path(os.path.expanduser(folder))
    for path in _files(place):
        try:
            passports.append(_slim(load(path)))
        except BadFileError as error:
            problems[path] = str(error)
    told = room.answers(place)
    at = None
    if you is not None:
        # A file has fewer digits than what was measured: the same machine all the same.
        one = load(you) if isinstance(you, str | Path) else you
        yours = _slim(parse(to_json(one).encode(), one.label))
        if one.path:
            store.remember(yours, one.path)
        if yours not in passports:
            # So it is where the file has another label, or names that this one lacks.
            alike = (one for one in passports if _nameless(one) == _nameless(yours))
            yours = next(alike, yours)
        if yours not in passports:
            passports.append(yours)
        at = passports.index(yours)
    claims, chosen = _claims_in(place)
    return Classroom(
        passports=tuple(passports),
        problems=problems,
        you=at,
        answers=told,
        claims=claims,
        chosen=chosen,
    )


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(folder))}; give the one that the passports "
            "lie in."
        )
    # Where macOS copies a file, one that begins with a dot comes along.
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() == ".json" and not path.name.startswith(".")
    )
    if len(paths) > _READING_MOST:
        raise BadParameterError(
            f"{plain(str(folder))} holds {len(paths):,} files; give a folder with the "
            f"passports alone, {_READING_MOST:,} at most."
        )
    return paths


def _slim(passport: Passport) -> Passport:
    """Without its samples, which nothing of a class shows and a thousand would fill."""
    slim = replace(passport, samples={}, phases={})
    if passport.path:
        store.remember(slim, passport.path)
    return slim


def _nameless(passport: Passport) -> Passport:
    return replace(passport, label="", host="", user="")


def _claims_in(folder: Path) -> tuple[dict[Claim, Counter[str]], frozenset[Claim]]:
    """Count the answers that lie in the sub-folders of a class, a machine each.

    A machine that asked twice counts with its newest run. Recordings that were shown in
    place of a run are no answers.
    """
    found: dict[Claim, Counter[str]] = defaultdict(Counter)
    chosen = set[Claim]()
    for machine in sorted(path for path in folder.iterdir() if path.is_dir()):
        said = dict[Claim, str]()
        for finding in sorted(_findings(machine), key=lambda one: one.recorded):
            for claim, answer, is_chosen in _said(finding):
                said[claim] = answer
                # What is faster may be another layer, or nothing that can be chosen.
                chosen |= {claim} if is_chosen else set()
        for claim, answer in said.items():
            found[claim][answer] += 1
    return dict(found), frozenset(chosen)


def _findings(machine: Path) -> Iterator[Finding]:
    # A diagnosis or a race is about trainings of one's own: no claim that others share.
    for finding in read_all(machine, store.load_finding):
        is_own = TYPED in finding.parameters
        if not (is_own or finding.replayed or finding.ended_early):
            yield finding


def _said(finding: Finding) -> Iterator[tuple[Claim, str, bool]]:
    asked = _asked(finding)
    for standing in standings(finding):
        held = standing.comparison
        if held and not standing.is_limit:
            one, other = plain(held.variant, _CLAIM), plain(held.baseline, _CLAIM)
            is_chosen = standing.variant == finding.verdict.winner
            yield (asked, one, other), held.verdict, is_chosen


def _asked(finding: Finding) -> str:
    """What was asked, with what makes it another question."""
    set_to = (f"{name}={value}" for name, value in finding.parameters.items() if value)
    # How it was set is part of what was asked: other sizes, another answer.
    return plain(f"{finding.experiment} ({', '.join(set_to)})", 2 * _CLAIM)
