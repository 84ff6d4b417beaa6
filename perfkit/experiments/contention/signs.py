"""What the counters and the steps of a trial show, and what has moved against quiet.

A sign is read once per trial and compared with that of the quiet trial of the same
round.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.contention.mystery import QUIET
from perfkit.experiments.contention.seen import seen_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from perfkit.experiments.contention.seen import Samples, Seen
    from perfkit.measure.trial import Trial

_GPUS = 16


@dataclass(frozen=True)
class Sign:
    """Something to read from a trial.

    Attributes:
        name: It in a word or two.
        says: A sentence's half on it, with a place for the number.
        read: Its number; None where this machine does not tell.
        write: The number as text.
        least: By how much it has to grow before anything is said.
        share: Whether ``least`` is a share of what it was.
    """

    name: str
    says: str
    read: Callable[[Seen], float | None]
    write: Callable[[float], str]
    least: float
    share: bool = False

    def grew(self, before: float, after: float) -> float:
        """How far it grew, in multiples of ``least``."""
        least = self.least * before if self.share else self.least
        return (after - before) / least if least > 0 else 0.0


def _others(seen: Seen, machine: str, trial: str) -> float | None:
    """What the machine did and the trial did not."""
    whole = seen.mean(machine)
    return None if whole is None else max(0.0, whole - (seen.mean(trial) or 0.0))


def _memory(seen: Seen) -> float | None:
    whole, own = seen.last("memory_used"), seen.last("memory_trial")
    return None if whole is None or own is None else max(0.0, whole - own)


def _cpu_of_a_step(seen: Seen) -> float | None:
    cores = seen.mean("cpu_trial")
    return None if cores is None else cores * statistics.fmean(seen.steps)


def _gpu(seen: Seen) -> float | None:
    busy = (seen.mean(f"gpu{number}_busy") for number in range(_GPUS))
    return max((share for share in busy if share is not None), default=None)


def _cores(value: float) -> str:
    return f"{value:.2f} core{'s' if round(value, 2) != 1 else ''}"


def _per_second(value: float) -> str:
    return f"{units.size(value)}/s"


STEP = Sign(
    "a step",
    "a step took {}",
    lambda seen: statistics.fmean(seen.steps),
    units.seconds,
    0.1,
    share=True,
)
WAITING = Sign(
    "waiting for input",
    "{} of the time went into waiting for input",
    lambda seen: seen.waited / sum(seen.steps),
    units.percent,
    0.15,
)
REST = Sign(
    "rest of a step",
    "a step took {} besides waiting",
    lambda seen: (sum(seen.steps) - seen.waited) / len(seen.steps),
    units.seconds,
    0.3,
    share=True,
)
OTHERS = Sign(
    "other programs",
    "other programs kept {} busy",
    lambda seen: seen.mean("cpu_other"),
    _cores,
    0.3,
)
CPU_TIME = Sign(
    "CPU time of a step",
    "a step took {} of the training's own CPU time",
    _cpu_of_a_step,
    units.seconds,
    0.2,
    share=True,
)
HELD = Sign(
    "memory of others",
    "all but the training held {} of memory",
    _memory,
    units.size,
    300e6,
)
READ = Sign(
    "others read",
    "other programs read {} from the disk",
    lambda seen: _others(seen, "disk_read", "disk_read_trial"),
    _per_second,
    20e6,
)
BUSY = Sign("GPU busy", "the GPU was busy for {}", _gpu, units.percent, 0.15)
# The longest steps, as a multiple of the usual one.
TAIL = Sign(
    "slowest steps",
    "one step in twenty took {} the usual time",
    lambda seen: _tail(seen.steps),
    units.ratio,
    0.5,
)
SIGNS = (STEP, WAITING, REST, OTHERS, CPU_TIME, HELD, READ, TAIL, BUSY)


def values(
    trials: Iterable[Trial], samples: Samples, variant: str
) -> dict[Sign, dict[int, float]]:
    """Read every sign from every completed trial of a variant, by round."""
    found: dict[Sign, dict[int, float]] = {}
    for trial in trials:
        if trial.variant != variant or trial.outcome != "completed" or trial.is_try:
            continue
        if (seen := seen_in(trial, samples)) is None:
            continue
        for sign in SIGNS:
            if (value := sign.read(seen)) is not None:
                found.setdefault(sign, {})[trial.round] = value
    return found


@dataclass(frozen=True)
class Change:
    """A sign beside something, against quiet: the means over the rounds of both."""

    sign: Sign
    before: float
    after: float

    def __str__(self) -> str:
        """Half a sentence."""
        said = self.sign.says.format(self.sign.write(self.after))
        return f"{said}, against {self.sign.write(self.before)} when quiet"


def changes(
    trials: Sequence[Trial], samples: Samples, variant: str
) -> dict[Sign, Change]:
    """Every sign that was read of a variant and of quiet in the same rounds."""
    pairs = _pairs(trials, samples, variant)
    return {
        sign: Change(sign, *map(statistics.fmean, zip(*both, strict=True)))
        for sign, both in pairs.items()
    }


def moved(
    trials: Sequence[Trial], samples: Samples, variant: str
) -> dict[Sign, Change]:
    """The signs that grew, apart from the length of a step.

    They grew in every round, and far enough on average.
    """
    found = changes(trials, samples, variant)
    for sign, both in _pairs(trials, samples, variant).items():
        grew = [sign.grew(before, after) for before, after in both]
        # Half as far in each round: what came by once is no sign.
        if sign is STEP or min(grew) <= 0.5 or statistics.fmean(grew) <= 1:
            del found[sign]
    return found


def _pairs(
    trials: Sequence[Trial], samples: Samples, variant: str
) -> dict[Sign, list[tuple[float, float]]]:
    quiet, other = (values(trials, samples, name) for name in (QUIET, variant))
    found = {}
    for sign in SIGNS:
        before, after = quiet.get(sign, {}), other.get(sign, {})
        if rounds := sorted(before.keys() & after.keys()):
            found[sign] = [(before[r], after[r]) for r in rounds]
    return found


def _tail(steps: Sequence[float]) -> float:
    ordered = sorted(steps)
    return ordered[int(0.95 * (len(ordered) - 1))] / statistics.median(ordered)
