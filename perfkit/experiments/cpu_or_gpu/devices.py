"""What a training runs on: one core, all cores, or a GPU, each in its own process.

A process takes its device before TensorFlow's first operation; after it, threads and
devices are as they are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.errors import RunError
from perfkit.experiments.shared.probe import on_one_core, without_gpus
from perfkit.experiments.shared.probe_gpu import sees_one

if TYPE_CHECKING:
    from collections.abc import Callable

CPU, GPU = "CPU:0", "GPU:0"
# What an environment may have set to keep TensorFlow from the cores that there are.
_HOLDS_BACK = (
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
)


@dataclass(frozen=True)
class Device:
    """Something to train on.

    Attributes:
        name: As variants have it, such as ``"all cores"``.
        place: As TensorFlow calls it.
        take: Makes a fresh process use it and nothing else.
    """

    name: str
    place: str
    take: Callable[[], None]


def _one_core() -> None:
    _all_cores()
    on_one_core()


def _all_cores() -> None:
    for name in _HOLDS_BACK:
        os.environ.pop(name, None)
    without_gpus()


def _gpu() -> None:
    if not sees_one():
        raise RunError("TensorFlow can use no GPU here.")


ONE_CORE = Device("one core", CPU, _one_core)
ALL_CORES = Device("all cores", CPU, _all_cores)
# All cores again, by the name that they have beside a GPU.
WHOLE_CPU = Device("CPU", CPU, _all_cores)
A_GPU = Device("GPU", GPU, _gpu)
