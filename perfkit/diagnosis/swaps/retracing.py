"""Functions that are traced again and again: signatures fixed, shapes made one."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import signatures
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps import resident

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

NAME, ONE_SHAPE = "fixed signature", "one shape"
# The largest shape among so many batches is that of all.
_SEEN = 32


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """What stops tracing anew, where the look has seen it; and XLA's compiling anew."""
    # One batch, again and again, has one shape: the ceiling without input holds that.
    after = resident.NAME if reshaped(facts) else ""
    if facts.retraced:
        first, known = next(iter(facts.retraced.items()))
        yield Swap(
            name=NAME,
            cause="retracing",
            kind="defect",
            changes=f"{_named(facts.retraced)} keeps its signature: {_what(known)}.",
            fix=_fix(first, known),
            apply=_nothing_more,
            before=functools.partial(signatures.fix, facts.retraced),
            after=after,
        )
    if facts.open_shapes and (facts.xla or reshaped(facts)):
        yield Swap(
            name=ONE_SHAPE,
            cause="retracing",
            kind="defect",
            changes="Every batch is padded, or cut, to the same shape.",
            fix="Give all batches one shape: padded_batch(..., padded_shapes=...), or "
            "bucket_by_sequence_length with a few lengths; mask what is padding.",
            apply=one_shape,
            after=resident.NAME,
        )


def reshaped(facts: Facts) -> bool:
    """Whether the shapes of the batches are what is traced anew."""
    return any(
        "shape" in known["changed"].values() for known in facts.retraced.values()
    )


def one_shape(training: Training) -> None:
    """Pad or cut every batch to the largest shape that the first ones have."""
    import tensorflow as tf

    batches = list(itertools.islice(training.data, _SEEN))
    flat = [tf.nest.flatten(batch) for batch in batches]
    largest = [
        _largest([one.shape for one in parts]) for parts in zip(*flat, strict=True)
    ]

    def shaped(*batch: Any) -> Any:
        parts = tf.nest.flatten(batch)
        same = [_to_shape(p, s) for p, s in zip(parts, largest, strict=True)]
        packed = tf.nest.pack_sequence_as(batch, same)
        return packed if len(packed) > 1 else packed[0]

    training.data = training.data.map(shaped, num_parallel_calls=1)


def _largest(shapes: list[Any]) -> tuple[int, ...]:
    # The number of examples stays: a smaller last batch is no padding.
    rest = [tuple(shape)[1:] for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*rest, strict=True))


def _to_shape(part: Any, sizes: tuple[int, ...]) -> Any:
    import tensorflow as tf

    if not sizes:
        return part
    cut = part[(slice(None), *(slice(size) for size in sizes))]
    missing = [s - n for s, n in zip(sizes, tf.unstack(tf.shape(cut))[1:], strict=True)]
    padded = tf.pad(cut, [[0, 0], *([0, more] for more in missing)])
    return tf.ensure_shape(padded, (None, *sizes))


def _nothing_more(training: Training) -> None:
    """All was done before the training was made."""


def _named(retraced: Mapping[str, Any]) -> str:
    return " and ".join(f"`{name}`" for name in list(retraced)[:2])


def _what(known: Mapping[str, Any]) -> str:
    ways = {
        "value": "numbers of Python become tensors",
        "shape": "shapes that change are left open",
        "dtype": "each dtype is traced once",
    }
    done = [ways[what] for what in dict.fromkeys(known["changed"].values())]
    return ", ".join([*done, *(["it is made once"] if known["made_anew"] else [])])


def _fix(name: str, known: Mapping[str, Any]) -> str:
    if known["made_anew"]:
        return f"Call tf.function once for `{name}`, outside of the loop."
    numbers = [a for a, what in known["changed"].items() if what == "value"]
    because = f" ({known['because'][0]})" if known["because"] else ""
    if numbers:
        given = ", ".join(f"{a}=tf.constant({a})" for a in numbers)
        return f"Call `{name}` with {given}: each new number is traced{because}."
    return (
        f"@tf.function(reduce_retracing=True) on `{name}`, or batches of one "
        f"shape{because}."
    )
