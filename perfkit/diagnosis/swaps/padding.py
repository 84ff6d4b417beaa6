"""Padding that is computed with: less of it in each batch, by length or by bucket."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import rows
from perfkit.diagnosis.pipeline import padding
from perfkit.diagnosis.pipeline.padding import PADS, in_buckets, to_longest
from perfkit.diagnosis.swap import Swap, Untested, of_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_CAUSE, _BUCKETS = "padding", "buckets of similar length"
_BUCKETS_FIX = (
    "dataset.bucket_by_sequence_length(...) {}. This changes which examples share a "
    "batch: watch the validation loss."
)
# Fewer or other words in a batch may change what is learnt.
_less = functools.partial(Swap, cause=_CAUSE, kind="by gain", combines=False)


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """Batches that are padded no further than their longest, and such of one length."""
    pads = any(one["kind"] == PADS for one in facts.pipeline.get("stages", ()))
    if facts.padded:
        if facts.pipeline.get("cached") or facts.data not in ("tf.data", "arrays"):
            why = "its padded texts come from where they cannot be cut"
            yield Untested(_CAUSE, why)
            return
        yield _less(
            name="cut to the longest",
            changes="Each batch is cut to the longest of its texts.",
            fix="keras.utils.pad_sequences for each batch instead of for all texts at "
            "once, or tf.data and padded_batch(...). Without a mask the model then "
            "sees less padding: watch the validation loss.",
            apply=functools.partial(cut_to_longest, known=facts.padded),
        )
        yield _less(
            name=_BUCKETS,
            changes="A batch holds texts of similar length, cut to its longest.",
            fix=_BUCKETS_FIX.format("of texts that are not padded"),
            apply=functools.partial(cut_by_length, known=facts.padded),
        )
    elif pads:
        if facts.pipeline.get("padded too far"):
            yield Swap(
                name="padded to the longest",
                cause=_CAUSE,
                kind="defect",
                changes="Each batch is padded to the longest of its examples, no "
                "further.",
                fix="padded_batch(...) without padded_shapes, or with None for the "
                "length; keras.Input(shape=(None,)) takes any length",
                apply=of_data(to_longest),
            )
        if facts.pipeline["cached"]:
            why = "a cache in front of buckets is not filled beforehand"
            yield Untested(_CAUSE, why)
            return
        yield _less(
            name=_BUCKETS,
            changes="A batch holds examples of similar length, and little padding.",
            fix=_BUCKETS_FIX.format("instead of padded_batch(...)"),
            apply=of_data(in_buckets),
        )


def cut_to_longest(training: Training, *, known: dict[str, Any]) -> None:
    """Cut each batch to the longest of its texts."""
    batches, _ = _batches(training)
    training.replace_data(padding.cut_to_longest(batches, known))


def cut_by_length(training: Training, *, known: dict[str, Any]) -> None:
    """Put texts of similar length into a batch, and cut it to the longest of them."""
    batches, size = _batches(training)
    training.replace_data(padding.cut_in_buckets(batches, known, size))


def _batches(training: Training) -> tuple[Any, int]:
    """The batches of a training that are not validated on, and examples of each."""
    from perfkit.diagnosis.facts import examples_in

    if training.kind == "tf.data":
        return training.data, examples_in(next(iter(training.data)))
    size = int(training.arguments["batch_size"])
    share = float(training.arguments.get("validation_split") or 0)
    trained, _ = rows.parted(training.data, share)
    return padding.batches(rows.as_batches(trained), size), size
