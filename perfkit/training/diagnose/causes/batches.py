"""Batches: with less padding in each of them, and made ahead of the model."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfkit.errors import BadParameterError
from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose.change import (
    Candidates,
    Change,
    KnownCause,
    Untested,
    of_data,
)
from perfkit.training.diagnose.code import Code, Splice, line_of_stage, require
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.training import (
    Training,
    as_batches,
    examples_in,
    first_batch,
    parted,
)

# So many batches decide where lengths are split, into so many buckets.
_SEEN, _PARTS = 8, 4
_SHUFFLED = 10_000


def padding(facts: Facts) -> Candidates:
    """Batches of texts of similar length, cut to their longest."""
    if not facts.padded:
        return
    if facts.pipeline.get("cached") or facts.data not in ("tf.data", "arrays"):
        yield Untested("perfkit cannot cut the padding where its texts come from")
        return
    yield Change(
        name="buckets of similar length",
        changes="A batch holds texts of similar length, cut to its longest.",
        fix="dataset.bucket_by_sequence_length(...) on unpadded texts. This changes "
        "which texts share a batch: watch the validation loss.",
        do="Batch texts of similar length together",
        mind="Each batch is then less random, so shuffle first.",
        apply=functools.partial(cut_by_length, padding=facts.padded),
        # Fewer or other words in a batch may change what is learnt.
        combines=False,
    )


def _boundaries_of(dataset: Any, size: int) -> list[int]:
    """Return the lengths at which a dataset of lengths is split into buckets."""
    lengths = [int(n) for n in dataset.take(_SEEN * size)]
    parted = np.unique(np.quantile(lengths, np.arange(1, _PARTS) / _PARTS))
    boundaries = sorted({int(edge) + 1 for edge in parted if edge < max(lengths)})
    if not boundaries:
        raise BadParameterError("All examples have one length: there is no padding.")
    return boundaries


def cut_by_length(training: Training, *, padding: dict[str, Any]) -> None:
    """Put texts of similar length into a batch, and cut it to the longest of them.

    Raises:
        BadParameterError: All texts have one length.
    """
    import tensorflow as tf

    def length(*text: Any) -> Any:
        row = tf.nest.flatten(text)[padding["part"]]
        return _length_of_row(row, padding["front"])

    batches, size = _batches(training)
    examples = batches.unbatch()
    boundaries = _boundaries_of(examples.map(length), size)
    texts = examples.bucket_by_sequence_length(
        length,
        bucket_boundaries=boundaries,
        bucket_batch_sizes=[size] * (len(boundaries) + 1),
        no_padding=True,
    )
    training.replace_data(_cut(texts, padding))


def _batches(training: Training) -> tuple[Any, int]:
    """Return the batches that are trained on, and the number of examples in each."""
    import tensorflow as tf

    if training.kind == "tf.data":
        return training.data, examples_in(first_batch(training))
    size = int(training.arguments["batch_size"])
    share = float(training.arguments.get("validation_split") or 0)
    trained, _ = parted(training.data, share)
    # As ``fit`` gives them.
    examples = tf.data.Dataset.from_tensor_slices(as_batches(trained))
    return examples.shuffle(_SHUFFLED).batch(size), size


def _cut(dataset: Any, padding: dict[str, Any]) -> Any:
    """The batches, each cut to the longest of its texts."""
    import tensorflow as tf

    def cut(*batch: Any) -> Any:
        parts = tf.nest.flatten(batch)
        rows = parts[padding["part"]]
        front = padding["front"]
        length = _length_of_row(rows, front)
        parts[padding["part"]] = rows[:, -length:] if front else rows[:, :length]
        return tf.nest.pack_sequence_as(batch, parts)

    return dataset.map(cut, num_parallel_calls=tf.data.AUTOTUNE).prefetch(1)


def _length_of_row(row: Any, front: bool) -> Any:
    """The length of a row without its padding, or the longest of several."""
    import tensorflow as tf

    words = tf.reduce_any(tf.reshape(row != 0, (-1, tf.shape(row)[-1])), axis=0)
    places = tf.where(words)[:, 0]
    width = tf.shape(row, tf.int64)[-1]
    longest = width - tf.reduce_min(places) if front else tf.reduce_max(places) + 1
    return tf.cast(
        tf.cond(tf.size(places) > 0, lambda: longest, lambda: width), tf.int32
    )


PADDING = KnownCause(
    id="padding",
    kind="by gain",
    do="Pad each batch only to its longest example",
    means="it computes on padding",
    offer=padding,
)

# ``tf.data.AUTOTUNE``, for which TensorFlow would have to be loaded.
_AUTOTUNE = -1


def no_prefetch(facts: Facts) -> Candidates:
    """Batches made ahead while the model works."""
    if not facts.stages:
        return
    if facts.pipeline["prefetched"]:
        yield Untested("the pipeline already ends in a prefetch")
    elif facts.pipeline["rewrites"] and not _runs_ahead(facts.stages):
        yield Untested("TensorFlow adds a prefetch by itself")
    else:
        yield Change(
            name="prefetch",
            changes="The pipeline makes batches ahead while the model works.",
            fix="dataset.prefetch(tf.data.AUTOTUNE) as the last stage",
            apply=of_data(lambda dataset: dataset.prefetch(_AUTOTUNE)),
            after=WITHOUT_INPUT,
        )


def _runs_ahead(stages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last stage may work ahead as it is: TensorFlow adds no prefetch then.

    It makes a map parallel, and one stage of a map and the batch behind it.
    """
    last = [stage for stage in stages if stage["kind"] != "options"][-2:]
    kinds = [stage["kind"] for stage in last]
    is_parallel = any(stage["parallel"] for stage in last[-1:])
    return is_parallel or kinds[-1:] == ["map"] or kinds == ["map", "batch"]


def _type_prefetch(code: Code) -> Iterator[Splice]:
    """Make batches ahead, behind the last stage that ran."""
    calls = [call for _, call in code.stages()]
    method = f".prefetch({code.tensorflow}.data.AUTOTUNE)"
    yield from code.text.call_on(require(calls[-1]), method)


NO_PREFETCH = KnownCause(
    id="no-prefetch",
    kind="defect",
    do="Prefetch batches while the model works",
    means="the pipeline makes no batch while the model works",
    group=WITHOUT_INPUT,
    offer=no_prefetch,
    edit=_type_prefetch,
    line=line_of_stage(),
    of_stages=True,
)
