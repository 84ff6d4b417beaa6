"""What to type for each cause: file and line, the old lines and the new ones.

The code is read anew, and a change of it is told only where its place is certain.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.edits.places import Places
from perfkit.diagnosis.edits.shown import shown
from perfkit.diagnosis.edits.table import Unsure, row
from perfkit.diagnosis.hints import line_of
from perfkit.diagnosis.hints.source import UNREADABLE, source_of
from perfkit.diagnosis.maker import InFile
from perfkit.diagnosis.script import Script
from perfkit.diagnosis.script_code import cells, fit_calls, in_cell
from perfkit.findings.record import Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.findings.diagnosis import Cause, Diagnosis

# What does not change while a diagnosis runs.
_FACTS = (
    *("batch", "callbacks", "data", "eager_calls", "pipeline", "retraced", "settings"),
    "steps",
)
# Of these one change excludes another, however many were measured.
_EXCLUSIVE = ("small-batch", "precision", "epoch-boundary", "validation")


@dataclass(frozen=True)
class Source:
    """The code of a training, and where it stands.

    Attributes:
        text: All of the file or the cell.
        path: Of the file; "" for a cell that was run.
        function: That makes the training; "" for a script.
        line: Where the function begins; 0 for the one outside of all others.
        fit: Which of a script's calls of ``fit`` is taken, from 0; -1 for the only one.
        cells: Of a notebook: the lines in which its cells of code begin.
    """

    text: str
    path: str
    function: str
    line: int
    fit: int = -1
    cells: tuple[int, ...] = ()


def located(found: Diagnosis, maker: Callable[[], Any]) -> Diagnosis:
    """The same diagnosis, each cause with the lines to change, as far as is certain."""
    if not found.causes:
        return found
    try:
        source = code_of(maker)
    except UNREADABLE:
        return found
    facts = _known(found)
    edits = [tuple(_edits(source, cause, facts)) for cause in found.causes]
    pairs = zip(found.causes, edits, strict=True)
    return replace(found, causes=tuple(replace(c, edits=e) for c, e in pairs))


def rewritten(found: Diagnosis, source: Source) -> tuple[str, tuple[Cause, ...]]:
    """Make all the changes of a diagnosis that are a matter of typing.

    Returns:
        The code as it would be, and the causes that it was changed for.
    """
    text = source.text
    applied: list[Cause] = []
    facts = _known(found)
    rows = {cause.swap: row(cause.swap) for cause in found.causes}
    typed = [cause for cause in found.causes if rows[cause.swap]]
    for cause in sorted(typed, key=lambda one: (rows[one.swap] or (0,))[0]):
        again = any(one.cause == cause.cause for one in applied)
        if again and cause.cause in _EXCLUSIVE:
            continue
        changed = _changed(replace(source, text=text), cause.swap, facts)
        if changed is not None:
            text = changed
            applied.append(cause)
    return text, tuple(cause for cause in found.causes if cause in applied)


def code_of(maker: Callable[[], Any]) -> Source:
    """Read the code of a training.

    Raises:
        OSError: It cannot be read; what else may be raised is in
            ``hints.source.UNREADABLE``.
    """
    text, function, line = source_of(maker)
    if isinstance(maker, Script):
        tree = ast.parse(text)
        calls, chosen = fit_calls(tree), maker.line_of_fit(tree)
        places = [at for at, call in enumerate(calls) if call.lineno == chosen]
        fit = places[0] if places else -1
        return Source(text, maker.path, "", 0, fit, cells(maker.path))
    if isinstance(maker, InFile):
        return Source(text, maker.path, function, line)
    file = inspect.getsourcefile(inspect.unwrap(maker)) or ""
    return Source(text, file if Path(file).is_file() else "", function, line)


def lines_between(source: Source, new: str) -> Iterator[Edit]:
    """The lines in which a code differs from what it was, place by place."""
    old_lines, new_lines = source.text.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if start == end:
            # What is added is told with the line that it follows.
            start, first = start - 1, first - 1
        old = "\n".join(old_lines[start:end])
        yield _edit(source, start + 1, old, "\n".join(new_lines[first:last]))


def _known(found: Diagnosis) -> str:
    """The facts that say what to change; as text, so that answers can be kept."""
    return json.dumps({name: found.facts.get(name) for name in _FACTS}, default=str)


def _edits(source: Source, cause: Cause, facts: str) -> Iterator[Edit]:
    changed = _changed(source, cause.swap, facts)
    if changed is not None:
        yield from lines_between(source, changed)
        return
    node = _seen(source, facts)
    place = shown(node, cause) if node else None
    if place is not None:
        line = line_of(place)
        yield _edit(source, line, source.text.split("\n")[line - 1], None)


def _edit(source: Source, line: int, old: str, new: str | None) -> Edit:
    cell, line = in_cell(line, source.cells)
    return Edit(file=Path(source.path).name, cell=cell, line=line, old=old, new=new)


# Asked for again after each trial, while the machine is being measured.
@functools.lru_cache(maxsize=64)
def _changed(source: Source, swap: str, facts: str) -> str | None:
    """The code with the change that a swap stands for; None where that is unsure."""
    known, places = row(swap), _seen(source, facts)
    if known is None or places is None:
        return None
    _, function, match = known
    try:
        changed = places.text.applied(list(function(places, match)))
        ast.parse(changed)
    except (Unsure, LookupError, *UNREADABLE):
        return None
    return changed if changed != source.text else None


@functools.lru_cache(maxsize=2)
def _seen(source: Source, facts: str) -> Places | None:
    try:
        return Places(
            source.text,
            json.loads(facts),
            function=source.function,
            line=source.line,
            fit=source.fit,
        )
    except UNREADABLE:
        return None
