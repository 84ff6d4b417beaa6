"""How fast is each part of this machine, and which one is weak?

The suspect: one part (the interpreter, memory, the disk, decoding, arithmetic, the way
to the GPU) is slower than such a part should be, and everything waits for it.
The test: give each part work of a known size and nothing else, count what it gets done
per second, and hold that against what the part could do in theory, where that is known.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from perfkit.errors import PerfkitError
from perfkit.experiments.base import Experiment
from perfkit.experiments.microbenchmarks import probes as parts
from perfkit.experiments.microbenchmarks.verdict import CORES, IMAGE_BYTES, judge
from perfkit.experiments.parameters import Choice, Folder
from perfkit.experiments.shared import peaks
from perfkit.experiments.shared import probe as shared_probe
from perfkit.experiments.shared import probe_gpu as gpu
from perfkit.experiments.shared.probe import can_keep_to_one_core, without_gpus
from perfkit.findings import standing
from perfkit.findings.standing import Rung
from perfkit.machine.cards import gpus_here
from perfkit.measure.measurement import Arm
from perfkit.measure.tick import REFUSED, Note

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from perfkit.experiments.shared.peaks import Hardware
    from perfkit.experiments.shared.probe import Probe
    from perfkit.findings.record import Verdict
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.tick import Yielded

NO_GPU = "GPU rungs"
_GROUPS = (
    *("interpreter", "arrays", "memory", "disk", "images", "pipeline"),
    *("tensorflow", "gpu", "heat"),
)
_USUAL = ",".join(_GROUPS[:-1])


@dataclass(frozen=True, kw_only=True)
class MachineLadder(Experiment):
    """How fast is each part of this machine, and which one is weak?"""

    rungs: Annotated[
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
    baseline = shared_probe.BASELINE
    needs = ("numpy",)
    # No ratio is wanted that turns would keep clear of the machine's moods, and a rung
    # that has had its time is kept whatever becomes of the next.
    in_turns = False

    def variants(self) -> Mapping[str, Arm]:
        """The rungs asked for; the product whose twin tells the noise is always one."""
        arms = [
            Arm(
                *(probe.name, probe.work, probe.what),
                unavailable=_why_not(probe),
                code=probe.code,
            )
            for probe in self._probes
        ]
        if self._no_gpu:
            arms.append(Arm(NO_GPU, ().__iter__, unavailable=self._no_gpu))
        return {arm.name: arm for arm in arms}

    def prepare(self) -> Iterator[Yielded]:
        """Make what is read and decoded, and work out what is possible in theory."""
        whats, refused = dict[str, str](), dict[str, str]()
        if not _without_tensorflow():
            # A GPU that is taken here is missed by a trial.
            without_gpus()
        for names, make in (
            ((shared_probe.NAME,), self._read),
            (parts.NAMES, self._decoded),
        ):
            if not any(p.name in names and not _why_not(p) for p in self._probes):
                continue
            try:
                whats |= yield from make()
            # The others need none of what cannot be made.
            except PerfkitError as error:
                refused |= dict.fromkeys(names, str(error))
        yield Note("progress", "Working out what is possible in theory")
        yield Note(REFUSED, refused | self._out_of_reach())
        card = next(iter(gpus_here()[0]), None)
        here = peaks.hardware(Path("/"), shared_probe.granted(), parts.hertz(), card)
        yield Note(CORES, here.cores)
        yield Note(standing.NOTE, standing.note(self._rungs(whats, here)))

    def verdict(self, measured: Measurement) -> Verdict:
        """Say what the arithmetic reaches, what is weak, and what to do."""
        return judge(measured)

    @property
    def _groups(self) -> list[str]:
        return self.rungs.split(",")

    @property
    def _probes(self) -> tuple[Probe, ...]:
        """The probes asked for, and the baseline, in the ladder's order."""
        by_group = {
            "interpreter": parts.INTERPRETER,
            "arrays": (*parts.ARRAYS, *shared_probe.NUMPY),
            "memory": shared_probe.probes(),
            "disk": (shared_probe.probe(self.data),),
            "images": parts.IMAGES,
            "pipeline": parts.PIPELINE,
            "tensorflow": (
                *parts.DISPATCH,
                *shared_probe.PRODUCTS,
                *shared_probe.CONVOLUTIONS,
            ),
            "gpu": (*gpu.PROBES, *parts.TRANSFERS) if gpus_here()[0] else (),
            "heat": gpu.HEAT if gpus_here()[0] else (),
        }
        return tuple(
            probe
            for group, probes in by_group.items()
            for probe in probes
            if group in self._groups or probe.name == self.baseline
        )

    def _read(self) -> Generator[Note, None, dict[str, str]]:
        """Make what the disk is read for; give what is then done."""
        paths = yield from shared_probe.made(self.data)
        how = shared_probe.COLD if shared_probe.forgets(paths) else shared_probe.CACHED
        return {shared_probe.NAME: f"{shared_probe.probe(self.data).what} {how}"}

    def _decoded(self) -> Generator[Note, None, dict[str, str]]:
        """Draw what is decoded; the notes tell how large its files are."""
        found = yield from parts.made()
        yield Note(IMAGE_BYTES, sum(found.sizes) // len(found.sizes))
        return {}

    def _out_of_reach(self) -> dict[str, str]:
        """Why the rungs of a GPU that TensorFlow cannot use are not run, by name."""
        on_gpu = [probe.name for probe in self._probes if probe.group == "GPU"]
        if not on_gpu or _why_not(gpu.PROBES[0]) or gpu.sees_one():
            return {}
        why = "TensorFlow can use no GPU here; `perfkit doctor` says why"
        return dict.fromkeys(on_gpu, why)

    def _rungs(self, whats: dict[str, str], here: Hardware) -> dict[str, Rung]:
        """What each microbenchmark counts and what is possible, for the finding."""
        told = {
            probe.name: Rung(
                unit=probe.unit,
                group=probe.group,
                what=whats.get(probe.name, probe.what),
                limit=peak.rate if peak else None,
                limit_from=peak.words if peak else "",
            )
            for probe in self._probes
            for peak in [probe.peak(here)]
        }
        none = {NO_GPU: Rung(unit="calls", group="GPU")} if self._no_gpu else {}
        return told | none

    @property
    def _no_gpu(self) -> str:
        """Why no rung of a GPU is there; "" where one is, or none is asked for."""
        asked = {"gpu", "heat"} & set(self._groups)
        found, why = gpus_here()
        return (why or "this machine has no GPU") if asked and not found else ""


def _without_tensorflow() -> bool:
    return importlib.util.find_spec("tensorflow") is None


def _why_not(probe: Probe) -> str:
    if probe.tensorflow and _without_tensorflow():
        return (
            'TensorFlow is not installed; `pip install "perfkit[tensorflow]"` brings it'
        )
    if probe.one_core and not can_keep_to_one_core():
        return "this system does not let a process keep to one core"
    return ""
