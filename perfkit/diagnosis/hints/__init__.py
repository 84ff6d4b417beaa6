"""What stands in the code of a training and is often a mistake; nothing is measured.

The code is read, never run. What cannot be read tells nothing. A rule that is not sure
is silent: whoever gets one wrong hint reads no other.
"""

import ast
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from perfkit.diagnosis.hints import options, pipelines, steps
from perfkit.diagnosis.hints.code import Code, Hinted
from perfkit.diagnosis.maker import source_of
from perfkit.diagnosis.source import UNREADABLE
from perfkit.findings.diagnosis import Hint

# What each kind of hint is about: the causes that are tried first where it found some.
_KINDS: dict[Callable[[Code], Iterator[Hinted]], tuple[str, ...]] = {
    pipelines.staged: ("serial-map", "no-cache", "no-prefetch", "late-shuffle"),
    pipelines.mapped: ("python-input", "per-example-map"),
    pipelines.python_input: ("python-input",),
    options.options: ("eager", "debugging", "threads", "determinism"),
    options.callbacks: ("callback",),
    steps.loops: ("retracing",),
    steps.steps: ("eager", "retracing"),
    steps.sweeps: (),
    options.settings: (),
    steps.timing: (),
}
# More than a reader reads, and more of a line than a report shows.
_MOST, _WIDEST = 30, 160


def hints(maker: Callable[[], Any]) -> tuple[Hint, ...]:
    """Read the file or the cell whose function makes a training."""
    try:
        source = source_of(maker)
        found = hints_in(source.text, source.function, source.line)
    except UNREADABLE:
        return ()
    places = [source.place(hint.line) for hint in found]
    return tuple(
        replace(hint, cell=cell, line=line)
        for hint, (cell, line) in zip(found, places, strict=True)
    )


def causes(maker: Callable[[], Any]) -> frozenset[str]:
    """Causes of which something stands in the code."""
    try:
        source = source_of(maker)
        code = Code(source.text, source.function, source.line)
        found = [about for kind, about in _KINDS.items() if any(kind(code))]
    except UNREADABLE:
        return frozenset()
    return frozenset().union(*found)


@functools.lru_cache(maxsize=4)
def hints_in(source: str, function: str = "", line: int = 0) -> tuple[Hint, ...]:
    """Read source code, or of it what can run when a function is called.

    Args:
        source: All of the file or the cell.
        function: The function that is called; "" for all that stands there.
        line: Where its definition begins; 0 for the one outside of all others.

    Raises:
        SyntaxError: It is no Python.
        RecursionError: It is nested too deeply to be followed.
    """
    code = Code(source, function, line)
    # Python's own lines: others are broken by a form feed as well.
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = {(line_of(node), says) for kind in _KINDS for node, says in kind(code)}
    return tuple(
        Hint(line=line, code=lines[line - 1].strip()[:_WIDEST], says=says)
        for line, says in sorted(found)[:_MOST]
    )


def line_of(node: ast.AST) -> int:
    """Where a reader looks for it: of a call, the line with what is called."""
    line: int | None = getattr(getattr(node, "func", None), "end_lineno", None)
    own: int = getattr(node, "lineno", 1)
    return line or own
