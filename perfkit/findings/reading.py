"""Is this file a finding? Files come from other people's machines and are not trusted.

A file is data: it is parsed as JSON, its texts are made printable, it is checked
against the types, and nothing in it is ever run. What is wrong with it is said in one
sentence. Every kind of document that perfkit writes is read here: a record whose fields
``schema`` and ``kind`` are literals.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from perfkit.engine.trial import LOSSES, Trial
from perfkit.errors import BadFileError
from perfkit.findings.account import KINDS, Account
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.text import cut, one_line, plain, printable
from perfkit.machine.record import Machine

# A run of a minute takes about 0.2 MB. What a value costs in memory is many times what
# it costs in the file, so values are limited besides.
LARGEST_BYTES = 64 * 10**6
# A class has many of them; one takes 20 to 40 KB.
_LARGEST_OF_KIND = {"passport": 10**6}
_MOST_VALUES = 4 * 10**6
_LONGEST_TEXT = 100_000
# Of a text that is shown: no sentence and no function of anybody's is longer.
_LONGEST_LINE, _MOST_TEXT_LINES = 2000, 400
# Sums and squares of anything smaller stay finite.
_LARGEST_NUMBER = 1e30
# Lists in lists: those of a plan of stages are a dozen.
_DEEPEST = 100
# Each has a row or a line in every chart and report; none has a tenth of it.
_MOST = 500
_COUNTED = ("causes", "untested", "unmeasured", "aside", "left_out")
# Of an account, and of each of its lines those around it.
_MOST_LINES, _AROUND = 2000, 5
# What one command reads, whatever was asked for.
DOCUMENT_KINDS = ("finding", "account", "diagnosis", "profile", "passport")
Document = TypeVar("Document")


def encode(record: object) -> bytes:
    """Write a record as JSON; what is no number there (NaN, infinite) is null.

    A note may hold more than JSON knows: NumPy's numbers and arrays are written as
    what they hold, anything else as its text.
    """
    import msgspec

    return msgspec.json.encode(record, enc_hook=_as_plain)


def as_plain(record: object) -> Any:
    """A record as dictionaries, lists and numbers, as its file has it."""
    import msgspec

    return msgspec.to_builtins(record, enc_hook=_as_plain)


def _as_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def parse(data: bytes, name: str, *record_types: type[Document]) -> Document:
    """Read a document of one of these kinds from all bytes of a file.

    Its texts are printable then, and of limited length: nobody who shows them has to
    look at them again. Errors call the file ``name``, and refuse what says of itself
    nothing as the first of the types: dataclasses with fields ``schema`` and ``kind``.

    Raises:
        BadFileError: It is anything else; the sentence says what.
    """
    import msgspec

    kinds = by_kind(*record_types)
    noun = next(iter(kinds))
    document = _document(data, name, noun)
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str):
        raise BadFileError(f"{name} is not {_a(noun)} of perfkit's.")
    if kind in kinds:
        noun = kind
        _refuse_large(data, name, noun)
    record_type = kinds[noun]
    newest = _default(record_type, "schema")
    _refuse_other(kind, document.get("schema"), name, noun, newest)
    try:
        # What the type does not name is left out: a later perfkit may add to a file.
        record = msgspec.convert(document, record_type)
    except msgspec.ValidationError as error:
        fault: str | None = str(error)
    else:
        fault = next(faults(record), None)
    if fault:
        raise BadFileError(f"{name} is not a valid {noun}: {plain(fault, 200)}.")
    return record


def note_as(note_type: type[Document], note: object) -> Document | None:
    """What a trial noted, as what it should be; None where it is anything else."""
    import msgspec

    try:
        return msgspec.convert(note, note_type)
    except msgspec.ValidationError:
        return None


def losses(trial: Trial) -> list[tuple[float, float]]:
    """After so many examples, the mean loss up to there; what is none in a file is NaN.

    A file may say anything: then there are none.
    """
    points = note_as(list[tuple[int | float, float | None]], trial.notes.get(LOSSES))
    return [(n, math.nan if y is None else y) for n, y in points or () if n > 0]


def by_kind(*record_types: type[Document]) -> dict[str, type[Document]]:
    """Return the types of records by what their documents call themselves."""
    return {_default(record_type, "kind"): record_type for record_type in record_types}


def _default(record_type: type[Any], field: str) -> Any:
    return record_type.__dataclass_fields__[field].default


def _document(data: bytes, name: str, noun: str) -> Any:
    import msgspec

    _refuse_large(data, name, noun)
    if not data.strip():
        raise BadFileError(f"{name} is empty.")
    try:
        document = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"{name} is {_broken(str(error), data, noun)}.") from None
    try:
        return _cleaned(document)
    except ValueError as excess:
        raise BadFileError(
            f"{name} is not a valid {noun}: it holds {excess}."
        ) from None


def _refuse_large(data: bytes, name: str, noun: str) -> None:
    largest = _LARGEST_OF_KIND.get(noun, LARGEST_BYTES)
    # At least as many as there are, known before any of them takes memory.
    values = data.count(b",") + 2 * (data.count(b"[") + data.count(b"{"))
    if len(data) > largest or values > _MOST_VALUES:
        raise BadFileError(f"{name} is too large to be a {noun}.")


def _cleaned(value: Any, depth: int = 0) -> Any:
    """What a file holds, its texts printable; a ValueError where no document has it."""
    if depth > _DEEPEST:
        raise ValueError("lists that are nested too deeply")
    if isinstance(value, str):
        return _cleaned_text(value)
    if isinstance(value, list):
        # Most of a document are plain numbers, and one call for each takes longest.
        return [
            item
            if type(item) is float and abs(item) <= _LARGEST_NUMBER
            else _cleaned(item, depth + 1)
            for item in value
        ]
    if isinstance(value, dict):
        return {
            _cleaned_text(name): _cleaned(item, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
        raise ValueError("a number that is too large")
    return value


def _cleaned_text(text: str) -> str:
    if len(text) <= _LONGEST_LINE and text.isprintable():
        return text
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a text of {len(text):,} characters")
    lines = printable(text).split("\n")
    if len(lines) > _MOST_TEXT_LINES:
        lines = [*lines[: _MOST_TEXT_LINES - 1], "…"]
    return "\n".join(cut(line, _LONGEST_LINE) for line in lines)


def _broken(reason: str, data: bytes, noun: str) -> str:
    # Half a surrogate, too, is called truncated; half a number is called no number.
    half = f"number (byte {len(data)})" in reason
    if half or ("truncated" in reason and not data.rstrip().endswith(b"}")):
        return "cut off: its end is missing"
    if "recursion" in reason:
        return f"not {_a(noun)}: its lists are nested too deeply"
    if "out of range" in reason:
        return f"not a valid {noun}: it holds a number that is too large"
    return f"not JSON: {reason}"


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1] in set("aeio") else f"a {noun}"


def _refuse_other(kind: str, schema: Any, name: str, noun: str, newest: int) -> None:
    if kind != noun:
        reads = ": perfkit show reads it" if kind in DOCUMENT_KINDS else ""
        actual = _a(one_line(kind, 40))
        raise BadFileError(f"{name} is not {_a(noun)} but {actual}{reads}.")
    if not isinstance(schema, int):
        raise BadFileError(f"{name} is not a valid {noun}: its schema has no number.")
    schemas = f"(schema {schema}, this one reads {newest})"
    if schema > newest:
        raise BadFileError(
            f"{name} was written by a newer perfkit {schemas}: in perfkit's folder run "
            "git pull, then its first command again."
        )
    if schema < newest:
        raise BadFileError(
            f"{name} was written by a draft of perfkit {schemas}: measure again."
        )


@functools.singledispatch
def faults(record: object) -> Iterator[str]:
    """What no run can have measured, although each value is of the right type."""
    return iter(())


@faults.register
def _finding_faults(finding: Finding) -> Iterator[str]:
    variants = {
        *(timing.variant for timing in finding.timings),
        *(trial.variant for trial in finding.trials),
        *(comparison.variant for comparison in finding.comparisons),
        *finding.unavailable,
    }
    if len(variants) > _MOST:
        yield f"it has more than {_MOST} variants"
    if max(len(finding.verdict.because), len(finding.verdict.facts)) > _MOST:
        yield f"it has more than {_MOST} reasons"
    if _negative(n for t in finding.timings for n in (t.rate, t.low, t.high)):
        yield "a rate is below 0"
    if any(min(c.ratio, c.low, c.high) <= 0 for c in finding.comparisons):
        yield "a ratio is not above 0"
    if finding.noise_floor is not None and finding.noise_floor <= 0:
        yield "the noise floor is not above 0"
    if _negative(n for trial in finding.trials for tick in trial.ticks for n in tick):
        yield "a tick is below 0"
    parts = (part for trial in finding.trials for part in trial.parts.values())
    if _negative(spent for part in parts for spent in part):
        yield "a part of a tick is below 0"
    yield from faults_of_machine(finding.machine)
    yield from faults_of_samples(finding.samples)


def faults_of_machine(machine: Machine) -> Iterator[str]:
    """What no machine can be."""
    if min(machine.cores, machine.cores_granted) <= 0:
        yield "its machine has no cores"


def faults_of_samples(samples: Mapping[str, Sequence[float | None]]) -> Iterator[str]:
    """What no monitor can have written."""
    lengths = {len(values) for values in samples.values()}
    if len(lengths) > 1 or (lengths and "t" not in samples):
        yield "the samples do not fit together"
    if None in samples.get("t", ()):
        yield "a sample has no time"


def in_order(*ends: float | None) -> bool:
    """Whether what is known of the ends of an interval lies in this order."""
    known_ends = [end for end in ends if end is not None]
    return known_ends == sorted(known_ends)


def _negative(numbers: Iterable[float]) -> bool:
    return min(numbers, default=math.inf) < 0


@faults.register
def _diagnosis_faults(diagnosis: Diagnosis) -> Iterator[str]:
    for field in _COUNTED:
        if len(getattr(diagnosis, field)) > _MOST:
            yield f"it has more than {_MOST} {field}"
    yield from faults(diagnosis.finding)
    for name, low, value, high in _intervals(diagnosis):
        if not 0 < low <= value <= high:
            yield f"{name} lies outside its interval, or is not above 0"
    if diagnosis.account is not None:
        yield from faults(diagnosis.account)
    if any(len(cause.edits) > _MOST for cause in diagnosis.causes):
        yield f"it has more than {_MOST} places to change for one cause"


@faults.register
def _account_faults(account: Account) -> Iterator[str]:
    lines, stages = len(account.lines), len(account.stages)
    around = sum(map(len, account.text.values()))
    if max(lines, stages, around // _AROUND, len(account.tips)) > _MOST_LINES:
        yield f"it has more than {_MOST_LINES} lines, stages or tips"
    if any(not set(line.seconds) <= set(KINDS) for line in account.lines):
        yield "a line has seconds of an unknown kind"
    if _negative(_seconds(account)):
        yield "a time is below 0"
    if any(trace.count < 1 for line in account.lines for trace in line.traces):
        yield "a line had a function traced that never was"
    for tip in account.tips:
        if not tip.lines or any(n not in range(lines) for n in tip.lines):
            yield "a tip is about a line that is not there"
        if not 0 <= tip.share <= 1:
            yield "a tip is about more or less than a share"
    if growth := account.growth:
        if growth.line not in range(-1, lines):
            yield "memory grows on a line that is not there"
        if not 0 < growth.low <= growth.each_bytes <= growth.high or growth.ends < 1:
            yield "the growth of memory lies outside its interval, or is not above 0"
    for stage in account.stages:
        if stage.line not in range(-1, lines):
            yield "a stage is on a line that is not there"
        if _negative((stage.given, stage.out)):
            yield "a number of elements is below 0"
    yield from faults_of_machine(account.machine)


def _seconds(account: Account) -> Iterator[float]:
    yield from (account.wall_s, account.once_s, account.elsewhere_s)
    yield from (account.looking_s, account.traced_s, account.sampling_s)
    yield account.pass_ends_s
    yield from account.epochs_s
    for line in account.lines:
        yield from line.seconds.values()
        yield from (line.starting_s, line.eager_s, line.beside_s, line.operations)
        yield from (call.seconds for call in line.calls)
        yield from (trace.seconds for trace in line.traces)


def _intervals(diagnosis: Diagnosis) -> Iterator[tuple[str, float, float, float]]:
    """What has an interval, by name: its low end, itself, its high end."""
    if step := diagnosis.step:
        yield "the step", step.low, step.median_s, step.high
    gains = [(f"the gain of {c.change}", c.speedup) for c in diagnosis.causes]
    if diagnosis.together:
        gains.append(("the gain of all together", diagnosis.together.speedup))
    if diagnosis.ceiling:
        gains.append(("the ceiling", diagnosis.ceiling))
    yield from ((name, gain.low, gain.estimate, gain.high) for name, gain in gains)
