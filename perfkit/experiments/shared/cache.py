"""Where is what has been made once kept?

In one folder per user: the system's own place for such things, or ``PERFKIT_CACHE``.
What is in it can be deleted at any time; it is made again when it is needed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.errors import MissingPartError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from perfkit.measure.tick import Note

VARIABLE = "PERFKIT_CACHE"
# A making that has not been touched for a day was interrupted, not slow.
_ABANDONED_S = 86_400
_UNFINISHED = ".unfinished-"


def folder() -> Path:
    """The folder that holds everything; it need not exist yet."""
    import platformdirs

    chosen = os.environ.get(VARIABLE)
    return (
        Path(chosen or platformdirs.user_cache_dir("perfkit")).expanduser().absolute()
    )


def made(
    name: str, make: Callable[[Path], Iterator[Note]], *, size: int, what: str
) -> Generator[Note, None, Path]:
    """Give a folder of the cache, made on first use and always whole.

    Args:
        name: Of the folder; it says everything that determines its contents.
        make: Fills an empty folder and tells how far it is.
        size: Bytes it will take, about.
        what: What it is, for a reader: ``"512 photographs"``.

    Yields:
        What ``make`` tells.

    Raises:
        MissingPartError: There is no room for it, or it may not be written.
    """
    whole = folder() / name
    if whole.is_dir():
        return whole
    with writing(what, size):
        _made_parent(whole)
        _forget_abandoned()
        _check_room(what, size)
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder()))
        try:
            yield from make(unfinished)
            _keep(unfinished, whole)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return whole


def write(name: str, text: str, *, what: str) -> Path:
    """Write one file of the cache, whole or not at all.

    Raises:
        MissingPartError: There is no room for it, or it may not be written.
    """
    whole = folder() / name
    with writing(what, len(text)):
        _made_parent(whole)
        descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=whole.parent)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(unfinished).replace(whole)
        except BaseException:
            Path(unfinished).unlink()
            raise
    return whole


@contextlib.contextmanager
def writing(what: str, size: int) -> Iterator[None]:
    """Turn what the system says about a full or closed disk into a sentence."""
    try:
        yield
    except OSError as error:
        where = f"set {VARIABLE} to a folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise MissingPartError(
                f"No room for {what} ({units.size(size)}) in {folder()}: free some "
                f"there, or {where} on another disk."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise MissingPartError(
                f"{folder()}, which is to keep {what}, cannot be written to: {where} "
                "that can."
            ) from error
        raise


def _made_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:
        # So says a place that takes no folders at all, such as /proc.
        raise OSError(errno.EROFS, str(error)) from error


def _check_room(what: str, size: int) -> None:
    free = shutil.disk_usage(folder()).free
    if free < 1.05 * size:
        raise OSError(errno.ENOSPC, f"{what} do not fit")


def _keep(unfinished: Path, whole: Path) -> None:
    try:
        unfinished.rename(whole)
    except OSError:
        # Another run was faster and has made the same; anything else is an error.
        if not whole.is_dir():
            raise


def _forget_abandoned() -> None:
    for path in folder().glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(path, ignore_errors=True)
