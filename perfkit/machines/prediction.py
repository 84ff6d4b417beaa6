"""One machine predicted from another, piece by piece of a step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfkit.experiments.shared.precision import BFLOAT16, FLOAT16
from perfkit.experiments.shared.reference_jobs import BYTES_ON_DISK, FLOP, FORGOTTEN
from perfkit.machines.comparison import LOAD, THROTTLING, UNEXPLAINED, Held, Work
from perfkit.machines.ratios import HALF, logarithm
from perfkit.machines.sides import Lost
from perfkit.passports.passport import Part

Draws = NDArray[np.float64]

MAP, DECODE, CALL, TO_GPU = "tf.data map", "JPEG decode", "graph call", "to the GPU"
DISK, COPY, GPU_COPY = "data disk", "memory copy", "GPU memory"
# The same work of TensorFlow's kernels on all cores and on one.
TOGETHER, ALONE = "TensorFlow product, float32", "TensorFlow product, 1 core"
# Work of one core that is like a pipeline's: small things, one after another.
_SMALL_THINGS = ("eager operation", "Python loop")
# Adam reads four numbers for each weight and writes three, of four bytes each.
_UPDATE_BYTES = 28
_KINDS = {BFLOAT16: "bfloat16", FLOAT16: "float16"}
# From this on TensorFlow multiplies float32 in the shorter format TF32.
_AMPERE = 8.0


@dataclass(frozen=True)
class Piece:
    """A piece of a part, and the microbenchmark that stands for it.

    Attributes:
        a: The microbenchmark on A; ``b`` on B, another where one computes on a GPU.
        seconds: What it takes on A, as A's microbenchmark says; None for the rest.
        alone: Whether one core does it, of which the microbenchmark tells on all.
    """

    a: str
    b: str
    seconds: float | None = None
    alone: bool = False


def _pieces(part: str, a: Held, b: Held, name: str) -> tuple[Piece, ...]:
    """The pieces of one part of a job; the last is what is left of it."""
    if part == "input":
        return _input(a, b, a.works[name])
    if part == "dispatch":
        return _timed(a, CALL, 1), _same(_small_things(a, b))
    if part == "transfer":
        return (_same(TO_GPU),)
    return tuple(_compute(a, a.works[name], b, b.works[name]))


def _small_things(a: Held, b: Held) -> str:
    """The microbenchmark of both that does small things on one core."""
    both = (one for one in _SMALL_THINGS if one in a.rates and one in b.rates)
    return next(both, _SMALL_THINGS[-1])


def _compute(a: Held, one: Work, b: Held, other: Work) -> Iterator[Piece]:
    main, flop = Piece(_arithmetic(a, one), _arithmetic(b, other)), FLOP.get(one.model)
    update = _taking(a, _copy(one), (one.weights or 0) * _UPDATE_BYTES)
    if flop and update is not None:
        yield Piece(_copy(one), _copy(other), update)
    if flop is None or one.on_gpu or other.on_gpu:
        yield main
        return
    yield replace(main, seconds=_taking(a, main.a, one.batch * flop))
    yield replace(main, alone=True)


def _input(a: Held, b: Held, work: Work) -> tuple[Piece, ...]:
    data = work.job.get("data", "")
    if work.on_gpu:
        *more, last = _stages(work)
        return (*(_timed(a, one, work.batch) for one in more), _same(last))
    if FORGOTTEN in data:
        return (_same(DECODE),)
    decoded = (_timed(a, DECODE, work.batch),) if "JPEG" in data else ()
    return (*decoded, _same(_small_things(a, b)))


def _same(name: str) -> Piece:
    return Piece(name, name)


def _timed(a: Held, name: str, units: float) -> Piece:
    """So many units of a microbenchmark's work; all of a part where A has none."""
    return Piece(name, name, _taking(a, name, units))


def _stages(work: Work) -> tuple[str, ...]:
    return (MAP, DECODE) if "JPEG" in work.job.get("data", "") else (MAP,)


def _taking(held: Held, name: str, units: float) -> float | None:
    found = held.rates.get(name)
    return units / found.rate if found and found.rate and units else None


def _copy(work: Work) -> str:
    return GPU_COPY if work.on_gpu else COPY


def _arithmetic(held: Held, work: Work) -> str:
    kind = _KINDS.get(work.dtype, "float32")
    if work.model == "tiny-dense":
        return "GPU launch" if work.on_gpu else "operation in a graph"
    convolves = work.model == "small-cnn"
    if not work.on_gpu:
        return f"convolution, {kind}" if convolves else f"TensorFlow product, {kind}"
    short = kind != "float32"
    if convolves:
        return f"GPU convolution, {'float16' if short else kind}"
    gpus = held.machine.gpus
    capability = gpus[0].compute_capability if gpus else None
    try:
        new = float(capability or 0) >= _AMPERE
    except ValueError:
        new = False
    return f"GPU product, {'TF32' if new and not short else kind}"


COUNT = 4000
# What is read from samples is known to about a quarter of itself.
_DOUBT = 0.25
_ON_PROCESSOR = ("input", "dispatch", "compute", UNEXPLAINED)


@dataclass(frozen=True)
class Drawn:
    """One job on one machine, drawn ``COUNT`` times.

    Attributes:
        step: Seconds of the step, shape (COUNT,).
        parts: Of each part as it was measured, unexplained included.
    """

    step: Draws
    parts: dict[str, Draws]


def drawn(work: Work, names: tuple[str, ...], draw: np.random.Generator) -> Drawn:
    """Draw a step and those of its parts that both know; the rest is unexplained."""
    seconds = work.seconds or 1.0
    spread = 0.0
    if work.low and work.high:
        spread = math.log(work.high / work.low) / 2 / HALF
    step = seconds * np.exp(draw.normal(0, spread, COUNT))
    # The interval of a part is that of its share, at the usual length of a step.
    parts = {
        name: step * draw.normal(*_share(work.parts[name], seconds), COUNT)
        for name in names
    }
    left = step - sum(parts.values(), np.zeros(COUNT))
    return Drawn(step, parts | {UNEXPLAINED: left})


def without_losses(
    of: Drawn, lost: Lost, work: Work, draw: np.random.Generator
) -> Drawn:
    """Take what other programs and slower clocks cost out of the parts that bore it."""
    parts = dict(of.parts)
    bearing = [n for n in _ON_PROCESSOR if not (work.on_gpu and n == "compute")]
    for name, share in ((LOAD, lost.load), (THROTTLING, lost.throttling)):
        if share is not None:
            parts[name] = _taken(parts, share, bearing, draw)
    if lost.gpu and work.on_gpu:
        slower = _taken(parts, lost.gpu, ["compute"], draw)
        parts[THROTTLING] = parts.get(THROTTLING, 0.0) + slower
    return Drawn(of.step, parts)


def _slowdown(
    a: Held, b: Held, benchmarks: tuple[str, str], draw: np.random.Generator
) -> Draws | None:
    """How many times as long the same work takes on B; None if one is missing."""
    one, other = a.rates.get(benchmarks[0]), b.rates.get(benchmarks[1])
    if one is None or other is None or one.unit != other.unit:
        return None
    logs = [logarithm((each.low, each.rate, each.high)) for each in (one, other)]
    if logs[0] is None or logs[1] is None:
        return None
    middle, spread = logs[0][0] - logs[1][0], math.hypot(logs[0][1], logs[1][1])
    return np.asarray(np.exp(draw.normal(middle, spread / HALF, COUNT)))


def ends(values: Draws) -> tuple[float, float]:
    """The ends of what holds 95 % of the draws."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _taken(
    parts: dict[str, Draws],
    share: float,
    where: list[str],
    draw: np.random.Generator,
) -> Draws:
    """Take a share out of some parts, and give what was taken."""
    each = np.clip(draw.normal(share, _DOUBT * share, COUNT), 0.0, 0.99)
    gone = np.zeros(COUNT)
    for name in where:
        if name in parts and share:
            gone = gone + each * parts[name]
            parts[name] = parts[name] * (1 - each)
    return gone


def _share(part: Part, seconds: float) -> tuple[float, float]:
    """The middle and the standard deviation of a part's share of a step."""
    spread = 0.0
    if part.low is not None and part.high is not None:
        spread = (part.high - part.low) / 2 / HALF / seconds
    return (part.seconds or 0.0) / seconds, spread


# What takes so many times as long as cores explain does not work, it waits.
_WAITS = 2.0


def _by_core(a: Held, b: Held, draw: np.random.Generator) -> Draws:
    """How many times as long a core of B takes for small things."""
    name = _small_things(a, b)
    found = _slowdown(a, b, (name, name), draw)
    return np.ones(COUNT) if found is None else found


def _is_late(a: Held, b: Held, draw: np.random.Generator) -> bool:
    """Whether elements come late on B, which no speed of a core explains."""
    longer = _slowdown(a, b, (MAP, MAP), draw)
    return longer is not None and bool(
        np.median(longer / _by_core(a, b, draw)) > _WAITS
    )


def _late(a: Held, b: Held, work: Work, draw: np.random.Generator) -> Draws:
    """Seconds by which a batch of B's comes later, because each of its elements does.

    Of A nothing is taken to be late.
    """
    one, longer = a.rates.get(MAP), _slowdown(a, b, (MAP, MAP), draw)
    if longer is None or one is None or not one.rate or not _is_late(a, b, draw):
        return np.zeros(COUNT)
    each = (longer - _by_core(a, b, draw)) / one.rate
    return np.maximum(each * work.batch, 0.0)


def _reading(held: Held, work: Work) -> float:
    """Seconds that the disk needs for a batch; 0 where none is read from it."""
    if FORGOTTEN not in work.job.get("data", ""):
        return 0.0
    return _taking(held, DISK, work.batch * BYTES_ON_DISK) or 0.0


# An input that shows with more than this share of a step is what the step waits for.
_SHOWS = 0.05
# A part that is less of A's step may stay unpredicted; more, and nothing is predicted.
_SMALL = 0.1
# What the split leaves open grows as the parts do, if it is no more of A's step.
_OPEN = 0.3


@dataclass(frozen=True)
class Expected:
    """B's step as expected, and its parts, but for those without a microbenchmark.

    Attributes:
        step: Shape (COUNT,); None where a part that counts cannot be expected.
        parts: By name.
        microbenchmarks: Those that stand for each part.
    """

    step: Draws | None
    parts: dict[str, Draws]
    microbenchmarks: dict[str, tuple[str, ...]]


def expected(
    a: Held, b: Held, name: str, drawn: Drawn, draw: np.random.Generator
) -> Expected:
    """Scale A's parts to B."""
    known = [part for part in drawn.parts if part != UNEXPLAINED]
    of = {part: _pieces(part, a, b, name) for part in known}
    benchmarks = {p: tuple(dict.fromkeys(piece.b for piece in of[p])) for p in known}
    scaled: dict[str, Draws] = {}
    for part in known:
        seconds = drawn.parts[part]
        if part == "input":
            seconds = _pipeline(a, name, drawn)
        found = _scaled(seconds, of[part], (a, b), draw)
        if found is not None:
            scaled[part] = found
    work, left = b.works[name], _left(drawn, scaled, a.works[name])
    if "input" in scaled:
        coming = np.maximum(
            scaled["input"] + _late(a, b, work, draw), _reading(b, work)
        )
        others = (seconds for part, seconds in scaled.items() if part != "input")
        beyond = np.maximum(coming - sum(others, left), 0.0)
        # A processor works on the batches in between: that shows in any case.
        shown = 0.0 if work.on_gpu else scaled["input"]
        scaled["input"] = np.maximum(beyond, shown)
    share = {name: _usual_share(of, drawn) for name, of in drawn.parts.items()}
    missing = any(share[part] > _SMALL for part in known if part not in scaled)
    if not scaled or share[UNEXPLAINED] > _OPEN or missing:
        return Expected(None, scaled, benchmarks)
    parts = scaled | {UNEXPLAINED: left}
    return Expected(sum(parts.values(), np.zeros(COUNT)), parts, benchmarks)


def _left(drawn: Drawn, scaled: dict[str, Draws], work: Work) -> Draws:
    """What A's split leaves open, grown as the work of its parts grows.

    A pipeline works beside a GPU: what it takes is none of the step's.
    """
    parts = [part for part in scaled if part != "input" or not work.on_gpu]
    after = sum((scaled[part] for part in parts), np.zeros(COUNT))
    before = sum((drawn.parts[part] for part in parts), np.zeros(COUNT))
    # Parts below 0 are noise; a growth of their sum would be none.
    growth = np.clip(after / np.where(before > 0, before, np.inf), 0.0, 1e6)
    return drawn.parts[UNEXPLAINED] * growth


def _pipeline(a: Held, name: str, drawn: Drawn) -> Draws:
    """Seconds that A's pipeline takes for a batch, shown in the step or not."""
    work, shown = a.works[name], drawn.parts["input"]
    if not work.on_gpu:
        return shown
    if _usual_share(shown, drawn) > _SHOWS:
        return drawn.step
    known = [_taking(a, one, work.batch) for one in _stages(work)]
    if None in known:
        return shown
    return np.asarray(np.minimum(drawn.step, sum(filter(None, known))))


def _scaled(
    seconds: Draws,
    of: tuple[Piece, ...],
    machines: tuple[Held, Held],
    draw: np.random.Generator,
) -> Draws | None:
    if not np.any(seconds):
        return seconds
    left, scaled = seconds, np.zeros(COUNT)
    for piece in of:
        longer = _longer(piece, *machines, draw)
        if longer is None:
            return None
        taken = left
        if piece.seconds is not None:
            taken = np.clip(np.full(COUNT, piece.seconds), 0.0, np.maximum(left, 0.0))
        scaled, left = scaled + taken * longer, left - taken
    return scaled


def _longer(piece: Piece, a: Held, b: Held, draw: np.random.Generator) -> Draws | None:
    """How many times as long the work of a piece takes on B, without what it waits."""
    if piece.b == MAP and _is_late(a, b, draw):
        return _by_core(a, b, draw)
    longer = _slowdown(a, b, (piece.a, piece.b), draw)
    if longer is None or not piece.alone:
        return longer
    every, one = (_slowdown(a, b, (one, one), draw) for one in (TOGETHER, ALONE))
    return None if every is None or one is None else longer * one / every


def _usual_share(seconds: Draws, drawn: Drawn) -> float:
    return float(np.median(seconds / drawn.step))
