"""Which rung stands for which part of a step.

Where a processor computes:

| part | rungs | why |
|---|---|---|
| input from JPEG | JPEG decode; one core | every image is decoded |
| input from memory | one core | elements are sliced and put into batches |
| input from the disk | JPEG decode | its threads cut images; ``waits`` has the disk |
| dispatch | graph call; one core | a call, and what Python does around it |
| compute, CNN | memory copy; convolution; the same on one core | see below |
| compute, dense | memory copy; TensorFlow product; the same on one core | see below |
| compute, tiny | operation in a graph | it starts much and computes little |

*One core* is a rung that does small things one after another. Of a computation the
optimizer reads and writes memory, the layers multiply, and the rest is what is left
over in the same kernels where the other cores find nothing to do: it grows as they do
on one core.

Where a GPU computes, the pipeline has the cores to itself (tf.data map, and JPEG
decode), arithmetic stands for all that is not the optimizer's, and transfer goes to the
GPU from ordinary memory, as TensorFlow copies.

A part of several pieces is shared between them by what A's own rungs say that each
takes; the last has what is left. The disk stands for nothing but what is read from it:
memory holds the photographs, which are read again and again. Where it is slower all the
same it is among the causes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfkit.experiments.shared.precision import BFLOAT16, FLOAT16
from perfkit.experiments.shared.reference_jobs import FLOP, FORGOTTEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfkit.comparing.works import Held, Work

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
    """A piece of a part, and the rung that stands for it.

    Attributes:
        a: The rung on A; ``b`` on B, another where one of them computes on a GPU.
        seconds: What it takes on A, as A's rung says; None for all that is left.
        alone: Whether one core does it, of which the rung tells on all.
    """

    a: str
    b: str
    seconds: float | None = None
    alone: bool = False


def pieces(part: str, a: Held, b: Held, name: str) -> tuple[Piece, ...]:
    """The pieces of one part of a job; the last is what is left of it."""
    one, other = a.works[name], b.works[name]
    if part == "input":
        return _input(a, b, one)
    if part == "dispatch":
        return _timed(a, CALL, 1), _small_things(a, b)
    if part == "transfer":
        return (Piece(TO_GPU, TO_GPU),)
    return tuple(_compute(a, one, b, other))


def small_things(a: Held, b: Held) -> str:
    """The rung of both that does small things on one core."""
    both = (rung for rung in _SMALL_THINGS if rung in a.rungs and rung in b.rungs)
    return next(both, _SMALL_THINGS[-1])


def pipeline_seconds(held: Held, work: Work) -> float | None:
    """What the pipeline of a batch takes alone, as the rungs say; None if unknown."""
    known = [_taking(held, rung, work.batch) for rung in _stages(work)]
    return None if None in known else sum(filter(None, known))


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
        return (*(_timed(a, rung, work.batch) for rung in more), Piece(last, last))
    if FORGOTTEN in data:
        return (Piece(DECODE, DECODE),)
    decoded = (_timed(a, DECODE, work.batch),) if "JPEG" in data else ()
    return (*decoded, _small_things(a, b))


def _timed(a: Held, rung: str, units: float) -> Piece:
    """So many units of a rung's work; all of a part where A's rung is not known."""
    return Piece(rung, rung, _taking(a, rung, units))


def _small_things(a: Held, b: Held) -> Piece:
    rung = small_things(a, b)
    return Piece(rung, rung)


def _stages(work: Work) -> tuple[str, ...]:
    return (MAP, DECODE) if "JPEG" in work.job.get("data", "") else (MAP,)


def _taking(held: Held, rung: str, units: float) -> float | None:
    found = held.rungs.get(rung)
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
    if convolves:
        return f"GPU convolution, {'float32' if kind == 'float32' else 'float16'}"
    return f"GPU product, {_on_gpu(held, kind)}"


def _on_gpu(held: Held, kind: str) -> str:
    gpus = held.machine.gpus
    capability = gpus[0].compute_capability if gpus else None
    try:
        new = float(capability or 0) >= _AMPERE
    except ValueError:
        new = False
    return "TF32" if kind == "float32" and new else kind
