"""The environment variables that cost speed, and when.

Meanings are those of TensorFlow's and NVIDIA's documents and sources; the names occur
in the 2.21 build or are the driver's. What could not be looked up is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.machine.checks import asking
from perfkit.machine.checks.asking import Check, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.machine.checks.asking import Status
    from perfkit.machine.record import Machine


_AMPERE = (8, 0)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An environment variable that costs speed.

    Attributes:
        costs: Whether a value of it does.
        applies: Whether it matters on a machine.
    """

    id: str
    variable: str
    costs: Callable[[str], bool]
    applies: Callable[[Machine], bool]
    title: str
    why: str
    cost: float
    status: Status = "warn"


def _on(value: str) -> bool:
    return value.lower() in ("1", "true", "yes", "on")


def _off(value: str) -> bool:
    return value.lower() in ("0", "false", "no", "off")


def _quiet(value: str) -> bool:
    return value.isdecimal() and int(value) >= 2


def _has(*flags: str) -> Callable[[str], bool]:
    return lambda value: any(flag in value for flag in flags)


def _everywhere(machine: Machine) -> bool:
    return True


def _gpu(machine: Machine) -> bool:
    return bool(machine.gpus)


def _tf32(machine: Machine) -> bool:
    known = (gpu.compute_capability for gpu in machine.gpus)
    return any(numbers(capability) >= _AMPERE for capability in known if capability)


def _processor(machine: Machine) -> bool:
    """Whether trainings run on an Intel or AMD processor alone."""
    instructions = machine.processor.instructions if machine.processor else None
    return not machine.gpus and "avx2" in (instructions or ("avx2",))


def _processor_beside_gpu(machine: Machine) -> bool:
    return bool(machine.gpus)


COSTLY = (
    Setting(
        id="launch-blocking",
        variable="CUDA_LAUNCH_BLOCKING",
        costs=_on,
        applies=_gpu,
        title="Every launch on the GPU waits for the one before",
        why="It is meant for debugging: the processor prepares nothing while the GPU "
        "works, and the GPU waits for the processor after every kernel.",
        cost=0.65,
    ),
    Setting(
        id="forced-compiling",
        variable="CUDA_FORCE_PTX_JIT",
        costs=_on,
        applies=_gpu,
        title="The driver must compile kernels that are there compiled",
        why="TensorFlow has code to compile for the newest cards only, so it fails on "
        "all others.",
        cost=0.9,
        status="fail",
    ),
    Setting(
        id="no-kernel-cache",
        variable="CUDA_CACHE_DISABLE",
        costs=_on,
        applies=_gpu,
        title="Kernels that the driver compiled are thrown away",
        why="A card that needs compiled kernels compiles them at every start.",
        cost=0.3,
    ),
    Setting(
        id="deterministic",
        variable="TF_DETERMINISTIC_OPS",
        costs=_on,
        applies=_everywhere,
        title="TensorFlow computes in the same order every time",
        why="Repeatable results need slower ways of adding up, and an input that keeps "
        "its order.",
        cost=0.35,
    ),
    Setting(
        id="deterministic-cudnn",
        variable="TF_CUDNN_DETERMINISTIC",
        costs=_on,
        applies=_gpu,
        title="Convolutions are computed in the same order every time",
        why="The fastest ways of computing a convolution are left out.",
        cost=0.3,
    ),
    Setting(
        id="no-autotune",
        variable="TF_CUDNN_USE_AUTOTUNE",
        costs=_off,
        applies=_gpu,
        title="TensorFlow does not look for the fastest convolution",
        why="The first step is faster, all others take whichever way comes first.",
        cost=0.3,
    ),
    Setting(
        id="unified-memory",
        variable="TF_FORCE_UNIFIED_MEMORY",
        costs=_on,
        applies=_gpu,
        title="The GPU's memory may overflow into RAM",
        why="What does not fit comes over the link, page by page, instead of failing.",
        cost=0.3,
    ),
    Setting(
        id="no-tf32",
        variable="NVIDIA_TF32_OVERRIDE",
        costs=_off,
        applies=_tf32,
        title="Fast float32 (TF32) is turned off",
        why="Matrix products and convolutions in float32 use no tensor cores.",
        cost=0.5,
    ),
    Setting(
        id="onednn-off",
        variable="TF_ENABLE_ONEDNN_OPTS",
        costs=_off,
        applies=_processor,
        title="The fast kernels for the processor (oneDNN) are turned off",
        why="Convolutions and matrix products on the processor take the general way.",
        cost=0.4,
    ),
    Setting(
        id="onednn-off",
        variable="TF_ENABLE_ONEDNN_OPTS",
        costs=_off,
        applies=_processor_beside_gpu,
        title="The fast kernels for the processor (oneDNN) are turned off",
        why="What is left to the processor beside the GPU takes the general way.",
        cost=0.05,
    ),
    Setting(
        id="xla-dump",
        variable="XLA_FLAGS",
        costs=_has("--xla_dump_to"),
        applies=_everywhere,
        title="XLA writes down everything that it compiles",
        why="Each compilation writes files before the training goes on.",
        cost=0.1,
    ),
    Setting(
        id="xla-passes-off",
        variable="XLA_FLAGS",
        costs=_has("--xla_disable_all_hlo_passes", "--xla_disable_hlo_passes"),
        applies=_everywhere,
        title="XLA leaves improvements out",
        why="What XLA compiles is slower than it could be.",
        cost=0.3,
    ),
    Setting(
        id="auto-clustering",
        variable="TF_XLA_FLAGS",
        costs=_has("--tf_xla_auto_jit=1", "--tf_xla_auto_jit=2"),
        applies=_everywhere,
        title="XLA compiles whatever it can",
        why="It may speed a training up or, where shapes change, compile over and "
        "over: only a measurement tells.",
        cost=0.0,
        status="unknown",
    ),
    Setting(
        id="silenced-log",
        variable="TF_CPP_MIN_LOG_LEVEL",
        costs=_quiet,
        applies=_gpu,
        title="TensorFlow does not say what is wrong with the GPU",
        why="At this level its warnings about the GPU are left out.",
        cost=0.02,
    ),
)


_THREADS = {
    "TF_NUM_INTRAOP_THREADS": (
        "TensorFlow computes one operation on that many cores, and leaves the others.",
        0.4,
    ),
    "TF_NUM_INTEROP_THREADS": (
        "TensorFlow runs that many operations at a time; one waits for the other.",
        0.1,
    ),
    "OMP_NUM_THREADS": (
        "NumPy and others that feed the training use that many cores; TensorFlow "
        "itself does not ask for it.",
        0.1,
    ),
}
# Operations rarely wait for more than a few others.
_ENOUGH = {"TF_NUM_INTEROP_THREADS": 2}


def costly(machine: Machine) -> Iterator[Check]:
    """Settings that are meant for debugging, or that turn something fast off."""
    for setting in COSTLY:
        value = machine.environment.get(setting.variable)
        if value is None or not setting.costs(value.strip()):
            continue
        if setting.applies(machine):
            yield _costs(machine, setting, value)


def threads(machine: Machine) -> Iterator[Check]:
    """Fewer threads than cores."""
    for variable, (why, cost) in _THREADS.items():
        value = machine.environment.get(variable, "").strip()
        enough = min(_useful(machine), _ENOUGH.get(variable, machine.cores))
        if not value.isdecimal() or not 0 < int(value) < enough:
            continue
        yield Check(
            id="few-threads",
            status="warn",
            title=f"{variable} allows fewer threads than there are cores",
            evidence=f"{variable} is {value}; this process may use "
            f"{machine.cores_granted:g} cores.",
            why=why,
            remedy=asking.without(machine, variable),
            cost=cost * (1 - int(value) / enough),
        )


def late(machine: Machine) -> Iterator[Check]:
    """A variable that is set after TensorFlow was loaded does nothing."""
    names = machine.software.set_late if machine.software else ()
    if names:
        yield Check(
            id="set-too-late",
            status="warn",
            title="Variables were set when TensorFlow was loaded already",
            evidence=f"Set too late: {', '.join(names)}.",
            why="TensorFlow reads them once, as it is loaded: the speed is as if they "
            "were not set.",
            remedy=f'os.environ["{names[0]}"] = ... in the first cell, above import '
            "tensorflow; then restart the kernel and run all",
            cost=0.2,
        )


def _costs(machine: Machine, setting: Setting, value: str) -> Check:
    return Check(
        id=setting.id,
        status=setting.status,
        title=setting.title,
        evidence=f"{setting.variable} is {value}.",
        why=setting.why,
        remedy=asking.without(machine, setting.variable),
        cost=setting.cost,
    )


def _useful(machine: Machine) -> int:
    """Threads that fill the cores: two on one core are a matter of taste."""
    physical = machine.processor.physical_cores if machine.processor else None
    return int(min(machine.cores_granted, physical or machine.cores))


RULES = (costly, threads, late)
