"""The training as given, or with some things swapped, as a trial runs it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perfkit.diagnosis.epochs import Epochs, fitted
from perfkit.diagnosis.training import Training, made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.swap import Swap
    from perfkit.workloads.execution.inside_fit import Told

# Steps of an epoch in a trial fill so many seconds, where real ones take longer.
_EPOCH_S = 0.35
_FEWEST = 4
_SHORTER = 1.5


def trial(
    maker: Callable[[], Any], facts: Facts, swaps: Sequence[Swap] = ()
) -> Iterator[Told]:
    """Train as the maker has it, with these things swapped.

    Args:
        maker: Makes the training.
        facts: What is known of it.
        swaps: What to swap; none for the training as given.
    """

    def making() -> Training:
        for swap in swaps:
            swap.before()
        training = made(maker)
        for swap in swaps:
            swap.apply(training)
        return training

    with contextlib.closing(fitted(making, epochs_for(facts, swaps))) as ticks:
        yield from ticks


def epochs_for(facts: Facts, swaps: Sequence[Swap] = ()) -> Epochs:
    """How long the epochs of a trial are."""
    times = max([1, *(swap.batches for swap in swaps)])
    at_a_time = max([facts.steps_per_execution, *(swap.steps for swap in swaps)])
    steps = -(-facts.steps // times) if facts.steps else None
    epochs = Epochs(
        batch=facts.batch * times,
        steps=steps,
        examples=(facts.steps or 0) * facts.batch,
        validation=facts.validation_steps,
        validated=facts.validated,
    )
    if not steps:
        return epochs
    step_s = facts.step_s * times or _EPOCH_S
    fitting = max(_FEWEST * at_a_time, round(_EPOCH_S / step_s))
    if facts.pipeline.get("cached") or fitting >= steps / _SHORTER:
        # An epoch of few executions has no ticks but its own.
        whole = steps * step_s < _EPOCH_S or steps <= _FEWEST * at_a_time
        return replace(epochs, whole=whole)
    return replace(epochs, trial_steps=fitting)
