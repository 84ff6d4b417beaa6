"""The stages of a tf.data pipeline: parallel, made ahead, kept, on the device ahead."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit import units
from perfkit.diagnosis.pipeline.cache_point import CachePoint, cache_point
from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.keeping import Worth, kept_after
from perfkit.diagnosis.pipeline.rebuilding import again, parallel, rebuilt
from perfkit.diagnosis.pipeline.stages import stage
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps.pipeline_steps import worth_of
from perfkit.diagnosis.swaps.resident import NAME as CEILING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_CAUSES = (
    *("serial-map", "slow-read", "python-input", "no-cache", "no-prefetch"),
    *("per-example-map", "late-shuffle", "padding"),
)
_SERIAL = ("map", "interleave")
# A cache may take this share of the memory that is free.
_ROOM = 0.5


def untold(facts: Facts) -> Iterator[Untested]:
    """All that hangs on stages, where TensorFlow does not tell of them."""
    why = facts.pipeline.get("missing")
    if why:
        for cause in _CAUSES:
            yield Untested(cause, why)


def serial_map(facts: Facts) -> Iterator[Swap | Untested]:
    """Every map and interleave that does one element at a time, parallel."""
    serial = [one for one in _stages(facts) if _is_serial(one)]
    if not serial:
        return
    # TensorFlow does the same by itself where it is sure that nobody can tell.
    left = [one for one in serial if one["stateful"] or one["kind"] == "interleave"]
    if facts.pipeline["rewrites"] and not left:
        yield Untested("serial-map", "TensorFlow makes these maps parallel by itself")
        return
    yield Swap(
        name="parallel maps",
        cause="serial-map",
        kind="defect",
        changes=f"{_counted(serial)} stage work on several elements at a time.",
        fix=" and ".join(sorted({_fix(one["kind"]) for one in serial})),
        apply=in_parallel,
        after=CEILING,
    )


def no_prefetch(facts: Facts) -> Iterator[Swap | Untested]:
    """Batches made ahead while the model works."""
    if not _stages(facts):
        return
    if facts.pipeline["prefetched"]:
        yield Untested("no-prefetch", "the pipeline ends in a prefetch already")
    elif _ends_in_prefetch(facts.pipeline.get("plan", ())):
        yield Untested("no-prefetch", "TensorFlow puts a prefetch at its end by itself")
    else:
        yield Swap(
            name="prefetch",
            cause="no-prefetch",
            kind="defect",
            changes="The next batches are made while the model works on this one.",
            fix="dataset.prefetch(tf.data.AUTOTUNE) as the last stage",
            apply=made_ahead,
            after=CEILING,
        )


def no_cache(facts: Facts) -> Iterator[Swap | Untested]:
    """What is the same in each epoch, made once."""
    if not _stages(facts):
        return
    pipeline = facts.pipeline
    place, need = pipeline["cache"], pipeline["bytes"]
    if pipeline["cached"]:
        yield Untested("no-cache", "the pipeline has a cache already")
    elif place is None or need is None:
        yield Untested("no-cache", pipeline["why"])
    elif need > _ROOM * pipeline["memory"]:
        yield Untested(
            "no-cache",
            f"its elements would take about {units.size(need)}, and "
            f"{units.size(pipeline['memory'])} of memory are free",
        )
    else:
        yield _cache(facts, place, need)


def host_to_device(facts: Facts) -> Iterator[Swap | Untested]:
    """Batches copied to the GPU ahead."""
    if not _stages(facts):
        return
    if not facts.pipeline.get("gpus"):
        yield Untested("host-to-device", "there is no GPU that batches are copied to")
        return
    yield Swap(
        name="copied ahead",
        cause="host-to-device",
        kind="defect",
        changes="The next batches are copied to the GPU while it works on this one.",
        fix='dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))',
        apply=copied_ahead,
        after=CEILING,
    )


def in_parallel(training: Training) -> None:
    """Let all maps and interleaves work on as many elements as AUTOTUNE likes."""
    import tensorflow as tf

    def change(place: int, one: Any, before: Any) -> Any:
        if before is None or not _is_serial(stage(one).as_facts()):
            return again(one, before)
        return parallel(one, before, tf.data.AUTOTUNE)

    training.data = rebuilt(training.data, change)


def made_ahead(training: Training) -> None:
    """Put a prefetch at the end."""
    import tensorflow as tf

    training.data = training.data.prefetch(tf.data.AUTOTUNE)


def cached(training: Training, *, worth: Worth) -> None:
    """Keep what is the same in each epoch, as far as ``worth`` goes."""
    objects = chain(training.data)
    stages = [stage(one, source=not at).as_facts() for at, one in enumerate(objects)]
    point = cache_point(stages)
    if isinstance(point, CachePoint):
        training.data = kept_after(training.data, point.after, worth, point.moved)


def copied_ahead(training: Training) -> None:
    """Let batches be copied to the first GPU ahead; has to come last."""
    import tensorflow as tf

    ahead = tf.data.experimental.prefetch_to_device("/GPU:0")
    training.data = training.data.apply(ahead)


def _cache(facts: Facts, place: dict[str, Any], need: int) -> Swap:
    stages = facts.pipeline["stages"]
    behind = stages[place["after"]]["kind"]
    moved = " and ".join(stages[one]["kind"] for one in place["moved"])
    order = f", with the {moved} behind it" if moved else ""
    return Swap(
        name="cache",
        cause="no-cache",
        kind="defect",
        changes=f"What leaves the {behind} is kept in memory{order}; all of it takes "
        f"about {units.size(need)}.",
        fix=f".cache() behind the {behind}{order}",
        apply=functools.partial(cached, worth=worth_of(facts)),
        after=CEILING,
    )


def _stages(facts: Facts) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = facts.pipeline.get("stages", [])
    return found


def _is_serial(stage: dict[str, Any]) -> bool:
    return stage["kind"] in _SERIAL and not stage["parallel"]


def _ends_in_prefetch(plan: list[str]) -> bool:
    return bool(plan) and plan[-1] == "Prefetch"


def _counted(serial: list[dict[str, Any]]) -> str:
    kinds = [one["kind"] for one in serial]
    named = (f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    return " and ".join(named)


def _fix(kind: str) -> str:
    return f".{kind}(..., num_parallel_calls=tf.data.AUTOTUNE)"
