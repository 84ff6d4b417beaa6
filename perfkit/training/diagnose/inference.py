"""What no change proves: some functions cannot be kept from being traced anew.

What that costs is inferred from what each trial of the training as given noted, with an
interval over those trials.
"""

from collections.abc import Sequence

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.statistics import student
from perfkit.findings.diagnosis import Cause, Gain, Seconds
from perfkit.findings.text import as_sentence
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.causes.model import RETRACING
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN, CLAIMED
from perfkit.training.diagnose.tracing import STEADY

# No share of a step is believed to be more than this: the gain has no bound there.
_MAX_SHARE = 0.95


def inferred(
    changes: Sequence[Change],
    step: Seconds | None,
    measured: Measurement,
    facts: Facts,
) -> tuple[Cause, ...]:
    """Claim what the trials' notes show, where no change could."""
    is_stopped = any(_stops_it(change, measured) for change in changes)
    if step is None or is_stopped or not facts.retraced:
        return ()
    traced = _traced_s(measured, AS_GIVEN)
    gain = _gain([seconds / step.median_s for seconds in traced])
    if gain is None:
        return ()
    name, entry = next(iter(facts.retraced.items()))
    function = entry.get("library") or f"`{name}`"
    because = f" ({entry['because'][0]})" if entry["because"] else ""
    share = 1 - 1 / gain.estimate
    evidence = f"Retracing {function} takes {units.percent(share)} of a step{because}."
    fix = (
        f"Make {function} once, outside the loop, and pass it tensors of one shape and "
        "dtype."
    )
    if entry.get("library"):
        fix = "Give it batches of one shape and dtype."
        if entry["made_anew"]:
            fix = "Each call makes it again: make fewer calls, with more examples each."
    cause = Cause(
        cause=RETRACING.id,
        change="",
        kind="defect",
        speedup=gain,
        evidence=f"{as_sentence(RETRACING.means)} {evidence}",
        fix=fix,
        grade="inferred",
        do=RETRACING.do,
        mind=RETRACING.mind,
        subject="Without that the training",
        group=RETRACING.group,
    )
    return (cause,)


def _stops_it(change: Change, measured: Measurement) -> bool:
    """Whether a change was timed that did keep functions from being traced anew."""
    if change.cause != RETRACING.id:
        return False
    after, before = (_traced_s(measured, name) for name in (change.name, AS_GIVEN))
    return bool(after and before and np.mean(after) < np.mean(before) / 2)


def _traced_s(measured: Measurement, name: str) -> list[float]:
    """Seconds of tracing in each step, of those trials of a variant that noted them."""
    trials = (t for t in measured.trials_of(name) if STEADY in t.notes)
    notes = [trial.notes[STEADY] for trial in trials]
    return [n[tracing.NOTE]["seconds"] / n["steps"] for n in notes if n["steps"]]


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
