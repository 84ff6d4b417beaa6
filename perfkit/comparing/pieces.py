"""Which rung stands for which part of a step.

| part | rung | why |
|---|---|---|
| input from JPEG | JPEG decode, and tf.data map | every image is decoded, and mapped |
| input from memory | tf.data map | an element costs the pipeline, not its data |
| input from the disk | tf.data map, and what ``waits`` says | reading is no work |
| dispatch | graph call | each step calls one function |
| transfer | to the GPU | from ordinary memory, as TensorFlow copies |
| compute, dense | TensorFlow product, and memory copy | the optimizer reads memory |
| compute, CNN | convolution, and memory copy | the same |
| compute, tiny | operation in a graph | it starts operations and computes little |

A part of two pieces is shared between them by what A's own rungs say that the smaller
one takes. The disk stands for nothing but what is read from it: memory holds the
photographs, which are read again and again. Where it is slower all the same it is among
the causes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfkit.workloads.precisions.precision import BFLOAT16, FLOAT16

if TYPE_CHECKING:
    from perfkit.comparing.works import Held, Work

MAP, DECODE, CALL, TO_GPU = "tf.data map", "JPEG decode", "graph call", "to the GPU"
DISK, COPY, GPU_COPY = "data disk", "memory copy", "GPU memory"
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
        seconds: What it takes on A, as A's rung says; None for what is left.
    """

    a: str
    b: str
    seconds: float | None = None


def pieces(part: str, a: Held, b: Held, name: str) -> tuple[Piece, ...]:
    """The pieces of one part of a job; the last is what is left of it."""
    one, other = a.works[name], b.works[name]
    if part == "input":
        return _input(a, one)
    if part == "dispatch":
        return (Piece(CALL, CALL),)
    if part == "transfer":
        return (Piece(TO_GPU, TO_GPU),)
    main = Piece(_arithmetic(a, one), _arithmetic(b, other))
    update = _taking(a, _copy(one), (one.weights or 0) * _UPDATE_BYTES)
    if one.model == "tiny-dense" or update is None:
        return (main,)
    return Piece(_copy(one), _copy(other), update), main


def pipeline_seconds(held: Held, work: Work) -> float | None:
    """What the pipeline of a batch takes alone, as the rungs say; None if unknown."""
    known = [_taking(held, rung, work.batch) for rung in _stages(work)]
    return None if None in known else sum(filter(None, known))


def _input(a: Held, work: Work) -> tuple[Piece, ...]:
    *more, main = (Piece(rung, rung) for rung in _stages(work))
    shared = (Piece(p.a, p.b, _taking(a, p.a, work.batch)) for p in more)
    return (*(piece for piece in shared if piece.seconds is not None), main)


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
