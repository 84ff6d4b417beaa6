"""What counters and steps show beside a load, and what may have caused it."""

import functools
import hashlib
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfkit import units
from perfkit.experiments.contention.loads import (
    CPU,
    DECODING,
    DISK,
    GPU,
    MEMORY,
    PIPELINES,
    SLEEPING,
)
from perfkit.findings.record import Finding
from perfkit.measure.measurement import Measurement
from perfkit.measure.trial import Trial

Run = Measurement | Finding

QUIET, MYSTERY = "quiet", "mystery"


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
        least: By how much it has to grow before anything is said ...
        share: ... as a share of what it was.
    """

    name: str
    says: str
    read: Callable[["Seen"], float | None]
    write: Callable[[float], str]
    least: float
    share: bool = False

    def grew(self, before: float, after: float) -> float:
        """How far it grew, in multiples of ``least``."""
        least = self.least * before if self.share else self.least
        return (after - before) / least if least > 0 else 0.0


def _read_by_others(seen: "Seen") -> float | None:
    """What the machine read and the trial did not."""
    whole, own = seen.mean("disk_read"), seen.mean("disk_read_trial")
    return None if whole is None else max(0.0, whole - (own or 0.0))


def _held_by_others(seen: "Seen") -> float | None:
    whole, own = seen.last("memory_used"), seen.last("memory_trial")
    return None if whole is None or own is None else max(0.0, whole - own)


def _cpu_of_a_step(seen: "Seen") -> float | None:
    cores = seen.mean("cpu_trial")
    return None if cores is None else cores * seen.step


def _gpu(seen: "Seen") -> float | None:
    busy = (seen.mean(f"gpu{number}_busy") for number in range(_GPUS))
    return max((share for share in busy if share is not None), default=None)


def _cores(value: float) -> str:
    return f"{value:.2f} core{'s' if round(value, 2) != 1 else ''}"


def _per_second(value: float) -> str:
    return f"{units.size(value)}/s"


STEP = Sign(
    "a step", "a step took {}", lambda s: s.step, units.seconds, 0.1, share=True
)
WAITING = Sign(
    "waiting for input",
    "{} of the time went into waiting for input",
    lambda seen: seen.waited / sum(seen.steps),
    units.percent,
    0.15,
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
_HOLDS = "all but the training held {} of memory"
HELD = Sign("memory of others", _HOLDS, _held_by_others, units.size, 300e6)
_READS = "other programs read {} from the disk"
READ = Sign("others read", _READS, _read_by_others, _per_second, 20e6)
BUSY = Sign("GPU busy", "the GPU was busy for {}", _gpu, units.percent, 0.15)
SIGNS = (STEP, WAITING, OTHERS, CPU_TIME, HELD, READ, BUSY)


@dataclass(frozen=True)
class Change:
    """A sign when quiet and beside something, in each round that has both."""

    sign: Sign
    rounds: tuple[tuple[float, float], ...]

    @functools.cached_property
    def before(self) -> float:
        """Its mean when quiet."""
        return statistics.fmean(before for before, _ in self.rounds)

    @functools.cached_property
    def after(self) -> float:
        """Its mean beside something."""
        return statistics.fmean(after for _, after in self.rounds)

    @property
    def moved(self) -> bool:
        """Whether it grew in every round, and far enough on average."""
        grew = [self.sign.grew(before, after) for before, after in self.rounds]
        # Half as far in each round: what came by once is no sign.
        return min(grew) > 0.5 and statistics.fmean(grew) > 1

    def __str__(self) -> str:
        """Half a sentence."""
        said = self.sign.says.format(self.sign.write(self.after))
        return f"{said}, against {self.sign.write(self.before)} when quiet"


Changes = dict[Sign, Change]


def values(run: Run, variant: str) -> dict[Sign, dict[int, float]]:
    """Read every sign from every completed trial of a variant, by round."""
    readings: dict[Sign, dict[int, float]] = {}
    for trial in run.trials:
        if trial.variant != variant or trial.outcome != "completed" or trial.is_try:
            continue
        if seen := seen_in(trial, run.samples):
            for sign in SIGNS:
                if (value := sign.read(seen)) is not None:
                    readings.setdefault(sign, {})[trial.round] = value
    return readings


def changes(run: Run, variant: str) -> Changes:
    """Every sign that was read of a variant and of quiet in the same rounds."""
    quiet, other = values(run, QUIET), values(run, variant)
    compared = {}
    for sign in quiet.keys() & other.keys():
        before, after = quiet[sign], other[sign]
        if rounds := sorted(before.keys() & after.keys()):
            compared[sign] = Change(sign, tuple((before[r], after[r]) for r in rounds))
    return {sign: compared[sign] for sign in SIGNS if sign in compared}


def moved(changes: Changes) -> Changes:
    """The signs that grew, apart from the length of a step."""
    return {
        s: change for s, change in changes.items() if s is not STEP and change.moved
    }


@dataclass(frozen=True)
class Seen:
    """One trial's steady work: seconds of its steps, and those that it waited.

    Of the samples of the whole run those at ``inside`` were taken meanwhile.
    """

    steps: tuple[float, ...]
    waited: float
    samples: Mapping[str, Sequence[float | None]]
    inside: list[int]

    @property
    def step(self) -> float:
        """Seconds of a step, the mean."""
        return statistics.fmean(self.steps)

    def mean(self, name: str) -> float | None:
        """The mean of a reading; None where there is none."""
        values = self._values(name)
        return statistics.fmean(values) if values else None

    def last(self, name: str) -> float | None:
        """The last value of a reading that is taken once in a while."""
        return next(reversed(self._values(name)), None)

    def _values(self, name: str) -> list[float]:
        column = self.samples.get(name, ())
        read = (column[at] for at in self.inside if at < len(column))
        return [value for value in read if value is not None]


def seen_in(trial: Trial, samples: Mapping[str, Sequence[float | None]]) -> Seen | None:
    """Read a trial without its first call; None where nothing is left."""
    lengths = [(now - before, now) for before, now, _ in trial.worked if now > before]
    if len(lengths) < 3:
        return None
    began, ended = (trial.started_s + lengths[n][1] for n in (0, -1))
    # The whole time of a sample, back to the one before, lies within the work.
    times = (math.nan if at is None else at for at in samples.get("t", ()))
    pairs = enumerate(itertools.pairwise(times), start=1)
    inside = [at for at, (before, now) in pairs if began <= before and now <= ended]
    steps = tuple(length for length, _ in lengths[1:])
    return Seen(steps, sum(trial.parts.get("input", ())[1:]), samples, inside)


# In the added time a training that sleeps uses less than this share of the cores that
# it uses when quiet, one that computes more than the other.
_ASLEEP, _AT_WORK = 0.3, 0.5
# A process that computes and holds nothing else holds less for each core it gets.
_HELD_PER_CORE = 20e6


def suspects(run: Run, variant: str, fed: str = "memory") -> tuple[str, ...]:
    """Name what may slow it: one, several that cannot be told apart, or none.

    Where a training waits and others took cores, both may be to blame: they starve a
    good pipeline, or take what a waiting training leaves.
    """
    compared = changes(run, variant)
    shown = moved(compared)
    if BUSY in shown:
        return (GPU,)
    if READ in shown:
        return (DISK,)
    fits = _busy(shown, compared) if OTHERS in shown or OTHERS not in compared else ()
    if WAITING in shown:
        fits += _pipelines(compared)
    elif OTHERS not in shown:
        return ()
    untold = fed == "disk" and READ not in compared
    return (*fits, DISK) if untold else fits


def _pipelines(compared: Changes) -> tuple[str, ...]:
    """By whether the training computed in the time by which a step is longer."""
    step, cpu = compared.get(STEP), compared.get(CPU_TIME)
    grew = STEP.grew(step.before, step.after) if step else 0.0
    if not step or not cpu or cpu.before <= 0 or grew < 1:
        return PIPELINES
    own = (cpu.after / cpu.before - 1) / (step.after / step.before - 1)
    if own <= _ASLEEP:
        return (SLEEPING,)
    return (DECODING,) if own >= _AT_WORK else PIPELINES


def _busy(shown: Changes, compared: Changes) -> tuple[str, ...]:
    """What others do if they took cores: their memory tells copies from burners.

    The training's own CPU time does not: it grows beside copies, and also beside
    burners where two hardware threads share a core.
    """
    if HELD not in shown:
        untold = HELD not in compared
        return (CPU, MEMORY) if untold or CPU_TIME in shown else (CPU,)
    others = compared.get(OTHERS)
    cores = others.after - others.before if others else 0.0
    held = shown[HELD].after - shown[HELD].before
    return (MEMORY,) if held > _HELD_PER_CORE * cores else (CPU, MEMORY)
