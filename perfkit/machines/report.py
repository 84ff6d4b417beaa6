"""What a person reads of a passport and of two machines: sentences and tables."""

from collections.abc import Iterator

from perfkit import units
from perfkit.findings import shown
from perfkit.findings.report import Fold, Report, Table, Verdict
from perfkit.findings.reports import machine_in_words
from perfkit.findings.text import as_sentence, minute
from perfkit.findings.training import (
    ENDED,
    NEXT_STEPS,
    PARTS,
    UNEXPLAINED,
    seconds,
    seconds_between,
)
from perfkit.machines.compare import Row, TwoMachines
from perfkit.machines.record import BUDGET_S, BenchmarkRate, Passport
from perfkit.machines.sides import remedies, write_amount

# So many facts are told at once; all of them are in the table.
_FACTS = 6
_HEADINGS = ("row", "on A", "on B", "B's speed over A's", "shown", "of the difference")
_NO_PARTS = [""] * len(PARTS)


@shown.report.register
def passport_report(passport: Passport) -> Report:
    """What a person reads of a passport."""
    label, when = passport.label or "a machine", minute(passport.recorded)
    trainings = []
    for training in passport.trainings:
        parts = [seconds_between(part) for part in training.parts]
        trainings.append((training.title, training.step, *(parts or _NO_PARTS)))
    rates = tuple(
        (benchmark.name, _rate(benchmark)) for benchmark in passport.microbenchmarks
    )
    table = Table("Parts of the machine", ("part", "rate"), rates)
    heads = ("training", "a step", *PARTS)
    return Report(
        verdict=Verdict(
            headline=f"Passport of {label}, recorded {when}", much=too_short(passport)
        ),
        table=Table("Reference trainings", heads, tuple(trainings)),
        besides=(machine_in_words(passport.machine), *_remarks(passport)),
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
    parts = (part for training in passport.trainings for part in training.parts)
    if any(p.name == UNEXPLAINED and (p.high or 0.0) < 0 for p in parts):
        yield (
            "unexplained is below 0 where parts that were measured one by one take "
            "longer than the step, in which they run side by side."
        )
    if passport.stopped:
        yield "It was stopped before it was whole."
    yield from passport.missed


def _rate(benchmark: BenchmarkRate) -> str:
    rate, low, high = benchmark.rate, benchmark.low, benchmark.high
    if rate is None:
        return f"not measured. {benchmark.missing}".rstrip()
    text = units.rate(rate, benchmark.unit)
    if low is not None and high is not None:
        text = units.rate_between(rate, low, high, benchmark.unit)
    if benchmark.share is None:
        return text
    # What is beyond its limit says that the limit was taken too low.
    share = f"{units.percent(benchmark.share)} of" if benchmark.share <= 1 else "beyond"
    return f"{text}, {share} its limit"


def preview(passport: Passport, size: int, names: str = "`--with-names`") -> str:
    """Say what is in a file of so many bytes and what is not, before it is sent.

    ``names`` is what puts the host and user name in.
    """
    owner = {"host": passport.host, "user": passport.user}
    private = [f"the {k}'s name, {n}, as you asked" for k, n in owner.items() if n]
    hidden = " and ".join(key for key, name in owner.items() if not name)
    left_out = [f"the {hidden} name ({names} puts them in)"] if hidden else []
    left_out += ["paths of your folders, addresses, secrets, data of yours"]
    left_out += ["code, and anything that is run when the file is read"]
    lines = [f"In this file ({units.size(size)}):"]
    lines += [f"  - {line}" for line in (*_contents(passport), *private)]
    lines += ["Not in it:", *(f"  - {line}" for line in left_out)]
    return "\n".join(lines)


def _contents(passport: Passport) -> Iterator[str]:
    machine = passport.machine
    trained = sum(training.rate is not None for training in passport.trainings)
    rated = sum(rate.rate is not None for rate in passport.microbenchmarks)
    yield f'the label "{passport.label}", and when it was recorded'
    about = "its drivers, libraries, settings and load"
    yield f"the machine: {machine.summary}; {about}"
    if machine.load and machine.load.top:
        busy = ", ".join(program.program for program in machine.load.top)
        yield f"the names of the programs that kept it busy: {busy}"
    if machine.environment:
        variables = ", ".join(machine.environment)
        yield f"variables of the environment, without paths and addresses: {variables}"
    yield f"checks with their evidence: {len(passport.checks)}"
    yield f"rates of parts of the machine: {rated}"
    yield f"reference trainings, each with where its time goes: {trained}"
    yield f"samples of the load meanwhile: {len(passport.samples.get('t', ()))}"


# Two machines.


@shown.report.register
def comparison_report(two: TwoMachines) -> Report:
    """What a person reads of two machines."""
    trainings = dict.fromkeys(row.training for row in (two.main, *two.steps) if row)
    rows = tuple(row for training in trainings for row in _rows(two, training))
    missing = tuple((row.title, row.missing) for row in two.rows if row.missing)
    facts = tuple((fact.name, fact.a, fact.b) for fact in two.facts)
    tables = (
        Table("How fast each part of the machines is", _HEADINGS, _rows(two, "")),
        Table("In what the machines differ", ("fact", "A", "B"), facts),
        Table("What is not compared", ("row", "why"), missing),
    )
    guess = [f"Your guess: {two.guess}"] if two.guess else []
    return Report(
        verdict=_verdict(two),
        question="Two machines: how does the same training differ?",
        table=Table("Each part of a step on both machines", _HEADINGS, rows),
        besides=tuple(_besides(two)),
        folds=(
            *(Fold(table.title, tables=(table,)) for table in tables),
            Fold("What the doctor says of one of them", tuple(remedies(two.a, two.b))),
        ),
        foot=(*guess, f"A: {two.a.origin}", f"B: {two.b.origin}"),
    )


def _rows(two: TwoMachines, training: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a training, or of the microbenchmarks, that both measured."""
    return tuple(
        (
            row.title,
            write_amount(row.a, row.unit),
            write_amount(row.b, row.unit),
            speed_in_words(row),
            row.verdict,
            "" if row.share is None else f"{100 * row.share:z.0f} %",
        )
        for row in two.rows
        if row.training == training and not row.missing and (row.a or row.b)
    )


def speed_in_words(row: Row) -> str:
    """B's speed over A's with its interval; "" where it is not known."""
    if row.speed is None:
        return ""
    return units.ratio_between(row.speed, row.low, row.high)


def _besides(two: TwoMachines) -> Iterator[str]:
    facts = [f"{fact.name} {fact.a} on A, {fact.b} on B" for fact in two.facts]
    if facts:
        omitted = len(facts) - _FACTS
        suffix = f"; and {omitted} more" if omitted > 0 else ""
        yield f"They differ in: {'; '.join(facts[:_FACTS])}{suffix}."
    if two.verdict == "depends on the training" and two.main:
        other_steps = [r for r in two.steps if r.slower not in ("", two.main.slower)]
        yield " ".join(map(_claim, other_steps))
    noisy = [row.training for row in two.steps if row.verdict == "too noisy to say"]
    if noisy:
        yield f"A difference above 10 % is left open in: {', '.join(noisy)}."


def _verdict(two: TwoMachines) -> Verdict:
    """What is shown, how much, how sure, and what to do next."""
    if two.verdict == "busy":
        return _busy(two)
    if two.main:
        return Verdict(
            headline=_claim(two.main),
            much=_gap(two, two.main),
            sure="sure",
            interval=write_times(two.main)[1],
            next=NEXT_STEPS.get(two.largest.part, "") if two.largest else "",
        )
    if two.verdict == "too noisy to say":
        return Verdict(
            headline="Too noisy to say whether the machines differ.",
            sure="not known yet",
            next="A larger budget for both passports narrows it.",
        )
    reasons = [row.missing for row in two.steps if row.a and row.b and row.missing]
    headlines = {
        "not the same job": f"Nothing is compared. {' '.join(reasons[:1])}",
        "not measured": "No training was measured on both machines.",
    }
    default = "No difference shown: if there is one, it is below 10 %."
    return Verdict(headline=headlines.get(two.verdict, default))


def _busy(two: TwoMachines) -> Verdict:
    side = two.a if two.busy == "A" else two.b
    cores = units.significant(side.cores_of_others or 0.0, 2)
    load = side.machine.load
    top = ", ".join(busy.program for busy in load.top[:3]) if load else ""
    effect = "How fast it is by itself is not known yet."
    if two.main:
        effect = f"{_claim(two.main)} How much of that is the load is not known yet."
    return Verdict(
        headline=f"{two.busy} was busy while it was recorded: other programs kept "
        f"{cores} of its {side.machine.cores} cores busy{f' ({top})' if top else ''}.",
        much=effect,
        sure="not known yet",
        next=f"End them, record {two.busy} again, and compare again.",
    )


def _claim(row: Row) -> str:
    """How many times as long, or as fast, a step runs on B."""
    times = f"{write_times(row)[0]} times"
    if row.slower == "B":
        return as_sentence(f"{row.training} takes {times} as long on B as on A")
    return as_sentence(f"{row.training} runs {times} as fast on B as on A")


def write_times(row: Row) -> tuple[str, str]:
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
    extent = (
        "Most of the difference" if (part.share or 0.0) > 0.5 else "The largest part"
    )
    amounts = [seconds(abs(row.change or 0.0)) for row in (part, main)]
    return f"{step}. {extent} is {part.part}: {amounts[0]} of {amounts[1]}."
