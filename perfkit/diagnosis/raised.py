"""What a training raised: the lines of its own code, and none of perfkit's."""

from __future__ import annotations

import concurrent.futures
import re
import traceback
from pathlib import Path
from typing import Any

# What runs the user's code: it says nothing of what is wrong there.
_RUNNERS = (
    str(Path(__file__).parents[1]),
    str(Path(concurrent.futures.__file__).parent),
)
_MOST_FRAMES = 30
_LONGEST = 4000


def note_of(error: BaseException) -> dict[str, Any]:
    """What travels from the process in which it was raised.

    Returns:
        ``frames``, file, line and function each, and ``said``, the error's own words.
    """
    frames = [
        [frame.filename, frame.lineno, frame.name]
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_RUNNERS)
    ]
    said = "".join(traceback.format_exception_only(error)).strip()
    return {"frames": frames[-_MOST_FRAMES:], "said": said[:_LONGEST]}


def in_short(error: BaseException) -> str:
    """The error's name and the first thing that it says, in a line."""
    # Keras says first in which call, then in bold what is wrong there.
    words = re.sub(r"\x1b\[\d*m", "", str(error))
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Exception encountered when calling"):
        lines.pop(0)
    name = type(error).__name__
    return f"{name}: {lines[0][:300]}" if lines else f"{name}."


def in_text(note: dict[str, Any]) -> str:
    """The traceback as Python prints it, with the lines of this notebook's cells."""
    # Lines are looked up here: the other process does not have the notebook's cells.
    frames = traceback.StackSummary.from_list(
        [
            traceback.FrameSummary(str(file), int(line), str(name))
            for file, line, name in note["frames"]
        ]
    )
    return "".join(
        ["Traceback (most recent call last):\n", *frames.format(), str(note["said"])]
    )
