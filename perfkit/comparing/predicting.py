"""What the rungs let expect of B's step, from A's.

Each part of A's split is scaled by the ratio of the rung that stands for it. Where a
processor does everything, the pipeline takes its cores from the training: their seconds
add up. Where a GPU computes, the pipeline works meanwhile: a step takes as long as the
longer of the two, and the input is what shows beyond the rest. What a pipeline waits
without working goes on beside the training on every machine. What A's split leaves open
is taken to grow as the work of its parts does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfkit.comparing.drawing import COUNT, slowdown
from perfkit.comparing.pieces import ALONE, MAP, TOGETHER, pieces, pipeline_seconds
from perfkit.comparing.record import UNEXPLAINED
from perfkit.comparing.waits import by_core, is_late, late, reading

if TYPE_CHECKING:
    from perfkit.comparing.drawing import Drawn, Draws
    from perfkit.comparing.pieces import Piece
    from perfkit.comparing.works import Held, Work

# An input that shows with more than this share of a step is what the step waits for.
_SHOWS = 0.05
# A part that is less of A's step may stay unpredicted; more, and nothing is predicted.
_SMALL = 0.1
# What the split leaves open grows as the parts do, if it is no more of A's step.
_OPEN = 0.3


@dataclass(frozen=True)
class Expected:
    """B's step as expected, and its parts; a part is missing where no rung is there.

    Attributes:
        step: Shape (COUNT,); None where a part that counts cannot be expected.
        parts: By name.
        rungs: Those that stand for each part.
    """

    step: Draws | None
    parts: dict[str, Draws]
    rungs: dict[str, tuple[str, ...]]


def expected(
    a: Held, b: Held, name: str, drawn: Drawn, draw: np.random.Generator
) -> Expected:
    """Scale A's parts to B."""
    known = [part for part in drawn.parts if part != UNEXPLAINED]
    of = {part: pieces(part, a, b, name) for part in known}
    rungs = {p: tuple(dict.fromkeys(piece.b for piece in of[p])) for p in known}
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
        coming = np.maximum(scaled["input"] + late(a, b, work, draw), reading(b, work))
        others = (seconds for part, seconds in scaled.items() if part != "input")
        beyond = np.maximum(coming - sum(others, left), 0.0)
        # A processor works on the batches in between: that shows in any case.
        shown = 0.0 if work.on_gpu else scaled["input"]
        scaled["input"] = np.maximum(beyond, shown)
    missing = [drawn.parts[part] for part in known if part not in scaled]
    is_open = _share(drawn.parts[UNEXPLAINED], drawn) > _OPEN
    if not scaled or is_open or any(_share(s, drawn) > _SMALL for s in missing):
        return Expected(None, scaled, rungs)
    parts = scaled | {UNEXPLAINED: left}
    return Expected(sum(parts.values(), np.zeros(COUNT)), parts, rungs)


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
    if float(np.median(shown / drawn.step)) > _SHOWS:
        return drawn.step
    hidden = pipeline_seconds(a, work)
    return shown if hidden is None else np.minimum(np.full(COUNT, hidden), drawn.step)


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
    if piece.b == MAP and is_late(a, b, draw):
        return by_core(a, b, draw)
    longer = slowdown(a, b, (piece.a, piece.b), draw)
    if longer is None or not piece.alone:
        return longer
    every, one = (slowdown(a, b, (rung, rung), draw) for rung in (TOGETHER, ALONE))
    return None if every is None or one is None else longer * one / every


def _share(seconds: Draws, drawn: Drawn) -> float:
    return float(np.median(seconds / drawn.step))
