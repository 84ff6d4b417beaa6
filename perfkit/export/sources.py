"""What is to be exported: findings, or a notebook."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings.diagnosis import Diagnosis
from perfkit.findings.record import Finding
from perfkit.findings.store import Recorded, load, whole_file
from perfkit.findings.text import plain

# With every picture that it holds.
_LARGEST_NOTEBOOK = 256 * 10**6


@dataclass(frozen=True)
class Notebook:
    """The file of a notebook and what it holds, as JSON reads it."""

    path: Path
    document: dict[str, Any]


def listed(sources: Any) -> list[Any]:
    """One source as a list of one."""
    if isinstance(sources, str | Path | Finding | Diagnosis):
        return [sources]
    try:
        return list(sources)
    except TypeError:
        return [sources]


def read(source: Any) -> Recorded | Notebook:
    """Read a source; a finding or a diagnosis is one already.

    Raises:
        BadFileError: The file is neither a notebook nor a finding.
        BadParameterError: It is not even a file.
    """
    if isinstance(source, Finding | Diagnosis):
        return source
    if not isinstance(source, str | Path):
        raise BadParameterError(
            f"{plain(repr(source), 80)} cannot be exported; give a finding, or the "
            "file of a finding or of a notebook."
        )
    path = Path(os.path.expanduser(source))
    known, document = _document(path)
    if known and isinstance(document, dict) and "nbformat" in document:
        return Notebook(path, document)
    if known and not (isinstance(document, dict) and "kind" in document):
        raise BadFileError(f"{plain(path.name)} is neither a notebook nor a finding.")
    # What is no JSON at all is told by who reads findings.
    return load(path)


def _document(path: Path) -> tuple[bool, Any]:
    """Whether the file can be read as JSON, and as what."""
    try:
        return True, json.loads(whole_file(path, _LARGEST_NOTEBOOK))
    except (BadFileError, ValueError, RecursionError):
        return False, None
