"""How a step is run: eager or as a graph, unrolled or not, one or many, compiled."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.diagnosis.own_callbacks import see_every_step
from perfkit.diagnosis.swap import Swap, Untested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

_MANY = 16
# The way back to Python takes a few milliseconds at most.
_LONG_S = 0.2
_MOST_NAMES = 3


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """What ``compile`` offers and the training does not use."""
    if facts.loop:
        return
    if facts.unrolled:
        yield _rolled(facts)
    if facts.eager:
        yield Swap(
            name="graph",
            cause="eager",
            kind="defect",
            changes="The step is traced once and run as a graph.",
            fix="Leave out run_eagerly=True in model.compile(...), and "
            "tf.config.run_functions_eagerly(True).",
            apply=as_graph,
        )
        yield Untested("xla", "an eager step cannot be compiled")
        yield Untested("step-overhead", "an eager step runs one at a time")
        return
    many = min(_MANY, facts.steps or _MANY)
    if facts.step_s > _LONG_S:
        step = units.seconds(facts.step_s)
        why = f"of a step of {step} the way back to Python is next to nothing"
        yield Untested("step-overhead", why)
    elif facts.steps_per_execution < many:
        yield _many(facts, many)
    if not facts.xla:
        yield Swap(
            name="XLA",
            cause="xla",
            kind="opportunity",
            changes="XLA compiles the step.",
            fix="model.compile(..., jit_compile=True)",
            apply=compiled,
        )


def _rolled(facts: Facts) -> Swap:
    named = " and ".join(f"`{name}`" for name in facts.unrolled[:_MOST_NAMES])
    return Swap(
        name="not unrolled",
        cause="unrolled",
        kind="defect",
        changes=f"{named} loops over the steps of a sequence, instead of one graph "
        "that holds each of them.",
        fix=f"Leave unroll=True out of {named}; on a GPU that also lets cuDNN run it.",
        apply=rolled,
    )


def _many(facts: Facts, many: int) -> Swap:
    seen = "; callbacks still see every step" if facts.callbacks else ""
    seldom = f"; callbacks are then called once in {many} steps"
    return Swap(
        name=f"{many} steps at a time",
        cause="step-overhead",
        kind="by gain",
        changes=f"Back to Python after {many} steps instead of "
        f"{facts.steps_per_execution}{seen}.",
        fix=f"model.compile(..., steps_per_execution={many})"
        f"{seldom if facts.callbacks else ''}",
        apply=functools.partial(many_steps, steps=many, epoch=facts.steps),
        steps=many,
    )


def rolled(training: Training) -> None:
    """Let recurrent layers loop; what they compute stays the same."""
    from perfkit.diagnosis.facts import unrolled

    for layer in unrolled(training.model):
        layer.unroll = False
    training.trace_anew()


def as_graph(training: Training) -> None:
    """Run the steps as a graph, whoever asked for eager ones."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(False)
    training.model.run_eagerly = False
    training.trace_anew()


def many_steps(training: Training, *, steps: int, epoch: int | None = None) -> None:
    """Make several steps before going back to Python.

    Args:
        training: It is changed.
        steps: At a time.
        epoch: Steps of an epoch, the last execution of which may hold fewer.
    """
    training.model.steps_per_execution = steps
    training.trace_anew()
    see_every_step(training.arguments["callbacks"], epoch)


def compiled(training: Training) -> None:
    """Let XLA compile the step."""
    training.model.jit_compile = True
    training.trace_anew()
