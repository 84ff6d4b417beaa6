"""Many machines in one table: a dot for each in every row, and who is not ready."""

import functools
import math
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.tables import frame
from perfkit.findings.text import minute, plain
from perfkit.findings.training import seconds
from perfkit.machine.checks.base import Check
from perfkit.machine.record import Machine
from perfkit.machines.compare import BUSY, Pictured, widened
from perfkit.machines.record import Passport, load, parse, to_json
from perfkit.machines.report import too_short
from perfkit.machines.sides import STEP, Key, side_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from perfkit.charts.canvas import Figure

# The median of one machine is that machine, and of two their mean: each would be
# compared with itself.
MEDIAN_FROM = 3
# More names than this are read by nobody; a table has them all.
_NAMED = 12
_LONGEST = 60
# A school has fewer; what is more is a folder that was given by mistake.
_MOST_FILES = 5000
# What tells of the load is all that a class needs of a machine's samples.
_LOAD = ("cpu_trial", "cpu_other")
# Speed over the median machine's, with its 95 % interval: low, ratio, high.
Ends = tuple[float, float, float]
_COLUMNS = (
    *("machine", "what", "recorded", "missing", "fails", "slowest", "speed"),
    *("path", "problem"),
)


def missing_part(machine: Machine) -> str:
    """Why a machine cannot run the notebooks; "" where it can."""
    if machine.start is not None and machine.start.problem:
        return f"TensorFlow does not start: {plain(machine.start.problem)}"
    none = machine.software is not None and machine.software.build == "none"
    if none or not any(
        "tensorflow" in name or name.startswith("tf-") for name in machine.versions
    ):
        return "TensorFlow is not installed: run `python3 start.py setup` again."
    return ""


def failing(checks: Sequence[Check]) -> Iterator[str]:
    """What fails on a machine, and what to do about it, a sentence each."""
    for check in checks:
        if check.status == "fail":
            remedy = f": {plain(check.remedy)}" if check.remedy else ""
            yield f"{plain(check.title)}{remedy}"


@dataclass(frozen=True)
class Measure:
    """One row of the table, over all machines.

    Attributes:
        key: The row: of which training, and which part.
        unit: ``"s"`` for seconds, else what is counted per second.
        speeds: By the place of a machine in its class: the logarithm of its speed, and
            half of the 95 % interval of that.
    """

    key: Key
    unit: str
    speeds: dict[int, tuple[float, float]]

    @property
    def name(self) -> str:
        """What it is called."""
        return ", ".join(filter(None, self.key))

    @functools.cached_property
    def median(self) -> float | None:
        """The median logarithm; None where too few machines measured it."""
        if len(self.speeds) < MEDIAN_FROM:
            return None
        return statistics.median(middle for middle, _ in self.speeds.values())

    @property
    def in_words(self) -> str:
        """The value of the median machine."""
        if self.median is None:
            return "too few to say"
        if self.unit == "s":
            return seconds(math.exp(-self.median))
        return units.rate(math.exp(self.median), self.unit)

    def ratio(self, place: int | None) -> float | None:
        """A machine's speed over the median one's; None where either is unknown."""
        ends = self.ends(place)
        return ends[1] if ends else None

    def ends(self, place: int | None, looks: int = 1) -> Ends | None:
        """The same with its interval, so wide that so many of them hold at once."""
        if place not in self.speeds or self.median is None:
            return None
        middle, half = self.speeds[place]
        lowest = statistics.median(m - h for m, h in self.speeds.values())
        highest = statistics.median(m + h for m, h in self.speeds.values())
        error = math.hypot(half, (highest - lowest) / 2) * widened(looks)
        ratio = middle - self.median
        return math.exp(ratio - error), math.exp(ratio), math.exp(ratio + error)

    @property
    def ratios(self) -> list[float]:
        """Every machine's speed over the median one's."""
        return [ratio for place in self.speeds if (ratio := self.ratio(place))]


@dataclass(frozen=True, kw_only=True, repr=False)
class Classroom(Pictured):
    """Many machines, each with its passport.

    Attributes:
        passports: Of the machines, in the order of their files.
        problems: Why a file could not be read, by its path.
        you: The place of the reader's own machine among them; None if unknown.
    """

    passports: tuple[Passport, ...]
    problems: dict[Path, str]
    you: int | None = None

    @functools.cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The steps, their parts and the microbenchmarks, over all machines."""
        rows = dict[tuple[Key, str], Measure]()
        for place, passport in enumerate(self.passports):
            for key, value in side_of(passport).values.items():
                # Files come from anywhere: what counts something else is another row.
                row = rows.setdefault((key, value.unit), Measure(key, value.unit, {}))
                if value.log_speed:
                    middle, half = value.log_speed
                    # One trial shows nothing of how trials differ.
                    row.speeds[place] = middle, half if value.trials > 1 else math.inf
        return tuple(row for row in rows.values() if row.speeds)

    @functools.cached_property
    def not_ready(self) -> dict[str, list[str]]:
        """Why machines cannot run the notebooks, each reason with their names."""
        reasons = defaultdict[str, list[str]](list)
        for place, passport in enumerate(self.passports):
            if why := missing_part(passport.machine):
                reasons[why].append(self.name(place))
        return dict(reasons)

    @functools.cached_property
    def busy(self) -> list[str]:
        """The machines of which other programs took much while they were recorded."""
        taken = [side_of(passport).taken or 0.0 for passport in self.passports]
        return [self.name(place) for place, share in enumerate(taken) if share >= BUSY]

    def slowest(self, place: int) -> tuple[str, Ends] | None:
        """The training at which a machine is shown to be slowest; None for none."""
        steps = [one for one in self.measures if one.key[1] == STEP and one.key[0]]
        looks = len(steps) * (1 if self.you is not None else len(self.passports))
        known = [(one.key[0], one.ends(place, looks)) for one in steps]
        slower = [(name, ends) for name, ends in known if ends and ends[2] < 1]
        return min(slower, key=lambda pair: pair[1][1], default=None)

    def name(self, place: int) -> str:
        """What a machine is called: as its file, else by its label.

        Whoever collects the files names each after its owner; the label stays as it
        was when the passport was made.
        """
        passport = self.passports[place]
        file = plain(passport.path.stem, _LONGEST) if passport.path else ""
        return file or plain(passport.label, _LONGEST) or f"machine {place + 1}"

    @functools.cached_property
    def chart(self) -> "Figure":
        """Every machine in every row, relative to the median machine."""
        from perfkit.machines.charts import strips

        return strips(self)

    def table(self) -> "DataFrame":
        """One row per file; the last column says what is wrong with one."""
        rows = [self.row(place) for place in range(len(self.passports))]
        rows += [{"path": p, "problem": why} for p, why in self.problems.items()]
        return frame(rows, _COLUMNS)

    def row(self, place: int) -> dict[str, Any]:
        """One machine, by the columns of the table."""
        passport = self.passports[place]
        training, ends = self.slowest(place) or ("", None)
        return {
            "machine": self.name(place),
            "what": plain(passport.machine.summary),
            "recorded": minute(passport.recorded),
            "missing": missing_part(passport.machine),
            "fails": "; ".join(failing(passport.checks)),
            "slowest": training,
            "speed": ends[1] if ends else None,
            "path": passport.path,
            "problem": "",
        }

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files of the passports."""
        return tuple(one.path for one in self.passports if one.path)

    @property
    def report(self) -> Report:
        """What a person reads of it."""
        tables = [table for table in _tables(self) if table.rows]
        return Report(
            verdict=_verdict(self),
            table=tables[0] if tables else None,
            charted=bool(self.passports),
            besides=tuple(_remarks(self)),
            folds=tuple(Fold(table.title, tables=(table,)) for table in tables[1:]),
        )


def classroom(
    folder: str | Path, you: Passport | str | Path | None = None
) -> Classroom:
    """Put the machines of a folder of passports side by side.

    Args:
        folder: Where the files lie; each machine's is one ``.json``.
        you: Your own machine's passport, or its file, which the chart then marks. It
            may lie in the folder or elsewhere.

    Raises:
        BadFileError: ``you`` is no passport. In the folder such a file is a row that
            says so.
        BadParameterError: There is no such folder, or more files than a class has.
    """
    passports: list[Passport] = []
    problems: dict[Path, str] = {}
    for path in _files(Path(os.path.expanduser(folder))):
        try:
            passports.append(_slim(load(path)))
        except BadFileError as error:
            problems[path] = str(error)
    place = None
    if you is not None:
        # A file has fewer digits than what was measured: the same machine all the same.
        own = load(you) if isinstance(you, str | Path) else you
        yours = _slim(parse(to_json(own).encode(), own.label))
        if own.path:
            store.remember(yours, own.path)
        # So it is where the file has another label, or names that this one lacks.
        nameless = [_nameless(passport) for passport in passports]
        if _nameless(yours) not in nameless:
            passports.append(yours)
            nameless.append(_nameless(yours))
        same = yours in passports
        place = passports.index(yours) if same else nameless.index(_nameless(yours))
    return Classroom(passports=tuple(passports), problems=problems, you=place)


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
    if len(paths) > _MOST_FILES:
        raise BadParameterError(
            f"{plain(str(folder))} holds {len(paths):,} files; give a folder with the "
            f"passports alone, {_MOST_FILES:,} at most."
        )
    return paths


def _slim(passport: Passport) -> Passport:
    """Without most of its samples, of which a thousand machines would fill memory."""
    samples = {n: passport.samples[n] for n in _LOAD if n in passport.samples}
    slim = replace(passport, samples=samples)
    if passport.path:
        store.remember(slim, passport.path)
    return slim


def _nameless(passport: Passport) -> Passport:
    return replace(passport, label="", host="", user="")


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, but no more than are read."""
    more = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _verdict(room: Classroom) -> Verdict:
    """Whom to help first: who is not ready, then who is shown to be slow."""
    if not room.passports:
        make = "`perfkit passport -o NAME.json` makes a machine's."
        return Verdict(
            headline="A class of 0 machines", next=f"No passport lies there: {make}"
        )
    mine = None if room.you is None else room.name(room.you)
    for why, names in room.not_ready.items():
        if mine is None or mine in names:
            who = f"your machine, {mine}," if mine else listed(names)
            return Verdict(headline=f"See to {who} first.", much=why, sure="sure")
    count = f"the median of {len(room.passports)} machines"
    places = range(len(room.passports)) if room.you is None else [room.you]
    slowest = {place: slow for place in places if (slow := room.slowest(place))}
    if not slowest:
        none = f"Your machine, {mine}, is not" if mine else "No machine is"
        return Verdict(headline=f"{none} shown to be slower than {count}.")
    place = min(slowest, key=lambda place: slowest[place][1][1])
    training, (low, ratio, high) = slowest[place]
    takes = f"takes {units.times(1 / ratio)} times as long there as on {count}"
    return Verdict(
        headline=f"Look at {f'your machine, {mine},' if mine else room.name(place)} "
        "first.",
        much=f"{training[:1].upper()}{training[1:]} {takes}.",
        sure="sure",
        interval=f"{units.times(1 / high)} to {units.times(1 / low)}",
    )


def _remarks(room: Classroom) -> Iterator[str]:
    """Who is not ready, who was busy, whose passports hold no training."""
    for why, names in room.not_ready.items():
        yield f"Not ready: {listed(names)}. {why}"
    if room.passports and not room.not_ready:
        yield "Every machine is ready."
    if room.busy:
        yield (
            f"Busy with other programs: {listed(room.busy)}. Their numbers may be "
            "those of the load: record them again."
        )
    short = defaultdict[str, list[str]](list)
    for place, passport in enumerate(room.passports):
        if why := too_short(passport):
            short[why].append(room.name(place))
    yield from (f"{listed(names)}: {why}" for why, names in short.items())


def _tables(room: Classroom) -> Iterator[Table]:
    yield Table(
        "The steps, their parts and the parts of the machines",
        ("row", "machines", "median machine", "slowest", "fastest"),
        tuple(
            (one.name, str(len(one.speeds)), one.in_words, *_extremes(room, one))
            for one in room.measures
        ),
    )
    rows = [room.row(place) for place in range(len(room.passports))]
    yield Table(
        "The machines",
        ("machine", "what it is", "recorded", "slowest at", "not ready, or failing"),
        tuple(
            (
                f"{row['machine']}{' (you are here)' if place == room.you else ''}",
                *(row["what"], row["recorded"]),
                f"{row['slowest']}, {units.ratio(row['speed'])}"
                if row["speed"]
                else "",
                "; ".join(filter(None, (row["missing"], row["fails"]))),
            )
            for place, row in enumerate(rows)
        ),
        -1 if room.you is None else room.you,
    )
    yield Table(
        "Files that are no passport",
        ("file", "why"),
        tuple((path.name, why) for path, why in room.problems.items()),
    )


def _extremes(room: Classroom, measure: Measure) -> Iterator[str]:
    """Who is slowest and who fastest, relative to the median machine."""
    order = sorted(measure.speeds, key=lambda place: measure.speeds[place][0])
    for place in (order[0], order[-1]):
        ratio = measure.ratio(place)
        yield f"{units.ratio(ratio)} {room.name(place)}" if ratio else room.name(place)
