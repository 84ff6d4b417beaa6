"""Padding that is computed with: less of it in each batch, by length or by bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.diagnosis.pipeline.padding import PADS, in_buckets, to_longest
from perfkit.diagnosis.swap import Swap, Untested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_CAUSE = "padding"


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """Batches that are padded no further than their longest, and such of one length."""
    stages = facts.pipeline.get("stages", [])
    if not any(one["kind"] == PADS for one in stages):
        return
    if facts.pipeline.get("padded too far"):
        yield Swap(
            name="padded to the longest",
            cause=_CAUSE,
            kind="defect",
            changes="Each batch is padded to the longest of its examples, no further.",
            fix="padded_batch(...) without padded_shapes, or with None for the length; "
            "keras.Input(shape=(None,)) takes any length",
            apply=pad_to_longest,
        )
    if facts.pipeline["cached"]:
        yield Untested(_CAUSE, "a cache in front of buckets is not filled beforehand")
        return
    yield Swap(
        name="buckets of similar length",
        cause=_CAUSE,
        kind="by gain",
        changes="A batch holds examples of similar length, and little padding.",
        fix="dataset.bucket_by_sequence_length(...) instead of padded_batch(...). This "
        "changes which examples share a batch: watch the validation loss.",
        apply=by_length,
        combines=False,
    )


def pad_to_longest(training: Training) -> None:
    """Pad each batch to the longest of its examples."""
    training.data = to_longest(training.data)


def by_length(training: Training) -> None:
    """Put examples of similar length into a batch."""
    training.data = in_buckets(training.data)
