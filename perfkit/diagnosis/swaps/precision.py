"""Fewer bits: float32 instead of float64, half precision where it may pay."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.diagnosis.pipeline.narrowing import narrowed
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps.resident import NAME as CEILING
from perfkit.experiments.shared import precision
from perfkit.experiments.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    Precision,
    expected,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training
    from perfkit.experiments.shared.precision import Hardware

_CAUSE = "precision"
_WORTH_TRYING = ("faster", "open")


def swaps(facts: Facts, machine: Hardware | None = None) -> Iterator[Swap | Untested]:
    """The policies that may pay on this machine.

    Args:
        facts: Of the training.
        machine: What it has for numbers of fewer bits; None to ask this one.
    """
    if facts.loop:
        return
    if facts.policy != FLOAT32:
        yield Untested(_CAUSE, f"the model has a policy already: {facts.policy}")
        return
    machine = machine or precision.here()
    expectations = {
        name: expected(Precision(name, "", policy=name), machine)
        for name in (BFLOAT16, FLOAT16)
    }
    trying = [n for n, found in expectations.items() if found.expect in _WORTH_TRYING]
    yield from (_swap(name) for name in trying)
    if not trying:
        yield Untested(_CAUSE, expectations[BFLOAT16].because)


def wide_data(facts: Facts) -> Iterator[Swap]:
    """Numbers that lie in memory as float64, where the model computes in float32."""
    # Nobody knows what a loop of one's own computes in.
    if facts.loop or facts.policy != FLOAT32 or not facts.pipeline.get("float64"):
        return
    yield Swap(
        name="float32 data",
        cause="float64",
        kind="defect",
        changes="The data lie in memory as float32, and are cast in no step.",
        fix='data.astype("float32") before from_tensor_slices: NumPy makes float64 '
        "unless it is told otherwise",
        apply=cast_once,
        after=CEILING,
    )


def cast_once(training: Training) -> None:
    """Hold the slices that a pipeline begins with as float32."""
    training.data = narrowed(training.data)


def _swap(policy: str) -> Swap:
    return Swap(
        name=policy,
        cause=_CAUSE,
        kind="opportunity",
        changes=f"The layers compute in {policy.removeprefix('mixed_')}, and their "
        "weights stay float32.",
        fix=f'keras.config.set_dtype_policy("{policy}") before the model is made; '
        'give its last layer dtype="float32", and watch the loss.',
        apply=_nothing_more,
        before=functools.partial(choose, policy),
        combines=False,
    )


def choose(policy: str) -> None:
    """Let all layers that are made from now on compute in this policy."""
    import keras

    keras.config.set_dtype_policy(policy)


def _nothing_more(training: Training) -> None:
    """Leave the training as it was made: the policy was chosen before."""
