"""What to type for each cause: file and line, the old lines and the new ones.

The code is parsed anew, and a new line is shown only where one place is certain. All
such lines make a patch that ``git apply`` takes, as far as they are distinct.
"""

import ast
import difflib
import io
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.findings.diagnosis import Cause, Diagnosis
from perfkit.findings.record import Edit
from perfkit.training.diagnose.causes import KNOWN
from perfkit.training.diagnose.change import Change, Rewrite
from perfkit.training.diagnose.code import Code, Unsure
from perfkit.training.diagnose.maker import Source, source_of
from perfkit.training.diagnose.source import UNREADABLE, in_cell

_UNREAD = "perfkit can no longer read the code, so there is no patch."
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class Patch:
    """What to write to standard output, and what to say of it.

    Attributes:
        text: The patch in the encoding of the file; empty where there is none.
        says: Sentences about it.
        copy: The whole file with these changes.
    """

    text: bytes
    says: tuple[str, ...]
    copy: bytes = b""


def locate(
    diagnosis: Diagnosis, maker: Callable[[], Any], changes: Iterable[Change]
) -> Diagnosis:
    """The same diagnosis, each cause with the lines to change, as far as is certain."""
    if not diagnosis.causes:
        return diagnosis
    try:
        code = Code(source_of(maker), diagnosis.facts)
    except UNREADABLE:
        return diagnosis
    by_name = {change.name: change for change in changes}
    causes = [_located(code, c, by_name.get(c.change)) for c in diagnosis.causes]
    return replace(diagnosis, causes=tuple(causes))


def _located(code: Code, cause: Cause, change: Change | None) -> Cause:
    source = code.text.source
    if change is not None:
        new = _rewritten(code, change.edit)
        if new != source:
            return replace(cause, edits=_edits_to(code, new))
    known = change or KNOWN.get(cause.cause)
    try:
        line = known.line(code) if known and known.line else 0
    except (Unsure, LookupError, ValueError):
        line = 0
    if not line:
        return replace(cause, edits=())
    edit = _edit(code.source, line, source.split("\n")[line - 1], None)
    return replace(cause, edits=(edit,))


def _rewritten(code: Code, edit: Rewrite | None) -> str:
    """The text with a change made, as it was where that is not certain."""
    try:
        new = code.text.applied(edit(code) if edit else ())
        ast.parse(new)
    except (Unsure, LookupError, *UNREADABLE):
        return code.text.source
    return new


def patch(diagnosis: Diagnosis, maker: Callable[[], Any], folder: Path) -> Patch:
    """Write all changes that are a matter of typing into one patch for a folder.

    The file of the maker that was diagnosed must be as it was.
    """
    if not diagnosis.causes:
        return Patch(b"", ("There is no patch, because no cause was found.",))
    try:
        source = source_of(maker)
    except UNREADABLE:
        return Patch(b"", (_UNREAD,))
    new, causes = _combine(diagnosis.causes, source)
    if not causes:
        note = "no change is certain line by line. The report says what to do."
        return Patch(b"", (f"There is no patch, because {note}",))
    if source.cells:
        note = "There is no patch of a notebook. The report says which lines to change."
        return Patch(b"", (note,))
    path, folder = Path(source.path).resolve(), folder.resolve()
    inside = path.is_relative_to(folder)
    name = path.relative_to(folder).as_posix() if inside else path.name
    outside = "" if inside else f"Apply it in the folder of {path.name}."
    try:
        text, copy = _patch(path, name, source.text, new)
    except UNREADABLE:
        return Patch(b"", (_UNREAD,))
    patched = {cause.cause for cause in causes}
    others = [c for c in diagnosis.best[:3] if c.change and c.cause not in patched]
    says = [f"The patch makes {_quoted(causes)}.", *([outside] if outside else [])]
    if others:
        says.append(f"It leaves out {_quoted(others)}: apply it, then diagnose again.")
    says += [f'"{cause.change}": {cause.mind}' for cause in causes if cause.mind]
    return Patch(text, tuple(says), copy)


def _quoted(causes: Iterable[Cause]) -> str:
    return ", ".join(f'"{cause.change}"' for cause in causes)


def _combine(ranked: Iterable[Cause], source: Source) -> tuple[str, list[Cause]]:
    """The code with each change whose lines no better one changes, and their causes."""
    lines = source.text.split("\n")
    made = dict[int, tuple[int, list[str]]]()
    changed = set[int]()
    causes = list[Cause]()
    for cause in ranked:
        blocks = [(_lines_of(edit, source), edit) for edit in cause.edits]
        numbers = {number for block, _ in blocks for number in block}
        is_certain = all(
            edit.new is not None
            and lines[block.start : block.stop] == edit.old.split("\n")
            for block, edit in blocks
        )
        if not (blocks and is_certain and numbers.isdisjoint(changed)):
            continue
        causes.append(cause)
        changed |= numbers
        for block, edit in blocks:
            made[block.start] = block.stop, edit.new.split("\n") if edit.new else []
    for first in sorted(made, reverse=True):
        last, new = made[first]
        lines[first:last] = new
    return "\n".join(lines), causes


def _lines_of(edit: Edit, source: Source) -> range:
    """The old lines of an edit in the whole source, from 0."""
    starts = (1, *source.cells)
    first = starts[min(edit.cell, len(starts) - 1)] + edit.line - 2
    return range(first, first + len(edit.lines))


def _edits_to(code: Code, new: str) -> tuple[Edit, ...]:
    """The lines in which another code differs from this one, place by place."""
    old_lines, new_lines = code.text.source.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    edits = []
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if start == end:
            # What is added is shown with the line that it follows.
            start, first = start - 1, first - 1
        old, instead = old_lines[start:end], new_lines[first:last]
        edits.append(_edit(code.source, start + 1, "\n".join(old), "\n".join(instead)))
    return tuple(edits)


def _edit(source: Source, line: int, old: str, new: str | None) -> Edit:
    cell, line = in_cell(source.cells, line)
    return Edit(file=Path(source.path).name, cell=cell, line=line, old=old, new=new)


def _patch(path: Path, name: str, old: str, new: str) -> tuple[bytes, bytes]:
    """A patch of a file in its encoding and with its ends of lines, and the new file.

    ``ValueError`` if it is not what was read before, or mixes its ends of lines.
    """
    data = path.read_bytes()
    with path.open("rb") as file:
        encoding = tokenize.detect_encoding(file.readline)[0].removesuffix("-sig")
    mark = "\ufeff" if data.startswith(b"\xef\xbb\xbf") else ""
    end = "\r\n" if b"\r\n" in data else "\n"
    before, after = ((mark + text).replace("\n", end) for text in (old, new))
    if data.decode(encoding) != before:
        raise ValueError("The file has changed.")
    # Python's own lines: others are broken by a form feed as well.
    old_lines = io.StringIO(before, newline="\n").readlines()
    new_lines = io.StringIO(after, newline="\n").readlines()
    # A name with a space ends where the tab is.
    tab = "\t" if " " in name else ""
    names = (f"a/{name}{tab}", f"b/{name}{tab}")
    diff = difflib.unified_diff(old_lines, new_lines, *names)
    text = "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in diff)
    return text.encode(encoding), after.encode(encoding)
