"""What to type for each cause: file and line, the old lines and the new ones.

The code is parsed anew, and a new line is shown only where one place is certain. All
such lines make a patch that ``git apply`` takes, as far as they are distinct.
"""

import ast
import difflib
import functools
import io
import json
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfkit.diagnosis.edits.code import Code, Splice, Unsure
from perfkit.diagnosis.edits.table import line_shown, splices_of
from perfkit.diagnosis.maker import Source, source_of
from perfkit.diagnosis.source import UNREADABLE, in_one_cell
from perfkit.findings.diagnosis import Cause, Diagnosis
from perfkit.findings.record import Edit

# What does not change while a diagnosis runs.
_FACTS = (
    *("batch", "callbacks", "data", "eager_calls", "pipeline", "retraced", "settings"),
    "steering",
)
# What to say of a change that does more than make the training faster.
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
        copy: The whole file with these changes.
        retuned: Whether the training learns otherwise with them.
    """

    text: bytes
    says: tuple[str, ...]
    copy: bytes = b""
    retuned: bool = False


def locate(diagnosis: Diagnosis, maker: Callable[[], Any]) -> Diagnosis:
    """The same diagnosis, each cause with the lines to change, as far as is certain.

    And with what the change would break, where the code shows that.
    """
    if not diagnosis.causes:
        return diagnosis
    try:
        source = source_of(maker)
    except UNREADABLE:
        return diagnosis
    facts = _facts(diagnosis)
    causes = (
        replace(
            cause,
            edits=tuple(_edits(source, cause, facts)),
            caution=cause.caution or _splices(source, cause.change, facts)[1],
        )
        for cause in diagnosis.causes
    )
    return replace(diagnosis, causes=tuple(causes))


def patch(diagnosis: Diagnosis, maker: Callable[[], Any], folder: Path) -> Patch:
    """Write all changes that are a matter of typing into one patch for a folder.

    The file of the maker that was diagnosed must be as it was.
    """
    try:
        source = source_of(maker)
        new, causes, others = _combine(diagnosis, source)
        if not causes:
            return Patch(b"", (_UNSURE if diagnosis.causes else _NONE,))
        path = Path(source.path)
        if source.cells:
            edits = "\n".join(map(str, _lines_between(source, new)))
            text, outside = f"{edits}\n".encode(), _BY_HAND
            copy = in_one_cell(new)
        else:
            name, outside = _name(path, folder)
            text, copy = _patch(path, name, source.text, new)
    except UNREADABLE:
        return Patch(b"", ("The code cannot be read any more, so there is no patch.",))
    patched = {cause.cause for cause in causes}
    rest = [c for c in diagnosis.best[:3] if c.change and c.cause not in patched]
    sentences = {
        "The patch makes {}.": causes,
        "{} changes the same lines: diagnose again once the patch is applied.": [
            cause for cause in rest if cause in others
        ],
        "{} is left to you: no lines for it are certain.": [
            cause for cause in rest if cause not in others
        ],
        "For {} the training reports or saves less.": [
            cause for cause in causes if cause.cause in _LESS
        ],
    }
    first, *more = (
        sentence.format(", ".join(f'"{cause.change}"' for cause in about))
        for sentence, about in sentences.items()
        if about
    )
    minds = (f'"{cause.change}": {cause.mind}' for cause in causes if cause.mind)
    says = (first, *([outside] if outside else []), *more, *minds)
    return Patch(text, says, copy, "small-batch" in patched)


def _facts(diagnosis: Diagnosis) -> str:
    """The facts that say what to change; as text, so that answers can be kept."""
    facts = {name: diagnosis.facts.get(name) for name in _FACTS}
    return json.dumps(facts, default=str)


def _combine(
    diagnosis: Diagnosis, source: Source
) -> tuple[str, list[Cause], list[Cause]]:
    """Make every change whose lines no better one changes.

    Returns:
        The new code, the causes that it is about, and those of the other changes.
    """
    facts, changed = _facts(diagnosis), set[int]()
    splices, causes, others = list[Splice](), list[Cause](), list[Cause]()
    for cause in diagnosis.causes:
        more, _ = _splices(source, cause.change, facts)
        lines = {line for one in more for line in _lines_of(source, one)}
        if not lines.isdisjoint(changed):
            others.append(cause)
        elif lines:
            causes.append(cause)
            splices += more
            changed |= lines
    code = _code(source, facts)
    return (code.text.applied(splices) if code else ""), causes, others


def _lines_of(source: Source, splice: Splice) -> range:
    """The lines that a splice changes, from 0."""
    start, end, _ = splice
    last = source.text.count("\n", 0, max(start, end - 1))
    return range(source.text.count("\n", 0, start), last + 1)


def _edits(source: Source, cause: Cause, facts: str) -> Iterator[Edit]:
    splices, _ = _splices(source, cause.change, facts)
    code = _code(source, facts)
    if splices and code:
        yield from _lines_between(source, code.text.applied(splices))
    elif code and (line := line_shown(code, cause)):
        yield _edit(source, line, source.text.split("\n")[line - 1], None)


# Asked for again after each trial, while the machine is being measured.
@functools.lru_cache(maxsize=64)
def _splices(source: Source, change: str, facts: str) -> tuple[tuple[Splice, ...], str]:
    """What a change does to the text, or why it would break something; else nothing."""
    code = _code(source, facts)
    if code is None:
        return (), ""
    try:
        splices = tuple(splices_of(code, change))
        new = code.text.applied(splices)
        ast.parse(new)
    except Unsure as unsure:
        return (), str(unsure)
    except (LookupError, *UNREADABLE):
        return (), ""
    return (splices if new != source.text else ()), ""


@functools.lru_cache(maxsize=2)
def _code(source: Source, facts: str) -> Code | None:
    try:
        return Code(source, json.loads(facts))
    except (tokenize.TokenError, *UNREADABLE):
        return None


def _lines_between(source: Source, new: str) -> Iterator[Edit]:
    """The lines in which a code differs from what it was, place by place."""
    old_lines, new_lines = source.text.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if start == end:
            # What is added is shown with the line that it follows.
            start, first = start - 1, first - 1
        old = "\n".join(old_lines[start:end])
        yield _edit(source, start + 1, old, "\n".join(new_lines[first:last]))


def _edit(source: Source, line: int, old: str, new: str | None) -> Edit:
    cell, line = source.place(line)
    return Edit(file=Path(source.path).name, cell=cell, line=line, old=old, new=new)


def _name(path: Path, folder: Path) -> tuple[str, str]:
    """What the patch calls the file, and where else than here it is to be applied."""
    path, folder = path.resolve(), folder.resolve()
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix(), ""
    return path.name, f"Apply it in the folder of {path.name}."


def _patch(path: Path, name: str, old: str, new: str) -> tuple[bytes, bytes]:
    """A patch of a file in its encoding and with its ends of lines, and the new file.

    Raises:
        ValueError: The file is not what was read before, or mixes its ends of lines.
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
    hunks = [*difflib.unified_diff(old_lines, new_lines)][2:]
    marked = [h if h.endswith("\n") else h + _NO_NEWLINE for h in hunks]
    text = "".join([f"--- a/{name}{tab}\n+++ b/{name}{tab}\n", *marked])
    return text.encode(encoding), after.encode(encoding)
