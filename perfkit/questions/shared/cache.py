"""Where is what has been made once kept?

In one folder per user: the system's own place for such things, or ``PERFKIT_CACHE``.
What is in it can be deleted at any time; it is made again when it is needed.
"""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from perfkit import units
from perfkit.engine.alone import private_folder
from perfkit.engine.trial import Note
from perfkit.errors import MissingPartError

VARIABLE = "PERFKIT_CACHE"
# A making that has not been touched for a day was interrupted, not slow.
_ABANDONED_S = 86_400
_UNFINISHED = ".unfinished-"


def folder() -> Path:
    """The folder that holds everything; it need not exist yet."""
    import platformdirs

    place = os.environ.get(VARIABLE) or platformdirs.user_cache_dir("perfkit")
    return Path(place).expanduser().absolute()


def make(
    name: str, make: Callable[[Path], Iterator[Note]], *, size: int, label: str
) -> Generator[Note, None, Path]:
    """Give a folder of the cache, made on first use and always whole.

    Its name says everything that determines its contents. ``make`` fills an empty
    folder and tells how far it is. A reader is told the label, ``"512 photographs"``,
    and about how many bytes that takes.

    Raises:
        MissingPartError: There is no room for it, or it may not be written.
    """
    target = folder() / name
    if target.is_dir():
        return target
    with writing(label, size):
        _made_parent(target)
        for remnant in folder().glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if time.time() - remnant.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(remnant, ignore_errors=True)
        if shutil.disk_usage(folder()).free < 1.05 * size:
            raise OSError(errno.ENOSPC, f"{label} do not fit")
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder()))
        try:
            yield from make(unfinished)
            try:
                unfinished.rename(target)
            except OSError:
                # Another run was faster and has made the same; else it is an error.
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target


def write(name: str, text: str, *, label: str) -> Path:
    """Write one file of the cache, whole or not at all."""
    target = folder() / name
    with writing(label, len(text)):
        _made_parent(target)
        descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=target.parent)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(unfinished).replace(target)
        except BaseException:
            Path(unfinished).unlink()
            raise
    return target


@contextlib.contextmanager
def writing(label: str, size: int) -> Iterator[None]:
    """Turn what the system says about a full or closed disk into a sentence."""
    try:
        yield
    except OSError as error:
        where = f"set {VARIABLE} to a folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise MissingPartError(
                f"No room for {label} ({units.size(size)}) in {folder()}: free some "
                f"there, or {where} on another disk."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise MissingPartError(
                f"Cannot write {label} into {folder()}: {where} that you can write to."
            ) from error
        raise


def _made_parent(path: Path) -> None:
    try:
        private_folder(path.parent)
    except FileNotFoundError as error:
        # So says a place that takes no folders at all, such as /proc.
        raise OSError(errno.EROFS, str(error)) from error
