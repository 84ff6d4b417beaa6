"""What does TensorFlow take to start an operation, whatever it computes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.shared.probe import Probe, repeated, without_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.measure.tick import Yielded

_OPERATIONS = 1000


def eager() -> Iterator[Yielded]:
    """Add two numbers, an operation at a time."""
    import tensorflow as tf

    without_gpus()
    one = tf.constant(1.0)
    yield from repeated(lambda: tf.add(one, one), 1)


def graph_call() -> Iterator[Yielded]:
    """Call a function that adds two numbers."""
    import tensorflow as tf

    without_gpus()
    one = tf.constant(1.0)
    add = tf.function(lambda number: tf.add(number, one))
    yield from repeated(lambda: add(one), 1)


def in_a_graph() -> Iterator[Yielded]:
    """Run a graph of a thousand additions, each waiting for the one before."""
    import tensorflow as tf

    without_gpus()
    # It would make one operation of all of them.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    one = tf.constant(1.0)

    def chain(number: tf.Tensor) -> tf.Tensor:
        for _ in range(_OPERATIONS):
            number = tf.add(number, one)
        return number

    graph = tf.function(chain, autograph=False)
    yield from repeated(lambda: graph(one), _OPERATIONS)


GRAPH_CALL = "graph call"
PROBES = (
    Probe(
        name="eager operation",
        group="TensorFlow",
        unit="calls",
        what="adding two numbers, called from Python",
        work=eager,
        tensorflow=True,
    ),
    Probe(
        name=GRAPH_CALL,
        group="TensorFlow",
        unit="calls",
        what="calling a tf.function that adds two numbers",
        work=graph_call,
        tensorflow=True,
    ),
    Probe(
        name="operation in a graph",
        group="TensorFlow",
        unit="calls",
        what="additions in one graph, one after another",
        work=in_a_graph,
        tensorflow=True,
    ),
)
