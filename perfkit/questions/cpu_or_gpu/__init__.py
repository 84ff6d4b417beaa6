"""Why does my GPU train no faster than the CPU, or all cores no faster than one?

The suspect: before its first multiplication a step costs something that more arithmetic
units do not make shorter, so a small step gains nothing from them.
The test: make the same training larger and larger, on both devices side by side, and
compare examples per second at each size. Where there is no GPU, one core against all
cores shows a crossover of its own: a thread pool is not a kernel launch.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.tick import Note, Yielded
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.questions.base import Experiment
from perfkit.questions.cpu_or_gpu import numbers
from perfkit.questions.cpu_or_gpu import work as trainings
from perfkit.questions.cpu_or_gpu.numbers import PAYS, Point, Result
from perfkit.questions.cpu_or_gpu.work import Device, Size
from perfkit.questions.parameters import Choice, Range
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.benchmark import (
    can_keep_to_one_core,
    sees_gpu,
    without_gpus,
)
from perfkit.questions.shared.models import Model
from perfkit.questions.shared.words import fact, failures, rates_behind

# The second widest is trained on a larger batch too: that tells apart what weights cost
# and what examples cost.
_LARGER = 8
_LARGEST_BATCH = 65_536
_NO_GPU = "GPU"
# What preparing told.
CORES = "cores"
# A fit that misses a step by more does not say where the time of a step goes.
_TRUSTED = 0.25
_IMPORT = "import tensorflow as tf"
_HIDE = 'tf.config.set_visible_devices([], "GPU")'
_ONE_CORE = "`taskset -c 0 python train.py` trains on one core and frees the others."
_BEFORE_WORK = (
    "More arithmetic units do not shorten the part before any work; a faster core, XLA "
    "and several steps per call can."
)


@dataclass(frozen=True, kw_only=True)
class CpuOrGpu(Experiment):
    """Why does my GPU train no faster than the CPU, or all cores no faster than one?"""

    devices: Annotated[
        str,
        Choice(
            ("here", "cores"),
            help="here: CPU and GPU, or without a GPU one core and all cores",
        ),
    ] = "here"
    narrowest: Annotated[int, Range(4, 8192, unit="units", help="Of a layer")] = 32
    widest: Annotated[int, Range(8, 16_384, unit="units", help="Of a layer")] = 2048
    widths: Annotated[
        int, Range(2, 8, help="How many widths to time, ends included")
    ] = 4
    batch: Annotated[int, Range(8, 8192, unit="examples", help="In a batch")] = 64

    name = "cpu-or-gpu"

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        super().__post_init__()
        if self.narrowest >= self.widest:
            raise BadParameterError(
                f"narrowest is {self.narrowest} and widest is {self.widest}; give a "
                "widest above the narrowest."
            )

    @property
    def baseline(self) -> str:
        """The first device at the narrowest width."""
        narrowest = trainings.dense(self.narrowest).name
        return numbers.name_of(self._pair[0].name, narrowest, self.batch)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Every width at the usual batch, then one of them at a larger one."""
        inner = np.geomspace(self.narrowest, self.widest, self.widths)[1:-1]
        # Processors like a multiple of four as much as the next.
        widths = (self.narrowest, *(4 * round(w / 4) for w in inner), self.widest)
        along = [Size(width, self.batch) for width in sorted(set(widths))]
        larger = min(self.batch * _LARGER, _LARGEST_BATCH)
        return (*along, Size(along[-2].width, larger))

    def make_variants(self) -> Mapping[str, Variant]:
        """Both devices at each size, and why there is no GPU where one may be meant."""
        trained = [(trainings.dense(size.width), size.batch) for size in self.sizes]
        variants = [variant for pair in trained for variant in self._on_both(*pair)]
        if self.devices == "here" and not self._uses_gpu:
            why_not = f"needs a GPU: {gpus_here()[1] or 'this machine has none'}"
            nothing = functools.partial(iter, ())
            does = "All widths on a GPU."
            variants.append(Variant(_NO_GPU, nothing, does, unavailable=why_not))
        return {variant.name: variant for variant in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Count the cores; refuse a GPU that TensorFlow cannot use."""
        if self._uses_gpu and not sees_gpu():
            raise RunError(
                "TensorFlow cannot use the GPU here; `perfkit doctor` says why, and "
                "`devices=cores` compares cores instead"
            )
        without_gpus()
        yield Note(CORES, benchmark.granted())

    def verdict(self, measured: Measurement) -> Verdict:
        """Say from which width on the second device pays, why, and what to change."""
        return _judge(measured, self.result(measured))

    def result(self, measured: Measurement) -> Result:
        """What a run at the question's sizes shows in numbers."""
        return numbers.result(measured, self.sizes)

    @property
    def _uses_gpu(self) -> bool:
        return self.devices == "here" and bool(gpus_here()[0])

    @property
    def _pair(self) -> tuple[Device, Device]:
        if self._uses_gpu:
            return trainings.WHOLE_CPU, trainings.A_GPU
        return trainings.ONE_CORE, trainings.ALL_CORES

    def _on_both(self, model: Model, batch: int) -> Iterator[Variant]:
        before = ""
        for device in self._pair:
            name = numbers.name_of(device.name, model.name, batch)
            why_not = _why_not(device)
            yield Variant(
                name,
                functools.partial(trainings.train, device, model, batch),
                f"{model.description.capitalize()} on {device.name}.",
                "" if why_not else before,
                why_not,
                code=trainings.code_of_training(device, model),
            )
            before = name


def _why_not(device: Device) -> str:
    if device is trainings.ONE_CORE and not can_keep_to_one_core():
        return "needs a system that lets a process keep to one core"
    if device is trainings.ALL_CORES and benchmark.granted() < 2:
        return "needs more than the one core that this process may use"
    return ""


def _judge(measured: Measurement, result: Result) -> Verdict:
    """Say from which size on the second device pays, by how much, and what to do."""
    facts, because = tuple(_facts(result)), failures(measured)
    cores = measured.notes.get(CORES)
    first, second = "one core", f"all {cores or 'the'} cores"
    if result.devices[1] == "GPU":
        first, second = "the CPU", "the GPU"
    elif cores == 2:
        second = "both cores"
    if result.curve is None:
        return Verdict(
            headline=f"This run does not show from which width {second} pays.",
            much="Fewer than three widths were timed on both devices.",
            sure="not known yet",
            facts=facts,
            because=because,
            next="Check how the trials ended, or give the run more seconds.",
        )
    paying = [point for point in result.curve.points if point.says == "pays"]
    largest = (paying or result.curve.points)[-1]
    sure = largest.gain.sure if paying else "not known yet"
    if result.crossing.kind == "never":
        # Each interval ends below what pays, whether or not it leaves out 1.
        sure = "sure" if largest.gain.rounds > 1 else "likely"
    hides = result.crossing.kind == "never" and second == "the GPU"
    return Verdict(
        headline=_headline(result, first, second),
        much=_describe_gain(measured, largest, second),
        sure=sure,
        interval=largest.gain.ends,
        edits=(Edit(old=_IMPORT, new=f"{_IMPORT}\n{_HIDE}"),) if hides else (),
        facts=facts,
        because=(_BEFORE_WORK, *because),
        next=_next(result),
    )


def _headline(result: Result, first: str, second: str) -> str:
    crossing, points = result.crossing, result.curve.points if result.curve else ()
    if crossing.kind == "always":
        return f"Train on {second} at every width tried."
    if crossing.kind == "never":
        return f"Stay on {first}: {second} would bring too little."
    if crossing.kind == "from":
        below = "; below that is not known yet"
        if crossing.is_known:
            below = f", on {first} below"
        return f"Train on {second} {crossing.place}{below}."
    paying = ", ".join(point.size.name for point in points if point.says == "pays")
    if not paying:
        return f"This run does not show whether to train on {second}."
    tail = "not elsewhere" if crossing.kind == "mixed" else "elsewhere is not known yet"
    return f"Train on {second} at {paying}; {tail}."


def _describe_gain(measured: Measurement, point: Point, second: str) -> str:
    gain = point.gain
    fast = f"runs {units.times(gain.ratio)} times as fast"
    if not units.is_known(gain.low, gain.high):
        fast = "may or may not run faster"
    elif gain.verdict == "no difference shown":
        fast = "runs as fast"
    elif gain.ratio < 1:
        fast = f"takes {units.times(1 / gain.ratio)} times as long"
    rates = rates_behind(measured, gain)
    return f"At {point.size.name} training {fast} on {second}{rates}."


def _next(result: Result) -> str:
    if result.crossing.kind == "open" or not result.curve:
        return ""
    if result.crossing.kind == "always":
        narrowest = result.curve.points[0].size.width
        return f"Run it again with a `narrowest` below {narrowest}."
    # What makes a step larger, where the run has shown that it helps.
    paying = [point.size for point in result.off_curve if point.says == "pays"]
    if paying:
        return (
            f"Or make a step larger: with `batch_size={paying[-1].batch}` "
            f"{paying[-1].name} pays. `perfkit run execution-mode` measures several "
            "steps per call."
        )
    return _ONE_CORE if result.devices[0] == "one core" else ""


def _facts(result: Result) -> Iterator[Fact]:
    """From which width the second device pays, and what a step costs before work."""
    yield from _paying_width(result)
    for device, fit in result.fits.items():
        row = fact(f"A step before any work, {device}", fit.each[0], units.seconds)
        if row.interval:
            yield row
    device, curve = result.devices[1], result.curve
    second = result.fits.get(device)
    if curve and second and second.each[0].low > 0 and second.worst <= _TRUSTED:
        for point in (curve.points[0], curve.points[-1]):
            share = units.percent(second.each[0].value / second.at(point.size.cost))
            label = f"Share before any work at {point.size.name}, {device}"
            yield Fact(label, share)


def _paying_width(result: Result) -> Iterator[Fact]:
    crossing, curve = result.crossing, result.curve
    if curve and crossing.kind == "from":
        faster = units.percent(PAYS - 1)
        label = f"Width from which it is {faster} faster, batch {curve.batch:,}"
        ends = (crossing.width, crossing.low, crossing.high)
        width, low, high = (units.significant(end, 2) for end in ends)
        is_within = crossing.low > 0
        interval = f"{low} to {high}" if is_within else ""
        yield Fact(label, width if is_within else f"{high} or below", interval)
