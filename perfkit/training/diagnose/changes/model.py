"""How steps are run: several at once, compiled, larger, shorter; and their settings."""

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfkit import units
from perfkit.errors import BadParameterError
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
from perfkit.training.diagnose import settings, tracing
from perfkit.training.diagnose.change import Change, Untested, nothing, with_option
from perfkit.training.diagnose.changes.resident import NAME as CEILING
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.training import (
    BATCH,
    Training,
    examples_in,
    see_every_step,
    steps_of,
)

_MANY = 16
# The way back to Python takes a few milliseconds at most.
_LONG_S = 0.1
# The last execution of an epoch may hold fewer steps than it says.
_UNCOUNTED = (
    "nobody knows how many steps an epoch has, and the optimizer of a train_step of "
    "its own, or one that gathers gradients, does not tell; give steps_per_epoch"
)


def execution(facts: Facts) -> Iterator[Change | Untested]:
    """Use what ``compile`` offers and the training does not use."""
    if facts.loop:
        return
    if facts.eager:
        yield Change(
            name="graph",
            cause="eager",
            kind="defect",
            changes="The step is traced once and run as a graph.",
            fix="Leave out what asks for it: run_eagerly=True in model.compile(...), "
            "model.run_eagerly = True, or tf.config.run_functions_eagerly(True).",
            apply=as_graph,
        )
        yield Untested("xla", "an eager step cannot be compiled")
        yield Untested("step-overhead", "an eager step runs one at a time")
        return
    many, current = min(_MANY, facts.steps or _MANY), facts.steps_per_execution
    while facts.endless and (facts.steps or 0) % many:
        # What goes on has no last execution with fewer steps: an epoch would have more.
        many -= 1
    if facts.step_s > _LONG_S:
        step = units.seconds(facts.step_s)
        reason = f"of a step of {step} the way back to Python is next to nothing"
        yield Untested("step-overhead", reason)
    elif facts.endless and many == 1:
        reason = f"{facts.steps} steps of an epoch cannot be made several at a time"
        yield Untested("step-overhead", f"{reason} without a rest")
    elif current < many and not facts.counted:
        yield Untested("step-overhead", _UNCOUNTED)
    elif current < many:
        note, seldom = "", ""
        if facts.callbacks:
            note = "; callbacks still see every step"
            seldom = f"; callbacks are then called once in {many} steps"
        yield Change(
            name=f"{many} steps at a time",
            cause="step-overhead",
            kind="by gain",
            changes=f"Back to Python after {many} steps instead of {current}{note}.",
            fix=f"model.compile(..., steps_per_execution={many}){seldom}",
            apply=functools.partial(many_steps, steps=many, epoch=facts.steps),
            steps=many,
        )
    if not facts.can_xla:
        yield Untested("xla", "Keras refuses to have XLA compile this model")
    elif not facts.xla:
        yield Change(
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
    training.trace_anew()


def many_steps(training: Training, *, steps: int, epoch: int | None = None) -> None:
    """Make several steps before going back to Python.

    The last execution of an epoch of so many steps may hold fewer.
    """
    training.model.steps_per_execution = steps
    training.trace_anew()
    see_every_step(training.arguments["callbacks"], epoch)


def compiled(training: Training) -> None:
    """Let XLA compile the step."""
    training.model.jit_compile = True
    training.trace_anew()


# The others are tried only where the first one brings something.
_TIMES = (4, 2, 8)
# A batch of this many is no small one: what more of it spares is the way to each step.
_USUAL = 16


def batch(facts: Facts) -> Iterator[Change | Untested]:
    """Make batches larger, as long as the data fill one."""
    if facts.loop:
        return
    largest = facts.steps or max(_TIMES)
    fitting = [times for times in _TIMES if times <= largest]
    if not fitting:
        yield Untested("small-batch", "a batch holds all the data already")
    note = "; callbacks see as many batches as before" if facts.callbacks else ""
    if not facts.counted and facts.steps_per_execution > 1:
        yield Untested("small-batch", _UNCOUNTED)
        return
    for times in fitting:
        size = f" ({facts.batch * times} examples)" if facts.batch > 1 else ""
        yield Change(
            name=f"batch ×{times}",
            cause="small-batch",
            kind="opportunity",
            changes=f"{times} times as many examples in a batch{size}{note}.",
            fix=f"A batch {times} times as large{size}. This changes the optimisation: "
            "tune the learning rate anew, and watch the validation loss.",
            apply=functools.partial(enlarge, times=times),
            after="" if times == fitting[0] else f"batch ×{fitting[0]}",
            batches=times,
            combines=False,
            spares="step-overhead" if facts.batch >= _USUAL else "",
        )


def enlarge(training: Training, *, times: float) -> None:
    """Put so many batches into one; validation and callbacks keep their own.

    Raises:
        BadParameterError: Its batches can be joined, and not parted.
    """
    arguments, data = training.arguments, training.data
    if times >= 1:
        see_every_step(arguments["callbacks"], steps_of(training), round(times))
    if arguments.get("steps_per_epoch"):
        arguments["steps_per_epoch"] = math.ceil(arguments["steps_per_epoch"] / times)
    if training.kind == "arrays":
        size = int(arguments.get("batch_size") or BATCH)
        arguments.setdefault("validation_batch_size", size)
        arguments["batch_size"] = round(size * times)
    elif training.kind == "tf.data":
        training.data = data.rebatch(round(examples_in(next(iter(data))) * times))
    elif times != round(times):
        raise BadParameterError(
            f"The batches of its {training.kind} can be joined and not parted: give a "
            "multiple of their size."
        )
    elif training.kind == "PyDataset":
        training.data = _merged_items(data, round(times))
    else:

        def joined() -> Iterator[Any]:
            batches = iter(data())
            while group := list(itertools.islice(batches, round(times))):
                yield merged(group)

        training.data = joined


def _merged_items(data: Any, times: int) -> Any:
    import keras

    count = data.num_batches

    class Merged(keras.utils.PyDataset):  # type: ignore[misc]
        """Items of the user's own, several at a time."""

        @property
        def num_batches(self) -> int | None:
            return None if count is None else -(-count // times)

        def __getitem__(self, index: int) -> Any:
            first = index * times
            last = first + times if count is None else min(first + times, count)
            return merged([data[i] for i in range(first, last)])

        def on_epoch_begin(self) -> None:
            data.on_epoch_begin()

        def on_epoch_end(self) -> None:
            data.on_epoch_end()

    return Merged(
        workers=data.workers,
        use_multiprocessing=data.use_multiprocessing,
        max_queue_size=data.max_queue_size,
    )


def merged(batches: Sequence[Any]) -> Any:
    """Several batches of the same structure as one."""
    import numpy as np
    import tensorflow as tf

    return tf.nest.map_structure(
        lambda *parts: np.concatenate([np.asarray(part) for part in parts]), *batches
    )


_WORTH_TRYING = ("faster", "open")
# What a step of the user's own has to do besides.
_SCALED = {
    BFLOAT16: "",
    FLOAT16: " A `train_step` of your own has to train on "
    "`optimizer.scale_loss(loss)`, because its gradients are divided by that scale.",
}


def precisions(
    facts: Facts, machine: Hardware | None = None
) -> Iterator[Change | Untested]:
    """The policies that may pay on a machine; on this one where none is given."""
    if facts.loop:
        return
    if facts.policy != FLOAT32:
        yield Untested("precision", f"the model has a policy already: {facts.policy}")
        return
    machine = machine or precision.read_hardware()
    expectations = {
        name: expected(PRECISIONS[name], machine) for name in (BFLOAT16, FLOAT16)
    }
    trying = [n for n in expectations if expectations[n].expect in _WORTH_TRYING]
    for policy in trying:
        yield Change(
            name=policy,
            cause="precision",
            kind="opportunity",
            changes=f"The layers compute in {PRECISIONS[policy].dtype}, and their "
            "weights stay float32.",
            fix=f'keras.config.set_dtype_policy("{policy}") before the model is made; '
            'give its last layer dtype="float32", and watch the loss.'
            f"{_SCALED[policy]}",
            before=functools.partial(use_policy, policy),
            combines=False,
        )
    if not trying:
        yield Untested("precision", expectations[BFLOAT16].because)


# The largest shape among so many batches is that of all.
_SEEN = 32


def retracing(facts: Facts) -> Iterator[Change | Untested]:
    """Stop tracing anew, where the look has noted it, and compiling anew by XLA."""
    # One batch, again and again, has one shape: the ceiling without input holds that.
    # In a loop nothing takes turns, and what was seen need not wait for a ceiling.
    after = CEILING if facts.reshaped and not facts.loop else ""
    # Keras manages the signatures of its own functions.
    traces = {n: t for n, t in facts.retraced.items() if not t.get("library")}
    if traces:
        first, trace = next(iter(traces.items()))
        listed = " and ".join(f"`{name}`" for name in list(traces)[:2])
        yield Change(
            name="fixed signature",
            cause="retracing",
            kind="defect",
            changes=f"{listed} keeps its signature: {_describe_changes(trace)}.",
            fix=_fix(first, trace),
            before=functools.partial(tracing.fix, traces),
            after=after,
        )
    if facts.open_shapes and (facts.xla or facts.reshaped):
        yield Change(
            name="one shape",
            cause="retracing",
            kind="defect",
            changes="Every batch is padded, or cut, to the same shape.",
            fix="Give all batches one shape: padded_batch(..., padded_shapes=...), or "
            "bucket_by_sequence_length with a few lengths; mask what is padding.",
            apply=one_shape,
            after=CEILING,
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
        "value": "numbers of Python become tensors",
        "shape": "shapes that change are left open",
        "dtype": "each dtype is traced once",
    }
    clauses = [ways[kind] for kind in dict.fromkeys(trace["changed"].values())]
    return ", ".join([*clauses, *(["it is made once"] if trace["made_anew"] else [])])


def _fix(name: str, trace: Mapping[str, Any]) -> str:
    if trace["made_anew"]:
        return f"Call tf.function once for `{name}`, outside of the loop."
    numbers = [a for a, kind in trace["changed"].items() if kind == "value"]
    because = f" ({trace['because'][0]})" if trace["because"] else ""
    if numbers:
        arguments = ", ".join(f"{a}=tf.constant({a})" for a in numbers)
        return f"Call `{name}` with {arguments}: each new number is traced{because}."
    return (
        f"@tf.function(reduce_retracing=True) on `{name}`, or batches of one "
        f"shape{because}."
    )


# Leaving the settings of a cause off: what the change is called, and what it changes.
_SETTINGS = {
    "debugging": ("without debugging", "What is for debugging stays off: {}."),
    "threads": (
        "default threads",
        "TensorFlow takes as many threads as it finds cores, without {}.",
    ),
    # In fit this is changed together with what the model was compiled with.
    "eager": (
        "graph",
        "What is under @tf.function is traced once and run as a graph: without {}.",
    ),
}
# The causes, by the names of the changes.
LEFT_OFF = {name: cause for cause, (name, _) in _SETTINGS.items()}
# What is about the pipeline alone explains an input that is slow.
_OF_INPUT = ("tf.data.", "options.")
_POOL = "threading.private_threadpool_size"


def left_off(facts: Facts) -> Iterator[Change]:
    """Leave off the settings that slow the training, those of a cause together."""
    size = facts.pipeline.get("threads")
    for cause, (name, changes) in _SETTINGS.items():
        # An option of the pipeline has the same effect; it is told as it is typed.
        options = [f"options.{_POOL} = {size}"] if size and cause == "threads" else []
        lines = [*facts.settings.get(cause, ()), *options]
        if not lines or (cause == "eager" and not facts.loop):
            continue
        listed = " and ".join(f"`{line}`" for line in lines)
        yield Change(
            name=name,
            cause=cause,
            kind="defect",
            changes=changes.format(listed),
            fix=f"Delete {listed}.",
            # 0 stands for as many as there are cores.
            apply=with_option(_POOL, 0) if options else nothing,
            before=functools.partial(settings.leave_off, cause),
            after=CEILING if all(o.startswith(_OF_INPUT) for o in lines) else "",
        )
