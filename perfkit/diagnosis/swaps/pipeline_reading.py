"""The reading of files: the same bytes out of memory."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.pipeline.chain import chain
from perfkit.diagnosis.pipeline.files import from_memory
from perfkit.diagnosis.pipeline.keeping import Worth, kept_after
from perfkit.diagnosis.pipeline.stages import stage
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps.pipeline_steps import worth_of
from perfkit.diagnosis.swaps.resident import NAME as CEILING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_FIXES = {
    True: "Read more at a time (leave buffer_size to TensorFlow, read several files "
    "with num_parallel_reads=tf.data.AUTOTUNE), or put .cache() behind the reader "
    "where the records fit in memory",
    False: "Put many examples into each file (TFRecord), or copy the files to a disk "
    "that is quicker; a second epoch reads what fits in memory from there",
}


def slow_read(facts: Facts) -> Iterator[Swap | Untested]:
    """Records kept behind their reader, or files copied into memory."""
    stages = facts.pipeline.get("stages", [])
    if not facts.pipeline.get("reads"):
        return
    place = reader(stages)
    if place is None:
        yield Untested(
            "slow-read", "what reads the files also works on them, in one stage"
        )
        return
    records = stages[place]["records"]
    what = "The records" if records else "The files"
    yield Swap(
        name="read from memory",
        cause="slow-read",
        kind="defect",
        changes=f"{what} come out of memory; all that is done to them stays.",
        fix=_FIXES[records],
        apply=functools.partial(read_from_memory, worth=worth_of(facts)),
        after=CEILING,
        # A cache behind the work keeps the reading away, too.
        combines=facts.pipeline["cache"] is None,
    )


def reader(stages: Sequence[dict[str, Any]]) -> int | None:
    """The place of what can be read from memory; None where there is none."""
    for place, one in enumerate(stages):
        if one["records"]:
            return place
        if one["reads"]:
            named = place > 0 and stages[place - 1]["texts"]
            return place if named and one["kind"] == "map" else None
    return None


def read_from_memory(training: Training, *, worth: Worth) -> None:
    """Give the same bytes out of memory, as far as ``worth`` goes."""
    objects = chain(training.data)
    stages = [stage(one, source=not at).as_facts() for at, one in enumerate(objects)]
    place = reader(stages)
    if place is None:
        return
    if stages[place]["records"]:
        training.data = kept_after(training.data, place, worth)
    else:
        training.data = from_memory(training.data, place, worth)
