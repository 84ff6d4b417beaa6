"""What a training raised: the lines of its own code, and none of perfkit's."""

import concurrent.futures
import contextlib
import functools
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from perfkit.engine.trial import PROBLEM, TRACEBACK, Note
from perfkit.errors import BadParameterError, RunError
from perfkit.training.diagnose import guard, layers, source

if TYPE_CHECKING:
    from perfkit.engine.launcher import Started

Item = TypeVar("Item")
Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")
# What runs the user's code: it says nothing of what is wrong there.
_RUNNERS = (
    str(Path(__file__).parents[2]),
    str(Path(concurrent.futures.__file__).parent),
)
# How libraries say that nobody answers.
_REACHED_NOBODY = re.compile(r"resol|unreachable|connect|URL|NCCL", re.IGNORECASE)
# And how that a file may not be written.
_REFUSED = re.compile(r"permission denied|cross-device", re.IGNORECASE)
# What Keras writes around words that are to be bold in a terminal.
_BOLD = re.compile(r"\x1b\[\d*m")
_MOST_FRAMES = 30
_LONGEST = 4000
# What perfkit itself raises says all in a sentence.
_SENTENCES = (BadParameterError, RunError)
# What TensorFlow says of where in a graph it was, before and behind what is wrong.
_PLACES = ("Graph execution error", "Detected at node", "File ", "<stack", "[[")


def as_notes(
    work: Callable[Parameters, Iterator[Item]],
) -> Callable[Parameters, Iterator[Item | Note]]:
    """Let a generator yield what it raises as notes.

    That is ``"problem"`` with a sentence, and before that ``"traceback"`` where the
    user's own code raised it.
    """

    @functools.wraps(work)
    def noting(
        *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Iterator[Item | Note]:
        try:
            yield from work(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, _SENTENCES):
                yield Note(TRACEBACK, note_of(error))
            yield Note(PROBLEM, in_sentence(error))

    return noting


def try_read(read: Callable[..., Value], *arguments: Any, otherwise: Value) -> Value:
    """What is read of a training; ``otherwise`` where it does not let itself be read.

    The training runs without what is read here, so it may end nothing.
    """
    try:
        return read(*arguments)
    except Exception:
        # Model, data and layers are the user's own, and may raise anything.
        return otherwise


def run_error(ended: "Started", remedy: str) -> RunError:
    """Say why a training cannot be run; a note holds what its own code raised.

    The ``remedy`` is for one that takes long and does not hang.
    """
    notes, ending = ended.notes, f"The training {ended.message.rstrip('.')}."
    sentence = str(notes.get(PROBLEM) or ending)
    if ended.outcome == "timed-out":
        sentence += f" If it does not hang, {remedy}."
    error = RunError(sentence)
    if TRACEBACK in notes:
        error.add_note(in_text(notes[TRACEBACK]))
    return error


def note_of(error: BaseException) -> dict[str, Any]:
    """What travels from its process: ``frames``, and ``said``, the error's own words.

    A frame is its file, line and function.
    """
    frames = [
        [frame.filename, frame.lineno, frame.name]
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_RUNNERS)
    ]
    words = _BOLD.sub("", "".join(traceback.format_exception_only(error)).strip())
    words = guard.original(words)
    if len(words) > _LONGEST:
        # What is wrong stands first or last, never in the middle.
        half = _LONGEST // 2 - 1
        words = f"{words[:half]}…{words[-half:]}"
    return {"frames": frames[-_MOST_FRAMES:], "said": words}


def in_sentence(error: BaseException) -> str:
    """What ended a training, and what to do if the way in which it runs led to it."""
    remedy, words = "", str(error)
    if isinstance(error, _SENTENCES):
        return words
    offline = layers.is_offline() or guard.process.offline
    if offline and _REACHED_NOBODY.search(words):
        remedy = (
            " (perfkit lets it reach no network: run it once by itself, so that its "
            f"downloads are there, or set {layers.ONLINE}=1 to let it fetch and send)"
        )
    elif guard.process.root and _REFUSED.search(words):
        remedy = (
            " (it runs in a copy of its folder, writes only there and opens no "
            "connection. Type the command in the folder that it writes to, and use "
            f"relative paths; {layers.ONLINE}=1 allows connections, "
            "PERFKIT_UNCONTAINED=1 allows everything)"
        )
    return f"The training raised {in_short(error)}{remedy}"


def in_short(error: BaseException) -> str:
    """The error's name and the first thing that it says, in a line."""
    # Keras says first in which call, then in bold what is wrong there.
    words = guard.original(_BOLD.sub("", str(error))).splitlines()
    lines = [line.strip() for line in words if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Exception encountered when calling"):
        lines.pop(0)
    if lines and lines[0].startswith(_PLACES):
        lines = [line for line in lines if not line.startswith(_PLACES)] or lines
    name = type(error).__name__
    if lines and lines[0] == "in user code:":
        # The steps that led there come first, each with a line of code.
        error_lines = [line for line in lines if line.startswith(f"{name}: ")]
        lines = [line.removeprefix(f"{name}: ") for line in error_lines[-1:]] or lines
    return f"{name}: {lines[0][:300]}" if lines else f"{name}."


def in_text(note: dict[str, Any]) -> str:
    """The traceback as Python prints it, with the lines of this notebook's cells."""
    # Lines are looked up here: the other process does not have the notebook's cells.
    frames = [_frame(str(file), int(line), name) for file, line, name in note["frames"]]
    lines = traceback.StackSummary.from_list(frames).format()
    return "".join(["Traceback (most recent call last):\n", *lines, str(note["said"])])


def _frame(file: str, line: int, name: str) -> traceback.FrameSummary:
    """A frame with its line; that of a notebook's file is counted in its cell."""
    if file.endswith(".ipynb"):
        with contextlib.suppress(OSError, ValueError, SyntaxError, IndexError):
            code = source.text_of(file).splitlines()[line - 1]
            cell, in_cell = source.in_cell(source.cells_of(file), line)
            where = f"{file}, code cell {cell}"
            return traceback.FrameSummary(where, in_cell, name, line=code)
    return traceback.FrameSummary(file, line, name)
