"""What can be said of a run while it goes: what runs, time left, rates so far."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfkit import units
from perfkit.measure.events import (
    Finished,
    Preparing,
    Progress,
    Ticked,
    TrialEnded,
    TrialStarted,
)

if TYPE_CHECKING:
    from perfkit.measure.events import Event
    from perfkit.measure.statistics import Timing


@dataclass
class Board:
    """What can be said of a run, from the events so far.

    Attributes:
        doing: What happens now: what is being prepared, or which variant runs.
        spent: Seconds of the budget spent.
        expected: Seconds the trials will take as it looks now; 0 if unknown.
        timings: The rates so far, the best first.
    """

    doing: str = "Getting ready"
    spent: float = 0.0
    expected: float = 0.0
    timings: tuple[Timing, ...] = ()
    _ticks: list[tuple[float, int]] = field(default_factory=list)

    def hear(self, event: Event) -> None:
        """Take in what the run told."""
        match event:
            case Preparing(message):
                self.doing = message
            case TrialStarted(variant, number, _):
                self.doing, self._ticks = f"Round {number}, {variant}", []
            case Ticked(_, ticks):
                self._ticks = [*self._ticks, *ticks][-100:]
            case TrialEnded(_, measurement):
                self.timings = tuple(
                    sorted(measurement.timings, key=lambda t: t.rate, reverse=True)
                )
            case Progress(spent, expected):
                self.spent, self.expected = spent, expected
            case Finished():
                self.doing, self._ticks = "Finished", []

    @property
    def share(self) -> float:
        """How much of the run is done, from 0 to 1."""
        return min(1.0, self.spent / self.expected) if self.expected > 0 else 0.0

    @property
    def left(self) -> str:
        """The time left, as ``"32 s left"``; "" while it is unknown."""
        if self.expected <= 0:
            return ""
        return f"{units.seconds(float(max(0, round(self.expected - self.spent))))} left"

    @property
    def now(self) -> str:
        """What happens now, with the rate of the last second where one can be read."""
        rate = _recent_rate(self._ticks)
        return f"{self.doing}, {units.rate(rate)}" if rate else self.doing

    @property
    def rates(self) -> list[tuple[str, str]]:
        """Each variant and its rate with its interval so far, the best first."""
        return [(t.variant, units_of(t)) for t in self.timings]


def units_of(timing: Timing) -> str:
    """Write a rate with its interval, as ``"1,240 examples/s (1,190 to 1,300)"``."""
    low, high = units.significant(timing.low), units.significant(timing.high)
    return f"{units.rate(timing.rate)} ({low} to {high})"


def _recent_rate(ticks: list[tuple[float, int]]) -> float:
    """Examples per second over the last second of ticks without a pause between."""
    if len(ticks) < 2:
        return 0.0
    end, examples, since = ticks[-1][0], 0, ticks[-1][0]
    for (before, _), (_, done) in zip(ticks[-2::-1], ticks[:0:-1], strict=True):
        if done == 0 or end - since >= 1.0:
            break
        examples, since = examples + done, before
    return examples / (end - since) if end > since else 0.0


def in_text(board: Board) -> str:
    """Write a board as a line or two, for a reader without HTML."""
    first = ", ".join(part for part in (board.now, board.left) if part)
    return "\n".join([first, *(f"{name}: {rate}" for name, rate in board.rates)])


def in_html(board: Board) -> str:
    """Write a board as HTML that follows the notebook's theme."""
    now, left = html.escape(board.now), html.escape(board.left)
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(rate)}</td></tr>"
        for name, rate in board.rates
    )
    so_far = f"<table><caption>Rates so far</caption>{rows}</table>" if rows else ""
    return (
        f"<div><progress max='1' value='{board.share:.3f}' "
        f"aria-label='Share of the run that is done'></progress> {left}<br>{now}</div>"
        f"{so_far}"
    )
