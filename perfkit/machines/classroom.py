"""Many machines in one table: a dot for each in every row, and who is not ready."""

import functools
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfkit import units
from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings import store
from perfkit.findings.report import Fold, Report, Table, Verdict
from perfkit.findings.text import as_sentence, listed, minute, one_line, plain
from perfkit.machine.starting import LATE
from perfkit.machines.compare import BUSY, Pictured, Row, compare_rows
from perfkit.machines.record import Key, Passport, Side, Value, side_of, write_amount

# The median of one machine is that machine, and of two their mean: each would be
# compared with itself.
MEDIAN_FROM = 3
# More names than this are read by nobody; a table has them all.
_NAMED = 12
_LONGEST = 60
# A school has fewer; what is more is a folder that was given by mistake.
_MOST_FILES = 5000


def missing_part(passport: Passport) -> str:
    """Why a machine cannot run the notebooks; "" where it can, or may."""
    machine, problem = passport.machine, _problem(passport)
    if problem and not problem.startswith(LATE):
        return f"TensorFlow does not start: {problem}"
    is_there = any("tensorflow" in n or n.startswith("tf-") for n in machine.versions)
    if not is_there or (machine.software and machine.software.build == "none"):
        return "TensorFlow is not installed: run `python3 start.py setup` again."
    return ""


def _problem(passport: Passport) -> str:
    """Why TensorFlow did not start; "" where it did, or trained all the same."""
    has_trained = any(training.seconds for training in passport.trainings)
    start = passport.machine.start
    return start.problem if start and not has_trained else ""


@dataclass(frozen=True)
class ClassRow:
    """A row of the table of two machines: A is the median machine, B each of a class.

    ``machines`` holds the row of each, by its place in the class.
    """

    machines: dict[int, Row]

    @functools.cached_property
    def speeds(self) -> dict[int, float]:
        """The machines' speeds over the median one's, the slowest first."""
        speeds = {place: row.speed or 1.0 for place, row in self.machines.items()}
        return dict(sorted(speeds.items(), key=lambda item: item[1]))

    @property
    def words(self) -> tuple[str, str]:
        """What the row is called, and what the median machine has."""
        row = next(iter(self.machines.values()))
        return row.title, write_amount(row.a, row.unit)


def median_side(sides: Sequence[Side]) -> Side:
    """The machine in the middle of each row that enough of them measured."""
    values = defaultdict[Key, list[Value]](list)
    jobs = defaultdict[str, list[tuple[tuple[str, str], ...]]](list)
    for side in sides:
        for key, value in side.values.items():
            if value.log_speed:
                values[key].append(value)
        for training, job in side.jobs.items():
            jobs[training].append(tuple(job.items()))
    medians = {key: _median(alike) for key, alike in values.items()}
    return Side(
        origin=f"the median of {len(sides)} machines",
        machine=sides[0].machine,
        samples={},
        values={key: value for key, value in medians.items() if value},
        jobs={name: dict(statistics.mode(alike)) for name, alike in jobs.items()},
        floors={},
    )


def _median(values: Sequence[Value]) -> Value | None:
    """The middle of what most of them measured in one way; None for too few."""
    # Files come from anywhere, and may count something else.
    unit, task = statistics.mode((value.unit, value.task) for value in values)
    alike = [v for v in values if (v.unit, v.task) == (unit, task)]
    if len(alike) < MEDIAN_FROM:
        return None
    names = ("value", "low", "high")
    ends = {n: statistics.median(getattr(v, n) for v in alike) for n in names}
    trials = statistics.median_low(value.trials for value in alike)
    return Value(**ends, unit=unit, task=task, trials=trials)


@dataclass(frozen=True, kw_only=True, repr=False)
class Classroom(Pictured):
    """Many machines, each with its passport.

    Attributes:
        passports: Of the machines, in the order of their files.
        problems: Why a file could not be read, by its path.
    """

    passports: tuple[Passport, ...]
    problems: dict[Path, str]

    @functools.cached_property
    def sides(self) -> tuple[Side, ...]:
        """What each machine measured."""
        return tuple(map(side_of, self.passports))

    @functools.cached_property
    def rows(self) -> tuple[ClassRow, ...]:
        """The steps, their parts and the microbenchmarks, over all machines."""
        if not self.sides:
            return ()
        median, rows = median_side(self.sides), defaultdict[Key, dict[int, Row]](dict)
        for place, side in enumerate(self.sides):
            for row in compare_rows(median, side, len(self.sides)):
                if row.speed:
                    rows[row.training, row.part][place] = row
        return tuple(map(ClassRow, rows.values()))

    @functools.cached_property
    def not_ready(self) -> dict[str, list[str]]:
        """Why machines cannot run the notebooks, each reason with their names."""
        names = defaultdict[str, list[str]](list)
        for place, passport in enumerate(self.passports):
            if reason := missing_part(passport):
                names[reason].append(self.name(place))
        return dict(names)

    def slowest(self, place: int) -> Row | None:
        """The step at which a machine is shown to be slowest; None for none."""
        rows = (row.machines[place] for row in self.rows if place in row.machines)
        slower = [row for row in rows if row.is_step and row.slower == "B"]
        return min(slower, key=lambda row: row.speed or 1.0, default=None)

    def name(self, place: int) -> str:
        """What a machine is called: as its file, else by its label.

        Whoever collects the files names each after its owner; the label stays as it
        was when the passport was made.
        """
        passport = self.passports[place]
        file = plain(passport.path.stem, _LONGEST) if passport.path else ""
        return file or one_line(passport.label, _LONGEST) or f"machine {place + 1}"

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files of the passports."""
        return tuple(passport.path for passport in self.passports if passport.path)

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


def classroom(folder: str | Path) -> Classroom:
    """Put the machines of a folder of passports side by side.

    A file in it that is not a passport gets a row that says so.

    Args:
        folder: The folder of the files, one ``.json`` for each machine.

    Raises:
        BadParameterError: There is no such folder, or more files than a class has.
    """
    passports: list[Passport] = []
    problems: dict[Path, str] = {}
    for path in _files(Path(os.path.expanduser(folder))):
        try:
            passports.append(store.read(path, Passport))
        except BadFileError as error:
            problems[path] = str(error)
    return Classroom(passports=tuple(passports), problems=problems)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(folder))}; give the folder with the "
            "passports."
        )
    # Where macOS copies a file, one that begins with a dot comes along.
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() == ".json" and not path.name.startswith(".")
    )
    if len(paths) > _MOST_FILES:
        raise BadParameterError(
            f"{plain(str(folder))} holds {len(paths):,} files; give a folder with only "
            f"passports, {_MOST_FILES:,} at most."
        )
    return paths


def _verdict(room: Classroom) -> Verdict:
    """Whom to help first: who is not ready, then who is shown to be slow."""
    if not room.passports:
        make = "`perfkit passport -o NAME.json` makes one."
        return Verdict(
            headline="A class of 0 machines", next=f"The folder has no passport: {make}"
        )
    for reason, names in room.not_ready.items():
        return Verdict(
            headline=f"Fix {listed(names, most=_NAMED)} first.",
            much=reason,
            sure="sure",
        )
    number = len(room.passports)
    if number < MEDIAN_FROM:
        more = "one more" if number == MEDIAN_FROM - 1 else "two more"
        return Verdict(
            headline="A class needs at least three machines.",
            next=f"Add {more}; `perfkit compare A.json B.json` compares two.",
        )
    count = f"the median of {number} machines"
    slowest = [(row, n) for n in range(number) if (row := room.slowest(n))]
    if not slowest:
        return Verdict(headline=f"No machine is shown to be slower than {count}.")
    row, place = min(slowest, key=lambda pair: pair[0].speed or 1.0)
    times, interval = row.times
    takes = f"takes {times} times as long there as on {count}"
    return Verdict(
        headline=f"Look at {room.name(place)} first.",
        much=as_sentence(f"{row.training} {takes}"),
        sure="sure",
        interval=interval,
    )


def _remarks(room: Classroom) -> Iterator[str]:
    """Who is not ready, and who was busy."""
    for reason, names in room.not_ready.items():
        yield f"Not ready: {listed(names, most=_NAMED)}. {reason}"
    problems = map(_problem, room.passports)
    if late := [room.name(n) for n, p in enumerate(problems) if p.startswith(LATE)]:
        yield f"Not known yet: {listed(late, most=_NAMED)}. TensorFlow took too long."
    elif room.passports and not room.not_ready:
        yield "Every machine is ready."
    shares = [side.share_of_others or 0.0 for side in room.sides]
    if busy := [room.name(n) for n, share in enumerate(shares) if share >= BUSY]:
        yield (
            f"Busy with other programs: {listed(busy, most=_NAMED)}. That load may "
            "explain their numbers, so record them again."
        )


def _tables(room: Classroom) -> Iterator[Table]:
    yield Table(
        "The steps, their parts and the parts of the machines",
        ("row", "machines", "median machine", "slowest", "fastest"),
        tuple(
            (title, str(len(row.speeds)), amount, *_extremes(room, row))
            for row in room.rows
            for title, amount in [row.words]
        ),
    )
    yield Table(
        "The machines",
        ("machine", "what it is", "recorded", "slowest at", "not ready, or failing"),
        tuple(tuple(_describe(room, place)) for place in range(len(room.passports))),
    )
    yield Table(
        "Files that are not passports",
        ("file", "why"),
        tuple((path.name, reason) for path, reason in room.problems.items()),
    )


def _extremes(room: Classroom, row: ClassRow) -> Iterator[str]:
    """Who is slowest and who fastest, relative to the median machine."""
    order = list(row.speeds.items())
    for place, speed in order[:1] + order[-1:]:
        yield f"{units.ratio(speed)} {room.name(place)}"


def _describe(room: Classroom, place: int) -> Iterator[str]:
    """The cells of one machine."""
    passport, slowest = room.passports[place], room.slowest(place)
    yield room.name(place)
    yield passport.machine.summary
    yield minute(passport.recorded)
    yield f"{slowest.training}, {units.ratio(slowest.speed or 1.0)}" if slowest else ""
    failing = [check for check in passport.checks if check.status == "fail"]
    words = [": ".join(filter(None, (c.title, c.remedy))) for c in failing]
    yield "; ".join(filter(None, (missing_part(passport), *words)))
