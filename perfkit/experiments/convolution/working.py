"""One trial of a way: the same images, convolved over and over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.experiments.convolution.finishing import wait_for_device
from perfkit.measure.tick import READY, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perfkit.experiments.convolution.problem import Problem
    from perfkit.experiments.convolution.ways import Way
    from perfkit.measure.tick import Yielded


def convolving(way: Way, problem: Problem) -> Iterator[Yielded]:
    """Convolve without an end; the first call is a tick of its own."""
    call = way.call(problem)
    wait_for_device()
    yield READY
    call()
    wait_for_device()
    yield problem.batch
    yield from every(_calls(call, problem.batch), sync=wait_for_device)


def _calls(call: Callable[[], object], batch: int) -> Iterator[int]:
    while True:
        call()
        yield batch
