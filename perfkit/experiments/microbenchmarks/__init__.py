"""How fast is each part of this machine, and which one is weak?

The suspect: one part (the interpreter, memory, the disk, decoding, arithmetic, the way
to the GPU) is slower than such a part should be, and everything waits for it.
The test: give each part work of a known size and nothing else, count what it gets done
per second, and hold that against what the part could do in theory, where that is known.
"""

import importlib.util
import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from perfkit.errors import PerfkitError
from perfkit.experiments.base import Experiment
from perfkit.experiments.microbenchmarks import work
from perfkit.experiments.microbenchmarks.verdict import (
    CORES,
    IMAGE_BYTES,
    WITHHELD,
    judge,
)
from perfkit.experiments.parameters import Choice, Folder
from perfkit.experiments.shared import benchmark as shared
from perfkit.experiments.shared import benchmark_gpu as gpu
from perfkit.experiments.shared import peaks
from perfkit.experiments.shared.benchmark import (
    Benchmark,
    can_keep_to_one_core,
    without_gpus,
)
from perfkit.experiments.shared.peaks import Hardware
from perfkit.findings import standing
from perfkit.findings.record import Verdict
from perfkit.findings.standing import Microbenchmark
from perfkit.machine.cards import gpus_here
from perfkit.machine.gpu import computing
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded

NO_GPU = "GPU microbenchmarks"
_GROUPS = (
    *("interpreter", "arrays", "memory", "disk", "images", "pipeline"),
    *("tensorflow", "gpu", "heat"),
)
_USUAL = ",".join(_GROUPS[:-1])


@dataclass(frozen=True, kw_only=True)
class Microbenchmarks(Experiment):
    """How fast is each part of this machine, and which one is weak?"""

    parts: Annotated[
        str,
        Choice(
            _GROUPS, many=True, help="Parts to try; heat loads the GPU for 20 s a trial"
        ),
    ] = _USUAL
    data: Annotated[
        str, Folder(help="Where your data lie; empty for perfkit's own folder")
    ] = ""

    name = "machine-ladder"
    notebooks = ("01_gpu_verification",)
    baseline = shared.BASELINE
    needs = ("numpy",)
    # No ratio is wanted that turns would keep clear of the machine's moods, and what
    # has had its time is kept whatever becomes of the next.
    in_turns = False

    def make_variants(self) -> Mapping[str, Variant]:
        """Those asked for, and always the product whose control tells the noise."""
        variants = [
            Variant(
                *(one.name, one.work, one.what),
                unavailable=_why_not(one),
                code=one.code,
            )
            for one in self._benchmarks
        ]
        if self._no_gpu:
            variants.append(Variant(NO_GPU, ().__iter__, unavailable=self._no_gpu))
        return {one.name: one for one in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Make what is read and decoded, and work out what is possible in theory."""
        whats, refused = dict[str, str](), dict[str, str]()
        if not _without_tensorflow():
            without_gpus()
        for names, make in (((shared.NAME,), self._read), (work.NAMES, self._decoded)):
            if not any(p.name in names and not _why_not(p) for p in self._benchmarks):
                continue
            try:
                whats |= yield from make()
            # The others need none of what cannot be made.
            except PerfkitError as error:
                refused |= dict.fromkeys(names, str(error))
        yield Note("progress", "Working out what is possible in theory")
        yield Note(REFUSED, refused | self._out_of_reach())
        _, card = computing(gpus_here()[0], os.environ)
        here = peaks.hardware(Path("/"), shared.granted(), work.hertz(), card)
        yield Note(CORES, here.cores)
        yield Note(WITHHELD, max(0, (os.cpu_count() or 0) - shared.granted()))
        yield Note(standing.NOTE, standing.note(self._all(whats, here)))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what the arithmetic reaches, what is weak, and what to do."""
        return judge(measured)

    @property
    def _groups(self) -> list[str]:
        return self.parts.split(",")

    @property
    def _benchmarks(self) -> tuple[Benchmark, ...]:
        """Those asked for, and the baseline, in the order of the groups."""
        by_group = {
            "interpreter": work.INTERPRETER,
            "arrays": (*work.ARRAYS, *shared.NUMPY),
            "memory": shared.benchmarks(),
            "disk": (shared.benchmark(self.data),),
            "images": work.IMAGES,
            "pipeline": work.PIPELINE,
            "tensorflow": (*work.DISPATCH, *shared.PRODUCTS, *shared.CONVOLUTIONS),
            "gpu": (*gpu.BENCHMARKS, *work.TRANSFERS) if gpus_here()[0] else (),
            "heat": gpu.HEAT if gpus_here()[0] else (),
        }
        return tuple(
            one
            for group, benchmarks in by_group.items()
            for one in benchmarks
            if group in self._groups or one.name == self.baseline
        )

    def _read(self) -> Generator[Note, None, dict[str, str]]:
        """Make what the disk is read for; give what is then done."""
        paths = yield from shared.make(self.data)
        how = shared.COLD if shared.forgets(paths) else shared.CACHED
        return {shared.NAME: f"{shared.benchmark(self.data).what} {how}"}

    def _decoded(self) -> Generator[Note, None, dict[str, str]]:
        """Draw what is decoded; the notes tell how large its files are."""
        found = yield from work.make()
        yield Note(IMAGE_BYTES, sum(found.sizes) // len(found.sizes))
        return {}

    def _out_of_reach(self) -> dict[str, str]:
        """Why those of a GPU that TensorFlow cannot use are not run, by name."""
        on_gpu = [one.name for one in self._benchmarks if one.group == "GPU"]
        if not on_gpu or _why_not(gpu.BENCHMARKS[0]) or gpu.sees_one():
            return {}
        why = "TensorFlow can use no GPU here; `perfkit doctor` says why"
        return dict.fromkeys(on_gpu, why)

    def _all(self, whats: dict[str, str], here: Hardware) -> dict[str, Microbenchmark]:
        """What each microbenchmark counts and what is possible, for the finding."""
        told = {
            one.name: Microbenchmark(
                unit=one.unit,
                group=one.group,
                what=whats.get(one.name, one.what),
                limit=peak.rate if peak else None,
                limit_from=peak.words if peak else "",
            )
            for one in self._benchmarks
            for peak in [one.peak(here)]
        }
        if self._no_gpu:
            told[NO_GPU] = Microbenchmark(unit="calls", group="GPU")
        return told

    @property
    def _no_gpu(self) -> str:
        """Why none of a GPU is there; "" where one is, or none is asked for."""
        asked = {"gpu", "heat"} & set(self._groups)
        found, why = gpus_here()
        return (why or "this machine has no GPU") if asked and not found else ""


def _without_tensorflow() -> bool:
    return importlib.util.find_spec("tensorflow") is None


def _why_not(one: Benchmark) -> str:
    if one.tensorflow and _without_tensorflow():
        return (
            'TensorFlow is not installed; `pip install "perfkit[tensorflow]"` brings it'
        )
    if one.one_core and not can_keep_to_one_core():
        return "this system does not let a process keep to one core"
    return ""
