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

from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.tick import Note, Yielded
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.questions.base import Experiment
from perfkit.questions.cpu_or_gpu import numbers
from perfkit.questions.cpu_or_gpu import work as trainings
from perfkit.questions.cpu_or_gpu.verdict import AHEAD, BYTES, CORES, FLOATS, judge
from perfkit.questions.cpu_or_gpu.work import Device, Size
from perfkit.questions.parameters import Choice, Range
from perfkit.questions.shared import benchmark
from perfkit.questions.shared.benchmark import (
    can_keep_to_one_core,
    sees_gpu,
    without_gpus,
)
from perfkit.questions.shared.models import MODELS, Model

_NONE = "none"
# The second widest is trained on a larger batch too: that tells apart what weights cost
# and what examples cost.
_LARGER = 8
_LARGEST_BATCH = 65_536
_NO_GPU = "GPU"
_FEEDS = (
    (FLOATS, trainings.as_floats, "Each step's batch comes from memory, as floats."),
    (BYTES, trainings.as_bytes, "It comes as bytes and becomes floats on the GPU."),
    (AHEAD, trainings.ahead, "It comes while the GPU works on the step before."),
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
    yours: Annotated[
        str, Choice((_NONE, *MODELS), help="A model to measure and put on the curve")
    ] = _NONE
    weights: Annotated[
        int, Range(0, 10**9, help="Of your own dense network; 0 for none")
    ] = 0

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
        """Both devices at each size, then what only a GPU can show."""
        trained = [(trainings.dense(size.width), size.batch) for size in self.sizes]
        if self.yours != _NONE:
            trained.append((MODELS[self.yours], self.batch))
        variants = [variant for pair in trained for variant in self._on_both(*pair)]
        if self.devices == "here":
            variants += self._on_the_wire()
        return {variant.name: variant for variant in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Count the cores, and the work of the reader's model.

        Raises:
            RunError: The machine has a GPU that TensorFlow cannot use.
        """
        if self._uses_gpu and not sees_gpu():
            raise RunError(
                "TensorFlow cannot use the GPU here; `perfkit doctor` says why, and "
                "`devices=cores` compares cores instead"
            )
        without_gpus()
        yield Note(CORES, benchmark.granted())
        if self.yours != _NONE:
            flops = trainings.flops_of(self.yours, self.batch)
            yield Note(numbers.YOURS, {"flops": flops})

    def verdict(self, measured: Measurement) -> Verdict:
        """Say from which width on the second device pays, why, and what to change."""
        return judge(measured, self.result(measured))

    def result(self, measured: Measurement) -> numbers.Result:
        """What a run at the question's sizes shows in numbers."""
        return numbers.result(measured, self.sizes, self.yours, self.weights)

    @property
    def _uses_gpu(self) -> bool:
        return self.devices == "here" and bool(gpus_here()[0])

    @property
    def _pair(self) -> tuple[Device, Device]:
        if self._uses_gpu:
            return trainings.WHOLE_CPU, trainings.A_GPU
        return trainings.ONE_CORE, trainings.ALL_CORES

    def _on_both(self, model: Model, batch: int) -> Iterator[Variant]:
        before, stays = "", trainings.stays
        for device in self._pair:
            name = numbers.name_of(device.name, model.name, batch)
            why_not = _why_not(device)
            yield Variant(
                name,
                functools.partial(trainings.train, device, model, batch, stays),
                f"{model.description.capitalize()} on {device.name}.",
                "" if why_not else before,
                why_not,
                code=trainings.code_of_training(device, model, stays),
            )
            before = name

    def _on_the_wire(self) -> Iterator[Variant]:
        """How batches come to a GPU, at the widest; a sentence where there is none."""
        model = trainings.dense(self.widest)
        stays, why_not = numbers.name_of("GPU", model.name, self.batch), ""
        if not self._uses_gpu:
            why_not = f"needs a GPU: {gpus_here()[1] or 'this machine has none'}"
            nothing = functools.partial(iter, ())
            yield Variant(_NO_GPU, nothing, "All widths on a GPU.", unavailable=why_not)
        gpu = trainings.A_GPU
        for name, feed, changes in _FEEDS:
            work = functools.partial(trainings.train, gpu, model, self.batch, feed)
            against = "" if why_not else stays if name == FLOATS else FLOATS
            code = trainings.code_of_training(gpu, model, feed)
            yield Variant(name, work, changes, against, why_not, code=code)


def _why_not(device: Device) -> str:
    if device is trainings.ONE_CORE and not can_keep_to_one_core():
        return "needs a system that lets a process keep to one core"
    if device is trainings.ALL_CORES and benchmark.granted() < 2:
        return "needs more than the one core that this process may use"
    return ""
