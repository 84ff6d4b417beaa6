"""How a step is run: eager or as a graph, one at a time or many, compiled or not."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.diagnosis.swap import Swap, Untested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_MANY = 16


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """What ``compile`` offers and the training does not use."""
    if facts.loop:
        return
    if facts.eager:
        yield Swap(
            name="graph",
            cause="eager",
            kind="defect",
            changes="The step is traced once and run as a graph.",
            fix="Leave out run_eagerly=True in model.compile(...).",
            apply=as_graph,
        )
        yield Untested("xla", "an eager step cannot be compiled")
        yield Untested("step-overhead", "an eager step runs one at a time")
        return
    if facts.steps_per_execution < _MANY:
        yield Swap(
            name=f"{_MANY} steps at a time",
            cause="step-overhead",
            kind="by gain",
            changes=f"Back to Python after {_MANY} steps instead of "
            f"{facts.steps_per_execution}.",
            fix=f"model.compile(..., steps_per_execution={_MANY})",
            apply=functools.partial(many_steps, steps=_MANY),
            steps=_MANY,
        )
    if not facts.xla:
        yield Swap(
            name="XLA",
            cause="xla",
            kind="opportunity",
            changes="XLA compiles the step.",
            fix="model.compile(..., jit_compile=True)",
            apply=compiled,
        )


def as_graph(training: Training) -> None:
    """Run the steps as a graph, whoever asked for eager ones."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(False)
    training.model.run_eagerly = False


def many_steps(training: Training, *, steps: int) -> None:
    """Make several steps before going back to Python."""
    training.model.steps_per_execution = steps


def compiled(training: Training) -> None:
    """Let XLA compile the step."""
    training.model.jit_compile = True
