"""Batches, and what a step is made for: so many examples, so many bits, signatures."""

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfkit.errors import BadParameterError
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
from perfkit.training.diagnose.causes.stages import AUTOTUNE
from perfkit.training.diagnose.causes.steps import UNCOUNTED
from perfkit.training.diagnose.change import (
    Candidates,
    Change,
    KnownCause,
    Untested,
    of_data,
)
from perfkit.training.diagnose.code import (
    Code,
    Splice,
    line_of_definition,
    line_of_stage,
    require,
)
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.training import (
    BATCH,
    Training,
    as_batches,
    examples_in,
    first_batch,
    parted,
    see_every_step,
    steps_of,
)

# So many batches decide where lengths are split, into so many buckets.
_SEEN, _PARTS = 8, 4
_SHUFFLED = 10_000


def padding(facts: Facts) -> Candidates:
    """Batches of texts of similar length, cut to their longest."""
    if not facts.padded:
        return
    if facts.pipeline.get("cached") or facts.data not in ("tf.data", "arrays"):
        yield Untested("perfkit cannot cut the padding where its texts come from")
        return
    yield Change(
        name="buckets of similar length",
        changes="A batch holds texts of similar length, cut to its longest.",
        fix="dataset.bucket_by_sequence_length(...) on unpadded texts. This changes "
        "which texts share a batch: watch the validation loss.",
        do="Batch texts of similar length together",
        mind="Each batch is then less random, so shuffle first.",
        apply=functools.partial(cut_by_length, padding=facts.padded),
        # Fewer or other words in a batch may change what is learnt.
        combines=False,
    )


def _boundaries_of(dataset: Any, size: int) -> list[int]:
    """Return the lengths at which a dataset of lengths is split into buckets."""
    lengths = [int(n) for n in dataset.take(_SEEN * size)]
    parted = np.unique(np.quantile(lengths, np.arange(1, _PARTS) / _PARTS))
    boundaries = sorted({int(edge) + 1 for edge in parted if edge < max(lengths)})
    if not boundaries:
        raise BadParameterError("All examples have one length: there is no padding.")
    return boundaries


def cut_by_length(training: Training, *, padding: dict[str, Any]) -> None:
    """Put texts of similar length into a batch, and cut it to the longest of them."""
    import tensorflow as tf

    def length(*text: Any) -> Any:
        row = tf.nest.flatten(text)[padding["part"]]
        return _length_of_row(row, padding["front"])

    batches, size = _batches(training)
    examples = batches.unbatch()
    boundaries = _boundaries_of(examples.map(length), size)
    texts = examples.bucket_by_sequence_length(
        length,
        bucket_boundaries=boundaries,
        bucket_batch_sizes=[size] * (len(boundaries) + 1),
        no_padding=True,
    )
    training.replace_data(_cut(texts, padding))


def _batches(training: Training) -> tuple[Any, int]:
    """Return the batches that are trained on, and the number of examples in each."""
    import tensorflow as tf

    if training.kind == "tf.data":
        return training.data, examples_in(first_batch(training))
    size = int(training.arguments["batch_size"])
    share = float(training.arguments.get("validation_split") or 0)
    trained, _ = parted(training.data, share)
    # As ``fit`` gives them.
    examples = tf.data.Dataset.from_tensor_slices(as_batches(trained))
    return examples.shuffle(_SHUFFLED).batch(size), size


def _cut(dataset: Any, padding: dict[str, Any]) -> Any:
    """The batches, each cut to the longest of its texts."""
    import tensorflow as tf

    def cut(*batch: Any) -> Any:
        parts = tf.nest.flatten(batch)
        rows = parts[padding["part"]]
        front = padding["front"]
        length = _length_of_row(rows, front)
        parts[padding["part"]] = rows[:, -length:] if front else rows[:, :length]
        return tf.nest.pack_sequence_as(batch, parts)

    return dataset.map(cut, num_parallel_calls=tf.data.AUTOTUNE).prefetch(1)


def _length_of_row(row: Any, front: bool) -> Any:
    """The length of a row without its padding, or the longest of several."""
    import tensorflow as tf

    words = tf.reduce_any(tf.reshape(row != 0, (-1, tf.shape(row)[-1])), axis=0)
    places = tf.where(words)[:, 0]
    width = tf.shape(row, tf.int64)[-1]
    longest = width - tf.reduce_min(places) if front else tf.reduce_max(places) + 1
    return tf.cast(
        tf.cond(tf.size(places) > 0, lambda: longest, lambda: width), tf.int32
    )


PADDING = KnownCause(
    id="padding",
    kind="by gain",
    do="Pad each batch only to its longest example",
    means="it computes on padding",
    offer=padding,
)


def no_prefetch(facts: Facts) -> Candidates:
    """Batches made ahead while the model works."""
    if not facts.stages:
        return
    if facts.pipeline["prefetched"]:
        yield Untested("the pipeline already ends in a prefetch")
    elif facts.pipeline["rewrites"] and not _runs_ahead(facts.stages):
        yield Untested("TensorFlow adds a prefetch by itself")
    else:
        yield Change(
            name="prefetch",
            changes="The pipeline makes batches ahead while the model works.",
            fix="dataset.prefetch(tf.data.AUTOTUNE) as the last stage",
            apply=of_data(lambda dataset: dataset.prefetch(AUTOTUNE)),
            after=WITHOUT_INPUT,
        )


def _runs_ahead(stages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last stage may work ahead as it is: TensorFlow adds no prefetch then.

    It makes a map parallel, and one stage of a map and the batch behind it.
    """
    last = [stage for stage in stages if stage["kind"] != "options"][-2:]
    kinds = [stage["kind"] for stage in last]
    is_parallel = any(stage["parallel"] for stage in last[-1:])
    return is_parallel or kinds[-1:] == ["map"] or kinds == ["map", "batch"]


def _type_prefetch(code: Code) -> Iterator[Splice]:
    """Make batches ahead, behind the last stage that ran."""
    calls = [call for _, call in code.stages()]
    method = f".prefetch({code.tensorflow}.data.AUTOTUNE)"
    yield from code.text.call_on(require(calls[-1]), method)


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
    if not facts.counted and facts.steps_per_execution > 1:
        yield Untested(UNCOUNTED)
        return
    note = "; callbacks see as many batches as before" if facts.callbacks else ""
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
# What a step of the user's own has to do besides, in float16.
_SCALED = (
    " Your own `train_step` must use `optimizer.scale_loss(loss)`, because the "
    "optimizer divides the gradients by that scale."
)


def precisions(facts: Facts, machine: Hardware | None = None) -> Candidates:
    """The policies that may pay on a machine; on this one where none is given."""
    if facts.policy != FLOAT32:
        yield Untested(f"the model already has a policy: {facts.policy}")
        return
    machine = machine or precision.read_hardware()
    names = BFLOAT16, FLOAT16
    expectations = {name: expected(PRECISIONS[name], machine) for name in names}
    trying = [n for n in names if expectations[n].expect in _WORTH_TRYING]
    for policy in trying:
        yield Change(
            name=policy,
            changes=f"The layers compute in {PRECISIONS[policy].dtype}, and their "
            "weights stay float32.",
            fix=f'keras.config.set_dtype_policy("{policy}") before the model is made; '
            'give its last layer dtype="float32", and watch the loss.'
            f"{_SCALED if policy == FLOAT16 else ''}",
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
_SHAPES = 32


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

    batches = list(itertools.islice(training.data, _SHAPES))
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
