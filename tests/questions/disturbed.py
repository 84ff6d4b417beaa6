"""Runs beside known loads, made by hand: what every counter shows is known."""

import itertools
import math
import random
from dataclasses import replace

from perfkit.questions import experiment
from tests.findings.made import completed, of_run
from tests.questions.races import ROUNDS, rounds_of

BATCH = 32
PERIOD = 0.2
# What a quiet training of 20 ms a step shows on two cores.
QUIET = {"step": 0.020, "wait": 0.05, "cpu_trial": 1.5, "cpu_other": 0.05}
QUIET |= {"disk_read": 1e4, "disk_read_trial": 0.0}
QUIET |= {"memory_used": 2.0e9, "memory_trial": 2.5e8}
SLOW = {"step": 0.040, "cpu_trial": 1.0}
# What each slow-down changes: each makes a step take twice as long.
SHOWS = {
    "quiet": {},
    "cpu burners": SLOW | {"cpu_trial": 0.75, "cpu_other": 1.2},
    "memory bandwidth": SLOW | {"cpu_other": 0.95, "memory_used": 2.6e9},
    "disk reader": SLOW | {"cpu_other": 0.6, "disk_read": 5e8, "wait": 0.3},
    "gpu product": SLOW | {"cpu_trial": 0.8, "cpu_other": 0.8, "gpu0_busy": 1},
    "sleeping pipeline": SLOW | {"wait": 0.48, "cpu_trial": 0.8},
    "decoding pipeline": SLOW | {"wait": 0.45, "cpu_trial": 1.9},
}
ALL = tuple(SHOWS)


def run(names=ALL, *, rounds=4, noise=0.01, shows=None, **more):
    """A measurement in which each variant, quiet first, shows what ``SHOWS`` has.

    What ``shows`` has of a variant counts instead; ``more`` is the measurement's.
    """
    shown = {
        name: QUIET | SHOWS.get(name, {}) | (shows or {}).get(name, {})
        for name in names
    }
    gpu = any("gpu0_busy" in one for one in shown.values())
    rows, ends = [], [0.0]

    def make(name, number):
        one = shown.get(name, shown["quiet"])
        trial = _trial(name, one, number, ends[-1], noise)
        ends.append(ends[-1] + trial.wall_s)
        while (now := PERIOD * (len(rows) + 1)) <= ends[-1]:
            rows.append({"t": now} | ({"gpu0_busy": 0.6} if gpu else {}) | one)
        return trial

    measured = rounds_of(make, names, rounds=rounds)
    names_of = [name for name in rows[0] if name not in ("step", "wait")]
    columns = {name: tuple(row.get(name) for row in rows) for name in names_of}
    return replace(measured, samples=columns, **more)


def found(measured, **parameters):
    """The finding that a measurement becomes, verdict included."""
    asked = experiment("contention", **parameters)
    known = {"question": asked.question, "parameters": asked.parameters}
    known |= {"samples": measured.samples, "verdict": asked.verdict(measured)}
    return of_run(measured, experiment="contention", **known)


def _trial(name, shows, number, started, noise):
    """Eighty steps after a first call."""
    draw = random.Random(f"{name} {noise}")
    step = shows["step"] * math.exp(noise * draw.sample(ROUNDS, 4)[number % 4])
    stamps = list(itertools.accumulate([0.3, 0.4, *[step] * 80]))
    waited = [0.0, *[step * shows["wait"]] * 80]
    ticks = ((at, BATCH if n else 0) for n, at in enumerate(stamps))
    known = {"started_s": started, "wall_s": stamps[-1] + 0.05}
    return completed(name, number, ticks, parts={"input": tuple(waited)}, **known)
