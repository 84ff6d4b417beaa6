"""Which notebooks does a learner work in? Copies, so that a clone stays clean.

Running a notebook changes its file, and a changed file is in the way of the next
``git pull``. So the lab shows a folder that git ignores, with a copy of each notebook.
A copy in which a cell was changed is the learner's, and is never written to.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

from perfkit.errors import BadFileError
from perfkit.findings.store import write_whole

FOLDER = "my-notebooks"
# Which version each copy was made from, by the copy's name.
_MADE_FROM = ".made-from.json"


def refresh(shipped: Path, copies: Path) -> tuple[str, ...]:
    """Bring the copies up to the shipped notebooks.

    A notebook that has no copy gets one. A copy that was run at most is replaced where
    the shipped notebook is newer; beside one that was changed the newer is put.

    Args:
        shipped: The folder of the notebooks as they come.
        copies: The folder that a learner works in; made if need be.

    Returns:
        What a learner has to know, a sentence each.

    Raises:
        BadFileError: The copies cannot be written.
    """
    try:
        first = not copies.is_dir()
        copies.mkdir(exist_ok=True)
        with _alone(copies):
            told = tuple(_refreshed(shipped, copies))
    except OSError as error:
        raise BadFileError(
            f"Cannot write to {error.filename or copies} ({error.strerror}), where the "
            f"lab keeps the notebooks that you work in; make {copies.parent} a folder "
            "that you can write to, or copy it to one."
        ) from error
    where = f"Your notebooks are in {FOLDER}/, which git leaves alone."
    return (where, *told) if first else told


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder, so that two labs that start at once do not write one file."""
    held = os.open(folder, os.O_RDONLY)
    try:
        # Some network folders cannot be held.
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _refreshed(shipped: Path, copies: Path) -> Iterator[str]:
    before = _known(copies)
    made_from = dict(before)
    replaced = []
    # The map and the glossary come along: notebooks link to them.
    for path in sorted((*shipped.rglob("*.ipynb"), *shipped.glob("*.md"))):
        name = path.relative_to(shipped)
        # Hidden folders are Jupyter's own.
        if any(part.startswith(".") for part in name.parts):
            continue
        place = _put(path.read_bytes(), name, copies, made_from)
        if place == name:
            replaced.append(str(name))
        elif place:
            yield (
                f"There is a newer {name}: open {place}; yours, which you changed, "
                "stays as it is."
            )
    if replaced:
        names = ", ".join(replaced)
        yield f"Replaced by a newer one, as you had changed no cell: {names}."
    if made_from != before:
        write_whole(copies / _MADE_FROM, json.dumps(made_from, indent=1).encode())


def _put(
    data: bytes, name: Path, copies: Path, made_from: dict[str, str]
) -> Path | None:
    """Put a notebook where nobody's work is: its own name, or one beside it.

    Returns:
        Where a learner finds what is newer than before; None where nothing is.
    """
    version = _version(data)
    place = next(
        place
        for place in _places(name)
        if not _holds_work(copies / place, made_from.get(place.as_posix()), version)
    )
    copy, key = copies / place, place.as_posix()
    there = copy.exists()
    # Who deletes a copy wants a fresh one; who deletes a newer one beside it, none.
    if made_from.get(key) == version and (there or place != name):
        return None
    made_from[key] = version
    if there and _version(copy.read_bytes()) == version:
        return None
    write_whole(copy, data)
    return place if there or place != name else None


def _holds_work(copy: Path, made_from: str | None, version: str) -> bool:
    """Whether a copy of another version than this one was changed."""
    if made_from == version or not copy.exists():
        return False
    return _version(copy.read_bytes()) not in (version, made_from)


def _places(name: Path) -> Iterator[Path]:
    """The names that a notebook may have among the copies, in their order."""
    yield name
    for number in itertools.count(1):
        more = f" {number}" if number > 1 else ""
        yield name.with_name(f"{name.stem} (newer{more}){name.suffix}")


def _known(copies: Path) -> dict[str, str]:
    """Which version each copy was made from; one of which it is not known is kept."""
    try:
        known = json.loads((copies / _MADE_FROM).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _version(data: bytes) -> str:
    """What was written in a notebook's cells: running it leaves that as it is."""
    try:
        cells = json.loads(data)["cells"]
        # Running the last cell adds an empty one.
        written = [
            (cell["cell_type"], text)
            for cell in cells
            if (text := "".join(cell["source"])).strip()
        ]
    except (ValueError, LookupError, TypeError):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha256(json.dumps(written).encode()).hexdigest()
