"""All changes of a diagnosis as a patch that ``git apply`` takes."""

from __future__ import annotations

import difflib
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.edits import lines_between, rewritten
from perfkit.diagnosis.hints.source import UNREADABLE, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perfkit.findings.diagnosis import Cause, Diagnosis

# What to say of a change that does more than make the training faster.
_LEARNING = ("small-batch", "precision")
_LESS = ("callback", "validation")
_BY_HAND = "It is a notebook: change these lines of its cells by hand."
_NONE = "There is no patch: no cause was found."
_UNSURE = (
    "There is no patch: none of the changes is a line that is certain; see the report "
    "for what to do."
)
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class Patch:
    """What to write to standard output, and what to say of it.

    Attributes:
        text: The patch in the encoding of the file; of a notebook the lines in words;
            empty where nothing is to be changed.
        says: Sentences about it.
    """

    text: bytes
    says: tuple[str, ...]


def patch(found: Diagnosis, maker: Callable[[], Any], folder: Path) -> Patch:
    """Write all changes that are a matter of typing into one patch.

    Args:
        found: The diagnosis.
        maker: What it is a diagnosis of; its file must be as it was.
        folder: Where the patch is to be applied.
    """
    try:
        source = source_of(maker)
        new, causes = rewritten(found, source)
        if not causes:
            return Patch(b"", (_UNSURE if found.causes else _NONE,))
        path = Path(source.path)
        if source.cells:
            edits = "\n".join(map(str, lines_between(source, new)))
            text, outside = f"{edits}\n".encode(), _BY_HAND
        else:
            name, outside = _name(path, folder)
            text = _patch(path, name, source.text, new)
    except UNREADABLE:
        return Patch(b"", ("The code cannot be read any more, so there is no patch.",))
    made = {
        "The patch makes {}.": causes,
        "{} changes what is learnt: watch the loss.": _of(causes, _LEARNING),
        "For {} the training reports or saves less.": _of(causes, _LESS),
    }
    first, *more = (
        says.format(", ".join(f'"{one.swap}"' for one in of))
        for says, of in made.items()
        if of
    )
    return Patch(text, (first, *([outside] if outside else []), *more))


def _of(causes: Sequence[Cause], kinds: Sequence[str]) -> list[Cause]:
    return [cause for cause in causes if cause.cause in kinds]


def _name(path: Path, folder: Path) -> tuple[str, str]:
    """What the patch calls the file, and where else than here it is to be applied."""
    path, folder = path.resolve(), folder.resolve()
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix(), ""
    return path.name, f"Apply it in the folder of {path.name}."


def _patch(path: Path, name: str, old: str, new: str) -> bytes:
    """A patch of a file, whatever its encoding and its ends of lines.

    Raises:
        ValueError: The file is not what was read before.
    """
    data = path.read_bytes()
    with path.open("rb") as file:
        encoding = tokenize.detect_encoding(file.readline)[0].removesuffix("-sig")
    mark = "\ufeff" if data.startswith(b"\xef\xbb\xbf") else ""
    lines = data.decode(encoding).split("\n")
    if [line.removesuffix("\r") for line in lines] != (mark + old).split("\n"):
        raise ValueError("The file has changed.")
    changed = list(
        _with_ends((mark + old).split("\n"), (mark + new).split("\n"), lines)
    )
    # A name with a space ends where the tab is.
    tab = "\t" * (" " in name)
    hunks = list(difflib.unified_diff(_whole(lines), _whole(changed), n=3))[2:]
    said = [h if h.endswith("\n") else h + _NO_NEWLINE for h in hunks]
    return "".join([f"--- a/{name}{tab}\n+++ b/{name}{tab}\n", *said]).encode(encoding)


def _with_ends(old: list[str], new: list[str], lines: Sequence[str]) -> Iterator[str]:
    """New lines with the ends that the old ones have."""
    end = "\r" * lines[0].endswith("\r")
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, stop, first, last in matcher.get_opcodes():
        if tag == "equal":
            yield from lines[start:stop]
        else:
            yield from (f"{line}{end}" for line in new[first:last])


def _whole(lines: Sequence[str]) -> list[str]:
    """Lines with their line feeds; the last one may have none."""
    *most, last = lines
    return [*(f"{line}\n" for line in most), *([last] if last else [])]
