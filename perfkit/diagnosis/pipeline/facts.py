"""What is known of the data of a training: its stages, and what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psutil

from perfkit.diagnosis.pipeline import sizes
from perfkit.diagnosis.pipeline.cache_point import CachePoint, cache_point
from perfkit.diagnosis.pipeline.chain import beneath, chain, kind
from perfkit.diagnosis.pipeline.narrowing import narrows
from perfkit.diagnosis.pipeline.padding import too_far
from perfkit.diagnosis.pipeline.rebuilding import again, rebuilt
from perfkit.diagnosis.pipeline.stages import Stage, stage
from perfkit.diagnosis.pipeline.vectorising import for_batches
from perfkit.diagnosis.settings import other_than_cores

if TYPE_CHECKING:
    from perfkit.diagnosis.training import Training


def pipeline_facts(training: Training) -> dict[str, Any]:
    """Describe the data of a training; a JSON object.

    Returns:
        For every kind of data ``"python"``, the ways by which Python is called for
        each element; for a PyDataset also its ``"workers"``. For tf.data

        * ``"stages"``: see ``pipeline.stages.Stage``; the source comes first;
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
    stages = [stage(one, source=not place) for place, one in enumerate(objects)]
    hidden = any(kind(one) == "cache" for one in beneath(objects[0]))
    listed = [one.as_facts() for one in stages]
    point = cache_point(listed)
    cached = hidden or any(one.kind == "cache" for one in stages)
    options = dataset.options()
    found = {
        "stages": listed,
        "cached": cached,
        "hidden cache": hidden,
        "random": any(one.random for one in stages),
        "reads": any(one.reads for one in stages),
        "prefetched": _last(stages) == "prefetch",
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
    return found | _cache(dataset, objects, point)


def _last(stages: list[Stage]) -> str:
    named = [one.kind for one in stages if one.kind != "options"]
    return named[-1] if named else ""


def _rewrites(options: Any) -> bool:
    """Whether options leave TensorFlow's own rewrites on; None means that they do."""
    rewriting = options.experimental_optimization
    asked = (
        options.autotune.enabled,
        rewriting.apply_default_optimizations,
        rewriting.map_parallelization,
    )
    return False not in asked


def _cache(dataset: Any, objects: list[Any], point: CachePoint | str) -> dict[str, Any]:
    if isinstance(point, str):
        return {"cache": None, "bytes": None, "why": point}
    before = rebuilt(
        objects[point.after],
        lambda place, one, up: up if place in point.moved else again(one, up),
    )
    count = int(before.cardinality())
    if count < 0 and all(_one_to_one(one) for one in objects[1 : point.after + 1]):
        count = sizes.records(objects[0]) or -1
    place = {"after": point.after, "moved": list(point.moved)}
    if count < 0:
        why = "nobody can tell how many elements there are, and whether they fit"
        return {"cache": place, "bytes": None, "why": why}
    return {
        "cache": place,
        "bytes": count * sizes.element_bytes(before),
        "why": "",
    }


def _one_to_one(one: Any) -> bool:
    return kind(one) in ("map", "options", "prefetch", "shuffle", "repeat")
