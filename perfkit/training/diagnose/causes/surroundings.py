"""What surrounds the steps: their input, who watches them, the ends of epochs.

Two changes leave a whole group out and are ceilings: the training on one real batch,
which is resident, and the training that nobody watches.

Watching is legitimate work, so a little of it is no defect: a callback counts as one
where the rate is a tenth higher without it, metrics and the progress bar where it is
half as high again.
"""

import ast
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from perfkit.findings.diagnosis import (
    WITHOUT_INPUT,
    WITHOUT_OBSERVERS,
    WITHOUT_VALIDATION,
)
from perfkit.training.diagnose.change import Candidates, Change, KnownCause, Untested
from perfkit.training.diagnose.code import (
    Code,
    line_of,
    line_of_fit,
    line_of_stage,
    only,
)
from perfkit.training.diagnose.epochs import SHORTENED
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.loop import OFTEN, is_own
from perfkit.training.diagnose.training import (
    LEFT_OUT,
    Training,
    first_batch,
    parted,
    steps_of,
)

# The gains that make them defects. What runs on the same cores always takes a part of
# them, and no change shows that it is needless.
_CALLBACK_DEFECT = 1.10
_USUAL_DEFECT = 1.5
_REAL = "_perfkit_real"
_FASTER = "Make the input faster"
# Nothing is wrong there: how they become batches is Keras's own.
_ARRAYS = (
    "The arrays are already in memory; Keras only cuts them into batches. Larger "
    "batches mean fewer cuts."
)


def resident(facts: Facts) -> Candidates:
    """The ceiling without input, for every kind of data."""
    if facts.counts:
        yield Untested("the loop gets numbers, and makes its batches of them itself")
        return
    in_memory = facts.data == "arrays"
    yield Change(
        name=WITHOUT_INPUT,
        kind="opportunity" if in_memory else None,
        defect_from=_USUAL_DEFECT,
        changes="One real batch stays in memory, and every step trains on it.",
        fix=_ARRAYS if in_memory else f"{_FASTER}.",
        subject="Without any input it",
        apply=keep_one_batch,
        ceiling=True,
    )


def keep_one_batch(training: Training) -> None:
    """Put one real batch in the place of all data; epochs stay as long."""
    import tensorflow as tf

    epoch_steps = training.arguments.get("steps_per_epoch")
    steps = -1 if epoch_steps else steps_of(training) or -1
    batch = first_batch(training)
    if training.loop:
        # The same objects, because a loop may take anything.
        training.data = functools.partial(itertools.repeat, batch)
        return
    resident = tf.data.Dataset.from_tensors(batch).repeat(steps)
    training.replace_data(resident.prefetch(1))


def one_iterator(training: Training) -> None:
    """Let a new iterator of a dataset go on where the last one stopped.

    A dataset of unknown length is left alone, because a loop over it would not end.
    """
    import tensorflow as tf

    real: Callable[[Any], Iterator[Any]] = tf.data.Dataset.__iter__
    # A trial asks for each epoch anew.
    if hasattr(real, _REAL):
        return
    iterators: dict[int, tuple[Any, Iterator[Any]]] = {}

    @functools.wraps(real)
    def iterate(data: Any) -> Iterator[Any]:
        # Calls from Keras keep the original, because it needs TensorFlow's iterators.
        if not is_own(sys._getframe(1)):
            return real(data)
        count = int(data.cardinality())
        if count == tf.data.UNKNOWN_CARDINALITY:
            return real(data)
        if id(data) not in iterators:
            # The dataset is kept, so that no other object gets the same id.
            iterators[id(data)] = data, real(data.repeat())
        # A loop over a dataset, such as that of a validation, has to end.
        return itertools.islice(iterators[id(data)][1], count if count >= 0 else None)

    setattr(iterate, _REAL, real)
    tf.data.Dataset.__iter__ = iterate


INPUT_BOUND = KnownCause(
    id="input-bound",
    kind="by gain",
    do=_FASTER,
    means="its input costs time in its steps",
    offer=resident,
    line=line_of_stage(),
)

_watcher = functools.partial(Change, defect_from=_USUAL_DEFECT)


def observers(facts: Facts) -> Candidates:
    """All that watches at once, then every watcher that the training has."""
    if after := group(facts):
        yield _watcher(
            name=after,
            changes="No callbacks, metrics, validation or progress bar.",
            fix="Do less in them, or do it once an epoch.",
            subject="Without all of it the training",
            apply=without_observers,
            ceiling=True,
        )
    for name in sorted(LEFT_OUT.intersection(facts.callbacks)):
        yield Untested(f"{name} acts outside a trial, so no trial runs it")
    for index, name in enumerate(facts.callbacks):
        if name not in LEFT_OUT:
            yield _without(facts, index, after)
    if facts.metrics:
        listed = ", ".join([*facts.metrics[:3], *["..."] * (len(facts.metrics) > 3)])
        yield _watcher(
            name="without metrics",
            changes=f"The metrics of compile() are left out ({listed}).",
            fix="Take the costly one out of model.compile(metrics=[...]), give it "
            "fewer thresholds, or compute it on the validation data only.",
            do="Take the costly metrics out of compile",
            subject="Without them the training",
            apply=without_metrics,
            after=after,
        )
    if facts.progress:
        yield _watcher(
            name="without progress bar",
            changes="Keras draws no progress bar.",
            fix="model.fit(..., verbose=2), which prints one line per epoch",
            do="Turn the progress bar off",
            subject=_WITHOUT_IT,
            line=line_of_fit,
            apply=without_progress_bar,
            after=after,
        )


def group(facts: Facts) -> str:
    """The name of the change that leaves out all; "" where there is one at most."""
    watching = [name for name in facts.callbacks if name not in LEFT_OUT]
    others = filter(None, (facts.metrics, facts.progress, facts.validation))
    return WITHOUT_OBSERVERS if len([*watching, *others]) > 1 else ""


def _without(facts: Facts, index: int, after: str) -> Change:
    name = facts.callbacks[index]
    before = facts.callbacks[:index].count(name)
    label = f"{name} ({before + 1})" if before else name
    if steering := name in facts.steering:
        do = f"Let `{label}` do less"
        fix = f"Let {label} do less, or call it less often."
    else:
        less = _REMEDY.get(name, "once an epoch instead of once a batch")
        do = f"Remove `{label}`, or let it do less"
        fix = f"Remove {label} from callbacks=[...], or let it do less: {less}."
    return _watcher(
        name=f"without {label}",
        defect_from=_CALLBACK_DEFECT,
        changes=f"The callback {label} is left out.",
        fix=fix,
        do=do,
        mind=_STEERS if steering else "",
        subject=_WITHOUT_IT,
        line=functools.partial(_line_of_callback, name=name),
        apply=functools.partial(without_callback, index=index),
        after=after,
        needed=steering,
    )


_WITHOUT_IT = "Without it the training"


_STEERS = (
    "It may change the learning rate, the weights or the end of the training, so make "
    "it cheaper or call it less often, but keep it."
)
_REMEDY = {
    "ModelCheckpoint": "save less often (save_freq), or only the weights",
    "BackupAndRestore": "save every few epochs",
    "TensorBoard": "update_freq='epoch', histogram_freq=0, profile_batch=0",
    "CSVLogger": "log every few epochs",
}


def without_callback(training: Training, *, index: int) -> None:
    """Leave one callback out; the others keep their places."""
    training.arguments["callbacks"][index] = None


def without_observers(training: Training) -> None:
    """Train, and let nothing watch."""
    without_validation(training)
    without_metrics(training)
    without_progress_bar(training)
    training.arguments["callbacks"] = []


def without_metrics(training: Training) -> None:
    """Leave the compiled metrics out; nothing else is compiled anew."""
    training.model._compile_metrics = None
    training.trace_anew()
    for callback in training.arguments["callbacks"]:
        followed = getattr(callback, "monitor", None)
        if isinstance(followed, str) and followed not in ("loss", "val_loss"):
            # What follows a metric goes on working, on what is still there.
            callback.monitor, callback.mode = "loss", "min"


def without_progress_bar(training: Training) -> None:
    """Draw nothing."""
    training.arguments["verbose"] = 0


def _line_of_callback(code: Code, name: str) -> int:
    """The line that defines a callback, or else the one that makes it."""
    defined = [node for node in code.of_kind(ast.ClassDef) if node.name == name]
    return line_of(only(defined or code.calls_of(name)))


CALLBACK = KnownCause(
    id="callback",
    kind="by gain",
    do="Do less in callbacks, metrics and validation",
    means="callbacks, metrics or validation cost time",
    group=WITHOUT_OBSERVERS,
    offer=observers,
    needs_fit=True,
)


def validation(facts: Facts) -> Candidates:
    """Validate never."""
    if not facts.validation:
        return
    steps = f" of {facts.validation_steps} steps" if facts.validation_steps else ""
    often = "epoch" if facts.validated == 1 else f"{facts.validated:g} epochs"
    yield Change(
        name=WITHOUT_VALIDATION,
        changes=f"No validation{steps} after every {often}.",
        fix="model.fit(..., validation_freq=5), fewer validation_steps, or a larger "
        "batch for validation",
        subject=_WITHOUT_IT,
        # It is legitimate work, as long as most of an epoch is training.
        inferred_if=SHORTENED,
        mind=_PATIENCE if _PATIENT.intersection(facts.callbacks) else "",
        apply=without_validation,
        after=group(facts),
    )


_PATIENT = frozenset({"EarlyStopping", "ReduceLROnPlateau"})
_PATIENCE = (
    "EarlyStopping and ReduceLROnPlateau count their patience in validations, so with "
    "fewer of them lower it."
)


def without_validation(training: Training) -> None:
    """Train on the same examples and validate on none."""
    arguments = training.arguments
    share = arguments.get("validation_split")
    if share and arguments.get("validation_data") is None:
        training.data, _ = parted(training.data, float(share))
    for name in ("data", "split", "steps", "batch_size", "freq"):
        arguments.pop(f"validation_{name}", None)
    for callback in arguments["callbacks"]:
        followed = getattr(callback, "monitor", None)
        if isinstance(followed, str):
            callback.monitor = followed.removeprefix("val_")


VALIDATION = KnownCause(
    id="validation",
    kind="by gain",
    do="Spend less time on validation",
    means="validation costs time",
    group=WITHOUT_OBSERVERS,
    offer=validation,
    line=line_of_fit,
    needs_fit=True,
)

ENDLESS = "one endless iterator"


def epoch_boundary(facts: Facts) -> Candidates:
    """No end of the data; in a loop of the user's own, one iterator for all steps."""
    if facts.loop:
        if facts.iterators >= OFTEN:
            yield Change(
                name="one iterator",
                kind="defect",
                changes="One iterator goes through the data; no step makes another "
                "one.",
                fix="batches = iter(dataset.repeat()) before the loop, and "
                "next(batches) in it instead of next(iter(dataset)).",
                do="Make one iterator before the loop",
                apply=one_iterator,
            )
        return
    if facts.data != "tf.data":
        data = f"this kind of data ({facts.data})"
        yield Untested(f"Keras makes its own iterator over {data}")
    elif facts.endless:
        yield Untested("with steps_per_epoch, one iterator already serves all epochs")
    elif not facts.steps:
        reason = "the number of steps in an epoch is unknown: give steps_per_epoch"
        yield Untested(reason)
    elif facts.steps % max(1, facts.steps_per_execution):
        reason = f"{facts.steps} steps are not a multiple of steps_per_execution"
        yield Untested(reason)
    else:
        yield _watcher(
            name=ENDLESS,
            changes="The data repeat without end, so one iterator serves all epochs.",
            fix=f"model.fit(dataset.repeat(), steps_per_epoch={facts.steps})",
            apply=without_end,
            own_pauses=True,
        )


def without_end(training: Training) -> None:
    """Let the data go on; an epoch has as many steps as before."""
    steps = steps_of(training)
    training.data = training.data.repeat()
    training.arguments["steps_per_epoch"] = steps


EPOCH_BOUNDARY = KnownCause(
    id="epoch-boundary",
    kind="by gain",
    do="Keep one iterator for all epochs",
    means="each end of an epoch costs time",
    group=WITHOUT_INPUT,
    offer=epoch_boundary,
    line=line_of_stage(),
)
