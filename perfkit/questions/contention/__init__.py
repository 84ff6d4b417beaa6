"""Is the machine busy with something else?

The suspect: another program takes the cores, the way to memory, the disk or the GPU
that the training needs.
The test: set a known load beside the same training, one kind after another, and compare
examples per second; two slow pipelines, one that sleeps and one that decodes, stand
beside them. What the counters and the steps show meanwhile tells one from another.
"""

import functools
import hashlib
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.trial import REFUSED, Note, Trial, Yielded
from perfkit.findings.load import MEANT
from perfkit.findings.record import Fact, Finding, Verdict
from perfkit.findings.text import as_sentence
from perfkit.questions import result_of
from perfkit.questions.base import Choice, Experiment, Range
from perfkit.questions.contention import loads
from perfkit.questions.contention.loads import CPU, DISK, GPU, LOADS, MEMORY, PIPELINES
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.verdicts import failures, judge_costs, quoted

_NO_GPU = "needs a GPU that TensorFlow can use"
_NO_DISK = "needs a system that can forget files; here it would read memory"
# Other programs that take this many cores are no quiet.
_BUSY_CORES = 0.3
_OPEN = "Name it from the charts, then open it with `reveal()` of its panel."


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


@dataclass(frozen=True, kw_only=True)
class Contention(Experiment):
    """Is the machine busy with something else?"""

    variants: Annotated[
        str, Choice(("all", *LOADS), many=True, help="What slows the training")
    ] = "all"
    batch: Annotated[int, Range(8, 1024, unit="images", help="In a batch")] = 32
    processes: Annotated[
        int, Range(0, 256, help="Of a CPU or memory load; 0 for one per core")
    ] = 0
    mystery: Annotated[
        int, Range(0, 9999, help="Number of a sealed slow-down; 0 for none")
    ] = 0

    name = "contention"
    baseline = QUIET
    # A load shows in the counters for as long as a trial works in one go.
    in_turns = False

    def make_variants(self) -> Mapping[str, Variant]:
        """The training alone, then with each load that ``variants`` asks for.

        With ``mystery`` there is one other variant, and nothing tells what slows it.
        """
        slowed = {name: LOADS[name].action for name in self._slow}
        if self.mystery:
            slowed = {MYSTERY: "Something slows it."}
        return {
            name: Variant(name, functools.partial(self._train, name), changes, QUIET)
            for name, changes in ({QUIET: "The training alone."} | slowed).items()
        }

    def prepare(self) -> Iterator[Yielded]:
        """Write the file to read, and refuse loads that this machine cannot have."""
        import tensorflow as tf

        # Whatever a mystery is: not to say it would tell.
        if self.mystery or any(LOADS[name].work for name in self._slow):
            yield Note(MEANT, True)
        refused = {}
        if GPU in self._slow and not tf.config.list_physical_devices("GPU"):
            refused[GPU] = _NO_GPU
        if DISK in self._slow:
            files = yield from benchmark.make("")
            if not benchmark.forgets(files):
                refused[DISK] = _NO_DISK
        yield Note(REFUSED, refused)

    def result(self, measured: Measurement) -> Readings:
        """What the counters and the steps of each completed trial showed."""
        shown: dict[str, dict[str, dict[str, float]]] = {}
        for variant in measured.variants:
            for trial in measured.trials_of(variant.name):
                if trial.outcome != "completed" or trial.is_try:
                    continue
                for sign, number in _read(trial, measured.samples).items():
                    rounds = shown.setdefault(variant.name, {})
                    rounds.setdefault(sign.name, {})[str(trial.round)] = number
        return Readings(shown)

    @staticmethod
    def reveal(finding: Finding) -> str:
        """Tell what a mystery was, and which signs it moved; "" if there was none.

        The number of the mystery decides that, so no file holds it.
        """
        number = finding.parameters.get("mystery")
        if not isinstance(number, int) or not number:
            return ""
        readings: Readings = result_of(finding)
        lines = [f"It was {quoted(sealed(number))}."]
        for sign, change in readings.moved(MYSTERY).items():
            lines.append(as_sentence(f"{sign.name}: {change}"))
        if len(lines) == 1:
            lines.append("In this run no counter moved far enough to show it.")
        return "\n".join(lines)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what each load costs this training, and by what it can be told."""
        readings = self.result(measured)
        compared = [c for c in measured.comparisons if c.baseline == QUIET]
        compared.sort(key=lambda c: c.ratio)
        worst, verdict = judge_costs(measured, compared, "a step", " as when quiet")
        if worst:
            load, slows, advice = LOADS.get(worst.variant), "Something slows", _OPEN
            if load:
                slows = load.slows
                advice = f"If your training shows the same signs, {load.remedy}"
            degree = " most" if len(compared) > 1 and not verdict.warnings else ""
            headline = f"{slows} this training{degree}."
            verdict = replace(verdict, headline=headline, next=advice)
        # Of a mystery the length of a step and no more: the rest is for the reader.
        facts = [
            Fact(f"{c.variant}: {sign.name}", change)
            for c in compared
            for sign, change in readings.moved(c.variant).items()
            if c.variant != MYSTERY
        ]
        warnings, cores = list(verdict.warnings), readings.rounds(OTHERS, QUIET)
        if cores and (mean := statistics.fmean(cores.values())) >= _BUSY_CORES:
            warnings.append(
                f"Other programs kept {OTHERS.write(mean)} busy even during "
                f"{quoted(QUIET)}: end them, so that a load shows more clearly."
            )
        return replace(
            verdict,
            warnings=tuple(warnings),
            facts=tuple(facts),
            because=failures(measured),
        )

    @property
    def _slow(self) -> tuple[str, ...]:
        """The loads of this run, or those that the mystery may be."""
        if self.mystery:
            return CANDIDATES
        words = self.variants.split(",")
        return tuple(name for name in LOADS if name in words or "all" in words)

    def _train(self, name: str) -> Iterator[Yielded]:
        name = sealed(self.mystery) if name == MYSTERY else name
        return loads.train(self.batch, LOADS.get(name), self.processes)


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
