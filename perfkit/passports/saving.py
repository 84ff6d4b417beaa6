"""A passport as a file: one JSON document, whole or as it was before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import BadFileError, PerfkitError
from perfkit.findings import store
from perfkit.findings.reading import written
from perfkit.passports import reading

if TYPE_CHECKING:
    from perfkit.passports.record import Passport

# No reading has more of them.
_DIGITS = 6


def to_json(passport: Passport) -> str:
    """Write a passport as JSON: what is not known is left out, numbers are short."""
    return json.dumps(
        _short(json.loads(written(passport))), ensure_ascii=False, separators=(",", ":")
    )


def save(passport: Passport, path: str | Path) -> Path:
    """Write a passport to a file; ``passport.path`` then says where.

    The file is there in full or, whatever happens, as it was before.

    Raises:
        PerfkitError: It cannot be written there. The passport itself is untouched.
    """
    path = Path(os.path.expanduser(path))
    try:
        data = to_json(passport).encode()
        reading.parsed(data, "what was measured")
    except (BadFileError, ValueError) as error:
        raise PerfkitError(f"The passport cannot be kept as a file: {error}") from error
    store.write_as(path, data, passport.kind)
    store.remember(passport, path)
    return path


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _short(item) for n, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
