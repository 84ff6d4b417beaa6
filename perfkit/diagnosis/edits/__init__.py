"""What to type for each cause: file and line, the old lines and the new ones.

The code is read anew, and a change of it is told only where its place is certain.
"""

from __future__ import annotations

import ast
import difflib
import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.edits.places import Places, Unsure
from perfkit.diagnosis.edits.table import row, shown
from perfkit.diagnosis.hints import line_of
from perfkit.diagnosis.hints.source import UNREADABLE, source_of
from perfkit.findings.record import Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.diagnosis.hints.source import Source
    from perfkit.findings.diagnosis import Cause, Diagnosis

# What does not change while a diagnosis runs.
_FACTS = (
    *("batch", "callbacks", "data", "eager_calls", "pipeline", "retraced", "settings"),
    "steps",
)
# Of these one change excludes another, however many were measured.
_EXCLUSIVE = ("small-batch", "precision", "epoch-boundary", "validation")


def located(found: Diagnosis, maker: Callable[[], Any]) -> Diagnosis:
    """The same diagnosis, each cause with the lines to change, as far as is certain."""
    if not found.causes:
        return found
    try:
        source = source_of(maker)
    except UNREADABLE:
        return found
    facts = _known(found)
    causes = (replace(c, edits=(*_edits(source, c, facts),)) for c in found.causes)
    return replace(found, causes=tuple(causes))


def rewritten(found: Diagnosis, source: Source) -> tuple[str, tuple[Cause, ...]]:
    """Make all the changes of a diagnosis that are a matter of typing.

    Returns:
        The code as it would be, and the causes that it was changed for.
    """
    facts = _known(found)
    applied: list[Cause] = []
    rows = [(known[0], cause) for cause in found.causes if (known := row(cause.swap))]
    for _, cause in sorted(rows, key=lambda one: one[0]):
        again = any(one.cause == cause.cause for one in applied)
        if again and cause.cause in _EXCLUSIVE:
            continue
        changed = _changed(source, cause.swap, facts)
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
        if start == end:
            # What is added is told with the line that it follows.
            start, first = start - 1, first - 1
        old = "\n".join(old_lines[start:end])
        yield _edit(source, start + 1, old, "\n".join(new_lines[first:last]))


def _known(found: Diagnosis) -> str:
    """The facts that say what to change; as text, so that answers can be kept."""
    return json.dumps({name: found.facts.get(name) for name in _FACTS}, default=str)


def _edits(source: Source, cause: Cause, facts: str) -> Iterator[Edit]:
    changed, places = _changed(source, cause.swap, facts), _seen(source, facts)
    place = shown(places, cause) if places else None
    if changed is not None:
        yield from lines_between(source, changed)
    elif place is not None:
        line = line_of(place)
        yield _edit(source, line, source.text.split("\n")[line - 1], None)


def _edit(source: Source, line: int, old: str, new: str | None) -> Edit:
    cell, line = source.place(line)
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
        return Places(source, json.loads(facts))
    except UNREADABLE:
        return None
