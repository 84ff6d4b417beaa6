"""Who watches the training: each callback, the metrics and the progress bar off, alone.

Watching is legitimate work, so a little of it is no defect: a callback counts as one
where the rate is a tenth higher without it, metrics and the progress bar where it is
half as high again.
"""

import functools
import math
from collections.abc import Iterator

from perfkit.training.diagnose.change import Change, Untested, with_option
from perfkit.training.diagnose.epochs import SHORTENED
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.training import (
    LEFT_OUT,
    Training,
    epochs_between,
    parted,
    steps_of,
)

GROUP = "without observers"
_CAUSE = "callback"
_CALLBACK_DEFECT = 1.10
_USUAL_DEFECT = 1.5


_watcher = functools.partial(
    Change, cause=_CAUSE, kind="by gain", defect_from=_USUAL_DEFECT
)


def observers(facts: Facts) -> Iterator[Change | Untested]:
    """All that watches at once, then every watcher that the training has."""
    if facts.loop:
        return
    if after := group(facts):
        yield _watcher(
            name=after,
            changes="Callbacks, metrics, validation and progress bar are left out.",
            fix="Do less in what watches the training, or do it once an epoch.",
            apply=without_observers,
            ceiling=True,
        )
    for name in sorted(LEFT_OUT.intersection(facts.callbacks)):
        yield Untested(_CAUSE, f"{name} reaches beyond a trial, and none runs it")
    for index, name in enumerate(facts.callbacks):
        if name not in LEFT_OUT:
            yield _without(facts, index, after)
    if facts.metrics:
        listed = ", ".join([*facts.metrics[:3], *["..."] * (len(facts.metrics) > 3)])
        yield _watcher(
            name="without metrics",
            changes=f"The metrics of compile() are left out ({listed}).",
            fix="Leave the costly one out of model.compile(metrics=[...]), give it "
            "fewer thresholds, or compute it on the validation data alone.",
            apply=without_metrics,
            after=after,
        )
    if facts.progress:
        yield _watcher(
            name="without progress bar",
            changes="The progress bar is not drawn.",
            fix="model.fit(..., verbose=2), a line for each epoch, or verbose=0",
            apply=without_progress_bar,
            after=after,
        )


def group(facts: Facts) -> str:
    """The name of the change that leaves out all; "" where there is one at most."""
    watching = [name for name in facts.callbacks if name not in LEFT_OUT]
    several = len(watching) + sum(
        map(bool, (facts.metrics, facts.progress, facts.validation))
    )
    return GROUP if several > 1 else ""


def _without(facts: Facts, index: int, after: str) -> Change:
    name = facts.callbacks[index]
    before = facts.callbacks[:index].count(name)
    label = f"{name} ({before + 1})" if before else name
    if steering := name in facts.steering:
        fix = f"Let {label} do less, or call it more seldom."
    else:
        less = _REMEDY.get(name, "once an epoch instead of once a batch")
        fix = f"Leave {label} out of callbacks=[...], or let it do less: {less}."
    return _watcher(
        name=f"without {label}",
        defect_from=_CALLBACK_DEFECT,
        changes=f"The callback {label} is left out.",
        fix=fix,
        apply=functools.partial(without_callback, index=index),
        after=after,
        caution=_STEERS if steering else "",
    )


_STEERS = (
    "It may steer the training, by the learning rate, the weights or when it ends: "
    "make it cheaper or call it more seldom rather than leave it out."
)
_REMEDY = {
    "ModelCheckpoint": "save seldom (save_freq), or the weights alone",
    "BackupAndRestore": "save once in several epochs",
    "TensorBoard": "update_freq='epoch', histogram_freq=0, profile_batch=0",
    "CSVLogger": "log once in several epochs",
}


def without_callback(training: Training, *, index: int) -> None:
    """Leave one callback out; the others keep their places."""
    callbacks = list(training.arguments["callbacks"])
    callbacks[index] = None
    training.arguments["callbacks"] = callbacks


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


ENDLESS = "one endless iterator"
_BOUNDARY = "epoch-boundary"
_WITHOUT = "without validation"
# Times as many epochs from one validation to the next.
SELDOM = 5


def epochs(facts: Facts) -> Iterator[Change | Untested]:
    """Validation off; and no end of the data."""
    if facts.loop:
        return
    if facts.validation:
        yield from _validation(facts)
    reason = _no_endless(facts)
    if reason:
        yield Untested(_BOUNDARY, reason)
        return
    at_its_end = functools.partial(
        Change,
        own_pauses=True,
        cause=_BOUNDARY,
        kind="by gain",
        defect_from=_USUAL_DEFECT,
    )
    yield at_its_end(
        name=ENDLESS,
        changes="The data have no end, so that their iterator is made once and not "
        "for each epoch.",
        fix=f"model.fit(dataset.repeat(), steps_per_epoch={facts.steps})",
        apply=without_end,
    )
    yield at_its_end(
        name="without AUTOTUNE",
        changes="AUTOTUNE is off, so that no epoch's end waits for its thread.",
        fix="options = tf.data.Options(); options.autotune.enabled = False; "
        "dataset = dataset.with_options(options)",
        apply=with_option("autotune.enabled", False),
        after=ENDLESS,
    )


def _validation(facts: Facts) -> Iterator[Change]:
    steps = f" of {facts.validation_steps} steps" if facts.validation_steps else ""
    often = "epoch" if facts.validated == 1 else f"{facts.validated:g} epochs"
    # Put off beyond the last epoch there would be none.
    seldom = round(min(SELDOM * facts.validated, facts.asked or math.inf))
    rarer = seldom > facts.validated
    caution = ""
    if facts.following and rarer:
        listed = " and ".join(f"`{name}`" for name in dict.fromkeys(facts.following))
        times = f"{seldom / facts.validated:g}"
        caution = f"{listed}: a patience counts validations, so divide it by {times}; "
        caution += "the best epoch is then looked for among those that are validated."
    # It is legitimate work, as long as most of an epoch is training.
    less = functools.partial(
        Change,
        cause="validation",
        kind="by gain",
        inferred_if=SHORTENED,
        caution=caution,
    )
    fewer = f"model.fit(..., validation_freq={seldom}), or fewer" if rarer else "Fewer"
    yield less(
        name=_WITHOUT,
        changes=f"No validation{steps} after every {often}.",
        fix=f"{fewer} validation_steps, or a larger batch for the validation data",
        apply=without_validation,
        after=group(facts),
    )
    if not rarer:
        return
    yield less(
        name=f"validation every {seldom} epochs",
        changes=f"A validation{steps} after {seldom} epochs instead of every {often}.",
        fix=f"model.fit(..., validation_freq={seldom})",
        apply=functools.partial(validate_seldom, epochs=seldom),
        after=_WITHOUT,
    )


def _no_endless(facts: Facts) -> str:
    if facts.data != "tf.data":
        return f"the iterator over data of this kind ({facts.data}) is Keras's own"
    if facts.endless:
        return "with steps_per_epoch the iterator goes on from epoch to epoch already"
    if not facts.steps:
        return "nobody knows how many steps an epoch has; give steps_per_epoch"
    if facts.steps % max(1, facts.steps_per_execution):
        return f"{facts.steps} steps are no multiple of steps_per_execution"
    return ""


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


def validate_seldom(training: Training, *, epochs: int) -> None:
    """Validate after so many epochs, unless nothing is validated any more."""
    if epochs_between(training.arguments):
        training.arguments["validation_freq"] = epochs


def without_end(training: Training) -> None:
    """Let the data go on; an epoch has as many steps as before."""
    steps = steps_of(training)
    training.data = training.data.repeat()
    training.arguments["steps_per_epoch"] = steps
