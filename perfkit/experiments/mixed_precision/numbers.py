"""What a run over precisions shows in numbers, and what its trials told."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np

from perfkit import units
from perfkit.experiments.shared import precision as formats
from perfkit.experiments.shared.models import MODELS
from perfkit.experiments.shared.precision import (
    BFLOAT16,
    CURVE,
    FLOAT16,
    FLOAT32,
    NO_TF32,
    PRECISIONS,
    SCALE,
    expected,
    unavailable,
)
from perfkit.measure.tick import REFUSED, Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import keras
    from numpy.typing import NDArray

    from perfkit.experiments.shared.precision import Hardware, Precision
    from perfkit.measure.tick import Yielded
    from perfkit.measure.trial import Trial


_MOST = 1000


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How the loss of examples that were seen first fell in one training.

    Attributes:
        precision: What it computed in.
        seed: Of its weights and examples.
        every: Steps of which each loss is the mean.
        losses: What was seen, up to the first that was no number.
        lost: Whether it ever became something that is no number.
    """

    precision: str
    seed: int
    every: int
    losses: tuple[float, ...]
    lost: bool = False


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The loss scale of a training in float16.

    Attributes:
        model: The network that was trained.
        scales: After each step, the first before any.
        updates: Steps that changed the weights.
    """

    model: str
    scales: tuple[float, ...]
    updates: int

    @property
    def skipped(self) -> tuple[int, ...]:
        """The steps that changed nothing, because a gradient overflowed."""
        pairs = itertools.pairwise(self.scales)
        return tuple(step for step, (old, new) in enumerate(pairs, 1) if new < old)


def curves(trials: Iterable[Trial]) -> tuple[Curve, ...]:
    """Each training that was run to learn, in the order they ran."""
    found = (_curve(trial.notes.get(CURVE)) for trial in trials if trial.is_try)
    return tuple(curve for curve in found if curve is not None)


def _curve(note: Any) -> Curve | None:
    if not isinstance(note, dict) or not isinstance(note.get("precision"), str):
        return None
    seed, every, losses = note.get("seed"), note.get("every"), note.get("losses")
    if not _count(seed) or not _count(every) or not isinstance(losses, list | tuple):
        return None
    sound = tuple(itertools.takewhile(_number, losses[:_MOST]))
    return Curve(
        precision=note["precision"],
        seed=seed,
        every=every,
        losses=tuple(float(loss) for loss in sound),
        lost=len(sound) < len(losses[:_MOST]),
    )


def scale(trials: Iterable[Trial]) -> Scale | None:
    """The training that showed its loss scale, if one did."""
    for trial in trials:
        note = trial.notes.get(SCALE)
        if not trial.is_try or not isinstance(note, dict):
            continue
        scales, updates = note.get("scales"), note.get("updates")
        if not isinstance(scales, list | tuple) or type(updates) is not int:
            continue
        sound = [float(s) for s in scales[:_MOST] if _number(s) and s > 0]
        if len(sound) == len(scales) > 1:
            model = str(note.get("model", ""))
            return Scale(model=model, scales=tuple(sound), updates=updates)
    return None


def memory(trials: Iterable[Trial]) -> dict[str, tuple[float, float, float]]:
    """Bytes above the start at the peak, by variant: the median, least and most.

    Of the GPU where there is one, else of the process.
    """
    found = dict[str, list[float]]()
    for trial in trials:
        note = trial.notes.get("memory")
        if trial.is_try or not isinstance(note, dict):
            continue
        held = note.get("gpu_peak", note.get("resident"))
        if _number(held) and held > 0:
            found.setdefault(trial.variant, []).append(float(held))
    return {
        name: (statistics.median(held), min(held), max(held))
        for name, held in found.items()
    }


def numbers(notes: Mapping[str, Any], name: str) -> dict[str, float]:
    """A note that holds a positive number for each of several names."""
    note = notes.get(name)
    if not isinstance(note, dict):
        return {}
    return {
        str(key): float(value)
        for key, value in note.items()
        if _number(value) and value > 0
    }


def expectations(notes: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What was expected of each precision and why."""
    note = notes.get("expected")
    if not isinstance(note, dict):
        return {}
    return {
        str(name): (str(said["expect"]), str(said["because"]))
        for name, said in note.items()
        if isinstance(said, dict) and {"expect", "because"} <= said.keys()
    }


def _number(value: Any) -> TypeGuard[float]:
    sound = isinstance(value, int | float) and not isinstance(value, bool)
    return sound and abs(value) < 1e300 and math.isfinite(value)


def _count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 < value < 10**9


Alike = Literal[
    "equal within rounding",
    "less apart than two seeds",
    "differs",
    "too noisy to say",
    "too few trainings to say",
    "lost",
]
# Half the distance between 1 and the next number: what one rounding changes at most.
ROUNDING = {BFLOAT16: 2.0**-8, FLOAT16: 2.0**-11, NO_TF32: 2.0**-11}
_LEVEL = 0.975


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The trainings of one precision held against those of float32.

    Attributes:
        precision: Which.
        seeds: Of the trainings, one a pair.
        steps: Training steps at each loss that all of them reached.
        losses: One row a seed; each number is the mean of the steps since the last.
        usual: The same of float32, with the same seeds.
        lost: Whether the loss of any became something that is no number.
    """

    precision: str
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    losses: NDArray[np.float64]
    usual: NDArray[np.float64]
    lost: bool = False

    @property
    def apart(self) -> NDArray[np.float64]:
        """What the precision adds to the loss, one row a seed."""
        return self.losses - self.usual

    @property
    def largest(self) -> float:
        """The largest difference anywhere, as a share of float32's loss."""
        return float(np.max(np.abs(self.apart) / np.abs(self.usual)))

    @property
    def difference(self) -> float:
        """What the precision adds to the last loss, the mean over the seeds."""
        return float(self.apart[:, -1].mean())

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of ``difference``; None for one seed."""
        # Not with the module: it takes most of a second.
        from scipy import stats

        last = self.apart[:, -1]
        if len(last) < 2:
            return None
        spread = last.std(ddof=1) / np.sqrt(len(last))
        return float(stats.t.ppf(_LEVEL, len(last) - 1) * spread)

    @property
    def seeds_differ(self) -> float:
        """What another seed changes in float32's last loss: its whole range."""
        return float(np.ptp(self.usual[:, -1]))

    @property
    def alike(self) -> Alike:
        """Whether it learns what float32 learns."""
        if self.lost:
            return "lost"
        if self.largest <= ROUNDING.get(self.precision, 0.0):
            return "equal within rounding"
        if self.half_width is None:
            return "too few trainings to say"
        if abs(self.difference) + self.half_width <= self.seeds_differ:
            return "less apart than two seeds"
        shown = abs(self.difference) > max(self.half_width, self.seeds_differ)
        return "differs" if shown else "too noisy to say"


def pairs(curves: Iterable[Curve]) -> tuple[Pairs, ...]:
    """Hold every precision against float32, in the order in which they learnt."""
    by_name: dict[str, dict[int, Curve]] = {}
    for curve in curves:
        by_name.setdefault(curve.precision, {})[curve.seed] = curve
    usual = by_name.pop(FLOAT32, {})
    found = (_pairs(name, known, usual) for name, known in by_name.items())
    return tuple(one for one in found if one is not None)


def _pairs(name: str, known: dict[int, Curve], usual: dict[int, Curve]) -> Pairs | None:
    seeds = sorted(
        seed
        for seed in known.keys() & usual.keys()
        if known[seed].every == usual[seed].every
    )
    if not seeds:
        return None
    both = [one[seed] for one in (known, usual) for seed in seeds]
    count = min(len(curve.losses) for curve in both)
    every = known[seeds[0]].every
    cut = [[one[seed].losses[:count] for seed in seeds] for one in (known, usual)]
    lost = any(known[seed].lost for seed in seeds)
    if count < 2 or not np.all(np.array(cut[1]) > 0):
        return None
    return Pairs(
        precision=name,
        seeds=tuple(seeds),
        steps=tuple(every * look for look in range(1, count + 1)),
        losses=np.array(cut[0]),
        usual=np.array(cut[1]),
        lost=lost,
    )


# A step that takes longer than this, and than so many of float32, is not timed: a few
# of them would be the whole run.
_LONGEST_STEP_S, _TIMES = 0.5, 10.0
_NOT_HERE = "not here"


def foreseen(model: str, batch: int, asked: Sequence[Precision]) -> Iterator[Yielded]:
    """Tell what is expected of each precision, and refuse those that take too long.

    Args:
        model: The network's name.
        batch: Examples in a batch.
        asked: The precisions, float32 among them.
    """
    notes = known(model, asked)
    yield from (Note(name, told) for name, told in notes.items())
    able = [one for one in asked if one.name not in notes[_NOT_HERE]]
    yield Note("forecast", _held(model, batch, able))
    yield Note("progress", _announced(notes["expected"]))
    taken = {} if notes["gpu"] else dict(_tried(model, batch, able, notes["expected"]))
    yield Note("step", taken)
    yield Note(REFUSED, notes[_NOT_HERE] | too_slow(taken))


def known(model: str, asked: Sequence[Precision]) -> dict[str, Any]:
    """What hardware and shapes say, without a step, as notes by name.

    Args:
        model: The network's name.
        asked: The precisions.
    """
    import tensorflow as tf

    seen = bool(tf.config.list_physical_devices("GPU"))
    # Preparing needs no GPU, and one that is taken here is missed by a trial.
    tf.config.set_visible_devices([], "GPU")
    here = computing(formats.here(), seen=seen)
    missing = {one.name: why for one in asked if (why := unavailable(one, here))}
    able = [one for one in asked if one.name not in missing]
    return {
        "gpu": here.gpu,
        _NOT_HERE: missing,
        "expected": foresee(able, here),
        "layers": eligible(model),
    }


def computing(here: Hardware, *, seen: bool) -> Hardware:
    """The hardware that computes: a GPU only where TensorFlow sees it."""
    return here if seen else replace(here, gpu="", capability=None)


def foresee(asked: Sequence[Precision], here: Hardware) -> dict[str, dict[str, str]]:
    """What is expected of each precision but float32, as a note has it."""
    return {
        one.name: asdict(expected(one, here)) for one in asked if one.name != FLOAT32
    }


def eligible(model: str) -> list[dict[str, Any]]:
    """The layers of a network in bfloat16, as a note has them."""
    PRECISIONS[BFLOAT16].choose()
    return [layer.described() for layer in layers(MODELS[model].build())]


def too_slow(taken: Mapping[str, float]) -> dict[str, str]:
    """Say of each precision whose steps would be the whole run why it is not timed.

    Args:
        taken: Seconds of a step, float32's among them; empty where none was tried.
    """
    usual = taken.get(FLOAT32, 0.0)
    return {
        name: (
            f"is not timed: one step took {units.seconds(seconds)}, where one of "
            f"{FLOAT32} took {units.seconds(usual)}, and a few of them would be the "
            "whole run"
        )
        for name, seconds in taken.items()
        if seconds > max(_LONGEST_STEP_S, _TIMES * usual)
    }


def _announced(expectations: Mapping[str, Mapping[str, str]]) -> str:
    said = (f"{name} {one['expect']}" for name, one in expectations.items())
    return f"Trying one step of what may be slow. Expected: {', '.join(said)}"


def _held(model: str, batch: int, able: Sequence[Precision]) -> dict[str, int]:
    return {
        one.name: formats.bytes_of_step(model, one, batch)
        for one in able
        if one.kind == "precision"
    }


def _tried(
    model: str,
    batch: int,
    able: Sequence[Precision],
    expectations: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, float]]:
    for one in able:
        expect = expectations.get(one.name, {}).get("expect")
        doubtful = expect == "slower" and one.name in (BFLOAT16, FLOAT16)
        if one.name == FLOAT32 or doubtful:
            yield one.name, formats.seconds_of_step(model, one, batch)


BLOCK = 8
_HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer that multiplies.

    Attributes:
        name: In its network.
        computes: In which dtype.
        inputs: Numbers, or channels, that come in.
        outputs: Numbers, or channels, that go out.
        products: Multiplications for one example, forward.
    """

    name: str
    computes: str
    inputs: int
    outputs: int
    products: int

    @property
    def hindrance(self) -> str:
        """What keeps it from gaining, as a clause; "" for nothing."""
        if self.computes not in _HALVES:
            return f"computes in {self.computes}"
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        odd = [f"{count:,} {side}" for side, count in sides.items() if count % BLOCK]
        return f"has {' and '.join(odd)}, no multiple of {BLOCK}" if odd else ""

    def described(self) -> dict[str, Any]:
        """The same as a note that a finding can keep."""
        return dict(vars(self))


def layers(network: keras.Model) -> Iterator[Layer]:
    """Look at the layers of a built network that have a kernel."""
    for layer in network.layers:
        if (kernel := getattr(layer, "kernel", None)) is None:
            continue
        *_, inputs, outputs = map(int, kernel.shape)
        places = math.prod(side or 1 for side in layer.output.shape[1:-1])
        yield Layer(
            name=layer.name,
            computes=layer.compute_dtype,
            inputs=inputs,
            outputs=outputs,
            products=places * math.prod(map(int, kernel.shape)),
        )


def told(notes: Mapping[str, Any]) -> tuple[Layer, ...]:
    """The layers as a note has them, which may come from a file."""
    listed = notes.get("layers")
    if not isinstance(listed, list | tuple):
        return ()
    found = (_layer(one) for one in listed[:_MOST])
    return tuple(layer for layer in found if layer is not None)


def _layer(note: Any) -> Layer | None:
    counts = ("inputs", "outputs", "products")
    if not isinstance(note, dict) or any(
        not isinstance(note.get(name), str) for name in ("name", "computes")
    ):
        return None
    numbers: dict[str, Any] = {name: note.get(name) for name in counts}
    if any(type(number) is not int or number < 0 for number in numbers.values()):
        return None
    return Layer(name=note["name"], computes=note["computes"], **numbers)


def share(found: tuple[Layer, ...]) -> float | None:
    """The share of all multiplications that can gain; None where there are none."""
    whole = sum(layer.products for layer in found)
    able = sum(layer.products for layer in found if not layer.hindrance)
    return able / whole if whole else None
