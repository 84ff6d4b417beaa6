"""Is the machine busy with something else?

The suspect: another program takes the cores, the way to memory, the disk or the GPU
that the training needs.
The test: set a known load beside the same training, one kind after another, and compare
examples per second; two slow pipelines, one that sleeps and one that decodes, stand
beside them. What the counters and the steps show meanwhile tells one from another.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from perfkit.experiments.base import Experiment
from perfkit.experiments.contention import loads, signs
from perfkit.experiments.contention.loads import DISK, GPU, LOADS, Job
from perfkit.experiments.contention.signs import (
    DECODING,
    MYSTERY,
    PIPELINES,
    QUIET,
    SLEEPING,
)
from perfkit.experiments.contention.verdict import Opened, judge, opened
from perfkit.experiments.parameters import Choice, Range
from perfkit.experiments.shared import benchmark
from perfkit.findings.load import MEANT
from perfkit.findings.record import Verdict
from perfkit.measure.measurement import Measurement, Variant
from perfkit.measure.tick import REFUSED, Note, Yielded

__all__ = ["Contention", "Opened", "opened"]

_SLOW = {SLEEPING: loads.SLEEPS, DECODING: loads.DECODES}
_NO_GPU = "needs a GPU that TensorFlow can use, and there is none here"
_NO_DISK = "is not run, because this system does not forget files: it would read memory"


@dataclass(frozen=True, kw_only=True)
class Contention(Experiment):
    """Is the machine busy with something else?"""

    variants: Annotated[
        str,
        Choice(("all", *LOADS, *PIPELINES), many=True, help="What slows the training"),
    ] = "all"
    fed: Annotated[
        str, Choice(("memory", "disk"), help="Where the training gets its batches")
    ] = "memory"
    batch: Annotated[int, Range(8, 1024, unit="images", help="In a batch")] = 32
    processes: Annotated[
        int, Range(0, 256, help="Of a CPU or memory load; 0 for one per core")
    ] = 0
    mystery: Annotated[
        int, Range(0, 9999, help="Number of a sealed slow-down; 0 for none")
    ] = 0

    name = "contention"
    notebooks = ("08_busy_machine",)
    baseline = QUIET
    # A load shows in the counters for as long as a trial works in one go.
    in_turns = False

    def make_variants(self) -> Mapping[str, Variant]:
        """The training alone, then with each load that ``variants`` asks for.

        With ``mystery`` there is one other variant, and nothing tells what slows it.
        """
        variants = [self._variant(QUIET, "The training alone.")]
        if self.mystery:
            says = "Something slows it."
            variants.append(Variant(MYSTERY, self._sealed, says, QUIET))
        else:
            variants += [self._variant(name, _changes(name)) for name in self._asked]
        return {one.name: one for one in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Write the files to read, and refuse loads that this machine cannot have."""
        import tensorflow as tf

        # Whatever a mystery is: not to say it would tell.
        if self.mystery or {*LOADS} & {*self._asked}:
            yield Note(MEANT, True)
        refused = {}
        if GPU in self._asked and not tf.config.list_physical_devices("GPU"):
            refused[GPU] = _NO_GPU
        if self.fed == "disk":
            yield from loads.make()
        if DISK in self._asked:
            files = yield from benchmark.make("")
            if not benchmark.forgets(files):
                # Whatever a mystery is: to refuse the disk alone would tell.
                refused[MYSTERY if self.mystery else DISK] = _NO_DISK
        yield Note(REFUSED, refused)

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what each load costs this training, and by what it can be told."""
        return judge(measured, self.fed)

    @property
    def _asked(self) -> tuple[str, ...]:
        """The slow-downs of this run, or those that the mystery may be."""
        if self.mystery:
            return signs.candidates(self.fed)
        words = self.variants.split(",")
        every = (*LOADS, *PIPELINES)
        return tuple(name for name in every if name in words or "all" in words)

    def _variant(self, name: str, changes: str) -> Variant:
        code = loads.code_of_training(name, self.fed, _SLOW.get(name, ""))
        work = functools.partial(self._train, name)
        return Variant(name, work, changes, QUIET, code=code)

    def _sealed(self) -> Iterator[Yielded]:
        return self._train(signs.sealed(self.mystery, self.fed))

    def _train(self, name: str) -> Iterator[Yielded]:
        load, slow = LOADS.get(name), _SLOW.get(name, "")
        return loads.train(Job(self.batch, self.fed, load, self.processes, slow))


def _changes(name: str) -> str:
    if name in LOADS:
        return LOADS[name].what
    how = "sleeps for twice a step" if name == SLEEPING else "decodes on every core"
    return f"The pipeline {how} to make a batch; no other program works."
