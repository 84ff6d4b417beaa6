"""Batches of one network, trained from memory, and the memory they take."""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil

from perfkit.engine.trial import READY, Note, Tick, Trial, Yielded
from perfkit.findings.reading import note_as
from perfkit.machine.limits import amounts_of
from perfkit.questions.shared import loops
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.later import tf
from perfkit.questions.shared.models import MODELS
from perfkit.questions.shared.precision import FLOAT32, PRECISIONS

# Bytes by the names that Linux has for them; elsewhere nobody tells.
_STATUS = Path("/proc/self/status")


def start() -> int:
    """The private bytes that this process holds now."""
    resident = amounts_of(_STATUS).get("RssAnon")
    return resident or int(psutil.Process().memory_info().rss)


def above(at_start: int) -> dict[str, int]:
    """The bytes above the start at their peak; ``gpu_peak`` of the first GPU if any."""
    import resource

    # In kilobytes, but for macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if status := amounts_of(_STATUS):
        # The peak holds pages of files as well, which are the libraries' code.
        peak = status["VmHWM"] - status["RssFile"] - status["RssShmem"]
    growth = {"resident": max(0, peak - at_start)}
    for name in _first_gpu():
        growth["gpu_peak"] = int(tf.config.experimental.get_memory_info(name)["peak"])
    return growth


def _first_gpu() -> list[str]:
    gpus = tf.config.list_logical_devices("GPU")[:1]
    return [gpu.name.partition("device:")[2] for gpu in gpus]


# Longer than any trial: what the end of an epoch costs is another question.
_ENDLESS = 10**9
# Steps after which a training holds all that it will ever hold.
STEPS_TO_FILL = 3
# No machine has as much memory.
_MOST_BYTES = 1e18
# A batch is filled with copies of so many examples: their values cost no time, and
# making them all would take more memory than training on them.
_DIFFERENT = 64


def training(
    name: str, batch: int, steps: int = _ENDLESS, precision: str = FLOAT32
) -> Iterator[Yielded]:
    """Train a fresh network with ``fit`` on one batch, which is in memory.

    Once the memory is filled it is noted, in bytes above those at the start.
    """
    at_start, model = start(), MODELS[name]
    network, optimizer = PRECISIONS[precision].build(model)
    examples = filled(*model.batch(min(batch, _DIFFERENT)), batch)
    loops.compile_model(network, optimizer, loops.loss_function())
    fit = functools.partial(loops.fit, network, again(*examples), steps, shuffle=False)
    yield READY
    remaining = filling = STEPS_TO_FILL * batch
    for tick in loops.ticks(
        lambda counting: fit(verbose=0, callbacks=[counting]),
        examples=batch,
        sync=loops.wait,
    ):
        yield tick
        if remaining > 0 and isinstance(tick, Tick):
            if remaining == filling > tick.examples:
                # In the first step kernels are tried, which takes room of its own.
                for gpu in _first_gpu():
                    tf.config.experimental.reset_memory_stats(gpu)
            remaining -= tick.examples
            if remaining <= 0:
                yield Note("memory", above(at_start))


def peaks(trials: Iterable[Trial]) -> list[float]:
    """Bytes that trainings noted: of the GPU where there is one, else of the process.

    A file may hold anything.
    """
    notes = (note_as(dict[str, float], t.notes.get("memory")) or {} for t in trials)
    amounts = (note.get("gpu_peak", note.get("resident", 0.0)) for note in notes)
    return [amount for amount in amounts if 0 < amount < _MOST_BYTES]


def again(features: Any, labels: Any) -> Any:
    """Give one batch again and again."""
    batches = tf.data.Dataset.from_tensors((features, labels)).repeat()
    return batches


def code_of_fit(*functions: Callable[..., Any]) -> str:
    """The lines of a training on one batch, and of what is called before it."""
    trained = functools.partial(loops.fit, verbose=0)
    return code_of(*functions, again, loops.compile_model, trained)


def fitting(name: str, batch: int) -> Iterator[Yielded]:
    """Train a few steps and end: a batch that gets so far fits."""
    yield Note("batch", batch)
    yield from training(name, batch, STEPS_TO_FILL)


def filled(examples: Any, answers: Any, batch: int) -> "tuple[tf.Tensor, tf.Tensor]":
    """Fill a batch with copies of examples and of their labels."""
    chosen = tf.range(batch) % len(answers)
    features, labels = tf.gather(examples, chosen), tf.gather(answers, chosen)
    return features, labels
