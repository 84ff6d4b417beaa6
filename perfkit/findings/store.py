"""Findings as files: one JSON document each, whole or not there at all."""

import contextlib
import datetime
import functools
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.engine.trial import Trial
from perfkit.errors import BadFileError, PerfkitError, remedy
from perfkit.findings import reading
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import (
    LARGEST_BYTES,
    Document,
    encode,
    kind_of,
    parse,
    parse_as,
)
from perfkit.findings.record import Finding
from perfkit.findings.tables import frame
from perfkit.findings.text import minute, plain

if TYPE_CHECKING:
    from pandas import DataFrame


FOLDER = "perfkit-findings"
Recorded = Finding | Diagnosis


def finding_of(document: Recorded) -> Finding:
    """A finding itself; of a diagnosis what it has measured."""
    return document.finding if isinstance(document, Diagnosis) else document


def save(
    finding: Recorded,
    folder: str | Path | None = None,
    path: Path | None = None,
) -> Path:
    """Write a finding to a file of its own; ``finding.path`` then says where.

    The file is there in full or, whatever happens, as it was before.

    Args:
        finding: What to write.
        folder: Where to; None for ``perfkit-findings`` in the current directory.
        path: The file of an earlier state of the same run, which this one takes the
            place of. ``folder`` then does not count.

    Raises:
        PerfkitError: The folder cannot be written to. The finding itself is untouched.
    """
    question = finding.experiment if isinstance(finding, Finding) else finding.kind
    name = name_of(question, finding.recorded)
    path = path or Path(os.path.expanduser(folder or FOLDER)) / name
    read_back = functools.partial(parse_as, type(finding))
    data = readable(functools.partial(to_json, finding), read_back, "finding")
    try:
        write_whole(path, data)
    except OSError as error:
        raise PerfkitError(
            f"The finding could not be saved in {path.parent} "
            f"({error.strerror or error}): {remedy(error)}. In a notebook it is still "
            "in memory: save it again."
        ) from error
    remember(finding, path)
    return path


def load(path: str | Path) -> Recorded:
    """Read a finding, or a diagnosis, back from its file.

    Raises:
        BadFileError: There is no such file, or it is neither, or not one that this
            perfkit can read.
    """
    return read(path, parsed_recorded)


def load_finding(path: str | Path) -> Finding:
    """Read a finding back from its file, where a diagnosis will not do.

    Raises:
        BadFileError: There is no such file, or it is no finding that this perfkit can
            read.
    """
    return read(path, parse)


def read(
    path: str | Path,
    parse: Callable[[bytes, str], Document],
    limit: int = LARGEST_BYTES,
) -> Document:
    """Read a document, which then knows where it lies, by what parses its bytes."""
    path = Path(os.path.expanduser(path))
    document = parse(whole_file(path, limit), plain(path.name))
    remember(document, path)
    return document


def parsed_recorded(data: bytes, name: str) -> Recorded:
    """Read a finding, or a diagnosis, from the bytes of a file.

    Raises:
        BadFileError: It is neither; the sentence says what.
    """
    # The word is looked for first, so that a finding is not read as JSON twice.
    if b'"diagnosis"' in data and kind_of(data, name) == "diagnosis":
        return reading.parse_diagnosis(data, name)
    return parse(data, name)


def findings(folder: str | Path | None = None) -> "DataFrame":
    """List the findings and diagnoses of a folder, the newest first.

    Args:
        folder: None for ``perfkit-findings`` in the current directory.

    Returns:
        One row per file. A file that is no finding has its row too; the last column
        says what is wrong with it.
    """
    paths = sorted(Path(os.path.expanduser(folder or FOLDER)).glob("*.json"))
    rows = [_row(path) for path in paths]
    # A file is named after the second in which its run began.
    rows.sort(key=lambda row: (row["recorded"], row["path"]), reverse=True)
    columns = ("recorded", "experiment", "headline", "winner", "machine")
    return frame(rows, (*columns, "path", "problem"))


def to_json(finding: Recorded) -> str:
    """Write a finding, or a diagnosis, as JSON.

    Ticks keep every nanosecond, so that a rate computed from the file is the rate that
    was computed from the run; samples keep the digits that they can have.
    """
    trials = tuple(_rounded(trial) for trial in finding.trials)
    samples = {
        name: tuple(None if value is None else _digits(name, value) for value in values)
        for name, values in finding.samples.items()
    }
    return encode(replace(finding, trials=trials, samples=samples)).decode()


def _rounded(trial: Trial) -> Trial:
    return replace(
        trial,
        ticks=tuple((round(t, 9), examples) for t, examples in trial.ticks),
        turns=tuple(round(t, 9) for t in trial.turns),
        parts={
            name: tuple(round(spent, 6) for spent in part)
            for name, part in trial.parts.items()
        },
    )


def _digits(name: str, value: float) -> float:
    return round(value, 3) if name == "t" else float(f"{value:.4g}")


def readable(
    write: Callable[[], str], parse: Callable[[bytes, str], object], kind: str
) -> bytes:
    """A file's bytes, read once on trial: later nobody could fix them.

    Args:
        write: Writes the document as JSON.
        parse: Reads it back.
        kind: What it is called, such as ``"finding"``.

    Raises:
        PerfkitError: It cannot be written, or not be read back.
    """
    try:
        data = write().encode()
        parse(data, f"this {kind}")
    except (BadFileError, ValueError, RecursionError) as error:
        raise PerfkitError(f"The {kind} cannot be kept as a file: {error}") from error
    return data


def name_of(title: str, recorded: str) -> str:
    """Of a new file; two runs that begin in the same second get different ones."""
    try:
        began = datetime.datetime.fromisoformat(recorded)
    except ValueError:
        began = datetime.datetime.now().astimezone()
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return (
        f"{words[:60] or 'finding'}-{began:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.json"
    )


def write_as(path: str | Path, data: bytes, kind: str) -> Path:
    """Write a document that somebody named a file for, whole or not at all.

    Raises:
        PerfkitError: It cannot be written there. What was there is as it was before.
    """
    path = Path(os.path.expanduser(path))
    try:
        write_whole(path, data)
    except OSError as error:
        raise PerfkitError(
            f"The {kind} could not be saved as {path} ({error.strerror or error}): "
            f"{remedy(error, 'give another file')}."
        ) from error
    return path


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the file, make sure that it is on the disk, then take its place.

    Others may read it where the user's own settings say so, and never write to it.
    """
    path.parent.mkdir(0o755, parents=True, exist_ok=True)
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        opener = functools.partial(os.open, mode=0o644)
        with open(beside, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def whole_file(path: Path, limit: int = LARGEST_BYTES) -> bytes:
    """Read a file, and no more than one byte above ``most`` of it.

    Raises:
        BadFileError: There is none, or it cannot be read.
    """
    name = plain(path.name) or plain(str(path))
    try:
        if not path.exists():
            raise BadFileError(f"There is no file {plain(str(path))}.")
        if not path.is_file():
            raise BadFileError(f"{name} is not a file.")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadFileError(f"{name} cannot be read ({reason}).") from None
    return data


def _row(path: Path) -> dict[str, Any]:
    try:
        document = load(path)
    except BadFileError as error:
        return {"recorded": "", "path": path, "problem": str(error)}
    finding = finding_of(document)
    return {
        "recorded": minute(finding.recorded),
        "experiment": plain(finding.experiment)
        + (" (recorded)" if finding.replayed else ""),
        "headline": plain(finding.verdict.headline),
        "winner": plain(finding.verdict.winner),
        "machine": plain(finding.machine.summary),
        "path": path,
        "problem": "",
    }


def remember(document: object, path: Path) -> None:
    """Let a document know where it lies, which is no part of it and in no file."""
    object.__setattr__(document, "_path", path)
