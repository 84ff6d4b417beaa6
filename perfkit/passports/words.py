"""A passport in words, and as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.findings.record import Verdict
from perfkit.findings.report import Fold, Report, Table
from perfkit.findings.text import plain
from perfkit.passports.passport import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.passports.passport import Part, Passport, RungRate, Training


_PRECISIONS = {
    "float32": "",
    "mixed_bfloat16": ", bfloat16",
    "mixed_float16": ", float16",
}

_LEAST_S = 1e-9


def report(passport: Passport) -> Report:
    """What a person reads of it."""
    recorded = passport.recorded[:16].replace("T", " ")
    named = passport.label or "a machine"
    trainings = tuple(map(_training, passport.trainings))
    parts = Table("Parts of the machine", ("part", "rate"), tuple(rungs(passport)))
    return Report(
        verdict=Verdict(headline=f"Passport of {named}, recorded {recorded}"),
        table=Table("Reference trainings", ("training", "a step", *PARTS), trainings),
        besides=(*about(passport), *unwhole(passport)),
        folds=(Fold(parts.title, tables=(parts,)),),
    )


def _training(training: Training) -> tuple[str, ...]:
    parts = (training.part(name) for name in PARTS)
    told = (seconds_of(part) if part else "" for part in parts)
    return title(training), step(training), *told


def about(passport: Passport) -> Iterator[str]:
    """The machine and its checks, a line each."""
    tensorflow = passport.machine.versions.get("tensorflow", "")
    library = f", TensorFlow {plain(tensorflow, 20)}" if tensorflow else ""
    yield f"{plain(passport.machine.summary)}{library}"
    for check in passport.checks:
        if check.status in ("fail", "warn"):
            yield f"{check.status}: {plain(check.title)}"


def title(training: Training) -> str:
    """A training by name, with its precision where that is not float32."""
    precision = _PRECISIONS.get(training.dtype, f", {plain(training.dtype, 40)}")
    return f"{plain(training.name, 60)}{precision}"


def step(training: Training) -> str:
    """What a step takes as text, or why that is not known."""
    if training.seconds is None:
        return f"not measured. {plain(training.missing)}".rstrip()
    if training.low is None or training.high is None:
        return units.seconds(training.seconds)
    ends = training.low, training.high
    return units.between(training.seconds, *ends, units.seconds)


def rungs(passport: Passport) -> Iterator[tuple[str, str]]:
    """Each rung with its rate."""
    for rung in passport.rungs:
        yield plain(rung.name, 60), _rate(rung)


def seconds_of(part: Part) -> str:
    """A part as ``"1.2 ms (1.1 to 1.3)"``, or a word where it was not measured."""
    if part.seconds is None:
        return "not measured"
    if part.low is None or part.high is None or part.low == part.high:
        return _time(part.seconds)
    return units.between(part.seconds, part.low, part.high, _time)


def unwhole(passport: Passport) -> Iterator[str]:
    """What is missing of it, a sentence each."""
    if passport.stopped:
        yield "It was stopped before it was whole."
    elif passport.unfinished:
        yield "Making it was broken off; what is here was measured by then."
    yield from (plain(sentence) for sentence in passport.missed)


def preview(passport: Passport, size: int, names: str = "`--with-names`") -> str:
    """Say what is in the file and what is not, before it is sent to anybody.

    Args:
        passport: What the file holds.
        size: Bytes of the file.
        names: What puts the host and user name in.
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
    rates = [rung for rung in passport.rungs if rung.rate is not None]
    yield f"the rates of {_count(rates, 'part')} of the machine"
    timed = [training for training in passport.trainings if training.seconds]
    yield f"{_count(timed, 'reference training')}, each with where its time goes"
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


def _rate(rung: RungRate) -> str:
    if rung.rate is None:
        return f"not measured. {plain(rung.missing)}".rstrip()
    unit = plain(rung.unit, 20)
    if rung.low is None or rung.high is None:
        said = units.rate(rung.rate, unit)
    else:
        said = units.rate_between(rung.rate, rung.low, rung.high, unit)
    if rung.share is None:
        return said
    # What is beyond its limit says that the limit was taken too low.
    of = "beyond" if rung.share > 1 else f"{units.percent(rung.share)} of"
    return f"{said}, {of} its limit"


def _time(seconds: float) -> str:
    """What is less than a clock can tell is nothing."""
    return units.seconds(seconds if abs(seconds) >= _LEAST_S else 0.0)


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
