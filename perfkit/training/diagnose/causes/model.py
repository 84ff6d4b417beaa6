"""What a step is made for: so many examples, so many bits, and some signatures."""

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from perfkit.findings.diagnosis import WITHOUT_INPUT
from perfkit.questions.shared import precision
from perfkit.questions.shared.precision import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    PRECISIONS,
    Hardware,
    expected,
    use_policy,
)
from perfkit.training.diagnose import tracing
from perfkit.training.diagnose.causes.steps import UNCOUNTED
from perfkit.training.diagnose.change import Candidates, Change, KnownCause, Untested
from perfkit.training.diagnose.code import line_of_definition, line_of_stage
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.training import (
    BATCH,
    Training,
    examples_in,
    see_every_step,
    steps_of,
)

# The others are tried only where the first one brings something.
_TIMES = (4, 2, 8)
# A batch of this many is no small one: what more of it spares is the way to each step.
_USUAL = 16


def batch(facts: Facts) -> Candidates:
    """Make batches larger, as long as the data fill one."""
    if facts.data not in ("arrays", "tf.data"):
        yield Untested("perfkit joins no batches that your own Python makes")
        return
    largest = facts.steps or max(_TIMES)
    fitting = [times for times in _TIMES if times <= largest]
    if not fitting:
        yield Untested("one batch already holds all the data")
    note = "; callbacks see as many batches as before" if facts.callbacks else ""
    if not facts.counted and facts.steps_per_execution > 1:
        yield Untested(UNCOUNTED)
        return
    for times in fitting:
        size = f" ({facts.batch * times} examples)" if facts.batch > 1 else ""
        yield Change(
            name=f"batch ×{times}",
            changes=f"{times} times as many examples in a batch{size}{note}.",
            fix=f"A batch {times} times as large{size}. Tune the learning rate again "
            "and watch the validation loss, because the model learns differently.",
            do=f"Make the batch {times} times as large",
            apply=functools.partial(enlarge, times=times),
            after="" if times == fitting[0] else f"batch ×{fitting[0]}",
            batches=times,
            combines=False,
            spares="step-overhead" if facts.batch >= _USUAL else "",
        )


def enlarge(training: Training, *, times: int) -> None:
    """Put so many batches into one; validation and callbacks keep their own."""
    arguments, data = training.arguments, training.data
    see_every_step(arguments["callbacks"], steps_of(training), times)
    if arguments.get("steps_per_epoch"):
        arguments["steps_per_epoch"] = math.ceil(arguments["steps_per_epoch"] / times)
    if training.kind == "arrays":
        size = int(arguments.get("batch_size") or BATCH)
        arguments.setdefault("validation_batch_size", size)
        arguments["batch_size"] = size * times
    else:
        training.data = data.rebatch(examples_in(next(iter(data))) * times)


SMALL_BATCH = KnownCause(
    id="small-batch",
    kind="opportunity",
    do="Make the batch larger",
    means="its batch is small for this machine",
    mind="A larger batch learns differently: tune the learning rate again, and watch "
    "the validation loss.",
    offer=batch,
    line=line_of_stage(lambda stage: stage["kind"] == "batch"),
    needs_fit=True,
)

_WORTH_TRYING = ("faster", "open")
# What a step of the user's own has to do besides.
_SCALED = {
    BFLOAT16: "",
    FLOAT16: " Your own `train_step` must use `optimizer.scale_loss(loss)`, because "
    "the optimizer divides the gradients by that scale.",
}


def precisions(facts: Facts, machine: Hardware | None = None) -> Candidates:
    """The policies that may pay on a machine; on this one where none is given."""
    if facts.policy != FLOAT32:
        yield Untested(f"the model already has a policy: {facts.policy}")
        return
    machine = machine or precision.read_hardware()
    expectations = {
        name: expected(PRECISIONS[name], machine) for name in (BFLOAT16, FLOAT16)
    }
    trying = [n for n in expectations if expectations[n].expect in _WORTH_TRYING]
    for policy in trying:
        yield Change(
            name=policy,
            changes=f"The layers compute in {PRECISIONS[policy].dtype}, and their "
            "weights stay float32.",
            fix=f'keras.config.set_dtype_policy("{policy}") before the model is made; '
            'give its last layer dtype="float32", and watch the loss.'
            f"{_SCALED[policy]}",
            do=f"Train with {PRECISIONS[policy].dtype}",
            before=functools.partial(use_policy, policy),
            combines=False,
        )
    if not trying:
        yield Untested(expectations[BFLOAT16].because)


PRECISION = KnownCause(
    id="precision",
    kind="opportunity",
    do="Train with mixed precision",
    means="it computes with more bits than it may need",
    mind="Fewer bits may change what is learnt: watch the loss.",
    offer=precisions,
    needs_fit=True,
)

# The largest shape among so many batches is that of all.
_SEEN = 32


def retracing(facts: Facts) -> Iterator[Change]:
    """Stop tracing anew, where the look has noted it, and compiling anew by XLA."""
    # One batch, again and again, has one shape: the ceiling without input holds that.
    # In a loop nothing takes turns, and what was seen need not wait for a ceiling.
    after = WITHOUT_INPUT if facts.reshaped and not facts.loop else ""
    # Keras manages the signatures of its own functions.
    traces = {n: t for n, t in facts.retraced.items() if not t.get("library")}
    if traces:
        first, trace = next(iter(traces.items()))
        listed = " and ".join(f"`{name}`" for name in list(traces)[:2])
        yield Change(
            name="fixed signature",
            changes=f"{listed} keeps its signature: {_describe_changes(trace)}.",
            fix=_fix(first, trace),
            before=functools.partial(tracing.fix, traces),
            after=after,
        )
    if facts.open_shapes and (facts.xla or facts.reshaped):
        yield Change(
            name="one shape",
            changes="Every batch is padded or cut to the same shape.",
            fix="padded_batch(..., padded_shapes=...), or "
            "bucket_by_sequence_length with a few lengths; mask the padding.",
            do="Give all batches the same shape",
            apply=one_shape,
            after=WITHOUT_INPUT,
        )


def one_shape(training: Training) -> None:
    """Pad or cut every batch to the largest shape that the first ones have."""
    import tensorflow as tf

    batches = list(itertools.islice(training.data, _SEEN))
    flat = [tf.nest.flatten(batch) for batch in batches]
    largest: list[tuple[int, ...]] = []
    for column in zip(*flat, strict=True):
        # Without the batch axis: a smaller last batch stays smaller.
        shapes = (tuple(part.shape)[1:] for part in column)
        largest.append(tuple(map(max, zip(*shapes, strict=True))))

    def shaped(*batch: Any) -> Any:
        parts = tf.nest.flatten(batch)
        resized = [_to_shape(p, s) for p, s in zip(parts, largest, strict=True)]
        packed = tf.nest.pack_sequence_as(batch, resized)
        return packed if len(packed) > 1 else packed[0]

    training.data = training.data.map(shaped, num_parallel_calls=1)


def _to_shape(part: Any, sizes: tuple[int, ...]) -> Any:
    import tensorflow as tf

    if not sizes:
        return part
    cut = part[(slice(None), *(slice(size) for size in sizes))]
    missing = [s - n for s, n in zip(sizes, tf.unstack(tf.shape(cut))[1:], strict=True)]
    padded = tf.pad(cut, [[0, 0], *([0, count] for count in missing)])
    return tf.ensure_shape(padded, (None, *sizes))


def _describe_changes(trace: Mapping[str, Any]) -> str:
    ways = {
        "value": "Python numbers become tensors",
        "shape": "sizes that change are left open",
        "dtype": "each dtype is traced once",
    }
    clauses = [ways[kind] for kind in dict.fromkeys(trace["changed"].values())]
    return ", ".join([*clauses, *(["it is made once"] if trace["made_anew"] else [])])


def _fix(name: str, trace: Mapping[str, Any]) -> str:
    if trace["made_anew"]:
        return f"Call tf.function once for `{name}`, outside the loop."
    numbers = [a for a, kind in trace["changed"].items() if kind == "value"]
    because = f" ({trace['because'][0]})" if trace["because"] else ""
    if numbers:
        arguments = ", ".join(f"{a}=tf.constant({a})" for a in numbers)
        return f"Call `{name}` with {arguments}: a new number retraces{because}."
    return (
        f"@tf.function(reduce_retracing=True) on `{name}`, or batches of one "
        f"shape{because}."
    )


RETRACING = KnownCause(
    id="retracing",
    kind="defect",
    do="Stop retracing: trace each function once",
    means="TensorFlow traces its step again and again",
    offer=retracing,
    line=lambda code: line_of_definition(code, *code.facts.get("retraced") or ()),
    masks=True,
    everywhere=True,
)
