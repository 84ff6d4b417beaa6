"""Who watches the training: each callback, the metrics and the progress bar off, alone.

Watching is legitimate work, so a little of it is no defect: a callback counts as one
where the rate is a tenth higher without it, metrics and the progress bar where it is
half as high again.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from perfkit.diagnosis.own_callbacks import LEFT_OUT
from perfkit.diagnosis.swap import Swap, Untested
from perfkit.diagnosis.validation import without_validation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.diagnosis.facts import Facts
    from perfkit.diagnosis.training import Training

GROUP = "without observers"
_CAUSE = "callback"
_CALLBACK_DEFECT = 1.10
_USUAL_DEFECT = 1.5


def swaps(facts: Facts) -> Iterator[Swap | Untested]:
    """All that watches at once, then every watcher that the training has."""
    if facts.loop:
        return
    if after := group(facts):
        yield Swap(
            name=after,
            cause=_CAUSE,
            kind="by gain",
            defect_from=_USUAL_DEFECT,
            changes="Callbacks, metrics, validation and progress bar are left out.",
            fix="Do less in what watches the training, or do it once an epoch.",
            apply=without_observers,
            ceiling=True,
        )
    yield from _callbacks(facts.callbacks, after)
    if facts.metrics:
        yield Swap(
            name="without metrics",
            cause=_CAUSE,
            kind="by gain",
            defect_from=_USUAL_DEFECT,
            changes=f"The metrics of compile() are left out ({_few(facts.metrics)}).",
            fix="Leave the costly one out of model.compile(metrics=[...]), give it "
            "fewer thresholds, or compute it on the validation data alone.",
            apply=without_metrics,
            after=after,
        )
    if facts.progress:
        yield Swap(
            name="without progress bar",
            cause=_CAUSE,
            kind="by gain",
            defect_from=_USUAL_DEFECT,
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


def _callbacks(names: tuple[str, ...], after: str) -> Iterator[Swap | Untested]:
    for name in sorted(LEFT_OUT.intersection(names)):
        yield Untested(_CAUSE, f"{name} reaches beyond a trial, and none runs it")
    for index, name in enumerate(names):
        if name not in LEFT_OUT:
            yield _without(names, index, after)


def _without(names: tuple[str, ...], index: int, after: str) -> Swap:
    name = names[index]
    before = names[:index].count(name)
    which = f"{name} ({before + 1})" if before else name
    return Swap(
        name=f"without {which}",
        cause=_CAUSE,
        kind="by gain",
        defect_from=_CALLBACK_DEFECT,
        changes=f"The callback {which} is left out.",
        fix=f"Leave {which} out of callbacks=[...], or let it do less: "
        f"{_REMEDY.get(name, 'once an epoch instead of once a batch')}.",
        apply=functools.partial(without_callback, index=index),
        after=after,
    )


_REMEDY = {
    "ModelCheckpoint": "save seldom (save_freq), or the weights alone",
    "BackupAndRestore": "save once in several epochs",
    "TensorBoard": "update_freq='epoch', histogram_freq=0, profile_batch=0",
    "CSVLogger": "log once in several epochs",
}


def _few(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:3])
    return f"{listed}, ..." if len(names) > 3 else listed


def without_callback(training: Training, *, index: int) -> None:
    """Leave one callback out; the others keep their places."""
    kept = list(training.arguments["callbacks"])
    kept[index] = None
    training.arguments["callbacks"] = kept


def without_callbacks(training: Training) -> None:
    """Leave all of the user's callbacks out."""
    training.arguments["callbacks"] = []


def without_observers(training: Training) -> None:
    """Train, and let nothing watch."""
    without_validation(training)
    without_metrics(training)
    without_progress_bar(training)
    without_callbacks(training)


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
