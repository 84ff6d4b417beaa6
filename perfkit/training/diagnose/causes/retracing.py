"""Functions that are traced again and again, or compiled anew by XLA."""

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.change import Change, KnownCause
from perfkit.training.diagnose.code import line_of_definition
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.training import Training

# The largest shape among so many batches is that of all.
_SEEN = 32


def retracing(facts: Facts) -> Iterator[Change]:
    """Stop tracing anew, where the look has noted it, and compiling anew by XLA."""
    # One batch, again and again, has one shape: the ceiling without input holds that.
    # In a loop nothing takes turns, and what was seen need not wait for a ceiling.
    after = WITHOUT_INPUT if facts.reshaped and not facts.loop else ""
    # Keras manages the signatures of its own functions.
    traces = {n: t for n, t in facts.retraced.items() if not t.get("library")}
    if traces:
        first, trace = next(iter(traces.items()))
        listed = " and ".join(f"`{name}`" for name in list(traces)[:2])
        yield Change(
            name="fixed signature",
            changes=f"{listed} keeps its signature: {_describe_changes(trace)}.",
            fix=_fix(first, trace),
            before=functools.partial(tracing.fix, traces),
            after=after,
        )
    if facts.open_shapes and (facts.xla or facts.reshaped):
        yield Change(
            name="one shape",
            changes="Every batch is padded or cut to the same shape.",
            fix="padded_batch(..., padded_shapes=...), or "
            "bucket_by_sequence_length with a few lengths; mask the padding.",
            do="Give all batches the same shape",
            apply=one_shape,
            after=WITHOUT_INPUT,
        )


def one_shape(training: Training) -> None:
    """Pad or cut every batch to the largest shape that the first ones have."""
    import tensorflow as tf

    batches = list(itertools.islice(training.data, _SEEN))
    flat = [tf.nest.flatten(batch) for batch in batches]
    largest: list[tuple[int, ...]] = []
    for column in zip(*flat, strict=True):
        # Without the batch axis: a smaller last batch stays smaller.
        shapes = (tuple(part.shape)[1:] for part in column)
        largest.append(tuple(map(max, zip(*shapes, strict=True))))

    def shaped(*batch: Any) -> Any:
        parts = tf.nest.flatten(batch)
        resized = [_to_shape(p, s) for p, s in zip(parts, largest, strict=True)]
        packed = tf.nest.pack_sequence_as(batch, resized)
        return packed if len(packed) > 1 else packed[0]

    training.data = training.data.map(shaped, num_parallel_calls=1)


def _to_shape(part: Any, sizes: tuple[int, ...]) -> Any:
    import tensorflow as tf

    if not sizes:
        return part
    cut = part[(slice(None), *(slice(size) for size in sizes))]
    missing = [s - n for s, n in zip(sizes, tf.unstack(tf.shape(cut))[1:], strict=True)]
    padded = tf.pad(cut, [[0, 0], *([0, count] for count in missing)])
    return tf.ensure_shape(padded, (None, *sizes))


def _describe_changes(trace: Mapping[str, Any]) -> str:
    ways = {
        "value": "Python numbers become tensors",
        "shape": "sizes that change are left open",
        "dtype": "each dtype is traced once",
    }
    clauses = [ways[kind] for kind in dict.fromkeys(trace["changed"].values())]
    return ", ".join([*clauses, *(["it is made once"] if trace["made_anew"] else [])])


def _fix(name: str, trace: Mapping[str, Any]) -> str:
    if trace["made_anew"]:
        return f"Call tf.function once for `{name}`, outside the loop."
    numbers = [a for a, kind in trace["changed"].items() if kind == "value"]
    because = f" ({trace['because'][0]})" if trace["because"] else ""
    if numbers:
        arguments = ", ".join(f"{a}=tf.constant({a})" for a in numbers)
        return f"Call `{name}` with {arguments}: a new number retraces{because}."
    return (
        f"@tf.function(reduce_retracing=True) on `{name}`, or batches of one "
        f"shape{because}."
    )


RETRACING = KnownCause(
    id="retracing",
    kind="defect",
    do="Stop retracing: trace each function once",
    means="TensorFlow traces its step again and again",
    offer=retracing,
    line=lambda code: line_of_definition(code, *code.facts.get("retraced") or ()),
    masks=True,
    everywhere=True,
)
