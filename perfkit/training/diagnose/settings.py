"""Settings of TensorFlow that slow a training: which are on, and how one is left off.

Some are for debugging, some were copied from another machine. Those of TensorFlow's own
that are kept for each thread apart are read in the thread that trains.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from operator import attrgetter
from types import FrameType
from typing import Any

from perfkit.machine import limits

# Read when devices are first used, which is in the trial; and what only chooses what
# is printed, which many scripts set behind the import.
_NEVER_LATE = ("CUDA_", "TF_CPP_")


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        cause: What a gain without it proves, such as ``"threads"``.
        line: The call as it is typed, ``{}`` standing for its value.
        value: What it is set to here; anything false where it is not set.
        aliases: Other names of the function that is called.
    """

    cause: str
    line: str
    value: Callable[[], object]
    aliases: tuple[str, ...] = ()

    @property
    def setters(self) -> tuple[str, ...]:
        """Every name of the function that sets it."""
        return self.line.partition("(")[0], *self.aliases


def read_settings() -> dict[str, list[str]]:
    """The lines that set something in this process, by cause.

    Reads TensorFlow's state in this thread, and starts no device; where TensorFlow is
    not loaded there is none.
    """
    lines: dict[str, list[str]] = {}
    if "tensorflow" not in sys.modules:
        return lines
    for setting in SETTINGS:
        # What is private to TensorFlow may be gone in another version.
        with contextlib.suppress(ImportError, AttributeError):
            if value := setting.value():
                lines.setdefault(setting.cause, []).append(setting.line.format(value))
    return lines


def note_setters(note: Callable[[str, FrameType], object]) -> None:
    """Call ``note`` with the name and the caller of each public function that sets one.

    Settings are told by the first name of their function.
    """

    def noting(original: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            note(name, sys._getframe(1))
            return result

        return call

    for setting in (*SETTINGS, TYPE_POLICY):
        for name in setting.setters:
            holder, function = _holder_of(name)
            if (original := getattr(holder, function, None)) is not None:
                setattr(holder, function, noting(original, setting.setters[0]))


def leave_off(cause: str) -> None:
    """Let no function of this process set what such a gain would prove, from now on."""
    for name in (name for s in SETTINGS if s.cause == cause for name in s.setters):
        holder, function = _holder_of(name)
        # One that this release lacks sets nothing.
        if hasattr(holder, function):
            setattr(holder, function, lambda *args, **kwargs: None)


def _holder_of(name: str) -> tuple[Any, str]:
    """What has a public function as an attribute, and the attribute's name."""
    module, *inner, function = name.split(".")
    holder: Any = import_module({"tf": "tensorflow"}.get(module, module))
    for part in inner:
        holder = getattr(holder, part, None)
    return holder, function


def cores() -> int:
    """How many cores this process may use."""
    return limits.affinity() or os.cpu_count() or 1


def _threads(kind: str) -> Callable[[], object]:
    """Read a number of threads; 0 for what TensorFlow would take by itself."""
    read = _told_by(f"config.threading.get_{kind}_op_parallelism_threads")
    return lambda: count if (count := read()) != cores() else 0


def _checks_numerics() -> bool:
    """Whether an observer looks for NaN in every operation of this thread."""
    # Kept for each thread apart, and told by nothing public.
    from tensorflow.python.eager import context

    watching = getattr(context.context(), "op_callbacks", ())
    owners = (getattr(callback, "__self__", None) for callback in watching)
    return any(type(owner).__name__ == "CheckNumericsCallback" for owner in owners)


def _told_by(path: str) -> Callable[[], object]:
    """What a function of TensorFlow says, once that has been imported."""
    return lambda: attrgetter(path)(import_module("tensorflow"))()


# ``eager`` is what fit is told by ``model.run_eagerly``, too; the rest stands alone.
SETTINGS = (
    Setting(
        "eager",
        "tf.config.run_functions_eagerly(True)",
        _told_by("config.functions_run_eagerly"),
        ("tf.config.experimental_run_functions_eagerly",),
    ),
    Setting("debugging", "tf.debugging.enable_check_numerics()", _checks_numerics),
    Setting(
        "debugging",
        "tf.data.experimental.enable_debug_mode()",
        lambda: import_module("tensorflow.python.data.ops.debug_mode").DEBUG_MODE,
    ),
    Setting(
        "debugging",
        "tf.debugging.set_log_device_placement(True)",
        _told_by("debugging.get_log_device_placement"),
    ),
    *(
        Setting(
            "threads",
            f"tf.config.threading.set_{kind}_op_parallelism_threads({{}})",
            _threads(kind),
        )
        for kind in ("intra", "inter")
    ),
)


def _slow_policy() -> str:
    """The policy for float64, or for float16 on processors; "" for none."""
    import keras
    import tensorflow as tf

    name = str(keras.config.dtype_policy().name)
    is_slow = name.endswith("float16") and not name.endswith("bfloat16")
    is_slow = is_slow and not tf.config.list_physical_devices("GPU")
    return name if is_slow or name == "float64" else ""


# No part of ``SETTINGS``: a diagnosis tries precisions as changes of their own.
TYPE_POLICY = Setting(
    "precision",
    'keras.config.set_dtype_policy("{}")',
    _slow_policy,
    (
        "keras.mixed_precision.set_global_policy",
        "tf.keras.mixed_precision.set_global_policy",
        "tf.keras.config.set_dtype_policy",
        *("keras.config.set_floatx", "tf.keras.config.set_floatx"),
        *("keras.backend.set_floatx", "tf.keras.backend.set_floatx"),
    ),
)


def set_late(before: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that have changed since, too late for the libraries.

    ``read_early(os.environ)`` was ``before`` when TensorFlow had been imported.
    """
    from perfkit.engine.launcher import read_early

    changed = dict(before.items() ^ read_early(os.environ).items())
    return tuple(n for n in sorted(changed) if not n.startswith(_NEVER_LATE))


def late_in_words(late: Sequence[str]) -> str:
    """Say that variables were set too late."""
    verb, word = ("were", "them") if len(late) > 1 else ("was", "it")
    return (
        f"{', '.join(late)} {verb} set after TensorFlow was loaded and may have no "
        f"effect: set {word} before `perfkit diagnose`, or in an earlier cell."
    )
