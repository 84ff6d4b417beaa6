"""What is known of a loop of the user's own, once it has run for a moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.facts import (
    Facts,
    described,
    examples_in,
    open_shapes,
    steps_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.looping import Looping

# Another epoch is waited for so long: its beginning tells that there are more.
_WAIT_S = 2.0


def some_epochs(running: Iterator[object], looping: Looping) -> None:
    """Let a loop that has epochs begin as many as a trial may, each for a step.

    Where it has no more than this sees, its function ends here, too: no trial will
    come so far.
    """
    if not looping.repeated:
        return
    looping.hurry, began = True, time.perf_counter()
    for _ in running:
        enough = looping.begun >= looping.most
        if enough or time.perf_counter() - began > _WAIT_S:
            return


def facts_of_loop(looping: Looping, **seen: Any) -> Facts:
    """Say what was seen of a loop.

    Args:
        looping: Which has heard of its steps.
        **seen: Facts that only timing tells.
    """
    import tensorflow as tf

    training = looping.training
    assert training is not None
    batch, calls = looping.first, looping.calls
    return Facts(
        model="a loop of your own",
        data=training.kind,
        batch=examples_in(batch),
        steps=looping.length or steps_of(training),
        eager=tf.config.functions_run_eagerly(),
        element=tuple(
            described(part)
            for part in tf.nest.flatten(batch)
            if hasattr(part, "shape") and hasattr(part, "dtype")
        ),
        loop=True,
        open_shapes=open_shapes(training),
        settings=training.settings,
        eager_calls=calls.eager(looping.all) if calls else (),
        drawn=calls.drawn(looping.all) if calls else {},
        epochs=min(looping.begun, looping.most) if looping.repeated else 1,
        **seen,
    )
