"""What can be said of a run while it goes: what runs, time left, rates so far."""

import html
from dataclasses import dataclass, field

from perfkit import units
from perfkit.findings.standing import Microbenchmark, microbenchmarks
from perfkit.measure.measurement import Measurement
from perfkit.measure.plan import (
    Event,
    Finished,
    Prepared,
    Preparing,
    Progress,
    Ticked,
    TrialEnded,
    TrialStarted,
)
from perfkit.measure.statistics import Timing


class Meter:
    """The rate of a variant while it works, before statistics have a say."""

    def __init__(self, unit: str = "examples") -> None:
        self._unit = unit
        self._examples, self._seconds = 0, 0.0
        self._last: float | None = None

    def read(self, ticks: tuple[tuple[float, int], ...]) -> None:
        """Count ticks; the time before one of 0 examples is no work."""
        for at, examples in ticks:
            if examples and self._last is not None:
                self._examples += examples
                self._seconds += at - self._last
            self._last = at

    def __str__(self) -> str:
        """Write the rate, or nothing while there is none."""
        if not self._seconds:
            return ""
        return units.rate(self._examples / self._seconds, self._unit)


@dataclass
class Board:
    """What can be said of a run, from the events so far.

    Attributes:
        doing: What happens now: what is being prepared, or which variant runs.
        spent: Seconds of the budget spent.
        expected: Seconds the trials will take as it looks now; 0 if unknown.
        over: Whether the run has ended.
    """

    doing: str = "Getting ready"
    spent: float = 0.0
    expected: float = 0.0
    over: bool = False
    _round: int = 0
    _started: list[str] = field(default_factory=list)
    _meters: dict[str, Meter] = field(default_factory=dict)
    _measurement: Measurement | None = None
    _benchmarks: dict[str, Microbenchmark] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Take in what the run told."""
        match event:
            case Preparing(message):
                self.doing = message
            case Prepared(notes):
                self._benchmarks = microbenchmarks(notes)
            case TrialStarted(variant, number, _):
                self._begin(variant, number)
            case Ticked(variant, ticks):
                self._meters.setdefault(variant, self._meter(variant)).read(ticks)
                if self._started and variant != self._started[-1]:
                    count = len(self._started)
                    self.doing = f"Round {self._round}: {count} variants take turns"
            case TrialEnded(_, measurement):
                self._measurement = measurement
            case Progress(spent, expected):
                self.spent, self.expected = spent, expected
            case Finished(measurement, stopped):
                self._finish(len(measurement.trials), stopped=stopped)

    def _finish(self, trials: int, *, stopped: bool) -> None:
        """Leave one line: what was measured is shown better elsewhere."""
        how = "Stopped" if stopped else "Finished"
        plural = "trial" if trials == 1 else "trials"
        self.doing = f"{how}: {trials} {plural} in {units.seconds(round(self.spent))}"
        self.over = True
        self._measurement, self._meters = None, {}

    def _begin(self, variant: str, number: int) -> None:
        if number != self._round:
            self._round, self._started = number, []
        self._started.append(variant)
        self._meters[variant] = self._meter(variant)
        # What is tried after the rounds is of none.
        self.doing = f"Round {number}: {variant}" if number else f"Trying: {variant}"

    def _meter(self, variant: str) -> Meter:
        return Meter(self._unit(variant))

    def _unit(self, variant: str) -> str:
        benchmark = self._benchmarks.get(variant)
        return benchmark.unit if benchmark else "examples"

    @property
    def share(self) -> float:
        """How much of the run is done, from 0 to 1."""
        if self.over:
            return 1.0
        return min(1.0, self.spent / self.expected) if self.expected > 0 else 0.0

    @property
    def left(self) -> str:
        """The time left, as ``"32 s left"``; "" while it is unknown."""
        if self.over or self.expected <= 0:
            return ""
        return f"{units.seconds(float(max(0, round(self.expected - self.spent))))} left"

    @property
    def rates(self) -> list[tuple[str, str]]:
        """The rates so far: those with an interval, best first, then the others."""
        timings = self._measurement.timings if self._measurement else ()
        if not self._benchmarks:
            # Microbenchmarks count something else each, and keep their order.
            timings = tuple(sorted(timings, key=lambda timing: -timing.rate))
        known = {t.variant: with_interval(t, self._unit(t.variant)) for t in timings}
        rest = {n: str(m) for n, m in self._meters.items() if n not in known}
        return [(name, rate) for name, rate in (known | rest).items() if rate]

    @property
    def best(self) -> str:
        """What has the highest rate so far, and that; "" where none are compared."""
        return "" if self._benchmarks or not self.rates else ", ".join(self.rates[0])


def with_interval(timing: Timing, unit: str = "examples") -> str:
    """Write a rate with its interval, as ``"1,240 examples/s (1,190 to 1,300)"``.

    While a run goes, a rate that is hardly known yet stands alone.
    """
    if not units.is_known(timing.low, timing.high):
        return units.rate(timing.rate, unit)
    return units.rate_between(timing.rate, timing.low, timing.high, unit)


def in_text(board: Board) -> str:
    """Write a board as a line or two, for a reader without HTML."""
    first = ", ".join(part for part in (board.doing, board.left) if part)
    return "\n".join([first, *(f"{name}: {rate}" for name, rate in board.rates)])


def in_html(board: Board) -> str:
    """Write a board as HTML that follows the notebook's theme."""
    doing, left = html.escape(board.doing), html.escape(board.left)
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(rate)}</td></tr>"
        for name, rate in board.rates
    )
    so_far = f"<table><caption>Rates so far</caption>{rows}</table>" if rows else ""
    return (
        f"<div><progress max='1' value='{board.share:.3f}' "
        f"aria-label='Share of the run that is done'></progress> {left}<br>"
        f"{doing}</div>{so_far}"
    )
