"""Where a page goes: refused before the work, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from perfkit.errors import BadFileError, BadParameterError
from perfkit.findings.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ENDS = (".html", ".htm")


def check(path: Path, sources: Iterable[Path]) -> None:
    """Refuse to write where a page cannot or should not be.

    Raises:
        BadParameterError: The name is not one of a page, there is no such folder, or
            it is one of the sources.
    """
    name = plain(str(path))
    if any(_same(path, source) for source in sources):
        raise BadParameterError(f"{name} is what the page is made from; give another.")
    if path.is_dir() or path.suffix.lower() not in _ENDS:
        raise BadParameterError(
            f"{name} is no name for a page; give one that ends in .html."
        )
    if not path.parent.is_dir():
        raise BadParameterError(
            f"There is no folder {plain(str(path.parent))} to write {name} into."
        )


def write(path: Path, text: str) -> None:
    """Write a page; what was there before stays until the new one is whole.

    Raises:
        BadFileError: It cannot be written.
    """
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        try:
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        reason = error.strerror or error
        raise BadFileError(f"Cannot write {plain(str(path))} ({reason}).") from error


def _same(path: Path, source: Path) -> bool:
    try:
        return path.samefile(source)
    except OSError:
        return path.absolute() == source.absolute()
