"""What counters and steps show beside a load."""

import hashlib
import itertools
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfkit import units
from perfkit.engine.measurement import Measurement
from perfkit.engine.trial import Trial
from perfkit.questions.contention.loads import CPU, MEMORY, PIPELINES

QUIET, MYSTERY = "quiet", "mystery"
# What a mystery may be: what can slow a training anywhere.
CANDIDATES = (CPU, MEMORY, *PIPELINES)
_GPU_BUSY = re.compile(r"gpu\d+_busy")


def sealed(number: int) -> str:
    """Name the slow-down behind a number; the same number always hides the same."""
    digest = hashlib.sha256(f"mystery {number}".encode()).digest()
    return CANDIDATES[int.from_bytes(digest, "big") % len(CANDIDATES)]


@dataclass(frozen=True)
class Sign:
    """Something to read from a trial.

    It has to grow by ``threshold`` to be one, which may be a share of what it was.
    """

    name: str
    write: Callable[[float], str]
    threshold: float
    share: bool = False

    def grew(self, before: float, after: float) -> float:
        """How far it grew, in multiples of ``threshold``."""
        threshold = self.threshold * before if self.share else self.threshold
        return (after - before) / threshold if threshold > 0 else 0.0


def _cores(value: float) -> str:
    return f"{value:.2f} core{'s' if round(value, 2) != 1 else ''}"


def _per_second(value: float) -> str:
    return f"{units.size(value)}/s"


STEP = Sign("a step", units.seconds, 0.1, share=True)
WAITING = Sign("waiting for input", units.percent, 0.15)
OTHERS = Sign("other programs", _cores, 0.3)
CPU_TIME = Sign("CPU time of a step", units.seconds, 0.2, share=True)
HELD = Sign("memory of others", units.size, 300e6)
READ = Sign("others read", _per_second, 20e6)
BUSY = Sign("GPU busy", units.percent, 0.15)
SIGNS = {s.name: s for s in (STEP, WAITING, OTHERS, CPU_TIME, HELD, READ, BUSY)}


@dataclass(frozen=True)
class Readings:
    """What counters and steps showed, by variant, name of the sign and round."""

    signs: dict[str, dict[str, dict[str, float]]]

    def rounds(self, sign: Sign, variant: str) -> dict[str, float]:
        """What a variant showed of a sign, by number of the round."""
        return self.signs.get(variant, {}).get(sign.name, {})

    def moved(self, variant: str) -> dict[Sign, str]:
        """The signs that grew, apart from the length of a step, each with both means.

        They grew in every round, and far enough on average.
        """
        moved = {}
        for sign in SIGNS.values():
            before, after = self.rounds(sign, QUIET), self.rounds(sign, variant)
            both = [number for number in before if number in after]
            grew = [sign.grew(before[number], after[number]) for number in both]
            # Half as far in each round: what came by once is no sign.
            far = grew and min(grew) > 0.5 and statistics.fmean(grew) > 1
            if far and sign is not STEP:
                then, now = (
                    sign.write(statistics.fmean(numbers[number] for number in both))
                    for numbers in (before, after)
                )
                moved[sign] = f"{now}, against {then} when quiet"
        return moved


def read(measured: Measurement) -> Readings:
    """Read every sign from every completed trial."""
    signs: dict[str, dict[str, dict[str, float]]] = {}
    for variant in measured.variants:
        for trial in measured.trials_of(variant.name):
            if trial.outcome != "completed" or trial.is_try:
                continue
            for sign, number in _read(trial, measured.samples).items():
                rounds = signs.setdefault(variant.name, {}).setdefault(sign.name, {})
                rounds[str(trial.round)] = number
    return Readings(signs)


def _read(
    trial: Trial, samples: Mapping[str, Sequence[float | None]]
) -> dict[Sign, float]:
    """What a trial's steady work shows, without its first call."""
    lengths = [(end - before, end) for before, end, _ in trial.worked if end > before]
    if len(lengths) < 3:
        return {}
    began, ended = (trial.started_s + lengths[n][1] for n in (0, -1))
    # The whole time of a sample, back to the one before, lies within the work.
    times = (math.nan if at is None else at for at in samples.get("t", ()))
    pairs = enumerate(itertools.pairwise(times), start=1)
    inside = [at for at, (before, end) in pairs if began <= before and end <= ended]

    def sampled(name: str) -> list[float]:
        column = samples.get(name, ())
        values = (column[at] for at in inside if at < len(column))
        return [value for value in values if value is not None]

    steps = [length for length, _ in lengths[1:]]
    step, waited = statistics.fmean(steps), sum(trial.parts.get("input", ())[1:])
    means = {k: statistics.fmean(numbers) for k in samples if (numbers := sampled(k))}
    signs = {STEP: step, WAITING: waited / sum(steps)}
    if "cpu_other" in means:
        signs[OTHERS] = means["cpu_other"]
    if "cpu_trial" in means:
        signs[CPU_TIME] = means["cpu_trial"] * step
    # Memory is read once in a while.
    total, training = sampled("memory_used"), sampled("memory_trial")
    if total and training:
        signs[HELD] = max(0.0, total[-1] - training[-1])
    if "disk_read" in means:
        read_by_others = means["disk_read"] - means.get("disk_read_trial", 0.0)
        signs[READ] = max(0.0, read_by_others)
    if busy := [mean for name, mean in means.items() if _GPU_BUSY.fullmatch(name)]:
        signs[BUSY] = max(busy)
    return signs
