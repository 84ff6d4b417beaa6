"""What a person reads and sees of a passport, of two machines and of a class."""

from collections.abc import Iterator

from matplotlib.axes import Axes

from perfkit import units
from perfkit.charts import canvas, rows
from perfkit.charts.canvas import BLUE, Figure
from perfkit.charts.layout import limits
from perfkit.findings import record as records
from perfkit.findings.report import Fold, Report, Table, Verdict
from perfkit.findings.reports import machine_in_words
from perfkit.findings.text import as_sentence, minute
from perfkit.findings.training import (
    NEXT_STEPS,
    PARTS,
    UNEXPLAINED,
    seconds,
    seconds_between,
)
from perfkit.machines.classroom import Classroom
from perfkit.machines.compare import Row, TwoMachines, chart
from perfkit.machines.record import BenchmarkRate, Passport, write_amount

# So many facts are told at once; all of them are in the table.
_FACTS = 6
_HEADINGS = ("row", "on A", "on B", "B's speed over A's", "shown", "of the difference")
_NO_PARTS = [""] * len(PARTS)


@records.report.register
def passport_report(passport: Passport) -> Report:
    """What a person reads of a passport."""
    label, when = passport.label or "a machine", minute(passport.recorded)
    trainings = []
    for training in passport.trainings:
        step = seconds_between(training)
        parts = [seconds_between(part) for part in training.parts]
        if training.missing:
            step += f". {training.missing}"
        trainings.append((training.title, step, *(parts or _NO_PARTS)))
    rates = tuple((rate.name, _rate(rate)) for rate in passport.microbenchmarks)
    table = Table("Parts of the machine", ("part", "rate"), rates)
    heads = ("training", "a step", *PARTS)
    return Report(
        verdict=Verdict(headline=f"Passport of {label}, recorded {when}"),
        table=Table("Reference trainings", heads, tuple(trainings)),
        besides=(machine_in_words(passport.machine), *_remarks(passport)),
        folds=(Fold(table.title, tables=(table,)),),
    )


def _remarks(passport: Passport) -> Iterator[str]:
    for check in passport.checks:
        if check.status in ("fail", "warn"):
            yield f"{check.status}: {check.title}"
    parts = (part for training in passport.trainings for part in training.parts)
    if any(p.name == UNEXPLAINED and (p.high or 0.0) < 0 for p in parts):
        yield (
            "unexplained is below 0 if the parts overlap in a step, because each was "
            "measured by itself."
        )
    if passport.stopped:
        yield "It was stopped before it was complete."
    yield from passport.missed


def _rate(benchmark: BenchmarkRate) -> str:
    rate, low, high = benchmark.rate, benchmark.low, benchmark.high
    if rate is None:
        return f"not measured. {benchmark.missing}".rstrip()
    text = units.rate(rate, benchmark.unit)
    if low is not None and high is not None:
        text = units.rate_between(rate, low, high, benchmark.unit)
    if benchmark.limit is None:
        return text
    # What is beyond its limit says that the limit was taken too low.
    return f"{text}, {units.percent(min(1.0, rate / benchmark.limit))} of its limit"


def preview(size: int) -> str:
    """Say what is in a passport's file of so many bytes, before it is sent."""
    return (
        f"The file ({units.size(size)}) holds this machine and its software, settings "
        "and load with the names of busy programs, the checks, the rates of its parts, "
        "and the reference trainings. It holds no name of host or user, no paths of "
        "your folders, no addresses, no secrets and none of your data."
    )


# Two machines.


@records.report.register
def comparison_report(two: TwoMachines) -> Report:
    """What a person reads of two machines."""
    trainings = dict.fromkeys(row.training for row in (two.main, *two.steps) if row)
    rows = tuple(row for training in trainings for row in _rows(two, training))
    missing = tuple((row.title, row.missing) for row in two.rows if row.missing)
    tables = (
        Table("How fast each part of the machines is", _HEADINGS, _rows(two, "")),
        Table("Facts that differ", ("fact", "A", "B"), two.facts),
        Table("What is not compared", ("row", "why"), missing),
    )
    guess = [f"Your guess: {two.guess}"] if two.guess else []
    return Report(
        verdict=_verdict(two),
        question="Two machines: how does the same training differ?",
        table=Table("Each part of a step on both machines", _HEADINGS, rows),
        besides=tuple(_besides(two)),
        folds=tuple(Fold(table.title, tables=(table,)) for table in tables),
        foot=(*guess, f"A: {two.a.origin}", f"B: {two.b.origin}"),
    )


def _rows(two: TwoMachines, training: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a training, or of the microbenchmarks, that both measured."""
    return tuple(
        (
            row.title,
            write_amount(row.a, row.unit),
            write_amount(row.b, row.unit),
            row.speed_text,
            row.verdict,
            "" if row.share is None else f"{100 * row.share:z.0f} %",
        )
        for row in two.rows
        if row.training == training and not row.missing and (row.a or row.b)
    )


def _besides(two: TwoMachines) -> Iterator[str]:
    facts = [f"{name} {a} on A, {b} on B" for name, a, b in two.facts]
    if facts:
        omitted = len(facts) - _FACTS
        suffix = f"; and {omitted} more" if omitted > 0 else ""
        yield f"They differ in: {'; '.join(facts[:_FACTS])}{suffix}."
    if two.verdict == "depends on the training" and two.main:
        other_steps = [r for r in two.steps if r.slower not in ("", two.main.slower)]
        yield " ".join(map(_claim, other_steps))
    noisy = [row.training for row in two.steps if row.verdict == "too noisy to say"]
    if noisy:
        yield f"A difference above 10 % is still possible in: {', '.join(noisy)}."


def _verdict(two: TwoMachines) -> Verdict:
    """What is shown, how much, how sure, and what to do next."""
    if two.verdict == "busy":
        return _busy(two)
    if two.main:
        return Verdict(
            headline=_claim(two.main),
            much=_gap(two, two.main),
            sure="sure",
            interval=two.main.times[1],
            next=NEXT_STEPS.get(two.largest.part, "") if two.largest else "",
        )
    if two.verdict == "too noisy to say":
        return Verdict(
            headline="The recordings are too noisy to say whether the machines differ.",
            sure="not known yet",
            next="Record both passports again with a larger budget.",
        )
    reasons = [row.missing for row in two.steps if row.a and row.b and row.missing]
    headlines = {
        "not the same job": f"Nothing can be compared. {' '.join(reasons[:1])}",
        "not measured": "No training was measured on both machines.",
    }
    default = "No difference shown: if there is one, it is below 10 %."
    return Verdict(headline=headlines.get(two.verdict, default))


def _busy(two: TwoMachines) -> Verdict:
    side = two.a if two.busy == "A" else two.b
    cores = units.significant(side.cores_of_others or 0.0, 2)
    load = side.machine.load
    top = ", ".join(busy.program for busy in load.top[:3]) if load else ""
    effect = "Its speed without that load is not known yet."
    if two.main:
        effect = f"{_claim(two.main)} The load's share in that is not known yet."
    return Verdict(
        headline=f"{two.busy} was busy during its recording: other programs kept "
        f"{cores} of its {side.machine.cores} cores busy{f' ({top})' if top else ''}.",
        much=effect,
        sure="not known yet",
        next=f"End them, record {two.busy} again, and compare again.",
    )


def _claim(row: Row) -> str:
    """How many times as long, or as fast, a step runs on B."""
    times = f"{row.times[0]} times"
    if row.slower == "B":
        return as_sentence(f"{row.training} takes {times} as long on B as on A")
    return as_sentence(f"{row.training} runs {times} as fast on B as on A")


def _gap(two: TwoMachines, main: Row) -> str:
    """Which part holds the difference of a step, by plain arithmetic."""
    step = f"A step takes {units.instead(seconds(main.b), seconds(main.a))}"
    part = two.largest
    if part is None:
        return f"{step}; no single part is shown to hold most of the difference."
    is_most = (part.share or 0.0) > 0.5
    extent = "Most of the difference" if is_most else "The largest part"
    amounts = (seconds(abs(row.change or 0.0)) for row in (part, main))
    return f"{step}. {extent} is {part.part}: {' of '.join(amounts)}."


_HEIGHT = 0.8
# Longer charts are read by nobody; the table has all rows.
_MOST = 60
# Beyond, a ratio stands at the edge: one broken file must not flatten all others.
_FARTHEST = 1000.0


@chart.register
def speeds(two: TwoMachines) -> Figure:
    """Draw B's speed over A's with its interval; 1 is neither faster nor slower."""
    title, main = "How fast B is, against A", two.main.training if two.main else ""
    speed_rows = [row for row in two.rows if row.is_step or row.training in ("", main)]
    speed_rows = [row for row in speed_rows if row.speed][:_MOST]
    if not speed_rows:
        return canvas.message(title, "Nothing was measured on both machines.")
    guess = [f"your guess: {two.guess}"] if two.guess else []
    legend = ["bar: 95 % interval", "arrow: faster or slower is shown"]
    legend = canvas.caption_lines([*legend, "ring: too noisy to say", *guess])

    def draw(axes: Axes) -> None:
        ratios = [1.0, *(_within(row.speed or 1.0) for row in speed_rows)]
        ends = limits(ratios, [row.low for row in speed_rows])
        _draw_axis(axes, *ends, "B's speed over A's")
        for place, row in enumerate(speed_rows):
            if row.speed is not None and row.verdict:
                ends = row.low, row.high
                rows.draw_ratio(axes, place, row.verdict, row.speed, ends)

    words = [(row.title, (row.speed_text, "")) for row in speed_rows]
    return rows.picture(title, words, legend, draw, height=_HEIGHT)


@chart.register
def strips(room: Classroom) -> Figure:
    """Draw a dot for each machine in the row of each step and part."""
    title, class_rows = "Every machine against the median one", room.rows[:_MOST]
    if not class_rows:
        return canvas.message(title, "Nothing was measured on three machines.")
    dashed = "dashed line: the median machine, whose value is to the right"
    legend = canvas.caption_lines(["dot: a machine", dashed])

    def draw(axes: Axes) -> None:
        ratios = [_within(ratio) for row in class_rows for ratio in row.speeds.values()]
        _draw_axis(axes, min(ratios), max(ratios), "speed over the median machine's")
        for place, row in enumerate(class_rows):
            dots = [_within(ratio) for ratio in row.speeds.values()]
            axes.plot(
                dots, [place] * len(dots), "o", color=BLUE, ms=6, alpha=0.7, mew=0
            )

    words = [(name, (amount, "")) for name, amount in (r.words for r in class_rows)]
    return rows.picture(title, words, legend, draw, height=_HEIGHT)


def _draw_axis(axes: Axes, low: float, high: float, label: str) -> None:
    # Machines that are alike shall look alike.
    rows.draw_ratio_axis(axes, min(0.5, low), max(2.0, high), label)


def _within(ratio: float) -> float:
    """A ratio as far away as an axis shows it."""
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)
