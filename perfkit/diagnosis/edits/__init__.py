"""What to type for each cause: file and line, the old lines and the new ones.

The code is read anew, and a change of it is told only where its place is certain. All
changes that are a matter of typing make a patch that ``git apply`` takes.
"""

import ast
import difflib
import functools
import json
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.diagnosis.edits.places import Places, Unsure
from perfkit.diagnosis.edits.table import row, shown
from perfkit.diagnosis.hints import line_of
from perfkit.diagnosis.maker import Source, source_of
from perfkit.diagnosis.source import UNREADABLE, in_one_cell
from perfkit.findings.diagnosis import Cause, Diagnosis
from perfkit.findings.reading import note_as
from perfkit.findings.record import Edit

# What does not change while a diagnosis runs.
_FACTS = (
    *("batch", "callbacks", "data", "eager_calls", "pipeline", "retraced", "settings"),
    *("steering", "steps"),
)
# Of these one change excludes another, however many were measured.
_EXCLUSIVE = ("small-batch", "precision", "epoch-boundary", "validation")
# What to say of a change that does more than make the training faster.
_LESS = ("callback", "validation")
# What lets a training learn otherwise.
_RETUNED = ("small-batch", "precision")
_BY_HAND = "It is a notebook: change these lines of its cells by hand."
_NONE = "There is no patch: no cause was found."
_UNSURE = (
    "There is no patch: none of the changes is a line that is certain; see the report "
    "for what to do."
)
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def locate(found: Diagnosis, maker: Callable[[], Any]) -> Diagnosis:
    """The same diagnosis, each cause with the lines to change, as far as is certain.

    And with what the change would break, where the code shows that.
    """
    if not found.causes:
        return found
    try:
        source = source_of(maker)
    except UNREADABLE:
        return found
    facts = _known(found)
    causes = (
        replace(
            one,
            edits=(*_edits(source, one, facts),),
            caution=one.caution or _made(source, one.change, facts)[1],
        )
        for one in found.causes
    )
    return replace(found, causes=tuple(causes))


def rewritten(found: Diagnosis, source: Source) -> tuple[str, tuple[Cause, ...]]:
    """Change all that is a matter of typing; the new code, and for which causes."""
    facts, steps = _known(found), note_as(int, found.facts.get("steps")) or 0
    applied: list[Cause] = []
    rows = [(known[0], cause) for cause in found.causes if (known := row(cause.change))]
    for _, cause in sorted(rows, key=lambda one: one[0]):
        again = any(one.cause == cause.cause for one in applied)
        if again and cause.cause in _EXCLUSIVE:
            continue
        larger = any(one.cause == "small-batch" for one in applied)
        many = [re.match(r"([1-9]\d*) steps at a time", one.change) for one in applied]
        parts = any(steps % int(m[1]) for m in many if m)
        if (larger or parts) and cause.cause == "epoch-boundary":
            # It says how many steps an epoch has, and they are fewer now, or more where
            # those that are made at a time do not divide them.
            continue
        changed = _changed(source, cause.change, facts)
        if changed is not None:
            source = replace(source, text=changed)
            applied.append(cause)
    return source.text, tuple(cause for cause in found.causes if cause in applied)


def lines_between(source: Source, new: str) -> Iterator[Edit]:
    """The lines in which a code differs from what it was, place by place."""
    old_lines, new_lines = source.text.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if start == end and _begins(source, start, old_lines):
            end, last = end + 1, last + 1
        elif start == end:
            # What is added is told with the line that it follows.
            start, first = start - 1, first - 1
        old = "\n".join(old_lines[start:end])
        yield _edit(source, start + 1, old, "\n".join(new_lines[first:last]))


def _begins(source: Source, place: int, lines: Sequence[str]) -> bool:
    """Whether nothing is in front of a line: it begins the file, its cell, or a part.

    What is added there is told with the line that follows it.
    """
    first = place == 0 or place + 1 in source.cells
    return place < len(lines) and (first or not lines[place - 1].strip())


def _known(found: Diagnosis) -> str:
    """The facts that say what to change; as text, so that answers can be kept."""
    return json.dumps({name: found.facts.get(name) for name in _FACTS}, default=str)


def _edits(source: Source, cause: Cause, facts: str) -> Iterator[Edit]:
    changed, places = _changed(source, cause.change, facts), _seen(source, facts)
    place = shown(places, cause) if places else None
    if changed is not None:
        yield from lines_between(source, changed)
    elif place is not None:
        line = line_of(place)
        yield _edit(source, line, source.text.split("\n")[line - 1], None)


def _edit(source: Source, line: int, old: str, new: str | None) -> Edit:
    cell, line = source.place(line)
    return Edit(file=Path(source.path).name, cell=cell, line=line, old=old, new=new)


def _changed(source: Source, change: str, facts: str) -> str | None:
    """The code as a change would have it; None where that is unsure."""
    return _made(source, change, facts)[0]


# Asked for again after each trial, while the machine is being measured.
@functools.lru_cache(maxsize=64)
def _made(source: Source, change: str, facts: str) -> tuple[str | None, str]:
    """The same, and what it would break where that is why there is none."""
    known, places = row(change), _seen(source, facts)
    if known is None or places is None:
        return None, ""
    _, function, match = known
    try:
        changed = places.text.applied(list(function(places, match)))
        ast.parse(changed)
    except Unsure as unsure:
        return None, str(unsure)
    except (LookupError, *UNREADABLE):
        return None, ""
    return (changed if changed != source.text else None), ""


@functools.lru_cache(maxsize=2)
def _seen(source: Source, facts: str) -> Places | None:
    try:
        return Places(source, json.loads(facts))
    except UNREADABLE:
        return None


@dataclass(frozen=True)
class Patch:
    """What to write to standard output, and what to say of it.

    Attributes:
        text: The patch in the encoding of the file; of a notebook the lines in words;
            empty where nothing is to be changed.
        says: Sentences about it.
        copy: The whole file with these changes.
        retuned: Whether the training learns otherwise with them.
    """

    text: bytes
    says: tuple[str, ...]
    copy: bytes = b""
    retuned: bool = False


def patch(found: Diagnosis, maker: Callable[[], Any], folder: Path) -> Patch:
    """Write all changes that are a matter of typing into one patch for a folder.

    The file of the maker that was diagnosed must be as it was.
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
            copy = in_one_cell(new)
        else:
            name, outside = _name(path, folder)
            text, copy = _patch(path, name, source.text, new)
    except UNREADABLE:
        return Patch(b"", ("The code cannot be read any more, so there is no patch.",))
    made = {
        "The patch makes {}.": causes,
        "{} is left to you: no lines for it are certain.": [
            one
            for one in found.best[:3]
            if one.change and one.cause not in {c.cause for c in causes}
        ],
        "For {} the training reports or saves less.": [
            cause for cause in causes if cause.cause in _LESS
        ],
    }
    first, *more = (
        says.format(", ".join(f'"{one.change}"' for one in of))
        for says, of in made.items()
        if of
    )
    minds = (f'"{one.change}": {one.mind}' for one in causes if one.mind)
    says = (first, *([outside] if outside else []), *more, *minds)
    return Patch(text, says, copy, any(one.cause in _RETUNED for one in causes))


def _name(path: Path, folder: Path) -> tuple[str, str]:
    """What the patch calls the file, and where else than here it is to be applied."""
    path, folder = path.resolve(), folder.resolve()
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix(), ""
    return path.name, f"Apply it in the folder of {path.name}."


def _patch(path: Path, name: str, old: str, new: str) -> tuple[bytes, bytes]:
    """A patch of a file, whatever its encoding and its ends of lines, and the new file.

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
    text = "".join([f"--- a/{name}{tab}\n+++ b/{name}{tab}\n", *said])
    return text.encode(encoding), "".join(_whole(changed)).encode(encoding)


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
