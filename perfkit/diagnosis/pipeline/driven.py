"""A pipeline driven by itself for a moment, where a running one tells too little.

A shuffle that holds a whole epoch has used up all that is before it when the first
batch comes, and TensorFlow keeps no plan of what is through.
"""

from __future__ import annotations

import time
from typing import Any

from perfkit.diagnosis.pipeline.live import limited
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.experiments.shared import anatomy

_LONGEST_S = 1.0
_SOURCES_GONE = ("Shuffle", "ShuffleV3", "ShuffleAndRepeat")


def tells_too_little(plan: dict[str, Any]) -> bool:
    """Whether a plan begins behind a shuffle."""
    stages = plan.get("stages") or [{"kind": ""}]
    return str(stages[0]["kind"]).startswith(_SOURCES_GONE)


def driven_plan(dataset: Any) -> dict[str, Any]:
    """The plan of the same pipeline without its shuffles, run for a second at most.

    Returns:
        As ``workloads.anatomy.plan``, with ``"without": "shuffle"``.
    """
    straight = rebuilt(dataset, _without_shuffle)
    iterator, began = iter(straight), time.perf_counter()
    for _ in iterator:
        if time.perf_counter() - began > _LONGEST_S:
            break
    return limited(anatomy.plan(iterator)) | {"without": "shuffle"}


def _without_shuffle(place: int, stage: Any, before: Any) -> Any:
    if type(stage).__name__ == "_ShuffleDataset" and before is not None:
        return before
    return again(stage, before)
