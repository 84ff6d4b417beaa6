"""What trials in the tests do: work, crash, hang, fill the memory, print."""

import ctypes
import os
import re
import subprocess
import time
from dataclasses import dataclass

from perfkit.engine.trial import READY, Note, Pause, every


def count(steps=20_000):
    yield READY
    yield from every(_counting(steps))


def _counting(steps):
    while True:
        sum(range(steps))
        yield 1


def notes_and_pauses():
    yield READY
    yield 3
    yield Note("plan", {"stages": [1, 2]})
    yield Pause("end of epoch")
    yield 4


def leaves_behind():
    """Start a process, write where temporary files go, and never end."""
    import tempfile

    child = subprocess.Popen(["sleep", "3600"])
    yield Note("left", (child.pid, tempfile.mkstemp()[1]))
    yield from count()


def segfault():
    yield READY
    ctypes.string_at(0)


@dataclass(frozen=True)
class Ended:
    """Work that a signal ends."""

    number: int

    def __call__(self):
        yield READY
        os.kill(os.getpid(), self.number)


@dataclass(frozen=True)
class Raises:
    """Work that raises."""

    error: Exception

    def __call__(self):
        yield READY
        raise self.error


def hangs():
    """Stay in a call that never gives Python a turn again."""
    yield READY
    re.match(r"(a+)+$", "a" * 60 + "b")


def never_ready():
    time.sleep(3600)
    yield READY


def fills_memory():
    import numpy as np

    yield READY
    kept = []
    while True:
        kept.append(np.ones(4_000_000))
        yield 1


def prints_much():
    yield READY
    for _ in range(150_000):
        print("y" * 70)
    yield 1


def what_it_sees():
    """Note what a trial was given, and what it must not share with another."""
    import random

    yield READY
    yield Note("random", random.random())
    yield Note("pid", os.getpid())
    yield Note("group", os.getpgrp())
    yield Note("cores", sorted(os.sched_getaffinity(0)))
    yield Note("variables", dict(os.environ))
    yield 1
