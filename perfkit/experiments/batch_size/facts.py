"""What a run over batch sizes shows besides the rates: facts, a sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.batch_size import numbers, search, told
from perfkit.experiments.batch_size import usual_loop as usual
from perfkit.experiments.batch_size.load import load
from perfkit.experiments.batch_size.words import why
from perfkit.experiments.shared.words import noise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.batch_size.numbers import Line
    from perfkit.measure.estimate import Estimate
    from perfkit.measure.measurement import Measurement

# Memory that differs less than this says nothing about a forecast.
_SHOWS_BYTES = 20e6


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the reader asked.

    Attributes:
        model: The network's name.
        memory: Bytes that a batch has to fit into, where there is no GPU.
    """

    model: str
    memory: int


def because(measured: Measurement, asked: Asked) -> Iterator[str]:
    """The facts that a verdict rests on."""
    yield from noise(measured)
    yield from _line(measured)
    yield from _fits(measured, asked)
    yield from _memory(measured)
    yield from _gpu(measured)
    yield from _busy(measured)
    yield from _usual_loop(measured)
    yield from _learning(measured)
    yield from failures(measured)


def failures(measured: Measurement) -> Iterator[str]:
    """How trials ended that did not complete, once for each batch size."""
    ended = {
        trial.variant: trial.message or trial.outcome
        for trial in measured.trials
        if trial.outcome not in ("completed", "stopped") and not trial.is_try
    }
    for name, how in ended.items():
        yield f'"{name}" {how.rstrip(".")}.'


def room(measured: Measurement, asked: Asked) -> str:
    """What a batch has to fit into."""
    if measured.notes.get("gpus"):
        return "the GPU's memory"
    return f"perfkit's limit of {units.size(asked.memory)} above the start"


def _line(measured: Measurement) -> Iterator[str]:
    steps = numbers.step_times(measured.timings)
    line = numbers.line(steps, measured.noise_floor)
    if line is None:
        return
    overhead, cost = (_between(part) for part in (line.overhead, line.cost))
    yield (
        f"Fitted over {len(steps)} sizes, a step takes {overhead} and {cost} for each "
        f"example{_half(line)}."
    )
    for size, times in line.bends:
        than = "longer" if times > 1 else "shorter"
        yield (
            f"The line does not hold: a step of {size:,} takes {units.ratio(times)} "
            f"what it says, {than} than the interval allows. What a step costs then "
            "depends on its size in another way, perhaps by caches or by kernels."
        )


def _between(part: Estimate) -> str:
    return units.between(part.value, part.low, part.high, units.seconds)


def _half(line: Line) -> str:
    if line.bends or not line.shows_overhead or line.cost.low <= 0:
        return ""
    size = line.overhead.value / line.cost.value
    return f"; at {units.significant(size, 2)} examples half of a step is overhead"


def _fits(measured: Measurement, asked: Asked) -> Iterator[str]:
    found = search.found(measured.trials)
    if found is None or found.fails is None:
        return
    tried = f"{found.asked} batches were tried, each in a process of its own"
    if not found.by_limit:
        yield (
            f"Whether memory ended the batch of {found.fails:,} is not known: it "
            f"{found.how.rstrip('.')}. {tried}."
        )
        return
    alone = "" if "memory" in found.how else "; without the limit it trains"
    yield (
        f"Within {room(measured, asked)} a batch of {found.fails:,} is too large: "
        f"{why(found.how)}{alone}.{_asked_for(measured, found.fits)} {tried}; the step "
        f"of the search is {search.step(found.fits):,}."
    )


def _asked_for(measured: Measurement, size: int) -> str:
    """What the largest batch that fits had asked for."""
    held = told.asked_for(measured.trials, size)
    if held is None:
        return ""
    return f" The batch of {size:,} had asked for {units.size(held)}."


def _memory(measured: Measurement) -> Iterator[str]:
    expected, held = told.forecast(measured.notes), told.memory(measured.trials)
    if expected is None or not held or measured.notes.get("gpus"):
        return
    small, large = min(held), max(held)
    weights, slots = units.size(expected.weights), units.size(expected.slots)
    yield (
        f"From shapes a step of {large:,} holds {units.size(expected.of(large))}: "
        f"{weights} of weights, as much again of gradients, {slots} for the optimizer "
        f"and {units.size(expected.activations)} of activations for each example. "
        f"Measured at its peak: {units.size(held[large])} above the start, and "
        f"{units.size(held[small])} with {small:,}."
    )
    if held[large] - held[small] > _SHOWS_BYTES:
        each = (held[large] - held[small]) / (large - small)
        yield (
            f"Measured, an example takes {units.size(each)}, "
            f"{units.ratio(each / expected.activations)} what its activations would."
        )


def _gpu(measured: Measurement) -> Iterator[str]:
    peaks = told.memory(measured.trials, "gpu_peak")
    if not peaks:
        return
    size = max(peaks)
    used = [u for u in measured.samples.get("gpu0_memory", ()) if u is not None]
    reserved = (
        f", while up to {units.size(max(used))} of the GPU are reserved" if used else ""
    )
    yield (
        f"On the GPU a step of {size:,} takes {units.size(peaks[size])} at its "
        f"peak{reserved}: TensorFlow reserves more than it needs."
    )


def _busy(measured: Measurement) -> Iterator[str]:
    for reading, words, write in (
        ("cpu_trial", "Cores at work", lambda v: f"{v:.1f}"),
        ("gpu0_busy", "The GPU was busy", units.percent),
    ):
        found = load(measured.trials, measured.samples, reading)
        sizes = [size for name in found if (size := numbers.size_of(name))]
        if len(sizes) > 1:
            ends = (min(sizes), max(sizes))
            said = (f"{write(found[numbers.name_of(s)])} with {s:,}" for s in ends)
            yield f"{words}: {' and '.join(said)} examples a batch."


def _usual_loop(measured: Measurement) -> Iterator[str]:
    """What the loop in circulation makes of the same sizes."""
    said = []
    for name, how in ((usual.UPWARDS, "upwards"), (usual.DOWNWARDS, "backwards")):
        rates = told.usual_loop(measured.trials, name)
        if len(rates) > 1:
            small, large = min(rates), max(rates)
            said.append(f"{units.ratio(rates[large] / rates[small])} run {how}")
    if not said:
        return
    fair = measured.compare(numbers.name_of(large), numbers.name_of(small))
    measured_fairly = f"; measured fairly it is {fair.interval}" if fair else ""
    yield (
        f"The usual loop, one network through all sizes, says that {large:,} reaches "
        f"{' and '.join(said)} the rate of {small:,}{measured_fairly}. The size that "
        "comes first pays for tracing."
    )


def _learning(measured: Measurement) -> Iterator[str]:
    curves = told.curves(measured.trials)
    if len(curves) < 2:
        return
    samples = min(curve.samples[-1] for curve in curves)
    seconds = min(curve.seconds[-1] for curve in curves)
    by_samples = {c.batch: c.after_samples(samples) for c in curves}
    by_seconds = {c.batch: c.after_seconds(seconds) for c in curves}
    yield (
        f"Speed is not learning. After {samples:,} examples the loss was "
        f"{_losses(by_samples)}; after {units.seconds(seconds)} of training "
        f"{_losses(by_seconds)}. The batch size changes the training itself, here at "
        "one learning rate and in one run each."
    )


def _losses(by_batch: dict[int, float | None]) -> str:
    return ", ".join(
        f"not known with {size:,}, by then without a look"
        if loss is None
        else f"{units.significant(loss)} with {size:,}"
        for size, loss in by_batch.items()
    )
