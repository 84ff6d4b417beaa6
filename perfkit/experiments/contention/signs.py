"""What counters and steps show beside a load, and what may have caused it."""

import functools
import hashlib
import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfkit import units
from perfkit.experiments.contention.loads import CPU, DISK, GPU, MEMORY
from perfkit.findings.record import Finding
from perfkit.measure.measurement import Measurement
from perfkit.measure.trial import Trial

Run = Measurement | Finding

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


def _tail(seen: "Seen") -> float:
    """The longest steps, as a multiple of the usual one."""
    ordered = sorted(seen.steps)
    return ordered[int(0.95 * (len(ordered) - 1))] / statistics.median(ordered)


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
REST = Sign(
    "rest of a step",
    "a step took {} besides waiting",
    lambda seen: seen.step - seen.waited / len(seen.steps),
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
_HOLDS = "all but the training held {} of memory"
HELD = Sign("memory of others", _HOLDS, _held_by_others, units.size, 300e6)
_READS = "other programs read {} from the disk"
READ = Sign("others read", _READS, _read_by_others, _per_second, 20e6)
BUSY = Sign("GPU busy", "the GPU was busy for {}", _gpu, units.percent, 0.15)
_SLOWEST = "one step in twenty took {} the usual time"
TAIL = Sign("slowest steps", _SLOWEST, _tail, units.ratio, 0.5)
SIGNS = (STEP, WAITING, REST, OTHERS, CPU_TIME, HELD, READ, TAIL, BUSY)


@dataclass(frozen=True)
class Change:
    """A sign beside something, against quiet.

    Attributes:
        sign: Which.
        rounds: What it was when quiet and beside it, in each round that has both.
    """

    sign: Sign
    rounds: tuple[tuple[float, float], ...]

    @functools.cached_property
    def before(self) -> float:
        """What it was when quiet, the mean over the rounds."""
        return statistics.fmean(before for before, _ in self.rounds)

    @functools.cached_property
    def after(self) -> float:
        """What it was beside it."""
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
    found: dict[Sign, dict[int, float]] = {}
    for trial in run.trials:
        if trial.variant != variant or trial.outcome != "completed" or trial.is_try:
            continue
        if (seen := seen_in(trial, run.samples)) is None:
            continue
        for sign in SIGNS:
            if (value := sign.read(seen)) is not None:
                found.setdefault(sign, {})[trial.round] = value
    return found


def changes(run: Run, variant: str) -> Changes:
    """Every sign that was read of a variant and of quiet in the same rounds."""
    quiet, other = values(run, QUIET), values(run, variant)
    found = {}
    for sign in SIGNS:
        before, after = quiet.get(sign, {}), other.get(sign, {})
        if rounds := sorted(before.keys() & after.keys()):
            found[sign] = Change(sign, tuple((before[r], after[r]) for r in rounds))
    return found


def moved(changes: Changes) -> Changes:
    """The signs that grew, apart from the length of a step."""
    return {
        s: change for s, change in changes.items() if s is not STEP and change.moved
    }


@dataclass(frozen=True)
class Seen:
    """One trial's steady work: its steps and the samples taken meanwhile.

    Attributes:
        steps: Seconds of each step.
        waited: Seconds of them that it waited for input.
        samples: Of the whole run, by name.
        inside: Which of them were taken meanwhile.
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
    pairs = enumerate(itertools.pairwise(samples.get("t", ())), start=1)
    return Seen(
        steps=tuple(length for length, _ in lengths[1:]),
        waited=sum(trial.parts.get("input", ())[1:]),
        samples=samples,
        inside=[
            at
            for at, (before, now) in pairs
            if before is not None
            and now is not None
            and began <= before
            and now <= ended
        ],
    )


# In the added time a training that sleeps uses less than this share of the cores that
# it uses when quiet, one that computes more than the other.
_ASLEEP, _AT_WORK = 0.3, 0.5
# Cores, and the share of those in question, that no sample tells for sure.
_LITTLE, _UNSURE = 0.25, 0.15
# A process that computes and holds nothing else holds less for each core it gets.
_HELD_PER_CORE = 20e6


def suspects(run: Run, variant: str, fed: str = "memory") -> tuple[str, ...]:
    """Name what may slow it: one, several that cannot be told apart, or none."""
    compared = changes(run, variant)
    found = moved(compared)
    if BUSY in found:
        return (GPU,)
    if READ in found:
        return (DISK,)
    fits = _of_the_cores(found, compared)
    untold = fed == "disk" and READ not in compared
    return (*fits, DISK) if fits and untold else fits


def _of_the_cores(found: Changes, compared: Changes) -> tuple[str, ...]:
    """By who used the cores in the time by which a step is longer than when quiet."""
    busy = _busy(found, compared)
    if WAITING not in found:
        return busy if OTHERS in found else ()
    step, cpu, others = (compared.get(sign) for sign in (STEP, CPU_TIME, OTHERS))
    if not step or not cpu or not others or cpu.before <= 0:
        return (*busy, *PIPELINES)
    if STEP.grew(step.before, step.after) < 1:
        return (*busy, *PIPELINES)
    # Cores that the training uses when quiet; as a share of those, what it used in the
    # added time; and what others took then, beyond what they take anyway.
    quiet = cpu.before / step.before
    own = (cpu.after / cpu.before - 1) / (step.after / step.before - 1)
    taken = (others.after - others.before) * step.after / (step.after - step.before)
    # What it uses when quiet and left to whoever wants it.
    left = quiet * (1 - own)
    doubt = max(_LITTLE, _UNSURE * left)
    came = own <= 1 and taken > left + doubt
    # A pipeline that sleeps leaves the rest of a step as it was.
    starved = own < _AT_WORK and taken > left - doubt and REST in found
    if OTHERS in found and (came or starved):
        return busy
    pipelines = (SLEEPING,) if own <= _ASLEEP else PIPELINES
    if own >= _AT_WORK:
        pipelines = (DECODING,)
    if taken <= max(_LITTLE, quiet * own / 2):
        return pipelines
    return (*busy, *pipelines)


def _busy(found: Changes, compared: Changes) -> tuple[str, ...]:
    """What others do if they took cores: their memory tells copies from burners.

    The training's own CPU time does not: it grows beside copies, and also beside
    burners where two hardware threads share a core.
    """
    if HELD not in found:
        untold = HELD not in compared
        return (CPU, MEMORY) if untold or CPU_TIME in found else (CPU,)
    others = compared.get(OTHERS)
    cores = others.after - others.before if others else 0.0
    held = found[HELD].after - found[HELD].before
    return (MEMORY,) if held > _HELD_PER_CORE * cores else (CPU, MEMORY)
