"""Is the machine busy with something else?

The suspect: another program takes the cores, the way to memory, the disk or the GPU
that the training needs.
The test: set a known load beside the same training, one kind after another, and compare
examples per second; two slow pipelines, one that sleeps and one that decodes, stand
beside them. What the counters and the steps show meanwhile tells one from another.
"""

import functools
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import Comparison
from perfkit.engine.tick import REFUSED, Note, Yielded
from perfkit.findings.load import MEANT
from perfkit.findings.record import Fact, Finding, Verdict
from perfkit.findings.text import as_sentence
from perfkit.questions import result_of
from perfkit.questions.base import Experiment
from perfkit.questions.contention import loads, signs
from perfkit.questions.contention.loads import DISK, GPU, LOADS
from perfkit.questions.contention.signs import MYSTERY, QUIET, Readings
from perfkit.questions.parameters import Choice, Range
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.words import (
    MORE,
    costliest,
    failures,
    longer,
    quoted,
    rates_behind,
    sure_of_all,
)

_NO_GPU = "needs a GPU that TensorFlow can use"
_NO_DISK = "needs a system that can forget files; here it would read memory"
# Other programs that take this many cores are no quiet.
_BUSY_CORES = 0.3
_OPEN = "Name it from the charts, then open it with `reveal()` of its panel."


@dataclass(frozen=True, kw_only=True)
class Contention(Experiment):
    """Is the machine busy with something else?"""

    variants: Annotated[
        str,
        Choice(("all", *LOADS), many=True, help="What slows the training"),
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
        """What the counters and the steps of each variant showed."""
        return signs.read(measured)

    @staticmethod
    def reveal(finding: Finding) -> str:
        """Tell what a mystery was, and which signs it moved; "" if there was none.

        The number of the mystery decides that, so no file holds it.
        """
        number = finding.parameters.get("mystery")
        if not isinstance(number, int) or not number:
            return ""
        readings: Readings = result_of(finding)
        lines = [f"It was {quoted(signs.sealed(number))}."]
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
        verdict = _of_costs(measured, compared)
        # Of a mystery the length of a step and no more: the rest is for the reader.
        facts = [
            Fact(f"{c.variant}: {sign.name}", change)
            for c in compared
            for sign, change in readings.moved(c.variant).items()
            if c.variant != MYSTERY
        ]
        warnings, cores = list(verdict.warnings), readings.rounds(signs.OTHERS, QUIET)
        if cores and (mean := statistics.fmean(cores.values())) >= _BUSY_CORES:
            warnings.append(
                f"Other programs kept {signs.OTHERS.write(mean)} busy even during "
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
            return signs.CANDIDATES
        words = self.variants.split(",")
        return tuple(name for name in LOADS if name in words or "all" in words)

    def _train(self, name: str) -> Iterator[Yielded]:
        name = signs.sealed(self.mystery) if name == MYSTERY else name
        return loads.train(self.batch, LOADS.get(name), self.processes)


def _of_costs(measured: Measurement, compared: list[Comparison]) -> Verdict:
    worst, ties, noisy = costliest(measured, compared)
    if worst:
        load, (times, ends) = LOADS.get(worst.variant), longer(worst)
        slows = load.slows if load else "Something slows"
        degree = " most" if len(compared) > 1 and not ties else ""
        takes = (
            f"takes {times} times as long as when quiet" if times else "takes longer"
        )
        return Verdict(
            headline=f"{slows} this training{degree}.",
            much=f"With {quoted(worst.variant)} a step {takes}"
            f"{rates_behind(measured, worst)}.",
            sure=worst.sure,
            interval=ends,
            warnings=(f"{ties} may cost as much.",) if ties else (),
            next=f"If your training shows the same signs, {load.remedy}"
            if load
            else _OPEN,
        )
    if compared and not noisy:
        return Verdict(
            headline="None of these is shown to slow this training.",
            much="Each costs less than 10 %, if anything.",
            sure=sure_of_all(compared),
        )
    return Verdict(
        headline="This run does not show whether any of these slows this training.",
        much=f"The machine is too noisy to judge {noisy}." if noisy else "",
        sure="not known yet",
        # The loads of this run are other programs, too: none of those to be ended.
        next=MORE,
    )
