"""A start-up log as statements: each line once, with what it means."""

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from perfkit.machine import environment, software
from perfkit.machine.record import Library, Said, Weight


class Pattern(NamedTuple):
    """One kind of line.

    Attributes:
        text: A regular expression that is found in the line.
        weight: Whether it keeps a GPU away, costs speed, or may be left alone.
        meaning: In a sentence or two, with what to do where there is something.
    """

    text: re.Pattern[str]
    weight: Weight
    meaning: str


def explained(message: str) -> Pattern | None:
    """Find what a message of the log means; None where nobody has explained it."""
    return next((p for p in patterns() if p.text.search(message)), None)


@functools.cache
def patterns() -> tuple[Pattern, ...]:
    """All kinds of line that are known, in the order in which they are looked for."""
    table = files(__package__).joinpath("patterns.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(table)["pattern"]
    return tuple(
        Pattern(re.compile(row["text"]), row["weight"], row["meaning"]) for row in rows
    )


# Both ways in which TensorFlow begins a line: with a date and a file, and as absl does.
_HEAD = re.compile(
    r"^\s*(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: )?[IWEF]"
    r"(?:\d{4} \d\d:\d\d:[\d.]+\s+\d+)? \S+?:\d+\] ?"
)
# What absl says once, without a head, before its first line.
_BEFORE = "All log messages before absl::InitializeLog() is called"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_POINTER = re.compile(r"\b0x[0-9a-fA-F]{3,}\b")
_NUMBER = re.compile(r"\d+")
# These lines hold the host's name, whatever it is.
_HOST = re.compile(r"((?:for host|hostname): |running on this host \()[^\s):]+")
_LONGEST = 240
_MOST_EXPLAINED, _MOST_UNEXPLAINED = 40, 20


def said(log: str, names: Iterable[str] = ()) -> tuple[Said, ...]:
    """Explain a log, line by line, in its order.

    A line that differs from an earlier one in its numbers alone is left out, and so
    are unexplained lines beyond the twentieth. The names are left out.
    """
    known = dict[str, Said]()
    hidden = tuple(names)
    for message in _messages(log):
        one = _said(message, hidden)
        key = _NUMBER.sub("#", one.line)
        if key not in known and _has_room(tuple(known.values()), one):
            known[key] = one
    return tuple(known.values())


def unlogged(output: str) -> str:
    """What a process printed itself: its output without TensorFlow's log."""
    lines = output.splitlines(keepends=True)
    return "".join(
        line for line in lines if not _HEAD.match(line) and _BEFORE not in line
    )


def _messages(log: str) -> Iterator[str]:
    """The log's lines without their heads; one that goes on is one more line."""
    for line in _ESCAPE.sub("", log).splitlines():
        if message := _HEAD.sub("", line).strip():
            yield message


def _said(message: str, names: tuple[str, ...]) -> Said:
    # It is looked up as it was said: a user's name may be a word of the message.
    pattern = explained(message)
    line = _POINTER.sub("0x…", _HOST.sub(r"\1<name>", message))
    line = " ".join(environment.cleaned(line, names, _LONGEST).split())
    if pattern is None:
        return Said(line=line, meaning="", weight="unexplained")
    return Said(line=line, meaning=pattern.meaning, weight=pattern.weight)


def _has_room(known: tuple[Said, ...], one: Said) -> bool:
    unexplained = one.weight == "unexplained"
    most = _MOST_UNEXPLAINED if unexplained else _MOST_EXPLAINED
    return sum((s.weight == "unexplained") == unexplained for s in known) < most


# The parts of cuDNN (libcudnn_ops and so on) come with it and are not named.
_FOR_GPU = re.compile(
    r"/(libcu(?:da|blas|dnn|fft|rand|solver|sparse|pti)[A-Za-z]*"
    r"|libnv(?:rtc|JitLink|idia-[\w-]+)|libnccl)\.so\.?([\d.]*)$"
)
_PACKAGES = re.compile(r".*/(?:site|dist)-packages(?=/)")
# These belong to the driver and are numbered like it, but asked for as number 1.
_OF_DRIVER = re.compile(r"libcuda$|libnvidia-")


def loaded(paths: Iterable[str], variables: Mapping[str, str]) -> tuple[Library, ...]:
    """Name the libraries for a GPU among the files that a process has loaded."""
    found = (_library(path, variables) for path in sorted(set(paths)))
    return tuple(library for library in found if library)


def _library(path: str, variables: Mapping[str, str]) -> Library | None:
    named = _FOR_GPU.search(path)
    if not named:
        return None
    stem, number = named[1], named[2]
    asked = "1" if _OF_DRIVER.match(stem) else number.partition(".")[0]
    packages = _PACKAGES.match(path)
    folder = Path(packages[0]) if packages else None
    return Library(
        name=".".join(filter(None, (f"{stem}.so", asked))),
        version=software.library_version(path, folder),
        origin=software.library_origin(path, folder, variables),
    )
