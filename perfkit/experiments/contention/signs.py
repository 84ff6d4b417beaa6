"""What counters and steps show beside a load."""

from __future__ import annotations

import hashlib
import itertools
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.contention.loads import CPU, DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from perfkit.measure.trial import Trial

    Samples = Mapping[str, Sequence[float | None]]

QUIET, MYSTERY = "quiet", "mystery"
SLEEPING, DECODING = "sleeping pipeline", "decoding pipeline"
PIPELINES = (SLEEPING, DECODING)


def candidates(fed: str) -> tuple[str, ...]:
    """What a mystery may be: what can slow a training that is fed so, anywhere."""
    return (CPU, MEMORY, *PIPELINES, *([DISK] if fed == "disk" else []))


def sealed(number: int, fed: str) -> str:
    """Name the slow-down behind a number; the same number always hides the same."""
    digest = hashlib.sha256(f"mystery {number}".encode()).digest()
    among = candidates(fed)
    return among[int.from_bytes(digest, "big") % len(among)]


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


@dataclass(frozen=True)
class Seen:
    """One trial's steady work: its steps and the samples taken meanwhile.

    Attributes:
        steps: Seconds of each step.
        waited: Seconds of them that it waited for input.
        samples: What was sampled, by name.
    """

    steps: tuple[float, ...]
    waited: float
    samples: dict[str, list[float]]

    def mean(self, name: str) -> float | None:
        """The mean of a reading; None where there is none."""
        values = self.samples.get(name)
        return statistics.fmean(values) if values else None

    def last(self, name: str) -> float | None:
        """The last value of a reading that is taken once in a while."""
        values = self.samples.get(name)
        return values[-1] if values else None


def seen_in(trial: Trial, samples: Samples) -> Seen | None:
    """Read a trial without its first call; None where nothing is left."""
    lengths = [
        (now - before, now)
        for (before, _), (now, examples) in itertools.pairwise(trial.ticks)
        if examples and now > before
    ]
    if len(lengths) < 3:
        return None
    began = trial.started_s + lengths[0][1]
    ended = trial.started_s + lengths[-1][1]
    return Seen(
        steps=tuple(length for length, _ in lengths[1:]),
        waited=sum(trial.parts.get("input", ())[1:]),
        samples=_within(samples, began, ended),
    )


def _within(samples: Samples, began: float, ended: float) -> dict[str, list[float]]:
    """The samples whose whole time, back to the one before, lies in the span."""
    times = samples.get("t", ())
    inside = [
        at
        for at, (before, now) in enumerate(itertools.pairwise(times), start=1)
        if before is not None and now is not None and began <= before and now <= ended
    ]
    return {
        name: found
        for name, column in samples.items()
        if (
            found := [
                value
                for at in inside
                if at < len(column) and (value := column[at]) is not None
            ]
        )
    }
