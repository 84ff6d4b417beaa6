"""Do all ways of executing a training learn the same?

Each makes the same few steps from the same weights, and so does a plain loop that is
written here without ``tf.function``, ``fit`` or an optimizer. The weights must have
moved to the same place. A way that learns something else must not be timed.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from perfkit.experiments.shared import loops

if TYPE_CHECKING:
    from collections.abc import Iterable

    import keras
    import numpy as np
    from numpy.typing import NDArray

    from perfkit.experiments.execution_mode.ways import Way
    from perfkit.experiments.shared.loops import Feed, Job

    Weights = NDArray[np.float64]

STEPS = 8
# XLA adds in another order, which was seen to make a thirtieth of this; one step more
# or less would be an eighth of the way.
_TOLERANCE = 0.01


def differences(ways: Iterable[Way], job: Job) -> dict[str, str]:
    """Say of each way that does not learn what it should how it differs, by name."""
    short = job.first(STEPS)
    wanted = dict[str, Any]()
    found = dict[str, str]()
    for way in ways:
        if way.feed not in wanted:
            wanted[way.feed] = expected(short, way.feed)
        difference = _difference(way, short, wanted[way.feed])
        if difference:
            found[way.name] = difference
    return found


def expected(job: Job, feed: Feed) -> Weights:
    """How far the weights move in ``job.steps`` steps of plain gradient descent."""
    import tensorflow as tf

    network, loss_of = job.network(), loops.loss_function()
    start = _weights(network)
    for features, labels in job.batches(feed):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(features, training=True))
        slopes = tape.gradient(loss, network.trainable_variables)
        for weight, slope in zip(network.trainable_variables, slopes, strict=True):
            weight.assign_sub(loops.LEARNING_RATE * slope)
    return _weights(network) - start


def _difference(way: Way, job: Job, wanted: Weights) -> str:
    import numpy as np
    import tensorflow as tf

    network = job.network()
    start = _weights(network)
    try:
        collections.deque(way.run(job, network), maxlen=0)
    except tf.errors.OpError:
        # What cannot run at all says so in its trial, and only there for sure.
        return ""
    moved = _weights(network) - start
    apart = float(np.linalg.norm(moved - wanted) / np.linalg.norm(wanted))
    if apart <= _TOLERANCE:
        return ""
    return (
        f"does not learn what the others learn: after {job.steps} steps its weights "
        f"are {100 * apart:.0f} % of the way from where they should be"
    )


def _weights(network: keras.Model) -> Weights:
    import numpy as np

    return np.concatenate([np.ravel(one) for one in network.get_weights()])
