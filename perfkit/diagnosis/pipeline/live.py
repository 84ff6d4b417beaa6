"""The plan of the pipeline that a running ``fit`` takes its batches from."""

from __future__ import annotations

import gc
from typing import Any

from perfkit.experiments.shared import anatomy


def live_plan() -> dict[str, Any]:
    """Describe the iterator that has given most; see ``workloads.anatomy.plan``.

    Returns:
        The plan, with ``"limits"``: the name of the stage that has the largest share
        of the work. ``{"missing": a sentence}`` where nothing of the kind is running.
    """
    plans = [anatomy.plan(iterator) for iterator in _iterators()]
    found = [plan for plan in plans if plan.get("stages")]
    if found:
        most = max(found, key=lambda plan: int(plan["stages"][-1]["elements"]))
        return limited(most)
    return plans[0] if plans else {"missing": "No tf.data pipeline is running here."}


def limited(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with the name of the stage that has most of its work."""
    busiest = anatomy.busiest(plan)
    return plan | {"limits": busiest["name"] if busiest else ""}


def kinds(plan: dict[str, Any]) -> list[str]:
    """TensorFlow's names of a plan's stages, the source first."""
    return [stage["kind"] for stage in plan.get("stages", ())]


def _iterators() -> list[Any]:
    # Keras keeps its iterator to itself; whoever is alive is known to the collector.
    import tensorflow as tf

    return [found for found in gc.get_objects() if _is_one(found, tf.data.Iterator)]


def _is_one(found: Any, kind: type) -> bool:
    # isinstance() would ask the object for its class, which wakes lazy modules.
    return issubclass(type(found), kind)
