"""A passport in words, and as it is shown."""

from collections.abc import Iterator, Sequence

from perfkit import units
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.reports import machine_in_words
from perfkit.findings.text import minute, plain
from perfkit.passports.passport import (
    BUDGET_S,
    ENDED,
    PARTS,
    BenchmarkRate,
    Part,
    Passport,
    Training,
)

_PRECISIONS = {
    "float32": "",
    "mixed_bfloat16": ", bfloat16",
    "mixed_float16": ", float16",
}

_LEAST_S = 1e-9


def report(passport: Passport) -> Report:
    """What a person reads of it."""
    trainings = tuple(
        (title(one), step(one), *_split(one)) for one in passport.trainings
    )
    benchmarks = tuple((one.name, _rate(one)) for one in passport.microbenchmarks)
    parts = Table("Parts of the machine", ("part", "rate"), benchmarks)
    return Report(
        verdict=Verdict(headline=headline(passport), much=too_short(passport)),
        table=Table("Reference trainings", ("training", "a step", *PARTS), trainings),
        besides=(*about(passport), *_overlapping(passport), *unwhole(passport)),
        folds=(Fold(parts.title, tables=(parts,)),),
    )


def headline(passport: Passport) -> str:
    """Whose passport it is and when it was recorded."""
    of = passport.label or "a machine"
    return f"Passport of {of}, recorded {minute(passport.recorded)}"


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


def _split(training: Training) -> Iterator[str]:
    for name in PARTS:
        part = training.part(name)
        yield seconds_of(part) if part else ""


def about(passport: Passport) -> Iterator[str]:
    """The machine and its checks, a line each."""
    yield machine_in_words(passport)
    for check in passport.checks:
        if check.status in ("fail", "warn"):
            yield f"{check.status}: {check.title}"


def title(training: Training) -> str:
    """A training by name, with its precision where that is not float32."""
    precision = _PRECISIONS.get(training.dtype, f", {plain(training.dtype, 40)}")
    return f"{plain(training.name, 60)}{precision}"


def _overlapping(passport: Passport) -> Iterator[str]:
    """Why a part may be below 0, if one is."""
    parts = [training.part("unexplained") for training in passport.trainings]
    if any(part and (part.high or 0.0) < 0 for part in parts):
        yield (
            "unexplained is below 0 where parts that were measured one by one take "
            "longer than the step, in which they run side by side."
        )


def step(training: Training) -> str:
    """What a step takes as text, or why that is not known."""
    if training.seconds is None:
        return f"not measured. {training.missing}".rstrip()
    return seconds_of(training)


def seconds_of(timed: Training | Part) -> str:
    """As ``"1.2 ms (1.1 to 1.3)"``, or a word where it was not measured."""
    low, high = timed.low, timed.high
    if timed.seconds is None or low is None or high is None or low == high:
        return seconds(timed.seconds)
    return units.between(timed.seconds, low, high, seconds)


def unwhole(passport: Passport) -> Iterator[str]:
    """What is missing of it, a sentence each."""
    if passport.stopped:
        yield "It was stopped before it was whole."
    elif passport.unfinished:
        yield "Making it was broken off; what is here was measured by then."
    yield from passport.missed


def preview(passport: Passport, size: int, names: str = "`--with-names`") -> str:
    """Say what is in a file of so many bytes and what is not, before it is sent.

    ``names`` is what puts the host and user name in.
    """
    return "\n".join(
        [
            f"In this file ({units.size(size)}):",
            *(f"  - {line}" for line in _held(passport)),
            "Not in it:",
            *(f"  - {line}" for line in _left_out(passport, names)),
        ]
    )


def _held(passport: Passport) -> Iterator[str]:
    machine = passport.machine
    yield f'the label "{plain(passport.label)}", and when it was recorded'
    yield (
        f"the machine: {plain(machine.summary)}; its drivers, libraries, settings and "
        "load"
    )
    if machine.load and machine.load.top:
        busy = ", ".join(plain(program.program, 40) for program in machine.load.top)
        yield f"the names of the programs that kept it busy: {busy}"
    if machine.environment:
        names = ", ".join(plain(name, 60) for name in machine.environment)
        yield f"variables of the environment, without paths and addresses: {names}"
    yield f"{_count(passport.checks, 'check')} with their evidence"
    rates = [one for one in passport.microbenchmarks if one.rate is not None]
    yield f"the rates of {_count(rates, 'part')} of the machine"
    timed = [training for training in passport.trainings if training.seconds]
    if timed:
        yield f"{_count(timed, 'reference training')}, each with where its time goes"
    else:
        yield "no reference training"
    yield f"{_count(passport.samples.get('t', ()), 'sample')} of the load meanwhile"
    if passport.host or passport.user:
        told = {"host": passport.host, "user": passport.user}
        asked = (f"the {what}'s name, {plain(n)}" for what, n in told.items() if n)
        yield f"{' and '.join(asked)}, as you asked"


def _left_out(passport: Passport, names: str) -> Iterator[str]:
    missing = [w for w in ("host", "user") if not getattr(passport, w)]
    if missing:
        yield f"the {' and '.join(missing)} name ({names} puts them in)"
    yield "paths of your folders, addresses, secrets, data of yours"
    yield "code, and anything that is run when the file is read"


def _rate(one: BenchmarkRate) -> str:
    if one.rate is None:
        return f"not measured. {one.missing}".rstrip()
    said = units.rate(one.rate, one.unit)
    if one.low is not None and one.high is not None:
        said = units.rate_between(one.rate, one.low, one.high, one.unit)
    if one.share is None:
        return said
    # What is beyond its limit says that the limit was taken too low.
    of = "beyond" if one.share > 1 else f"{units.percent(one.share)} of"
    return f"{said}, {of} its limit"


def seconds(value: float | None) -> str:
    """Seconds as text; less than a clock can tell is nothing."""
    if value is None:
        return "not measured"
    return units.seconds(value if abs(value) >= _LEAST_S else 0.0)


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
