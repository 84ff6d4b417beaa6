"""How fast is each part of this machine, and which one is weak?

The suspect: one part (memory, the disk, decoding, arithmetic, the way to the GPU) is
slower than such a part should be, and everything waits for it.
The test: give each part work of a known size and nothing else, and compare its rate
with what the part could do in theory, where that is known.

A part is weak where a whole interval says so: below half of a limit in theory, and only
where sound machines reach more than that.
"""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison, Sure, Timing
from perfkit.engine.trial import REFUSED, Note, Yielded
from perfkit.errors import PerfkitError
from perfkit.findings.record import Fact, Verdict
from perfkit.findings.standing import NOTE, Microbenchmark, microbenchmarks, share_of
from perfkit.machine.nvml import gpus_here
from perfkit.machine.record import computing
from perfkit.questions.base import Choice, Experiment, Folder
from perfkit.questions.microbenchmarks import peaks, work
from perfkit.questions.microbenchmarks.peaks import Hardware
from perfkit.questions.microbenchmarks.work import Benchmark
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.benchmark import can_keep_to_one_core, without_gpus
from perfkit.questions.shared.verdicts import MORE, fact, rates_behind

_GROUPS = ("arrays", "memory", "disk", "images", "tensorflow", "gpu")

# The note that tells how large the files are that are decoded.
IMAGE_BYTES = "image_bytes"
# The notes of how many whole cores may be used, and how many processors may not.
CORES, WITHHELD = "cores", "cores_withheld"
_WEAK = 0.5
# What a sound GPU does at more than half of its limit. What a processor does in a tick
# is known as "at most" only, and so is no ground to call it weak.
_REACHES_HALF = (*work.PRODUCTS, work.GPU_MEMORY)
# The same work on one core and on all. Clocks that are lower when all cores work
# explain that all do less than each does alone, never less than half of it.
_ON_CORES = (
    (work.NUMPY_ONE, work.BASELINE),
    (work.TENSORFLOW_ONE, work.TENSORFLOW),
    (work.ONE_CORE, work.ALL_CORES),
)
# Other programs that keep more of the cores busy than this make a part look weak.
_BUSY = 0.1
_NOT_KNOWN = "This run does not show whether a part of this machine is weak."
_NONE = "No part of this machine is shown to be weak."
_ONCE = "Each part ran once, so its speed is shown but not claimed."
_ASK_DOCTOR = "Run `perfkit doctor`: it says what holds {} back."
# OpenBLAS as NumPy's wheels bring it.
_NUMPY_THREADS = 64
_QUIETER = "Close other programs or give a larger budget, then measure again."
_FURTHER = (
    "`perfkit run data-pipeline` says whether a training here waits for its images."
)


@dataclass(frozen=True, kw_only=True)
class Microbenchmarks(Experiment):
    """How fast is each part of this machine, and which one is weak?"""

    parts: Annotated[
        str, Choice(_GROUPS, many=True, help="Parts of the machine to try")
    ] = ",".join(_GROUPS)
    data: Annotated[
        str, Folder(help="The folder of your data; empty for perfkit's own")
    ] = ""

    name = "machine-ladder"
    baseline = work.BASELINE
    needs = ("numpy",)
    # No ratio is wanted that turns would keep clear of the machine's moods, and what
    # has had its time is kept whatever becomes of the next.
    in_turns = False

    def make_variants(self) -> Mapping[str, Variant]:
        """Those asked for, and always the product whose control tells the noise."""
        return {
            bench.name: Variant(
                *(bench.name, bench.work, bench.description),
                unavailable=_why_not(bench),
            )
            for bench in self._benchmarks
        }

    def prepare(self) -> Iterator[Yielded]:
        """Make what is read and decoded, and work out what is possible in theory."""
        reading, refused = "", dict[str, str]()
        names = {bench.name for bench in self._benchmarks if not _why_not(bench)}
        if not _without_tensorflow():
            without_gpus()
        # The others need none of what cannot be made.
        if work.DATA_DISK in names:
            try:
                paths = yield from benchmark.make(self.data)
                reading = f" {work.COLD if benchmark.forgets(paths) else work.CACHED}"
            except PerfkitError as error:
                refused[work.DATA_DISK] = str(error)
        if not names.isdisjoint(work.JPEGS):
            try:
                sizes = (yield from work.make()).sizes
                yield Note(IMAGE_BYTES, sum(sizes) // len(sizes))
            except PerfkitError as error:
                refused |= dict.fromkeys(work.JPEGS, str(error))
        yield Note("progress", "Working out what is possible in theory")
        on_gpu = [bench.name for bench in self._benchmarks if bench.group == "GPU"]
        if on_gpu and not _without_tensorflow() and not benchmark.sees_gpu():
            reason = "TensorFlow cannot use a GPU here; `perfkit doctor` says why"
            refused |= dict.fromkeys(on_gpu, reason)
        yield Note(REFUSED, refused)
        card = computing(gpus_here()[0], os.environ)
        hardware = peaks.hardware(Path("/"), benchmark.granted(), work.hertz(), card)
        yield Note(CORES, hardware.cores)
        yield Note(WITHHELD, max(0, (os.cpu_count() or 0) - benchmark.granted()))
        counts = self._counts(reading, hardware)
        yield Note(NOTE, {name: asdict(counted) for name, counted in counts.items()})

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what the arithmetic reaches, what is weak, and what to do."""
        if not measured.timings:
            return Verdict(headline="Nothing could be timed.", next=_QUIETER)
        busy = tuple(_other_programs(measured))
        facts = [_arithmetic(measured)]
        # A step that takes not much longer than a call is mostly that.
        if call := _timing(measured, work.GRAPH_CALL):
            facts.append(
                fact("A call of a tf.function", call.seconds(1), units.seconds)
            )
        is_first = max(timing.trials for timing in measured.timings) < 2
        is_open = is_first or bool(busy)
        weak = [] if is_open else sorted(_weak(measured), key=lambda part: part.share)
        worst = Weak(1.0, _NOT_KNOWN if is_open else _NONE, facts[0])
        sure: Sure = "not known yet" if is_open else ""
        if weak:
            worst, sure = weak[0], "sure"
        is_loud = bool(busy) or any(map(_is_noisy, measured.timings))
        steps = f"{_QUIETER}\n{_FURTHER}" if is_loud else _FURTHER
        variants = (v.name for v in measured.variants if not v.unavailable)
        missed = ", ".join(name for name in variants if measured.timing(name) is None)
        missing = (f"Not measured: {missed}. A longer run may reach them.",)
        return Verdict(
            headline=worst.do,
            much=_ONCE if is_first else f"{worst.fact.label}: {worst.fact.value}.",
            sure=worst.compared.sure if worst.compared else sure,
            interval=worst.compared.ends if worst.compared else "",
            facts=(*(part.fact for part in weak), *facts),
            because=(*busy, *(missing if missed else ())),
            next=MORE if is_first else steps,
        )

    @property
    def _benchmarks(self) -> tuple[Benchmark, ...]:
        """Those asked for, and the baseline, in the order of the groups."""
        parts = self.parts.split(",")
        of_gpu = work.GPU_BENCHMARKS if gpus_here()[0] else ()
        return tuple(
            bench
            for bench in (*work.benchmarks(self.data), *of_gpu)
            if bench.group.lower() in parts or bench.name == self.baseline
        )

    def _counts(self, reading: str, hardware: Hardware) -> dict[str, Microbenchmark]:
        """What each microbenchmark counts and what is possible, for the finding."""
        counts = {}
        for bench in self._benchmarks:
            peak, does = bench.peak(hardware), bench.description
            counts[bench.name] = Microbenchmark(
                unit=bench.unit,
                group=bench.group,
                what=f"{does}{reading}" if bench.name == work.DATA_DISK else does,
                limit=peak.rate if peak else None,
                limit_from=peak.words if peak else "",
            )
        return counts


def _without_tensorflow() -> bool:
    return importlib.util.find_spec("tensorflow") is None


def _why_not(bench: Benchmark) -> str:
    if bench.tensorflow and _without_tensorflow():
        return (
            'TensorFlow is not installed; `pip install "perfkit[tensorflow]"` brings it'
        )
    if bench.one_core and not can_keep_to_one_core():
        return "this system does not let a process keep to one core"
    return ""


@dataclass(frozen=True)
class Weak:
    """A part that lags behind: what to do, and what shows it.

    The share is that of what it should reach; what is lowest is named first.
    """

    share: float
    do: str
    fact: Fact
    compared: Comparison | None = None


def _other_programs(measured: Measurement) -> Iterator[str]:
    """Yield how many cores other programs kept busy, where they are many."""
    busy = [v for v in measured.samples.get("cpu_other", ()) if v is not None]
    busy_cores, cores = sum(busy) / max(1, len(busy)), _cores(measured)
    # Others may have kept those busy that are not granted.
    if busy_cores > _BUSY * cores + measured.notes.get(WITHHELD, 0):
        yield (
            f"Other programs kept {units.significant(busy_cores, 2)} cores busy, "
            "which probably explains the slow parts."
        )


def _arithmetic(measured: Measurement) -> Fact:
    """What products reach on all cores, by the library that is faster at it."""
    names, label = (work.BASELINE, work.TENSORFLOW), "Products in float32"
    timings = [timing for name in names if (timing := _timing(measured, name))]
    best = max(timings, key=lambda timing: timing.rate, default=None)
    if best is None:
        return Fact("Parts that were timed", str(len(measured.timings)))
    counts = microbenchmarks(measured.notes).get(best.variant)
    if counts is None or counts.limit is None:
        rate = units.rate_between(best.rate, best.low, best.high, "FLOP")
        return Fact(label, rate)
    possible = f"what {counts.limit_from.partition(' at ')[0]} can do in theory"
    if _is_noisy(best):
        return Fact(label, f"what they reach of {possible} is not known yet")
    return Fact(label, share_of(best, counts.limit, possible))


def _weak(measured: Measurement) -> Iterator[Weak]:
    for name, part in microbenchmarks(measured.notes).items():
        timing, limit = _timing(measured, name), part.limit or 0.0
        if name not in _REACHES_HALF or timing is None or not timing.is_known:
            continue
        if timing.high < _WEAK * limit:
            share = timing.rate / limit
            row = Fact(name, share_of(timing, limit))
            yield Weak(share, _ASK_DOCTOR.format("the GPU"), row)
    cores = _cores(measured)
    for alone, together in _ON_CORES:
        ratio = measured.compare(together, alone)
        # More threads than these NumPy's library does not make.
        numpy = together == work.BASELINE
        threads = min(cores, _NUMPY_THREADS) if numpy else cores
        if not ratio or not ratio.is_judged or not ratio.ends or cores <= 1:
            continue
        if ratio.high < _WEAK * threads:
            counts = microbenchmarks(measured.notes).get(together)
            behind = rates_behind(measured, ratio, counts.unit if counts else "units")
            times = f"{units.times(ratio.ratio)} times as fast{behind}"
            row = Fact(f"{together}, {cores:g} cores against one", times, ratio.ends)
            do = _ASK_DOCTOR.format("the cores")
            yield Weak(ratio.ratio / cores, do, row, ratio)
    size = measured.notes.get(IMAGE_BYTES)
    disk, decoded = (_timing(measured, n) for n in (work.DATA_DISK, work.ALL_CORES))
    if not (size and disk and decoded and disk.is_known and decoded.is_known):
        return
    if disk.high / size < decoded.low:
        rates = (disk.rate / size, decoded.rate)
        gives, needed = (units.rate(rate, "photographs") for rate in rates)
        yield Weak(
            rates[0] / rates[1],
            "Keep the data on a faster disk, or in memory (`Dataset.cache`).",
            Fact("The disk", f"{gives}, where the cores decode {needed}"),
        )


def _timing(measured: Measurement, name: str) -> Timing | None:
    """A rate that at least two rounds show."""
    timing = measured.timing(name)
    return timing if timing and timing.trials > 1 else None


def _is_noisy(timing: Timing) -> bool:
    return timing.high > 2 * timing.rate


def _cores(measured: Measurement) -> float:
    return float(measured.notes.get(CORES, 1))
