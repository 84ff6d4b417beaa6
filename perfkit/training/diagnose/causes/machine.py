"""What no change proves: other programs, memory that is short, tracing that stays.

Other programs cannot be swapped away, memory cannot be made larger, and some functions
cannot be kept from being traced. What they cost is inferred from what each trial of the
training as given noted, with an interval over those trials.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.statistics import student
from perfkit.engine.trial import Trial
from perfkit.findings.diagnosis import Cause, Gain, Grade, Seconds
from perfkit.findings.text import as_sentence
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.causes.model import RETRACING
from perfkit.training.diagnose.change import Change, KnownCause
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN, CLAIMED
from perfkit.training.diagnose.tracing import STEADY

CONTENTION = KnownCause(
    id="contention",
    kind="defect",
    do="Train while no other program uses the cores",
    means="other programs use the cores",
)
MEMORY_PRESSURE = KnownCause(
    id="memory-pressure",
    kind="defect",
    do="Use less memory",
    means="memory is short",
)


def _infer(
    known: KnownCause, speedup: Gain, *, evidence: str, fix: str, grade: Grade
) -> Cause:
    return Cause(
        cause=known.id,
        change="",
        kind="defect",
        speedup=speedup,
        evidence=f"{as_sentence(known.means)} {evidence}",
        fix=fix,
        grade=grade,
        do=known.do,
        mind=known.mind,
        subject="Without that the training",
        group=known.group,
    )


class OtherPrograms:
    """The user's programs apart from this one, and what they have used since."""

    def __init__(self) -> None:
        self._before = _read_cpu_s()

    def busiest(self) -> str:
        """The name of the one that used most since; "" where none did much."""
        gone = {
            (pid, name): seconds - self._before.get((pid, name), 0.0)
            for (pid, name), seconds in _read_cpu_s().items()
        }
        program = max(gone, key=gone.__getitem__, default=None)
        return program[1] if program is not None and gone[program] > 1.0 else ""


def _read_cpu_s() -> dict[tuple[int, str], float]:
    """CPU seconds of each process of this user, those of this program left out."""
    cpu_s: dict[tuple[int, str], float] = {}
    with contextlib.suppress(psutil.Error, AttributeError):
        me = psutil.Process()
        ours = {me.pid, *(child.pid for child in me.children(recursive=True))}
        user = os.getuid()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid not in ours and process.uids().real == user:
                    spent_s = sum(process.cpu_times()[:2])
                    # A name, never a path: that would tell of the user's folders.
                    cpu_s[process.pid, os.path.basename(process.name())] = spent_s
    return cpu_s


# Others that take as many cores are worth a word; with fewer than this it is quiet.
_BUSY_CORES, _QUIET_CORES = 0.5, 0.1
# Of the machine's cores, others have to take so much before waiting alone is believed.
_PLAINLY = 0.5
# Both kinds of moments have to last so long in a trial.
_LASTS_S = 0.5
# No share of a step is believed to be more than this: the gain has no bound there.
_MAX_SHARE = 0.95


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
    candidates = (
        _retracing(changes, step, measured, facts),
        _contention(measured, name, cores),
        _memory(measured),
    )
    return tuple(cause for cause in candidates if cause is not None)


def _retracing(
    changes: Sequence[Change], step: Seconds, measured: Measurement, facts: Facts
) -> Cause | None:
    if not facts.retraced or any(_stops_it(change, measured) for change in changes):
        return None
    traced = _drop_none(map(_traced_s, measured.trials_of(AS_GIVEN)))
    gain = _gain([seconds / step.median_s for seconds in traced])
    if gain is None:
        return None
    name, entry = next(iter(facts.retraced.items()))
    function = tracing.display_name(name, entry)
    because = f" ({entry['because'][0]})" if entry["because"] else ""
    share = 1 - 1 / gain.estimate
    fix = (
        f"Make {function} once, outside the loop, and pass it tensors of one shape and "
        "dtype."
    )
    if entry.get("library"):
        fix = "Give it batches of one shape and dtype."
        if entry["made_anew"]:
            fix = "Each call makes it again: make fewer calls, with more examples each."
    return _infer(
        RETRACING,
        gain,
        evidence=f"Retracing {function} takes {units.percent(share)} of a step"
        f"{because}.",
        fix=fix,
        grade="inferred",
    )


def _stops_it(change: Change, measured: Measurement) -> bool:
    """Whether a change was timed that did keep functions from being traced anew."""
    if change.cause != "retracing":
        return False
    after = _drop_none(map(_traced_s, measured.trials_of(change.name)))
    before = _drop_none(map(_traced_s, measured.trials_of(AS_GIVEN)))
    return bool(after and before and np.mean(after) < np.mean(before) / 2)


def _traced_s(trial: Trial) -> float | None:
    """Seconds of tracing in each step of a trial."""
    note = _note(trial, tracing.NOTE)
    steps = float(trial.notes.get(STEADY, {}).get("steps") or 0)
    return float(note["seconds"]) / steps if note and steps else None


def _contention(measured: Measurement, name: str, cores: float) -> Cause | None:
    shares, loads = _shares(measured)
    trials = (*measured.trials_of(AS_GIVEN), *measured.trials_of(CONTROL))
    quiet_shares = _drop_none(_when_quiet(trial, measured) for trial in trials)
    compared = len(quiet_shares) > 1
    gain = _gain(quiet_shares if compared else shares)
    # What the waiting of threads costs is a guess, fit for plain cases alone.
    guessed = not compared and sum(loads) < _PLAINLY * cores * len(loads)
    if gain is None or not loads or guessed:
        return None
    names = f"`{name}` and others" if name else "other programs"
    proof = (
        "and it was faster in the quiet moments of the same trials"
        if compared
        else "and its own threads were ready but had to wait for a core"
    )
    return _infer(
        CONTENTION,
        gain,
        evidence=f"While it trained, {names} used {np.mean(loads):.1f} cores, {proof}.",
        fix=f"End {name or 'what else runs'}, or give the training cores of its own "
        "(taskset).",
        grade="measured here" if compared else "inferred",
    )


def _when_quiet(trial: Trial, measured: Measurement) -> float | None:
    """The share of the time that a trial saves in its quiet moments.

    None where it had no quiet moments, or no others, for long enough.
    """
    times = np.array(measured.samples.get("t", ()), dtype=np.float64)
    other_cores = np.array(measured.samples.get("cpu_other", ()), dtype=np.float64)
    begins, ends = _at_work(trial)
    counts = np.array([n for _, n in trial.ticks if n], dtype=np.float64)
    if not len(times) or len(times) != len(other_cores) or len(counts) != len(begins):
        return None
    # A sample tells of the time before it.
    after = np.minimum(np.searchsorted(times, ends), len(times) - 1)
    theirs, spent = other_cores[after], ends - begins
    quiet, busy = theirs < _QUIET_CORES, theirs >= _BUSY_CORES
    if min(spent[quiet].sum(), spent[busy].sum()) < _LASTS_S:
        return None
    rate_quiet = counts[quiet].sum() / spent[quiet].sum()
    return float(1 - counts.sum() / spent.sum() / rate_quiet)


def _shares(measured: Measurement) -> tuple[list[float], list[float]]:
    """Of each trial: what share of its time others cost it, and the cores they used."""
    shares, loads = [], []
    for trial in (*measured.trials_of(AS_GIVEN), *measured.trials_of(CONTROL)):
        other_cpu = _during(trial, measured, "cpu_other")
        own_cpu = _during(trial, measured, "cpu_trial")
        note = _note(trial, tracing.WAITED)
        if other_cpu is None or not own_cpu or not note or not note["ran_s"]:
            continue
        waited = float(note["waited_s"]) / float(note["ran_s"])
        theirs = other_cpu / (other_cpu + own_cpu)
        loads.append(other_cpu)
        # Threads wait for each other, too: others' part of that is as their part of
        # the processor, and no more can be won than what they took.
        slower = min(1 + waited * theirs, 1 / (1 - theirs))
        shares.append(1 - 1 / slower if other_cpu >= _BUSY_CORES else 0.0)
    return shares, loads


def _memory(measured: Measurement) -> Cause | None:
    trials = measured.trials_of(AS_GIVEN)
    stalled = _drop_none(_during(trial, measured, "memory_stalled") for trial in trials)
    gain = _gain(stalled)
    if gain is None:
        return None
    return _infer(
        MEMORY_PRESSURE,
        gain,
        evidence=f"For {units.percent(float(np.mean(stalled)))} of the time a program "
        "on this machine waited for free memory.",
        fix="Use a smaller shuffle buffer or cache, or end other programs.",
        grade="inferred",
    )


def _gain(shares: Sequence[float]) -> Gain | None:
    """The gain from doing away with these shares of trials; None where none shows."""
    if len(shares) < 2:
        return None
    logs = np.log(1 / (1 - np.clip(shares, -_MAX_SHARE, _MAX_SHARE)))
    error = float(logs.std(ddof=1)) / len(logs) ** 0.5
    half = student(len(logs) - 1) * error
    middle = float(logs.mean())
    ends = middle - half, middle, middle + half
    low, estimate, high = (float(np.exp(end)) for end in ends)
    is_shown = low > 1 and estimate >= CLAIMED
    return Gain(estimate=estimate, low=low, high=high) if is_shown else None


def _note(trial: Trial, name: str) -> dict[str, Any] | None:
    note: dict[str, Any] | None = trial.notes.get(STEADY, {}).get(name)
    return note


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


def _drop_none(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
