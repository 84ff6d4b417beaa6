"""What a run over batch sizes means: its verdict, and the facts behind it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.experiments.batch_size import numbers
from perfkit.experiments.batch_size import usual_loop as usual
from perfkit.experiments.batch_size.numbers import load
from perfkit.experiments.shared.words import interval, noise, ratio
from perfkit.findings.record import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.experiments.batch_size.numbers import Knee, Line
    from perfkit.measure.measurement import Measurement
    from perfkit.measure.statistics import Estimate


_TENSOR = re.compile(r"OOM when allocating tensor with shape\s*\[([\d, ]+)\]")
_NUMPY = re.compile(r"Unable to allocate ([\d.]+ \w+)")
_WIDTH = 4
_MOST_SIDES = 8
_KNOWN = (
    ("it waited for more", "it waited for memory that its limit does not leave"),
    ("bad_alloc", "a library asked for memory and was given none"),
    ("mmap error", "a library asked for memory and was given none"),
    ("could not create a primitive", "oneDNN was given no memory to work in"),
    ("MemoryError", "Python was given no memory"),
    (
        "killed by the system",
        "the system ended it, because the machine's memory was full",
    ),
)


def why(message: str) -> str:
    """Say what a trial was short of.

    Args:
        message: What is recorded of its end.
    """
    if tensor := _TENSOR.search(message):
        return _of_tensor(tensor[1])
    if array := _NUMPY.search(message):
        return f"an array of {array[1]} did not fit any more"
    known = (words for said, words in _KNOWN if said in message)
    return next(known, f"it {message.rstrip('.')}")


def _of_tensor(listed: str) -> str:
    sides = [int(side[:12]) for side in listed.replace(",", " ").split()]
    sides = sides[:_MOST_SIDES]
    shape = " by ".join(f"{side:,}" for side in sides)
    held = units.size(_WIDTH * math.prod(sides))
    return f"a tensor of {shape} numbers ({held} in float32) did not fit any more"


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


def grounds(measured: Measurement, asked: Asked) -> Iterator[str]:
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


def what_holds(measured: Measurement, asked: Asked) -> str:
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
    found = numbers.found(measured.trials)
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
        f"Within {what_holds(measured, asked)} a batch of {found.fails:,} is too "
        f"large: {why(found.how)}{alone}.{_asked_for(measured, found.fits)} "
        f"{tried}; the step of the search is {numbers.step(found.fits):,}."
    )


def _asked_for(measured: Measurement, size: int) -> str:
    """What the largest batch that fits had asked for."""
    held = numbers.asked_for(measured.trials, size)
    if held is None:
        return ""
    return f" The batch of {size:,} had asked for {units.size(held)}."


def _memory(measured: Measurement) -> Iterator[str]:
    expected, held = numbers.forecast(measured.notes), numbers.memory(measured.trials)
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
    peaks = numbers.memory(measured.trials, "gpu_peak")
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
        rates = numbers.usual_loop(measured.trials, name)
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
    curves = numbers.curves(measured.trials)
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


def judge(measured: Measurement, asked: Asked) -> Verdict:
    """Say which batch is large enough, what a step costs, and how large one may be.

    Args:
        measured: The run.
        asked: What was asked.
    """
    knee = numbers.knee(measured)
    if knee is None:
        return Verdict(
            headline="No batch size could be timed.",
            because=tuple(failures(measured)),
            next="Look at how the trials ended, or give the run more seconds.",
        )
    said = [_knee(measured, knee), _overhead(measured), _largest(measured, asked)]
    best = measured.compare(numbers.name_of(knee.best), measured.baseline)
    won = best is not None and best.verdict == "faster"
    return Verdict(
        headline="; ".join(filter(None, said)) + ".",
        because=tuple(grounds(measured, asked)),
        next=_next(knee, won=won),
        winner=numbers.name_of(knee.best) if won and knee.alone else "",
    )


def _knee(measured: Measurement, knee: Knee) -> str:
    smallest = knee.sizes[0]
    if not knee.firm:
        return _unclear(knee)
    if knee.size == smallest:
        return f"No batch size is shown to be faster than {smallest:,} here"
    gain = _gain(measured, knee.size)
    if knee.size == knee.sizes[-1]:
        return (
            f"The rate still rises at the largest batch, {knee.size:,} examples{gain}"
        )
    return (
        f"{knee.size:,} examples a batch are enough here{gain}, and no size that was "
        "tried is shown to be faster"
    )


def _unclear(knee: Knee) -> str:
    compared, smallest = knee.against_best, knee.sizes[0]
    known = compared is not None and units.is_known(compared.low, compared.high)
    most = units.ratio(compared.high) if compared and known else f"{units.UNKNOWN}×"
    left = f"{knee.best:,} may be up to {most} as fast as {knee.size:,}"
    if knee.size == smallest:
        return f"Too noisy to say whether any size is faster than {smallest:,}: {left}"
    return (
        f"Too noisy to say where the rate stops rising: every size below {knee.size:,} "
        f"is slower, and {left}"
    )


def _gain(measured: Measurement, size: int) -> str:
    timing = measured.timing(numbers.name_of(size))
    compared = measured.compare(numbers.name_of(size), measured.baseline)
    if timing is None or compared is None:
        return ""
    return (
        f" ({units.rate(timing.rate)}, {ratio(compared)} "
        f'"{compared.baseline}", {interval(compared)})'
    )


def _overhead(measured: Measurement) -> str:
    line = numbers.line(numbers.step_times(measured.timings), measured.noise_floor)
    if line is None or line.bends:
        return ""
    if not line.shows_overhead:
        return "no overhead of a step is shown"
    cost = line.overhead
    spent = units.between(cost.value, cost.low, cost.high, units.seconds)
    return f"before its first example each step costs {spent}"


def _largest(measured: Measurement, asked: Asked) -> str:
    found = numbers.found(measured.trials)
    if found is None or (found.fails and not found.by_limit):
        return ""
    room = what_holds(measured, asked)
    if found.fails is None:
        return f"{found.fits:,} fit into {room}, and no larger batch was tried"
    if not found.fits:
        return f"not even {found.fails:,} fit into {room}"
    if found.closed:
        return f"the largest batch that fits into {room} is {found.fits:,}"
    return f"{found.fits:,} fit into {room} and {found.fails:,} do not"


def _next(knee: Knee, *, won: bool) -> str:
    if not knee.firm:
        return "End what else runs on this machine, or give the run more seconds."
    if not won:
        return "Choose the batch size that learns best: speed does not decide it here."
    if knee.size == knee.sizes[-1]:
        return f"Ask again with a `largest` above {knee.size:,}."
    return (
        f"Train with `batch_size={knee.size}`, and look whether it still learns as "
        "well: an epoch has fewer steps then."
    )
