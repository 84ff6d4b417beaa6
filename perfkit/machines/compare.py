"""Two machines in one table: each part of a step on both, and what holds the gap."""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perfkit import units
from perfkit.charts.canvas import Figure
from perfkit.engine.statistics import WORTH_KNOWING, Comparing
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.findings.page import laid_out, save
from perfkit.findings.record import Shown, frame, registered
from perfkit.findings.report import in_html
from perfkit.findings.text import one_line, plain
from perfkit.findings.training import UNEXPLAINED
from perfkit.machine.record import computing
from perfkit.machines.record import HALF, STEP, Key, Passport, Side, Value, side_of

if TYPE_CHECKING:
    from pandas import DataFrame


Outcome = (
    Comparing
    | Literal["busy", "depends on the training", "not the same job", "not measured"]
)
# One thing in which two machines differ: its name, and what it is on each, in words.
Fact = tuple[str, str, str]
_LEVEL = 0.05
# Of the cores: where other programs took so much more of one machine than of the
# other, a difference may be theirs.
BUSY = 0.1


@dataclass(frozen=True, kw_only=True)
class Row:
    """A step, a part of it, or a microbenchmark, on both machines.

    Attributes:
        training: The one it belongs to; "" for a microbenchmark.
        part: ``"step"``, a part of it, or the name of the microbenchmark.
        unit: ``"s"`` for seconds, else what is counted per second.
        a: On A, ``b`` on B; None where it was not measured.
        speed: B's over A's; None where that is unknown. ``low`` and ``high`` are the
            ends of its 95 % interval, ``verdict`` is what they show.
        change: B's seconds less A's, give or take ``half`` of a 95 % interval; None
            for a microbenchmark.
        share: Of the difference of the step; None where none is shown.
        missing: Why the two are not compared, in a sentence; "" where they are.
    """

    training: str
    part: str
    unit: str
    a: float | None = None
    b: float | None = None
    speed: float | None = None
    low: float = math.nan
    high: float = math.nan
    verdict: Comparing | Literal[""] = ""
    change: float | None = None
    half: float = math.nan
    share: float | None = None
    missing: str = ""

    @property
    def title(self) -> str:
        """What it is called in tables and charts."""
        return f"{self.training}, {self.part}" if self.training else self.part

    @property
    def is_step(self) -> bool:
        """Whether it is a whole step."""
        return bool(self.training) and self.part == STEP

    @property
    def slower(self) -> Literal["", "A", "B"]:
        """The machine that is shown to be slower."""
        if self.verdict == "slower":
            return "B"
        return "A" if self.verdict == "faster" else ""

    @property
    def speed_text(self) -> str:
        """B's speed over A's with its interval; "" where it is not known."""
        if self.speed is None:
            return ""
        return units.ratio_between(self.speed, self.low, self.high)

    @property
    def times(self) -> tuple[str, str]:
        """How many times as long or as fast, and the ends of the interval."""
        values = self.speed or 1.0, self.low, self.high
        middle, *ends = (1 / v if self.slower == "B" else v for v in values)
        low, high = sorted(ends)
        if not units.is_known(low, high):
            return units.UNKNOWN, "how much is not known yet"
        return units.times(middle), f"{units.times(low)} to {units.times(high)}"


@functools.singledispatch
def chart(record: object) -> Figure:
    """The picture of a record."""
    figure: Figure = registered(chart, record)(record)
    return figure


class Pictured(Shown):
    """What has a report, a chart and a page."""

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files it is made from, which no page may take the place of."""
        return ()

    @functools.cached_property
    def chart(self) -> Figure:
        """How fast the machines are, row by row."""
        return chart(self)

    def page(self) -> str:
        """All of it as one HTML page that needs no network."""
        return laid_out([(self.report, [self.chart])])

    def export(self, path: str | Path) -> Path:
        """Write that page."""
        return save(path, self.page, self.sources)

    def _repr_html_(self) -> str:
        return in_html(self.report, figure=self.chart.in_page())


@dataclass(frozen=True, kw_only=True, repr=False)
class TwoMachines(Pictured):
    """How two machines differ, and which part of a step holds the difference.

    Attributes:
        a: The one, ``b`` the other.
        rows: Each training with its parts, then the microbenchmarks.
        facts: In what the machines differ: what it is, on A and on B, in words.
        guess: What the reader expected; "" if nothing.
    """

    a: Side
    b: Side
    rows: tuple[Row, ...] = ()
    facts: tuple[Fact, ...] = ()
    guess: str = ""

    @property
    def steps(self) -> list[Row]:
        """The rows of whole steps."""
        return [row for row in self.rows if row.is_step]

    @functools.cached_property
    def main(self) -> Row | None:
        """The step with the largest difference that is shown; None where none is."""
        steps = [row for row in self.steps if row.slower and row.speed]
        return max(steps, key=lambda row: abs(math.log(row.speed or 1)), default=None)

    @functools.cached_property
    def largest(self) -> Row | None:
        """The part that holds most of that difference; None where none is shown to."""
        parts = [
            row
            for row in self.rows
            if self.main and row.training == self.main.training
            if row.share and row.share > 0 and row.part != UNEXPLAINED
            # What its interval leaves open is no part of a difference.
            if abs(row.change or 0.0) > row.half
        ]
        return max(parts, key=lambda row: row.share or 0.0, default=None)

    @functools.cached_property
    def busy(self) -> Literal["", "A", "B"]:
        """The machine that other programs slowed, so that little is known of it.

        One that is faster all the same is not meant.
        """
        a, b = self.a.share_of_others, self.b.share_of_others
        if a is None or b is None or abs(a - b) < BUSY:
            return ""
        busier: Literal["A", "B"] = "B" if b > a else "A"
        return busier if not self.main or self.main.slower == busier else ""

    @functools.cached_property
    def verdict(self) -> Outcome:
        """What is shown over all trainings, as a word."""
        counts = Counter(row.verdict for row in self.steps if row.verdict)
        if not counts and any(row.a and row.b for row in self.steps):
            return "not the same job"
        if self.busy:
            return "busy"
        if not counts:
            return "not measured"
        if counts["faster"] and counts["slower"]:
            return "depends on the training"
        # Without a claim, one step that may hide a difference leaves all of it open.
        words: tuple[Comparing, ...] = ("faster", "slower", "too noisy to say")
        return next((word for word in words if counts[word]), "no difference shown")

    def table(self) -> "DataFrame":
        """One row per step, part and microbenchmark."""
        return frame([vars(row) for row in self.rows], [f.name for f in fields(Row)])


def compare(
    a: Passport | str | Path, b: Passport | str | Path, *, guess: str = ""
) -> TwoMachines:
    """Show how the same training differs on two machines, and in which part.

    Args:
        a: A passport of the first machine, or its file.
        b: The same for the second machine.
        guess: What you expect, to show in the report.

    Raises:
        BadFileError: A file is no passport, or this perfkit cannot read it.
        BadParameterError: One of them is neither a passport nor the name of a file.
    """
    sides = side_of(_read(a)), side_of(_read(b))
    rows, facts = compare_rows(*sides), differing_facts(*sides)
    return TwoMachines(a=sides[0], b=sides[1], rows=rows, facts=facts, guess=guess)


def _read(source: Passport | str | Path) -> Passport:
    if isinstance(source, Passport):
        return source
    if isinstance(source, str | Path):
        return store.read(source, Passport)
    raise BadParameterError(
        f"{plain(repr(source), 60)} cannot be compared; give a passport, or its file: "
        "run `perfkit passport -o NAME.json` on each machine."
    )


def compare_rows(a: Side, b: Side, tables: int = 1) -> tuple[Row, ...]:
    """One of so many tables: every row that one of the two has, in A's order."""
    keys = dict.fromkeys((*a.values, *b.values))
    reasons = {key: _why_apart(a, b, key) for key in keys}
    # Ratios that one statement looks at widen each other's intervals.
    looks = Counter(_kind(key) for key, reason in reasons.items() if not reason)
    rows = [
        _row(a, b, key, reason, tables * looks[_kind(key)])
        for key, reason in reasons.items()
    ]
    gaps = {row.training: row.change for row in rows if row.is_step and row.slower}
    return tuple(
        replace(row, share=row.change / gap)
        if (gap := gaps.get(row.training))
        and row.change is not None
        # A step is no share of itself.
        and not row.is_step
        else row
        for row in rows
    )


def _kind(key: Key) -> str:
    training, part = key
    return "microbenchmark" if not training else STEP if part == STEP else "part"


def _row(a: Side, b: Side, key: Key, missing: str, looks: int) -> Row:
    mine, theirs = a.values.get(key, Value()), b.values.get(key, Value())
    row = Row(
        training=key[0],
        part=key[1],
        unit=mine.unit if key in a.values else theirs.unit,
        a=mine.value,
        b=theirs.value,
        missing=missing,
    )
    if missing:
        return row
    if row.training and mine.value is not None and theirs.value is not None:
        half = math.hypot(mine.half, theirs.half)
        row = replace(row, change=theirs.value - mine.value, half=half)
    floor = math.hypot(a.floor(key), b.floor(key))
    return add_speed(row, mine, theirs, floor, looks)


def _why_apart(a: Side, b: Side, key: Key) -> str:
    """Why two values are not compared, in a sentence; "" where they are."""
    for name, side in (("A", a), ("B", b)):
        value = side.values.get(key, Value())
        if value.value is None:
            return f"Not measured on {name}. {value.missing}".rstrip()
    mine, theirs = a.values[key], b.values[key]
    if differences := _job_differences(a, b, key[0]):
        return f"Not the same job: {differences}."
    if mine.unit != theirs.unit:
        return "The two count different things."
    if mine.task != theirs.task:
        return "One read from the disk, the other maybe from memory."
    # A part may be nothing at all, and has no ratio then.
    if _kind(key) != "part" and None in (mine.log_speed, theirs.log_speed):
        return "Its interval is missing or impossible."
    return ""


def _job_differences(a: Side, b: Side, training: str) -> str:
    """In what the jobs differ, in words; "" where they are the same."""
    mine, theirs = a.jobs.get(training, {}), b.jobs.get(training, {})
    # How many weights there are is only known where the network was made.
    unknown = {"weights"} - (mine.keys() & theirs.keys())
    return "; ".join(
        f"{name}: {mine.get(name, 'unknown')} on A, {theirs.get(name, 'unknown')} on B"
        for name in dict.fromkeys((*mine, *theirs))
        if name not in unknown and mine.get(name) != theirs.get(name)
    )


def add_speed(row: Row, a: Value, b: Value, floor: float = 0.0, looks: int = 1) -> Row:
    """A row with B's speed over A's; without where one of them is not known.

    No difference below ``floor``, the logarithm of both noise floors, is claimed, and
    ``looks`` is how many ratios one statement looks at.
    """
    if a.log_speed is None or b.log_speed is None:
        return row
    middle = b.log_speed[0] - a.log_speed[0]
    # For all of them to hold at once, each leaves out less than alone.
    level = 1 - _LEVEL / (2 * max(1, looks))
    wider = statistics.NormalDist().inv_cdf(level) / HALF
    half = math.hypot(a.log_speed[1], b.log_speed[1]) * wider
    verdict: Comparing = "too noisy to say"
    if min(a.trials, b.trials) < 2:
        # One trial shows nothing of how trials differ.
        pass
    elif abs(middle) > max(half, floor):
        verdict = "faster" if middle > 0 else "slower"
    elif abs(middle) + half <= math.log(WORTH_KNOWING):
        verdict = "no difference shown"
    low, speed, high = map(math.exp, (middle - half, middle, middle + half))
    return replace(row, speed=speed, low=low, high=high, verdict=verdict)


# In what they differ.

_LONGEST_FACT = 80
# Two readings that are no further apart than this are alike.
_ALIKE = 0.05


# Where it stands in a record, by what it is called; "gpu" is the card that computes.
_READINGS = {
    "cores granted": "machine.cores_granted",
    "cores present": "machine.cores",
    "processor": "machine.cpu",
    "GPUs": "gpus",
    "GPU memory": "gpu.memory",
    "link lanes under load": "gpu.link.busy_width",
    "link generation under load": "gpu.link.busy_generation",
    "highest GPU clock": "gpu.clocks.sm_max",
    "GPU slowed by": "gpu.clocks.busy_throttle",
    "instruction sets": "machine.processor.instructions",
    "highest frequency": "machine.processor.frequency_max",
    "memory granted": "machine.memory",
    "cores that other programs kept busy": "others",
    "governor": "machine.processor.governor",
    "energy preference": "machine.processor.preference",
    "on battery": "machine.load.on_battery",
    "TensorFlow build": "machine.software.build",
    "Python": "machine.python",
    "NVIDIA driver": "machine.driver.version",
    "system": "machine.system",
}
_WRITERS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("GPU memory", "memory granted"), units.size),
    **dict.fromkeys(
        ("highest GPU clock", "highest frequency"),
        functools.partial(units.rate, unit="Hz"),
    ),
}
# Of the versions, those of what does the work come first.
_FIRST = ("tensorflow", "keras", "numpy")


def differing_facts(a: Side, b: Side) -> tuple[Fact, ...]:
    """In what two machines differ; what one of them does not tell is no difference."""
    readings = _readings(a), _readings(b)
    facts = [_fact(name, *(side[name] for side in readings)) for name in _READINGS]
    settings = a.machine.environment, b.machine.environment
    facts += (
        _fact(name, *(side.get(name, "not set") for side in settings))
        for name in dict.fromkeys((*settings[0], *settings[1]))
    )
    # A file names the libraries that its perfkit knew, so others may be installed.
    versions = a.machine.versions, b.machine.versions
    facts += (
        _fact(name, *(side.get(name) for side in versions))
        for name in dict.fromkeys((*_FIRST, *versions[0]))
    )
    return tuple(fact for fact in facts if fact)


def _readings(side: Side) -> dict[str, Any]:
    """What a machine's record tells, by name; None where it does not."""
    machine, readings = side.machine, dict[str, Any]()
    roots = {
        "machine": machine,
        "gpu": computing(machine.gpus, machine.environment),
        "gpus": ", ".join(gpu.name for gpu in machine.gpus[:8]) or "none",
        "others": side.cores_of_others,
    }
    for name, where in _READINGS.items():
        root, *attributes = where.split(".")
        readings[name] = roots[root]
        for attribute in attributes:
            record = readings[name]
            readings[name] = None if record is None else getattr(record, attribute)
    return readings


def _fact(name: str, a: Any, b: Any) -> Fact | None:
    if a is None or b is None or a == b:
        return None
    if isinstance(a, tuple):
        # Of two lists what only one of them holds.
        only = {*a} - {*b}, {*b} - {*a}
        a, b = (" ".join(sorted(words)) or "none more" for words in only)
    elif isinstance(a, bool):
        a, b = ("yes" if value else "no" for value in (a, b))
    elif isinstance(a, int | float):
        if abs(a - b) <= _ALIKE * max(abs(a), abs(b)):
            return None
        a, b = map(_WRITERS.get(name, units.significant), (a, b))
    return name, one_line(a, _LONGEST_FACT), one_line(b, _LONGEST_FACT)
