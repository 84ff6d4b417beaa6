"""The training as given, or with some things changed, as a trial runs it."""

import contextlib
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from perfkit.diagnosis.change import Change
from perfkit.diagnosis.changes.lines import remember
from perfkit.diagnosis.epochs import Epochs, fitted
from perfkit.diagnosis.facts import Facts
from perfkit.diagnosis.loop import Looping
from perfkit.diagnosis.maker import contain
from perfkit.diagnosis.pipeline.memory import Worth, fill_caches
from perfkit.diagnosis.tracing import Tracing, noted
from perfkit.diagnosis.training import Training, handed_over
from perfkit.experiments.shared.loops import Told

# Steps of an epoch in a trial fill so many seconds, where real ones take longer.
_EPOCH_S = 0.35
_FEWEST = 4
# Of steps that take longer than this fewer have to do.
_LONG_S, _FEWEST_LONG = 0.4, 2
_SHORTER = 1.5
# Steps for which a cache is filled where nobody knows how many an epoch has.
_MANY = 64


def trial(
    maker: Callable[[], Any], facts: Facts, changes: Sequence[Change] = ()
) -> Generator[Told]:
    """Train as the maker has it, with these things changed, and touch nothing else."""
    contain(maker)
    yield from contained(maker, facts, changes)


def contained(
    maker: Callable[[], Any], facts: Facts, changes: Sequence[Change] = ()
) -> Generator[Told]:
    """Train so in a process that has no way to the user's files any more."""
    epochs = epochs_for(facts, changes)
    if facts.lines:
        remember(maker)
    looping = Looping(epochs, most=facts.epochs, changes=changes)

    def making() -> Training | None:
        for change in changes:
            change.before()
        returned = maker()
        if looping.training:
            return None
        training = handed_over(returned)
        apply(training, facts, changes, epochs)
        return training

    traces = Tracing()
    traces.look()
    with contextlib.closing(fitted(making, epochs, looping)) as ticks:
        yield from noted(ticks, traces, epochs.batch)


def apply(
    training: Training, facts: Facts, changes: Sequence[Change], epochs: Epochs
) -> None:
    """Change these things in a training that has been made, and fill its caches.

    Its epochs are those that it has with these things changed.
    """
    for change in changes:
        change.apply(training)
    if facts.pipeline.get("cached"):
        steps = epochs.trial_steps or facts.steps or _MANY
        fill_caches(training, Worth(steps, facts.steps))


def _loop_epochs(facts: Facts) -> Epochs:
    # The one epoch of a loop that has no more never ends in a trial.
    if facts.epochs == 1 or not facts.steps:
        return Epochs(batch=facts.batch)
    fitting = _steps_in(facts.step_s or _EPOCH_S)
    whole = facts.pipeline.get("cached") or fitting >= facts.steps / _SHORTER
    return Epochs(
        batch=facts.batch,
        steps=facts.steps,
        trial_steps=None if whole else fitting,
    )


def _steps_in(step_s: float, at_a_time: int = 1) -> int:
    """Steps of an epoch of a trial."""
    fewest = _FEWEST if step_s < _LONG_S else _FEWEST_LONG
    return max(fewest * at_a_time, round(_EPOCH_S / step_s))


def epochs_for(facts: Facts, changes: Sequence[Change] = ()) -> Epochs:
    """How long the epochs of a trial are."""
    if facts.loop:
        return _loop_epochs(facts)
    times = next((one.batches for one in changes if one.batches != 1), 1)
    at_a_time = max([facts.steps_per_execution, *(one.steps for one in changes)])
    steps = math.ceil(facts.steps / times) if facts.steps else None
    epochs = Epochs(
        batch=round(facts.batch * times),
        steps=steps,
        examples=(facts.steps or 0) * facts.batch,
        validation=facts.validation_steps,
        validated=facts.validated,
    )
    if not steps:
        return epochs
    step_s = facts.step_s * times or _EPOCH_S
    fitting = _steps_in(step_s, at_a_time)
    if facts.pipeline.get("hidden cache") or fitting >= steps / _SHORTER:
        # An epoch of few executions has no ticks but its own.
        whole = steps * step_s < _EPOCH_S or steps <= _FEWEST * at_a_time
        return replace(epochs, whole=whole)
    return replace(epochs, trial_steps=fitting)
