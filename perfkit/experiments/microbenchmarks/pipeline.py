"""What does tf.data cost for every element, whatever is done with it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.shared.probe import Probe, repeated, without_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.tick import Yielded

_BATCH = 1000
_WITHOUT_END = 10**15


def map_elements() -> Iterator[Yielded]:
    """Take batches of numbers to each of which a map adds one."""
    import tensorflow as tf

    without_gpus()
    options = tf.data.Options()
    # The default rewrites would map all numbers of a batch at once.
    options.experimental_optimization.apply_default_optimizations = False
    numbers = tf.data.Dataset.range(_WITHOUT_END).map(lambda number: number + 1)
    batches = iter(numbers.batch(_BATCH).with_options(options))
    yield from repeated(lambda: next(batches), _BATCH)


PROBES = (
    Probe(
        name="tf.data map",
        group="pipeline",
        unit="elements",
        what="a map that adds 1, number by number",
        work=map_elements,
        tensorflow=True,
    ),
)
