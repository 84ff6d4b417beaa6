"""The user's callbacks in a trial: they do their work and nothing else.

They end no trial, they get the epoch numbers of a real training, and what Keras's own
write lies in a folder of the trial: the same work, another place. A callback of the
user's own making writes where its code says.
"""

import ast
import functools
import inspect
import os
import re
import tempfile
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from perfkit.diagnosis.source import of_kind

# They reach other machines, or write in the background beyond a trial's end.
LEFT_OUT = frozenset({"OrbaxCheckpoint", "RemoteMonitor"})
_NEVER = 10**9
# What stands for the epoch or a metric in a file's name. One file is written over and
# over, because a trial has many short epochs and a checkpoint may be large.
_PLACES = re.compile(r"\{[^}]*\}")
# Keras calls the second of each pair through the first.
STEP_HOOKS = (
    *("on_train_batch_begin", "on_batch_begin"),
    *("on_train_batch_end", "on_batch_end"),
)
_EPOCH_HOOKS = ("on_epoch_begin", "on_epoch_end")
# Those of Keras that change the learning rate or the weights, or end the training.
_STEER = frozenset(
    {
        *("EarlyStopping", "LearningRateScheduler", "ReduceLROnPlateau"),
        *("SwapEMAWeights", "TerminateOnNaN"),
    }
)
# What code that does the same speaks of.
_STEERED = frozenset(
    {
        *("optimizer", "learning_rate", "lr", "assign", "trainable"),
        *("set_value", "set_weights", "load_weights", "stop_training"),
    }
)


def listed(given: Any) -> list[Any]:
    """List callbacks as ``fit`` takes them: one, a list, or a ``CallbackList``."""
    import keras

    if given is None:
        return []
    if isinstance(given, keras.callbacks.CallbackList):
        given = given.callbacks
    if isinstance(given, list | tuple):
        return [one for part in given for one in listed(part)]
    return [given]


def in_trial(given: list[Any], epochs: int) -> list[Any]:
    """Make callbacks fit for a trial; None among them, and what is left out, is not.

    Epochs of a trial may be shorter than the real ``epochs``, and so more of them:
    their numbers begin again after these.
    """
    kept = [one for one in given if one is not None and not left_out(one)]
    for index, callback in enumerate(kept):
        _go_on(callback)
        _write_elsewhere(callback, index)
        for hook in _EPOCH_HOOKS:
            _number(callback, hook, epochs)
    return kept


def left_out(callback: Any) -> bool:
    """Whether no trial runs this callback."""
    return any(kind.__name__ in LEFT_OUT for kind in type(callback).__mro__)


def steers(callback: Any) -> bool:
    """Whether it may change what is learnt, by all that its code speaks of."""
    kinds = type(callback).__mro__
    if any(kind.__name__ in _STEER for kind in kinds):
        return True
    parts = [part for one in (callback, *kinds) for part in vars(one).values()]
    named = (part for part in parts if isinstance(part, FunctionType | MethodType))
    functions: Iterator[Any] = map(inspect.unwrap, named)
    # Keras's own speak of an optimizer to write down its learning rate.
    own = (one for one in functions if not str(one.__module__).startswith("keras."))
    coded = (one for one in own if hasattr(one, "__code__"))
    return any(
        _STEERED.intersection(_names(one.__code__)) or _alters(one) for one in coded
    )


def _alters(function: Any) -> bool:
    """Whether it sets an attribute of the model, or of a part of it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return False
    return any(
        isinstance(node.ctx, ast.Store) and "model" in ast.unparse(node.value).lower()
        for node in of_kind(ast.Attribute, tree)
    )


def _names(code: CodeType) -> Iterator[str]:
    """All names that a function speaks of, in functions inside it as well."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def follows_validation(callback: Any) -> bool:
    """Whether what it does hangs on a result of each validation."""
    followed = str(getattr(callback, "monitor", "")).startswith("val_")
    # One that saves every epoch needs no result.
    return followed and bool(getattr(callback, "save_best_only", True))


def is_own(callback: Any, *hooks: str) -> bool:
    """Whether it does something in one of these hooks."""
    return any(not hasattr(getattr(callback, hook), "_is_default") for hook in hooks)


def see_every_step(given: list[Any], epoch: int | None, times: int = 1) -> None:
    """Call callbacks as often as before, or their cost would look like another's.

    An epoch had so many steps, None where nobody knows; ``times`` as many are in each
    step now.
    """
    for callback in given:
        if callback is not None and is_own(callback, *STEP_HOOKS):
            _see_every_step(callback, epoch, times)


def _see_every_step(callback: Any, epoch: int | None, times: int) -> None:
    begin, end = callback.on_train_batch_begin, callback.on_train_batch_end
    reached = 0

    def begun(step: int, logs: Any = None) -> None:
        nonlocal reached
        reached = step * times
        begin(reached, logs)

    def ended(step: int, logs: Any = None) -> None:
        last = (step + 1) * times
        for one in range(reached, min(last, epoch or last)):
            if one > reached:
                begin(one, None)
            end(one, logs)

    callback.on_train_batch_begin, callback.on_train_batch_end = begun, ended


def _go_on(callback: Any) -> None:
    """Keep it from ending the training, and from what it does only at the end."""
    import keras

    if isinstance(callback, keras.callbacks.EarlyStopping):
        callback.patience = _NEVER
    if isinstance(callback, keras.callbacks.TerminateOnNaN):
        callback.raise_error = False


def _number(callback: Any, hook: str, epochs: int) -> None:
    own = getattr(callback, hook)
    if not is_own(callback, hook):
        return

    @functools.wraps(own)
    def numbered(epoch: int, logs: Any = None) -> None:
        own(epoch % max(1, epochs), logs)

    setattr(callback, hook, numbered)


def _write_elsewhere(callback: Any, index: int) -> None:
    from keras import callbacks as known

    places = {
        known.ModelCheckpoint: "filepath",
        known.CSVLogger: "filename",
        known.TensorBoard: "log_dir",
        known.BackupAndRestore: "backup_dir",
    }
    place = next((at for kind, at in places.items() if isinstance(callback, kind)), "")
    if not place:
        return
    # It goes with the trial's own.
    old, new = str(getattr(callback, place)), tempfile.mkdtemp(prefix=f"{index}-")
    if not place.endswith("_dir"):
        name = os.path.basename(old)
        if place == "filepath":
            name = _PLACES.sub("n", name)
        setattr(callback, place, os.path.join(new, name))
        return
    # Every path that it holds under the one folder lies under the other.
    for name, value in list(vars(callback).items()):
        if isinstance(value, str | os.PathLike) and str(value).startswith(old):
            setattr(callback, name, new + str(value)[len(old) :])
