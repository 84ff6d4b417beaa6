"""Why does my GPU train no faster than the CPU, or all cores no faster than one?

The suspect: before its first multiplication a step costs something that more arithmetic
units do not make shorter, so a small step gains nothing from them.
The test: make the same training larger and larger, on both devices side by side, and
compare examples per second at each size. Where there is no GPU, one core against all
cores shows a crossover of its own: a thread pool is not a kernel launch.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from perfkit import units
from perfkit.engine.measurement import Measurement, Variant
from perfkit.engine.statistics import WORTH_KNOWING, Comparison
from perfkit.engine.trial import READY, Note, Yielded, every
from perfkit.errors import BadParameterError, RunError
from perfkit.findings.record import Edit, Fact, Verdict
from perfkit.machine.nvml import gpus_here
from perfkit.questions.base import Choice, Experiment, Range
from perfkit.questions.shared import benchmark, keras, tf
from perfkit.questions.shared.batches import Costs, Floats, fitted
from perfkit.questions.shared.code import code_of
from perfkit.questions.shared.loops import compiled, loop, step_of, wait
from perfkit.questions.shared.models import Model
from perfkit.questions.shared.verdicts import fact, failures, rates_behind

# The second widest is trained on a larger batch too: that tells apart what weights cost
# and what examples cost.
_LARGER = 8
_LARGEST_BATCH = 65_536
# What preparing told.
CORES = "cores"
# A fit that misses a step by more does not say where the time of a step goes.
_TRUSTED = 0.25
_IMPORT = "import tensorflow as tf"
_HIDE = 'tf.config.set_visible_devices([], "GPU")'
_BEFORE_WORK = (
    "More arithmetic units do not shorten the part before any work; a faster core, XLA "
    "and several steps per call can."
)
CPU, GPU = "CPU:0", "GPU:0"
# What an environment may have set to keep TensorFlow from the cores that there are.
_HOLDS_BACK = (
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
)


@dataclass(frozen=True)
class Device:
    """Something to train on.

    Variants have its ``name``, and TensorFlow its ``place``. A fresh process that calls
    ``take`` uses it and nothing else; a reader is shown the lines of the ``sources``.
    """

    name: str
    place: str
    take: Callable[[], None]
    sources: tuple[Callable[[], None], ...] = ()


def _all_cores() -> None:
    for name in _HOLDS_BACK:
        os.environ.pop(name, None)
    benchmark.without_gpus()


def _one_core() -> None:
    _all_cores()
    benchmark.on_one_core()


def _gpu() -> None:
    if not benchmark.sees_gpu():
        raise RunError("TensorFlow cannot use a GPU here.")


ONE_CORE = Device("one core", CPU, _one_core, (benchmark.bind,))
ALL_CORES = Device("all cores", CPU, _all_cores)
# All cores again, by the name that they have beside a GPU.
WHOLE_CPU = Device("CPU", CPU, _all_cores, (benchmark.without_gpus,))
A_GPU = Device("GPU", GPU, _gpu)


_LAYERS, _CLASSES = 3, 10
_FLOAT = 4
# Times that a step touches each weight, and each activation.
_PER_WEIGHT, _PER_ACTIVATION = 6, 4


class Cost(NamedTuple):
    """The work of a step: it, bytes read and written in memory at least, and FLOP."""

    steps: float
    traffic: float
    flops: float


@dataclass(frozen=True, order=True)
class Size:
    """A dense network of three layers of a width, and the batch it is trained on."""

    width: int
    batch: int

    @property
    def name(self) -> str:
        """What the network is called."""
        return f"width {self.width:,}"

    @property
    def cost(self) -> Cost:
        """The work of one step."""
        return cost(self.width, self.batch)


def cost(width: float, batch: float) -> Cost:
    """The work of a step of the dense network, whole numbers or not."""
    # Without biases.
    weights = _LAYERS * width**2 + _CLASSES * width
    # Nobody needs the gradient of the examples.
    products = 3 * weights - width**2
    touched = _PER_WEIGHT * weights + _PER_ACTIVATION * batch * _LAYERS * width
    return Cost(steps=1.0, traffic=_FLOAT * touched, flops=2 * batch * products)


# The first of each pair is the one to beat.
PAIRS = (("one core", "all cores"), ("CPU", "GPU"))
PAYS = WORTH_KNOWING
# No machine gains so much, nor does so much in a second; a file may hold anything.
_SOUND = 1e12
_POINTS, _FEWEST_WIDTHS = 240, 3


def name_of(device: str, network: str, batch: int) -> str:
    """What the variant of a device, a network and a batch size is called."""
    return f"{device}, {network}, batch {batch:,}"


@dataclass(frozen=True, kw_only=True)
class CpuOrGpu(Experiment):
    """Why does my GPU train no faster than the CPU, or all cores no faster than one?"""

    devices: Annotated[
        str,
        Choice(
            ("here", "cores"),
            help="here: CPU and GPU, or without a GPU one core and all cores",
        ),
    ] = "here"
    narrowest: Annotated[int, Range(4, 8192, unit="units", help="Of a layer")] = 32
    widest: Annotated[int, Range(8, 16_384, unit="units", help="Of a layer")] = 2048
    widths: Annotated[
        int, Range(3, 8, help="How many widths to time, ends included")
    ] = 4
    batch: Annotated[int, Range(8, 8192, unit="examples", help="In a batch")] = 64

    name = "cpu-or-gpu"

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        super().__post_init__()
        if self.narrowest >= self.widest:
            raise BadParameterError(
                f"narrowest is {self.narrowest} and widest is {self.widest}; give a "
                "widest above the narrowest."
            )
        if len(self.sizes) <= _FEWEST_WIDTHS:
            raise BadParameterError(
                f"Only {len(self.sizes) - 1} widths lie from {self.narrowest} to "
                f"{self.widest}; give a wider range, because it takes three."
            )

    @property
    def baseline(self) -> str:
        """The first device at the narrowest width."""
        narrowest = Size(self.narrowest, self.batch)
        return name_of(self._pair[0].name, narrowest.name, self.batch)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Every width at the usual batch, then one of them at a larger one."""
        inner = np.geomspace(self.narrowest, self.widest, self.widths)[1:-1]
        # Processors like a multiple of four as much as the next.
        widths = (self.narrowest, *(4 * round(w / 4) for w in inner), self.widest)
        along = [Size(width, self.batch) for width in sorted(set(widths))]
        larger = min(self.batch * _LARGER, _LARGEST_BATCH)
        return (*along, Size(along[-2].width, larger))

    def make_variants(self) -> Mapping[str, Variant]:
        """Both devices at each size."""
        variants = (variant for size in self.sizes for variant in self._on_both(size))
        return {variant.name: variant for variant in variants}

    def prepare(self) -> Iterator[Yielded]:
        """Count the cores; refuse a GPU that TensorFlow cannot use."""
        if self._uses_gpu and not benchmark.sees_gpu():
            raise RunError(
                "TensorFlow cannot use the GPU here; `perfkit doctor` says why, and "
                "`devices=cores` compares cores instead"
            )
        benchmark.without_gpus()
        yield Note(CORES, benchmark.granted())

    def result(self, measured: Measurement) -> "Result":
        """What a run at the question's sizes shows in numbers."""
        pair, fits, points = PAIRS[0], dict[str, Costs](), list[Point]()
        for device in itertools.chain.from_iterable(PAIRS):
            steps = {
                size.cost: timing.seconds(size.batch)
                for size in self.sizes
                if (timing := measured.timing(name_of(device, size.name, size.batch)))
                and _is_sound(timing.low, timing.high)
            }
            if steps:
                pair = next(names for names in PAIRS if device in names)
            if fit := fitted([*steps], [*steps.values()]):
                fits[device] = fit
        for size in sorted(self.sizes):
            first, second = (name_of(device, size.name, size.batch) for device in pair)
            gain = measured.compare(second, first)
            if gain and _is_sound(gain.low, gain.ratio, gain.high):
                points.append(Point(size, gain))
        along = tuple(point for point in points if point.size.batch == self.batch)
        curve: Curve | None = None
        if len(along) >= _FEWEST_WIDTHS:
            both = tuple(fits[device] for device in pair if device in fits)
            curve = Curve(points=along, fits=both)
        return Result(
            devices=pair,
            points=tuple(points),
            fits=fits,
            curve=curve,
            crossing=_crossing(curve) if curve else Crossing(kind="open"),
        )

    def verdict(self, measured: Measurement) -> Verdict:
        """Say from which width on the second device pays, why, and what to change."""
        result, cores = self.result(measured), measured.notes.get(CORES)
        facts, because = tuple(_facts(result)), failures(measured)
        first, second = "one core", f"all {cores or 'the'} cores"
        if result.devices[1] == "GPU":
            first, second = "the CPU", "the GPU"
        elif cores == 2:
            second = "both cores"
        if result.curve is None:
            return Verdict(
                headline=f"This run does not show from which width {second} pays.",
                much="Fewer than three widths were timed on both devices.",
                sure="not known yet",
                facts=facts,
                because=because,
                next="Check how the trials ended, or give the run more seconds.",
            )
        paying = [point for point in result.curve.points if point.says == "pays"]
        largest = (paying or result.curve.points)[-1]
        sure = largest.gain.sure if paying else "not known yet"
        if result.crossing.kind == "never":
            # Each interval ends below what pays, whether or not it leaves out 1.
            sure = "sure" if largest.gain.rounds > 1 else "likely"
        hides = result.crossing.kind == "never" and second == "the GPU"
        return Verdict(
            headline=_headline(result.crossing, paying, first, second),
            much=_describe_gain(measured, largest, first, second),
            sure=sure,
            interval=largest.gain.ends,
            edits=(Edit(old=_IMPORT, new=f"{_IMPORT}\n{_HIDE}"),) if hides else (),
            facts=facts,
            because=(_BEFORE_WORK, *because),
            next=_next(result),
        )

    @property
    def _uses_gpu(self) -> bool:
        return self.devices == "here" and bool(gpus_here()[0])

    @property
    def _pair(self) -> tuple[Device, Device]:
        return (WHOLE_CPU, A_GPU) if self._uses_gpu else (ONE_CORE, ALL_CORES)

    def _on_both(self, size: Size) -> Iterator[Variant]:
        model, before = dense(size.width), ""
        for device in self._pair:
            name, why_not = name_of(device.name, size.name, size.batch), ""
            if device is ONE_CORE and not benchmark.can_keep_to_one_core():
                why_not = "needs a system that lets a process keep to one core"
            elif device is ALL_CORES and benchmark.granted() < 2:
                why_not = "needs more than the one core that this process may use"
            yield Variant(
                name,
                functools.partial(train, device, model, size.batch),
                f"{model.description.capitalize()} on {device.name}.",
                "" if why_not else before,
                why_not,
                code=code_of(*device.sources, model.build, compiled, loop),
            )
            before = name


@dataclass(frozen=True)
class Point:
    """What the second device gains over the first at one size."""

    size: Size
    gain: Comparison

    @property
    def says(self) -> Literal["pays", "does not", "open"]:
        """Whether the second device pays here."""
        if self.gain.verdict == "faster" and self.gain.low >= PAYS:
            return "pays"
        return "does not" if self.gain.high < PAYS else "open"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What the second device gains over the width, at one batch size.

    It goes through the measured gains. Between them it has the shape of the fitted
    costs, where there are enough sizes to fit them.
    """

    points: tuple[Point, ...]
    fits: tuple[Costs, ...]

    @property
    def batch(self) -> int:
        """Examples of a step."""
        return self.points[0].size.batch

    @functools.cached_property
    def widths(self) -> Floats:
        """Where it is known: shape (widths,), those that were measured among them."""
        nodes = self._nodes
        x = np.union1d(np.linspace(nodes[0], nodes[-1], _POINTS), nodes)
        return np.asarray(np.exp(x))

    @functools.cached_property
    def gains(self) -> Floats:
        """The gain there and the ends of its 95 % interval, shape (3, widths)."""
        x, nodes = np.log(self.widths), self._nodes
        shape = np.zeros(len(x))
        if len(self.fits) == len(PAIRS[0]):
            first, second = self.fits
            costs = [cost(width, self.batch) for width in self.widths]
            shape = np.log([first.at(c) / second.at(c) for c in costs])
        gains = [(p.gain.ratio, p.gain.low, p.gain.high) for p in self.points]
        beside = np.log(gains).T - np.interp(nodes, x, shape)
        lines = [shape + np.interp(x, nodes, line) for line in beside]
        return np.asarray(np.exp(lines))

    @property
    def _nodes(self) -> Floats:
        return np.asarray(np.log([point.size.width for point in self.points]))


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Where the second device begins to pay, with the ends of a 95 % interval.

    It pays ``"from"`` a width on, ``"always"`` or ``"never"`` within what was tried.
    ``"mixed"``: it pays at some width and not at a larger one. ``"open"``: noise hides
    it. The lower end is 0 where it may be below all widths.
    """

    kind: Literal["from", "always", "never", "mixed", "open"]
    width: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether its interval says enough."""
        return units.is_known(self.low, self.high)

    @property
    def place(self) -> str:
        """From where on it pays, in two digits: no more is known of crossing lines."""
        if self.is_known:
            return f"from about width {units.significant(self.width, 2)} up"
        return f"from width {units.significant(self.high, 2)} up, or earlier"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run shows: every size that both devices were timed with, in order.

    ``fits`` are what a step, a byte and a FLOP cost on each that has enough sizes.
    There is no curve with fewer than three widths: two make a line, and no shape.
    """

    devices: tuple[str, str]
    points: tuple[Point, ...]
    fits: dict[str, Costs]
    curve: Curve | None
    crossing: Crossing

    @property
    def off_curve(self) -> tuple[Point, ...]:
        """The sizes beside the curve, at other batch sizes."""
        batch = self.curve.batch if self.curve else 0
        return tuple(p for p in self.points if p.size.batch != batch)


def _is_sound(*values: float) -> bool:
    return all(1 / _SOUND < value < _SOUND for value in values)


def _crossing(curve: Curve) -> Crossing:
    """Find where the curve begins to pay, within the widths that were measured."""
    answers = [point.says for point in curve.points]
    if len(set(answers)) == 1 and answers[0] != "open":
        return Crossing(kind="always" if answers[0] == "pays" else "never")
    after = answers[answers.index("pays") :] if "pays" in answers else ["open"]
    if "does not" in after:
        return Crossing(kind="mixed")
    if "open" in after:
        return Crossing(kind="open")
    gain, low, high = curve.gains
    # The upper end of a gain pays first.
    width, first, last = (_rises(curve.widths, line) for line in (gain, high, low))
    is_lowest = bool((high >= PAYS).all())
    return Crossing(kind="from", width=width, low=0 if is_lowest else first, high=last)


def _rises(widths: Floats, gain: Floats) -> float:
    """The width from which on all gains pay; 0 where the last does not."""
    below = np.flatnonzero(gain < PAYS)
    if not len(below):
        return float(widths[0])
    if below[-1] == len(gain) - 1:
        return 0.0
    ends = slice(below[-1], below[-1] + 2)
    return float(np.exp(np.interp(PAYS, gain[ends], np.log(widths[ends]))))


def _headline(
    crossing: Crossing, paying: Sequence[Point], first: str, second: str
) -> str:
    if crossing.kind == "always":
        return f"Train on {second} at every width tried."
    if crossing.kind == "never":
        return f"Stay on {first}: {second} would bring too little."
    if crossing.kind == "from":
        unknown = "; below that is not known yet"
        below = f", on {first} below" if crossing.is_known else unknown
        return f"Train on {second} {crossing.place}{below}."
    if not paying:
        return f"This run does not show whether to train on {second}."
    places = ", ".join(point.size.name for point in paying)
    tail = "not elsewhere" if crossing.kind == "mixed" else "elsewhere is not known yet"
    return f"Train on {second} at {places}; {tail}."


def _describe_gain(measured: Measurement, point: Point, first: str, second: str) -> str:
    gain, rates = point.gain, rates_behind(measured, point.gain)
    there = f"At {point.size.name} training on {second}"
    return f"{there} is {gain.as_fast_as} on {first}{rates}."


def _next(result: Result) -> str:
    # What makes a step larger, where the run has shown that it helps.
    paying = [point.size for point in result.off_curve if point.says == "pays"]
    if not paying or result.crossing.kind in ("always", "open"):
        return ""
    return (
        f"Or make a step larger: with `batch_size={paying[-1].batch}` "
        f"{paying[-1].name} pays. `perfkit run execution-mode` measures several steps "
        "per call."
    )


def _facts(result: Result) -> Iterator[Fact]:
    """From which width the second device pays, and what a step costs before work."""
    crossing, curve = result.crossing, result.curve
    if curve and crossing.kind == "from":
        faster = units.percent(PAYS - 1)
        label = f"Width from which it is {faster} faster, batch {curve.batch:,}"
        ends = (crossing.width, crossing.low, crossing.high)
        width, low, high = (units.significant(end, 2) for end in ends)
        is_within = crossing.low > 0
        interval = f"{low} to {high}" if is_within else ""
        yield Fact(label, width if is_within else f"{high} or below", interval)
    for device, fit in result.fits.items():
        row = fact(f"A step before any work, {device}", fit.each[0], units.seconds)
        if row.interval:
            yield row
    device = result.devices[1]
    second = result.fits.get(device)
    if curve and second and second.each[0].low > 0 and second.worst <= _TRUSTED:
        for point in (curve.points[0], curve.points[-1]):
            share = units.percent(second.each[0].value / second.at(point.size.cost))
            yield Fact(f"Share before any work at {point.size.name}, {device}", share)


def dense(width: int) -> Model:
    """The network of a width, with data that fit it."""
    build = functools.partial(_dense, width)
    return Model(f"width {width:,}", "three equal layers", (width,), _CLASSES, build)


def _dense(width: int) -> "keras.Model":
    layers = [keras.layers.Dense(width, activation="relu") for _ in range(_LAYERS)]
    logits = keras.layers.Dense(_CLASSES)
    model = keras.Sequential([keras.Input((width,)), *layers, logits])
    return model


def train(device: Device, model: Model, batch: int) -> Iterator[Yielded]:
    """Train a fresh network on a batch that stays on a device, without an end.

    This process uses no other device from now on.
    """
    device.take()
    # As a graph; a step does not wait for the device.
    step = compiled(step_of(built(device, model)))
    with tf.device(device.place):
        there = tuple(tf.identity(tf.constant(part)) for part in model.batch(batch))
    yield READY
    yield from every(loop(itertools.repeat(there), step), sync=wait)


def built(device: Device, model: Model) -> "keras.Model":
    """Make the network on its device; ``RunError`` if TensorFlow put it elsewhere."""
    with tf.device(device.place):
        network = model.build()
    place = network.trainable_variables[0].value.device
    if device.place not in place:
        raise RunError(f"The network lies on {place or 'no device'} and was not timed.")
    return network
