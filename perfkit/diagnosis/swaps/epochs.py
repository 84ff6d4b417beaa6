"""What an epoch costs besides its steps: its validation, and the way to the next."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.diagnosis import validation
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.swaps.observers import group
from perfkit.diagnosis.validating import SHORTENED
from perfkit.diagnosis.validation import without_validation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

ENDLESS = "one endless iterator"
_BOUNDARY = "epoch-boundary"
_BOUNDARY_DEFECT = 1.5
_WITHOUT = "without validation"
# Times as many epochs from one validation to the next.
_SELDOM = 5


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """Validation off; and no end of the data."""
    if facts.loop:
        return
    if facts.validation:
        yield from _validation(facts)
    why = _no_endless(facts)
    if why:
        yield Untested(_BOUNDARY, why)
        return
    yield Swap(
        name=ENDLESS,
        own_pauses=True,
        cause=_BOUNDARY,
        kind="by gain",
        defect_from=_BOUNDARY_DEFECT,
        changes="The data have no end, so that their iterator is made once and not "
        "for each epoch.",
        fix=f"model.fit(dataset.repeat(), steps_per_epoch={facts.steps})",
        apply=without_end,
    )
    yield Swap(
        name="without AUTOTUNE",
        own_pauses=True,
        cause=_BOUNDARY,
        kind="by gain",
        defect_from=_BOUNDARY_DEFECT,
        changes="AUTOTUNE is off, so that no epoch's end waits for its thread.",
        fix="options = tf.data.Options(); options.autotune.enabled = False; "
        "dataset = dataset.with_options(options)",
        apply=without_autotune,
        after=ENDLESS,
    )


def _validation(facts: Facts) -> Iterator[Swap]:
    steps = f" of {facts.validation_steps} steps" if facts.validation_steps else ""
    often = "epoch" if facts.validated == 1 else f"{facts.validated:g} epochs"
    seldom = round(_SELDOM * facts.validated)
    yield Swap(
        name=_WITHOUT,
        cause="validation",
        # It is legitimate work, as long as most of an epoch is training.
        kind="by gain",
        changes=f"No validation{steps} after every {often}.",
        fix=f"model.fit(..., validation_freq={seldom}), or fewer validation_steps, or "
        "a larger batch for the validation data",
        apply=without_validation,
        inferred_if=SHORTENED,
        after=group(facts),
    )
    yield Swap(
        name=f"validation every {seldom} epochs",
        cause="validation",
        kind="by gain",
        changes=f"A validation{steps} after {seldom} epochs instead of every {often}.",
        fix=f"model.fit(..., validation_freq={seldom})",
        apply=functools.partial(validate_seldom, epochs=seldom),
        after=_WITHOUT,
        inferred_if=SHORTENED,
    )


def _no_endless(facts: Facts) -> str:
    if facts.data != "tf.data":
        return f"the iterator over data of this kind ({facts.data}) is Keras's own"
    if facts.endless:
        return "with steps_per_epoch the iterator goes on from epoch to epoch already"
    if not facts.steps:
        return "nobody knows how many steps an epoch has; give steps_per_epoch"
    return ""


def validate_seldom(training: Training, *, epochs: int) -> None:
    """Validate after so many epochs, unless nothing is validated any more."""
    if validation.epochs_between(training.arguments):
        training.arguments["validation_freq"] = epochs


def without_end(training: Training) -> None:
    """Let the data go on; an epoch has as many steps as before."""
    from perfkit.diagnosis.facts import steps_of

    steps = steps_of(training)
    training.data = training.data.repeat()
    training.arguments["steps_per_epoch"] = steps


def without_autotune(training: Training) -> None:
    """Let no thread tune the pipeline while it runs."""
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    training.data = training.data.with_options(options)
