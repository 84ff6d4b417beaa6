"""Batches of one network, trained from memory: the memory they take, and the costs.

``Costs`` are what a step costs by the work in it: they add up, and are fitted to steps.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from perfkit.engine.statistics import Estimate, student
from perfkit.engine.trial import READY, Note, Tick, Trial, Yielded
from perfkit.findings.reading import note_as
from perfkit.machine.limits import amounts_of
from perfkit.questions.shared import loops, tf
from perfkit.questions.shared.code import code_of
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


# Steps after which a training holds all that it will ever hold.
STEPS_TO_FILL = 3
# No machine has as much memory.
_MOST_BYTES = 1e18
# A batch is filled with copies of so many examples: their values cost no time, and
# making them all would take more memory than training on them.
_DIFFERENT = 64


def training(
    name: str, batch: int, steps: int = loops.ENDLESS, precision: str = FLOAT32
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


Floats = NDArray[np.float64]

# No step time is known better than this share of it.
_BEST_KNOWN = 1e-3
_DRAWS = 200
# Beyond this, in logarithms, a step's time is not known at all.
_WIDEST = 3.0
_ENDS = (2.5, 97.5)
_NORMAL = 1.96


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds of one of each kind of work, and what steps took over that of the fit."""

    each: tuple[Estimate, ...]
    misses: tuple[float, ...]

    @property
    def worst(self) -> float:
        """By how much the fit misses the worst step, as a share."""
        return max(abs(miss - 1) for miss in self.misses)

    def at(self, work: Sequence[float]) -> float:
        """Seconds of a step that does so much of each kind of work."""
        pairs = zip(self.each, work, strict=True)
        return sum(cost.value * amount for cost, amount in pairs)


def fitted(work: Sequence[Sequence[float]], steps: Sequence[Estimate]) -> Costs | None:
    """Fit the seconds of steps by weighted least squares, no cost below zero.

    The weights come from each step's own interval. How sure the costs are comes from
    fitting again to steps drawn around the fit, as wide as their intervals, or as the
    fit misses them where that is more. The work has the shape (steps, kinds). With no
    more steps than kinds it is None: as many costs always fit.
    """
    freedom = len(steps) - len(work[0]) if work else 0
    if freedom < 1:
        return None
    rows = np.array(work, float)
    seconds = np.array([step.value for step in steps])
    half = np.log([step.high / step.low for step in steps]) / 2
    spread = np.maximum(half / _NORMAL, _BEST_KNOWN)
    costs = _solved(rows, seconds, spread)
    expected = rows @ costs
    if not np.all(expected > 0):
        return None
    misses = seconds / expected
    scale = max(1.0, float((((misses - 1) / spread) ** 2).sum() / freedom) ** 0.5)
    wide = np.minimum(spread * scale * student(freedom) / _NORMAL, _WIDEST)
    noise = np.random.default_rng(0).standard_normal((_DRAWS, len(steps)))
    draws = [_solved(rows, draw, spread) for draw in expected * np.exp(wide * noise)]
    each = tuple(
        Estimate(value=float(v), low=float(min(low, v)), high=float(max(high, v)))
        for v, low, high in zip(costs, *np.percentile(draws, _ENDS, 0), strict=True)
    )
    return Costs(each=each, misses=tuple(misses.tolist()))


def _solved(rows: Floats, seconds: Floats, spread: Floats) -> Floats:
    # Not with the module, which listing experiments would load.
    from scipy.optimize import nnls

    weighted = rows / (seconds * spread)[:, None]
    # Counts of work are huge and their costs tiny: bring them to one size.
    sizes = np.linalg.norm(weighted, axis=0)
    costs, _ = nnls(weighted / sizes, 1 / spread)
    return np.asarray(costs / sizes)
