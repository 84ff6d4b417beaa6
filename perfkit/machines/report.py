"""What a person reads of a passport and of two machines: sentences and tables."""

from collections.abc import Iterator
from typing import Any

from perfkit import units
from perfkit.export.page import laid_out, page_of
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.reports import machine_in_words
from perfkit.findings.text import minute, plain
from perfkit.findings.training import (
    ENDED,
    NEXT_STEPS,
    PARTS,
    seconds,
    seconds_between,
)
from perfkit.machines.compare import Row, TwoMachines
from perfkit.machines.facts import remedies
from perfkit.machines.record import BUDGET_S, BenchmarkRate, Passport

# So many facts are told at once; all of them are in the table.
_FACTS = 6
_HEADINGS = ("row", "on A", "on B", "B's speed over A's", "shown", "of the difference")


def page(shown: Any) -> str:
    """Lay out as a page what has a report and a chart: two machines, or a class."""
    return laid_out([page_of(shown.report, [shown.chart])])


# A passport.


def headline(passport: Passport) -> str:
    """Whose passport it is and when it was recorded."""
    label = passport.label or "a machine"
    return f"Passport of {label}, recorded {minute(passport.recorded)}"


def passport_report(passport: Passport) -> Report:
    """What a person reads of a passport."""
    trainings = []
    for one in passport.trainings:
        parts = [seconds_between(part) for part in one.parts] or [""] * len(PARTS)
        trainings.append((one.title, one.step, *parts))
    rates = tuple((one.name, _rate(one)) for one in passport.microbenchmarks)
    table = Table("Parts of the machine", ("part", "rate"), rates)
    heads = ("training", "a step", *PARTS)
    return Report(
        verdict=Verdict(headline=headline(passport), much=too_short(passport)),
        table=Table("Reference trainings", heads, tuple(trainings)),
        besides=(machine_in_words(passport), *_remarks(passport), *passport.missed),
        folds=(Fold(table.title, tables=(table,)),),
    )


def too_short(passport: Passport) -> str:
    """That no training fit into the budget, and which to give; "" where one did."""
    trainings = passport.trainings
    ended = any(training.missing == ENDED for training in trainings)
    if not ended or passport.stopped or any(training.rate for training in trainings):
        return ""
    # On a busy machine the usual one may be too short as well.
    enough = max(BUDGET_S, 2 * passport.budget_s)
    return (
        f"No reference training was measured in {passport.budget_s:.0f} s: make it "
        f"again with a budget of {enough:.0f} s."
    )


def _remarks(passport: Passport) -> Iterator[str]:
    for check in passport.checks:
        if check.status in ("fail", "warn"):
            yield f"{check.status}: {check.title}"
    rests = [training.part("unexplained") for training in passport.trainings]
    if any(part and (part.high or 0.0) < 0 for part in rests):
        yield (
            "unexplained is below 0 where parts that were measured one by one take "
            "longer than the step, in which they run side by side."
        )
    if passport.stopped:
        yield "It was stopped before it was whole."


def _rate(one: BenchmarkRate) -> str:
    if one.rate is None:
        return f"not measured. {one.missing}".rstrip()
    text = units.rate(one.rate, one.unit)
    if one.low is not None and one.high is not None:
        text = units.rate_between(one.rate, one.low, one.high, one.unit)
    if one.share is None:
        return text
    # What is beyond its limit says that the limit was taken too low.
    of = "beyond" if one.share > 1 else f"{units.percent(one.share)} of"
    return f"{text}, {of} its limit"


def preview(passport: Passport, size: int, names: str = "`--with-names`") -> str:
    """Say what is in a file of so many bytes and what is not, before it is sent.

    ``names`` is what puts the host and user name in.
    """
    told = {"host": passport.host, "user": passport.user}
    private = [f"the {key}'s name, {plain(name)}" for key, name in told.items() if name]
    hidden = " and ".join(key for key, name in told.items() if not name)
    held = [*_contents(passport), *(f"{one}, as you asked" for one in private)]
    left_out = [f"the {hidden} name ({names} puts them in)"] if hidden else []
    left_out += ["paths of your folders, addresses, secrets, data of yours"]
    left_out += ["code, and anything that is run when the file is read"]
    lists = {f"In this file ({units.size(size)}):": held, "Not in it:": left_out}
    lines = ((title, *(f"  - {line}" for line in of)) for title, of in lists.items())
    return "\n".join(line for group in lines for line in group)


def _contents(passport: Passport) -> Iterator[str]:
    machine, timed = (
        passport.machine,
        sum(one.rate is not None for one in passport.trainings),
    )
    rates = sum(one.rate is not None for one in passport.microbenchmarks)
    yield f'the label "{plain(passport.label)}", and when it was recorded'
    about = "its drivers, libraries, settings and load"
    yield f"the machine: {plain(machine.summary)}; {about}"
    if machine.load and machine.load.top:
        busy = ", ".join(plain(program.program, 40) for program in machine.load.top)
        yield f"the names of the programs that kept it busy: {busy}"
    if machine.environment:
        variables = ", ".join(plain(name, 60) for name in machine.environment)
        yield f"variables of the environment, without paths and addresses: {variables}"
    yield f"checks with their evidence: {len(passport.checks)}"
    yield f"rates of parts of the machine: {rates}"
    yield f"reference trainings, each with where its time goes: {timed}"
    yield f"samples of the load meanwhile: {len(passport.samples.get('t', ()))}"


# Two machines.


def comparison_report(two: TwoMachines) -> Report:
    """What a person reads of two machines."""
    first = two.main.training if two.main else ""
    trainings = dict.fromkeys(
        [*([first] if first else []), *(s.training for s in two.steps)]
    )
    rows = tuple(row for training in trainings for row in _rows(two, training))
    missing = tuple((row.title, row.missing) for row in two.rows if row.missing)
    facts = tuple((fact.name, fact.a, fact.b) for fact in two.facts)
    tables = (
        Table(
            "How fast each part of the machines is", _HEADINGS, tuple(_rows(two, ""))
        ),
        Table("In what the machines differ", ("fact", "A", "B"), facts),
        Table("What is not compared", ("row", "why"), missing),
    )
    return Report(
        verdict=_verdict(two),
        question="Two machines: how does the same training differ?",
        table=Table("Each part of a step on both machines", _HEADINGS, rows),
        besides=tuple(_besides(two)),
        folds=(
            *(Fold(table.title, tables=(table,)) for table in tables),
            Fold("What the doctor says of one of them", tuple(remedies(two.a, two.b))),
        ),
        foot=(
            *([f"Your guess: {two.guess}"] if two.guess else ()),
            *(
                f"{name}: {f'{side.label}, ' if side.label else ''}{side.summary}, "
                f"recorded {side.recorded}"
                for name, side in (("A", two.a), ("B", two.b))
            ),
        ),
    )


def _rows(two: TwoMachines, training: str) -> Iterator[tuple[str, ...]]:
    """The rows of a training, or of the microbenchmarks, that both measured."""
    for row in two.rows:
        if row.training == training and not row.missing and (row.a or row.b):
            share = "" if row.share is None else f"{100 * row.share:z.0f} %"
            amounts = (_amount(value, row.unit) for value in (row.a, row.b))
            yield (row.title, *amounts, speed_in_words(row), row.verdict, share)


def _amount(value: float | None, unit: str) -> str:
    return seconds(value) if unit == "s" else units.rate(value or 0.0, unit)


def speed_in_words(row: Row) -> str:
    """B's speed over A's with its interval; "" where it is not known."""
    if row.speed is None:
        return ""
    return units.ratio_between(row.speed, row.low, row.high)


def _besides(two: TwoMachines) -> Iterator[str]:
    facts = [f"{one.name} {one.a} on A, {one.b} on B" for one in two.facts]
    if facts:
        left = len(facts) - _FACTS
        more = f"; and {left} more" if left > 0 else ""
        yield f"They differ in: {'; '.join(facts[:_FACTS])}{more}."
    if two.verdict == "depends on the training" and two.main:
        others = [r for r in two.steps if r.slower not in ("", two.main.slower)]
        yield " ".join(_claim(row, _times(row)[0]) for row in others)
    noisy = [row.training for row in two.steps if row.verdict == "too noisy to say"]
    if noisy:
        yield f"A difference above 10 % is left open in: {', '.join(noisy)}."


def _verdict(two: TwoMachines) -> Verdict:
    """What is shown, how much, how sure, and what to do next."""
    if two.verdict == "busy":
        return _busy(two)
    if two.main:
        times, interval = _times(two.main)
        return Verdict(
            headline=_claim(two.main, times),
            much=_gap(two, two.main),
            sure="sure",
            interval=interval,
            next=NEXT_STEPS.get(two.largest.part, "") if two.largest else "",
        )
    match two.verdict:
        case "not the same job":
            reasons = (row.missing for row in two.steps if row.a and row.b)
            return Verdict(headline=f"Nothing is compared. {next(reasons)}")
        case "not measured":
            return Verdict(headline="No training was measured on both machines.")
        case "no difference shown":
            return Verdict(
                headline="No difference shown: if there is one, it is below 10 %."
            )
    return Verdict(
        headline="Too noisy to say whether the machines differ.",
        sure="not known yet",
        next="A larger budget for both passports narrows it.",
    )


def _busy(two: TwoMachines) -> Verdict:
    side = two.a if two.busy == "A" else two.b
    cores = units.significant(side.cores_of_others or 0.0, 2)
    load = side.machine.load
    top = ", ".join(plain(one.program, 40) for one in load.top[:3]) if load else ""
    much = "How fast it is by itself is not known yet."
    if two.main:
        claim = _claim(two.main, _times(two.main)[0])
        much = f"{claim} How much of that is the load is not known yet."
    return Verdict(
        headline=f"{two.busy} was busy while it was recorded: other programs kept "
        f"{cores} of its {side.machine.cores} cores busy{f' ({top})' if top else ''}.",
        much=much,
        sure="not known yet",
        next=f"End them, record {two.busy} again, and compare again.",
    )


def _claim(row: Row, times: str) -> str:
    """How many times as long, or as fast, a step runs on B."""
    name = f"{row.training[:1].upper()}{row.training[1:]}"
    if row.slower == "B":
        return f"{name} takes {times} times as long on B as on A."
    return f"{name} runs {times} times as fast on B as on A."


def _times(row: Row) -> tuple[str, str]:
    """How many times as long or as fast, and the ends of the interval."""
    values = row.speed or 1.0, row.low, row.high
    middle, *ends = (1 / v if row.slower == "B" else v for v in values)
    low, high = sorted(ends)
    if not units.is_known(low, high):
        return units.UNKNOWN, "how much is not known yet"
    return units.times(middle), f"{units.times(low)} to {units.times(high)}"


def _gap(two: TwoMachines, main: Row) -> str:
    """Which part holds the difference of a step, by plain arithmetic."""
    step = f"A step takes {units.instead(seconds(main.b), seconds(main.a))}"
    part = two.largest
    if part is None:
        return f"{step}; no single part is shown to hold most of the difference."
    most = "Most of the difference" if (part.share or 0.0) > 0.5 else "The largest part"
    amounts = [seconds(abs(row.change or 0.0)) for row in (part, main)]
    return f"{step}. {most} is {part.part}: {amounts[0]} of {amounts[1]}."
