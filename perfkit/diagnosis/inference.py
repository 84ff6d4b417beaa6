"""Causes that no change proves: what the trials noted while they ran, with its doubt.

Other programs cannot be swapped away, memory cannot be made larger, and some functions
cannot be kept from being traced. What they cost is inferred: from what each trial of
the training as given noted, with an interval over those trials.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from perfkit import units
from perfkit.diagnosis import tracing
from perfkit.diagnosis.change import Change
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.rounds import AS_GIVEN, CLAIMED
from perfkit.diagnosis.tracing import STEADY
from perfkit.findings.diagnosis import Cause, Gain, Grade, Seconds
from perfkit.measure.measurement import CONTROL, Measurement
from perfkit.measure.statistics import student
from perfkit.measure.trial import Trial


class Others:
    """The user's programs apart from this one, and what they have used since."""

    def __init__(self) -> None:
        self._before = _used()

    def busiest(self) -> str:
        """The name of the one that used most since; "" where none did much."""
        gone = {
            (pid, name): seconds - self._before.get((pid, name), 0.0)
            for (pid, name), seconds in _used().items()
        }
        one = max(gone, key=gone.__getitem__, default=None)
        return one[1] if one is not None and gone[one] > 1.0 else ""


def _used() -> dict[tuple[int, str], float]:
    """CPU seconds of each process of this user, those of this program left out."""
    found: dict[tuple[int, str], float] = {}
    with contextlib.suppress(psutil.Error, AttributeError):
        me = psutil.Process()
        ours = {me.pid, *(child.pid for child in me.children(recursive=True))}
        user = os.getuid()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid not in ours and process.uids().real == user:
                    used = sum(process.cpu_times()[:2])
                    # A name, never a path: that would tell of the user's folders.
                    found[process.pid, os.path.basename(process.name())] = used
    return found


# Others that take as many cores are worth a word; with fewer than this it is quiet.
_OTHERS, _QUIET = 0.5, 0.1
# Of the machine's cores, others have to take so much before waiting alone is believed.
_PLAINLY = 0.5
# Both kinds of moments have to last so long in a trial.
_LASTS_S = 0.5
# No share of a step is believed to be more than this: the gain has no bound there.
_MOST = 0.95


def inferred(
    changes: Sequence[Change],
    step: Seconds | None,
    measured: Measurement,
    facts: Facts,
    name: str = "",
    cores: float = 1,
) -> tuple[Cause, ...]:
    """Claim what the trials' notes show, where no change could.

    ``name`` is that of the user's own program that took most of the processor, "" if
    that is unknown; ``cores`` are those that this machine grants.
    """
    if step is None:
        return ()
    found = (
        _retracing(changes, step, measured, facts),
        _contention(measured, name, cores),
        _memory(measured),
    )
    return tuple(cause for cause in found if cause is not None)


def _retracing(
    changes: Sequence[Change], step: Seconds, measured: Measurement, facts: Facts
) -> Cause | None:
    if not facts.retraced or any(_stops_it(one, measured) for one in changes):
        return None
    traced = _known(map(_traced_s, measured.of(AS_GIVEN)))
    gain = _gain([seconds / step.median_s for seconds in traced])
    if gain is None:
        return None
    name, known = next(iter(facts.retraced.items()))
    function = tracing.named(name, known)
    because = f" ({known['because'][0]})" if known["because"] else ""
    share = 1 - 1 / gain.estimate
    fix = (
        f"Make {function} once, outside of the loop, and hand it tensors of one shape "
        "and dtype."
    )
    if known.get("library"):
        fix = "Give it batches of one shape and dtype."
        if known["made_anew"]:
            fix = "Each call makes it anew: make fewer calls, of more examples each."
    return _cause(
        "retracing",
        gain,
        f"Tracing {function} anew takes {units.percent(share)} of a step{because}.",
        fix,
    )


def _cause(
    name: str, gain: Gain, evidence: str, fix: str, grade: Grade = "inferred"
) -> Cause:
    return Cause(
        cause=name,
        change="",
        kind="defect",
        speedup=gain,
        evidence=evidence,
        fix=fix,
        grade=grade,
    )


def _stops_it(change: Change, measured: Measurement) -> bool:
    """Whether a change was timed that did keep functions from being traced anew."""
    if change.cause != "retracing":
        return False
    one, other = (
        _known(map(_traced_s, measured.of(name))) for name in (change.name, AS_GIVEN)
    )
    return bool(one and other and np.mean(one) < np.mean(other) / 2)


def _traced_s(trial: Trial) -> float | None:
    """Seconds of tracing in each step of a trial."""
    note = _note(trial, tracing.NOTE)
    steps = float(trial.notes.get(STEADY, {}).get("steps") or 0)
    return float(note["seconds"]) / steps if note and steps else None


def _contention(measured: Measurement, name: str, cores: float) -> Cause | None:
    shares, taken = _shares(measured)
    given = (*measured.of(AS_GIVEN), *measured.of(CONTROL))
    seen = _known(_when_quiet(trial, measured) for trial in given)
    compared = len(seen) > 1
    gain = _gain(seen if compared else shares)
    # What the waiting of threads costs is a guess, fit for plain cases alone.
    guessed = not compared and sum(taken) < _PLAINLY * cores * len(taken)
    if gain is None or not taken or guessed:
        return None
    whose = f"`{name}` and others" if name else "other programs"
    how = (
        "and in the quiet moments of the same trials it was faster"
        if compared
        else "and its own threads stood ready and waited for one"
    )
    return _cause(
        "contention",
        gain,
        f"While it trained, {whose} used {np.mean(taken):.1f} cores, {how}.",
        f"Train while {name or 'nothing else'} {'does not run' if name else 'runs'}"
        ", or give the training cores of its own (taskset).",
        "measured here" if compared else "inferred",
    )


def _when_quiet(trial: Trial, measured: Measurement) -> float | None:
    """The share of the time that a trial saves in its quiet moments.

    None where it had no quiet moments, or no others, for long enough.
    """
    times = np.array(measured.samples.get("t", ()), dtype=np.float64)
    others = np.array(measured.samples.get("cpu_other", ()), dtype=np.float64)
    begins, ends = _at_work(trial)
    counts = np.array([n for _, n in trial.ticks if n], dtype=np.float64)
    if not len(times) or len(times) != len(others) or len(counts) != len(begins):
        return None
    # A sample tells of the time before it.
    after = np.minimum(np.searchsorted(times, ends), len(times) - 1)
    theirs, spent = others[after], ends - begins
    quiet, busy = theirs < _QUIET, theirs >= _OTHERS
    if min(spent[quiet].sum(), spent[busy].sum()) < _LASTS_S:
        return None
    rate_quiet = counts[quiet].sum() / spent[quiet].sum()
    return float(1 - counts.sum() / spent.sum() / rate_quiet)


def _shares(measured: Measurement) -> tuple[list[float], list[float]]:
    """Of each trial: what share of its time others cost it, and the cores they used."""
    shares, taken = [], []
    for trial in (*measured.of(AS_GIVEN), *measured.of(CONTROL)):
        others = _during(trial, measured, "cpu_other")
        own = _during(trial, measured, "cpu_trial")
        note = _note(trial, tracing.WAITED)
        if others is None or not own or not note or not note["ran_s"]:
            continue
        waited = float(note["waited_s"]) / float(note["ran_s"])
        theirs = others / (others + own)
        taken.append(others)
        # Threads wait for each other, too: others' part of that is as their part of
        # the processor, and no more can be won than what they took.
        slower = min(1 + waited * theirs, 1 / (1 - theirs))
        shares.append(1 - 1 / slower if others >= _OTHERS else 0.0)
    return shares, taken


def _memory(measured: Measurement) -> Cause | None:
    given = measured.of(AS_GIVEN)
    stalled = _known(_during(trial, measured, "memory_stalled") for trial in given)
    gain = _gain(stalled)
    if gain is None:
        return None
    return _cause(
        "memory-pressure",
        gain,
        f"For {units.percent(float(np.mean(stalled)))} of the time something "
        "on this machine waited for memory that was short.",
        "Use less memory: a smaller shuffle buffer or cache; end other programs.",
    )


def _gain(shares: Sequence[float]) -> Gain | None:
    """The gain from doing away with these shares of trials; None where none shows."""
    if len(shares) < 2:
        return None
    each = np.log(1 / (1 - np.clip(shares, -_MOST, _MOST)))
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    half = student(len(each) - 1) * error
    middle = float(each.mean())
    ends = middle - half, middle, middle + half
    low, estimate, high = (float(np.exp(end)) for end in ends)
    shown = low > 1 and estimate >= CLAIMED
    return Gain(estimate=estimate, low=low, high=high) if shown else None


def _note(trial: Trial, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = trial.notes.get(STEADY, {}).get(name)
    return found


def _during(trial: Trial, measured: Measurement, column: str) -> float | None:
    """The mean of a sample while a trial had its turns; None where there is none."""
    times = np.array(measured.samples.get("t", ()), dtype=np.float64)
    values = np.array(measured.samples.get(column, ()), dtype=np.float64)
    begins, ends = _at_work(trial)
    if not len(begins) or len(times) != len(values):
        return None
    turn = np.searchsorted(begins, times, side="right") - 1
    within = (turn >= 0) & (times <= ends[turn]) & np.isfinite(values)
    return float(values[within].mean()) if within.any() else None


def _at_work(trial: Trial) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When a trial worked, in seconds of the run: each stretch's begin and end."""
    at = trial.started_s + np.array([t for t, _ in trial.ticks], dtype=np.float64)
    worked = np.array([n for _, n in trial.ticks][1:], dtype=np.int64) > 0
    return at[:-1][worked], at[1:][worked]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
