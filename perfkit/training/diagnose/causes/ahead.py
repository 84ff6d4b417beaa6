"""Batches that are made and copied while the model works on the one before."""

import functools
from collections.abc import Iterator
from typing import Any

from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.training.diagnose.change import (
    Candidates,
    Change,
    KnownCause,
    Untested,
    of_data,
)
from perfkit.training.diagnose.code import Code, Splice, line_of_stage
from perfkit.training.diagnose.facts import Facts

# ``tf.data.AUTOTUNE``, for which TensorFlow would have to be loaded.
_AUTOTUNE = -1
_change = functools.partial(Change, after=WITHOUT_INPUT)


def no_prefetch(facts: Facts) -> Candidates:
    """Batches made ahead while the model works."""
    if not facts.stages:
        return
    if facts.pipeline["prefetched"]:
        yield Untested("the pipeline already ends in a prefetch")
    elif facts.pipeline.get("plan", [])[-1:] == ["Prefetch"]:
        yield Untested("TensorFlow adds a prefetch by itself")
    else:
        yield _change(
            name="prefetch",
            changes="The pipeline makes batches ahead while the model works.",
            fix="dataset.prefetch(tf.data.AUTOTUNE) as the last stage",
            apply=of_data(lambda dataset: dataset.prefetch(_AUTOTUNE)),
        )


def host_to_device(facts: Facts) -> Candidates:
    """Batches copied to the GPU ahead."""
    if not facts.stages:
        return
    if not facts.pipeline.get("gpus"):
        yield Untested("there is no GPU to copy batches to")
        return
    yield _change(
        name="copied ahead",
        changes="The next batches are copied to the GPU while it works on this one.",
        fix='dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))',
        apply=of_data(copied_ahead),
    )


def copied_ahead(dataset: Any) -> Any:
    """Let batches be copied to the first GPU ahead; has to come last."""
    import tensorflow as tf

    return dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))


def _type_prefetch(code: Code) -> Iterator[Splice]:
    """Make batches ahead, behind the last stage that ran."""
    calls = [call for _, call in code.stages()]
    data = (calls[-1] if calls else None) or code.data
    method = f".prefetch({code.tensorflow(data)}.data.AUTOTUNE)"
    yield from code.text.call_on(data, method)


def _type_copy(code: Code) -> Iterator[Splice]:
    """Copy batches to the GPU ahead, as the very last stage."""
    copy = 'data.experimental.prefetch_to_device("/GPU:0")'
    method = f".apply({code.tensorflow(code.data)}.{copy})"
    yield from code.text.call_on(code.data, method)


NO_PREFETCH = KnownCause(
    id="no-prefetch",
    kind="defect",
    do="Prefetch batches while the model works",
    means="the pipeline makes no batch while the model works",
    group=WITHOUT_INPUT,
    offer=no_prefetch,
    edit=_type_prefetch,
    line=line_of_stage(),
    of_stages=True,
)
HOST_TO_DEVICE = KnownCause(
    id="host-to-device",
    kind="defect",
    do="Copy the batches to the GPU ahead",
    means="copying its data to the device costs time",
    offer=host_to_device,
    edit=_type_copy,
)
