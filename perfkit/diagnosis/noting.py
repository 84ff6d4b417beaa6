"""What a trial tells besides its ticks: traces since it was ready, and its waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfkit.diagnosis import tracing, waiting
from perfkit.measure.tick import READY, Note, Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from perfkit.diagnosis.tracing import Tracing

STEADY = "steady"


def noted(ticks: Iterable[Any], traces: Tracing, batch: int) -> Iterator[Any]:
    """Pass ticks on, and tell what came with the first, second, fourth, ...

    Args:
        ticks: Of a trial.
        traces: Which is looking.
        batch: Examples of a step.
    """
    passed, due, examples = 0, 1, 0
    waited = waiting.read()
    for tick in ticks:
        yield tick
        if tick == READY:
            traces.begin()
            waited, examples = waiting.read(), 0
        if not isinstance(tick, Tick):
            continue
        passed, examples = passed + 1, examples + tick.examples
        if passed >= due:
            told = {"steps": examples / batch, tracing.NOTE: traces.note()}
            now = waiting.read()
            if now and waited:
                told[waiting.NOTE] = now.since(waited).note()
            yield Note(STEADY, told)
            due *= 2
