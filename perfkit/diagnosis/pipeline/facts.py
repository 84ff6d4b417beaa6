"""What is known of the data of a training: its stages, and what they do."""

from __future__ import annotations

import gc
import os
import time
from typing import TYPE_CHECKING, Any

import psutil

from perfkit.diagnosis.pipeline.chain import (
    beneath,
    chain,
    describe,
    kind,
    stacked,
    stage,
)
from perfkit.diagnosis.pipeline.padding import too_far
from perfkit.diagnosis.pipeline.rebuilding import CachePoint, cache_point
from perfkit.diagnosis.pipeline.vectorising import for_batches
from perfkit.diagnosis.settings import other_than_cores
from perfkit.experiments.shared import anatomy

if TYPE_CHECKING:
    from perfkit.diagnosis.training import Training


_LOOKED_AT = 8
# What gives an element for each that it is given.
_ONE_TO_ONE = ("map", "options", "prefetch", "shuffle", "repeat")
# Around each record: its length and two checksums.
_FRAME = 16


def element_bytes(dataset: Any) -> int:
    """Bytes of an element, from the first few; 0 where there is none."""
    import tensorflow as tf

    sizes = [
        sum(_bytes(part) for part in tf.nest.flatten(element, expand_composites=True))
        for element in dataset.take(_LOOKED_AT)
    ]
    return sum(sizes) // len(sizes) if sizes else 0


def records(source: Any) -> int | None:
    """How many records a reader of files gives, about; None where nobody can tell."""
    names = getattr(source, "_filenames", None)
    if names is None or getattr(source, "_compression_type", None):
        return None
    each = element_bytes(source)
    if type(source).__name__ == "TFRecordDatasetV2":
        each += _FRAME
    try:
        whole = sum(os.stat(name.numpy()).st_size for name in names)
    except OSError:
        return None
    return whole // each if each else None


def _bytes(part: Any) -> int:
    import tensorflow as tf

    if part.dtype == tf.string:
        return int(tf.reduce_sum(tf.strings.length(part)))
    return int(tf.size(part)) * int(part.dtype.size)


_SLICES = "slices in memory"


def narrows(dataset: Any) -> bool:
    """Whether a pipeline begins with float64, and its stages take float32 as well."""
    import tensorflow as tf

    source = chain(dataset)[0]
    parts = tf.nest.flatten(source.element_spec)
    if kind(source) != _SLICES or all(one.dtype != tf.float64 for one in parts):
        return False
    try:
        return len(list(narrowed(dataset).take(1))) == 1
    except Exception:
        # A function of the user's own may name float64, and refuse anything else.
        return False


def narrowed(dataset: Any) -> Any:
    """The pipeline with what is float64 at its source cast once."""
    import tensorflow as tf

    source, *stages = chain(dataset)
    if kind(source) != _SLICES:
        return dataset
    parts = [
        tf.cast(part, tf.float32) if part.dtype == tf.float64 else part
        for part in source._tensors
    ]
    packed = tf.nest.pack_sequence_as(source.element_spec, parts)
    return stacked(stages, tf.data.Dataset.from_tensor_slices(packed))


def live_plan() -> dict[str, Any]:
    """Describe the iterator that has given most; see ``shared.anatomy.plan``.

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

    # isinstance() would ask the object for its class, which wakes lazy modules.
    return [o for o in gc.get_objects() if issubclass(type(o), tf.data.Iterator)]


_LONGEST_S = 1.0
_SOURCES_GONE = ("Shuffle", "ShuffleV3", "ShuffleAndRepeat")


def tells_too_little(plan: dict[str, Any]) -> bool:
    """Whether a plan begins behind a shuffle."""
    stages = plan.get("stages") or [{"kind": ""}]
    return str(stages[0]["kind"]).startswith(_SOURCES_GONE)


def driven_plan(dataset: Any) -> dict[str, Any]:
    """The plan of the same pipeline without its shuffles, run for a second at most.

    Returns:
        As ``experiments.shared.anatomy.plan``, with ``"without": "shuffle"``.
    """
    source, *stages = chain(dataset)
    straight = stacked((one for one in stages if kind(one) != "shuffle"), source)
    iterator, began = iter(straight), time.perf_counter()
    for _ in iterator:
        if time.perf_counter() - began > _LONGEST_S:
            break
    return limited(anatomy.plan(iterator)) | {"without": "shuffle"}


def pipeline_facts(training: Training) -> dict[str, Any]:
    """Describe the data of a training; a JSON object.

    Returns:
        For every kind of data ``"python"``, the ways by which Python is called for
        each element; for a PyDataset also its ``"workers"``. For tf.data

        * ``"stages"``: see ``pipeline.chain.Stage``; the source comes first;
        * ``"cached"``, ``"random"``, ``"reads"``, ``"prefetched"``: whether a stage
          keeps elements, draws, reads files, or is last and makes batches ahead;
        * ``"hidden cache"``: whether a cache lies where the chain does not reach;
        * ``"cache"``: ``{"after": place, "moved": [places]}`` where one would be right;
        * ``"bytes"``: about what all elements take there; null where nobody can tell;
        * ``"why"``: why there is no place or no number; "" where there is;
        * ``"memory"``: bytes that are free;
        * ``"gpus"``: how many there are;
        * ``"for batches"``: names of the functions of the maps that may follow the
          batch, the last one first;
        * ``"float64"``: whether it begins with float64 that might as well be float32;
        * ``"padded too far"``: whether it pads further than its elements ask for;
        * ``"threads"``: of a pool of its own, where these are not as many as cores;
        * ``"deterministic"``: whether its options keep the order; None where unsaid;
        * ``"rewrites"``: whether TensorFlow makes serial maps parallel by itself;

        or ``{"missing": why}`` where TensorFlow does not tell.
    """
    if training.kind == "PyDataset":
        return {"python": ["PyDataset"], "workers": int(training.data.workers)}
    if training.kind == "generator":
        return {"python": ["generator"]}
    if training.kind != "tf.data":
        return {}
    try:
        return _of_dataset(training.data)
    except AttributeError:
        # What is private to TensorFlow may be gone in another version.
        return {"missing": "this TensorFlow does not tell what its stages are made of"}


def _of_dataset(dataset: Any) -> dict[str, Any]:
    import tensorflow as tf

    objects = chain(dataset)
    stages = describe(objects)
    hidden = any(kind(one) == "cache" for one in beneath(objects[0]))
    listed = [one.as_facts() for one in stages]
    point = cache_point(listed)
    cached = hidden or any(one.kind == "cache" for one in stages)
    ends = [one.kind for one in stages if one.kind != "options"]
    options = dataset.options()
    found = {
        "stages": listed,
        "cached": cached,
        "hidden cache": hidden,
        "random": any(one.random for one in stages),
        "reads": any(one.reads for one in stages),
        "prefetched": ends[-1:] == ["prefetch"],
        "python": sorted({way for one in stages for way in one.python}),
        "memory": int(psutil.virtual_memory().available),
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "for batches": [one.function for one in map(stage, for_batches(objects))],
        "float64": narrows(dataset),
        "padded too far": too_far(objects),
        "threads": other_than_cores(options.threading.private_threadpool_size),
        "deterministic": options.deterministic,
        "rewrites": _rewrites(options),
    }
    return found | _cache(objects, point)


def _rewrites(options: Any) -> bool:
    """Whether options leave TensorFlow's own rewrites on; None means that they do."""
    rewriting = options.experimental_optimization
    asked = (
        options.autotune.enabled,
        rewriting.apply_default_optimizations,
        rewriting.map_parallelization,
    )
    return False not in asked


def _cache(objects: list[Any], point: CachePoint | str) -> dict[str, Any]:
    if isinstance(point, str):
        return {"cache": None, "bytes": None, "why": point}
    leading = objects[: point.after + 1]
    before = stacked(one for at, one in enumerate(leading) if at not in point.moved)
    count = int(before.cardinality())
    if count < 0 and all(kind(one) in _ONE_TO_ONE for one in leading[1:]):
        count = records(objects[0]) or -1
    place = {"after": point.after, "moved": list(point.moved)}
    if count < 0:
        why = "nobody can tell how many elements there are, and whether they fit"
        return {"cache": place, "bytes": None, "why": why}
    return {"cache": place, "bytes": count * element_bytes(before), "why": ""}
