"""Documents as files: one of JSON each, whole or not there at all."""

import contextlib
import datetime
import functools
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadFileError, PerfkitError, remedy
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.reading import LARGEST_BYTES, Document, encode, parse
from perfkit.findings.record import Finding, Saved, frame
from perfkit.findings.text import minute, plain

if TYPE_CHECKING:
    from pandas import DataFrame


FOLDER = "perfkit-findings"
Recorded = Finding | Diagnosis
RECORDED: tuple[type[Recorded], ...] = Finding, Diagnosis


def finding_of(document: Recorded) -> Finding:
    """A finding itself; of a diagnosis what it has measured."""
    return document.finding if isinstance(document, Diagnosis) else document


def save(
    document: Saved, folder: str | Path | None = None, path: str | Path | None = None
) -> Path:
    """Write a document to a file of its own; ``document.path`` then says where.

    The file is there in full or, whatever happens, as it was before.

    Args:
        document: A finding, a diagnosis, or what else perfkit can load.
        folder: Where to; None for ``perfkit-findings`` in the current directory.
        path: The file itself, such as that of an earlier state of the same run.
            ``folder`` then does not count.

    Raises:
        PerfkitError: It cannot be written there, or not be read back: later nobody
            could fix that. The document itself is untouched.
    """
    if path is None:
        title = getattr(document, "experiment", document.kind)
        path = Path(folder or FOLDER) / name_of(title, document.recorded)
    try:
        data = to_json(document).encode()
        parse(data, f"this {document.kind}", type(document))
    except (BadFileError, ValueError, RecursionError) as error:
        raise PerfkitError(
            f"The {document.kind} cannot be kept as a file: {error}"
        ) from error
    hint = " In a notebook it is still in memory, so you can save it again."
    saved = write_as(path, data, document.kind, hint)
    remember(document, saved)
    return saved


def load(path: str | Path) -> Recorded:
    """Read a finding, or a diagnosis, back from its file, as ``read`` does."""
    return read(path, *RECORDED)


def read(path: str | Path, *record_types: type[Document]) -> Document:
    """Read a document of one of these kinds, which then knows where it lies.

    Raises:
        BadFileError: There is no such file, or it is none of them.
    """
    path = Path(os.path.expanduser(path))
    document = parse(whole_file(path), plain(path.name), *record_types)
    remember(document, path)
    return document


def findings(folder: str | Path | None = None) -> "DataFrame":
    """List the findings and diagnoses of a folder, the newest first.

    Args:
        folder: None for ``perfkit-findings`` in the current directory.

    Returns:
        One row per file, also for a file that is not a finding; the last column says
        what is wrong with it.
    """
    paths = sorted(Path(os.path.expanduser(folder or FOLDER)).glob("*.json"))
    rows = [_row(path) for path in paths]
    # A file is named after the second in which its run began.
    rows.sort(key=lambda row: (row["recorded"], row["path"]), reverse=True)
    columns = ("recorded", "experiment", "headline", "winner", "machine")
    return frame(rows, (*columns, "path", "problem"))


def to_json(document: Saved) -> str:
    """Write a document as JSON, with all digits: rates from it are those of the run."""
    return encode(document).decode()


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


def write_as(path: str | Path, data: bytes, kind: str, hint: str = "") -> Path:
    """Write a document of this kind, whole or not at all.

    Raises:
        BadFileError: It cannot be written there; ``hint`` ends the sentence. What was
            there is as it was before.
    """
    path = Path(os.path.expanduser(path))
    try:
        write_whole(path, data)
    except OSError as error:
        reason = error.strerror or error
        raise BadFileError(
            f"The {kind} could not be saved as {plain(str(path))} ({reason}): "
            f"{remedy(error)}.{hint}"
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
    """Read a file, and no more than one byte above ``limit`` of it.

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
        "experiment": finding.experiment + (" (recorded)" if finding.replayed else ""),
        "headline": finding.verdict.headline,
        "winner": finding.verdict.winner,
        "machine": finding.machine.summary,
        "path": path,
        "problem": "",
    }


def remember(document: object, path: Path) -> None:
    """Let a document know where it lies, which is no part of it and in no file."""
    object.__setattr__(document, "_path", path)
