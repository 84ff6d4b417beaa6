"""What a process said when it ran out of memory, in words."""

from __future__ import annotations

import math
import re

from perfkit import units

_TENSOR = re.compile(r"OOM when allocating tensor with shape\s*\[([\d, ]+)\]")
_NUMPY = re.compile(r"Unable to allocate ([\d.]+ \w+)")
_WIDTH = 4
_MOST_SIDES = 8
_KNOWN = (
    ("it waited for more", "it waited for memory that its limit does not leave"),
    ("bad_alloc", "a library asked for memory and was given none"),
    ("mmap error", "a library asked for memory and was given none"),
    ("could not create a primitive", "oneDNN was given no memory to work in"),
    ("MemoryError", "Python was given no memory"),
    (
        "killed by the system",
        "the system ended it, because the machine's memory was full",
    ),
)


def why(message: str) -> str:
    """Say what a trial was short of.

    Args:
        message: What is recorded of its end.
    """
    if tensor := _TENSOR.search(message):
        return _of_tensor(tensor[1])
    if array := _NUMPY.search(message):
        return f"an array of {array[1]} did not fit any more"
    known = (words for said, words in _KNOWN if said in message)
    return next(known, f"it {message.rstrip('.')}")


def _of_tensor(listed: str) -> str:
    sides = [int(side[:12]) for side in listed.replace(",", " ").split()]
    sides = sides[:_MOST_SIDES]
    shape = " by ".join(f"{side:,}" for side in sides)
    held = units.size(_WIDTH * math.prod(sides))
    return f"a tensor of {shape} numbers ({held} in float32) did not fit any more"
