"""What can be said of a run while it goes: what runs, time left, the highest rate.

And where that is shown: in a notebook, in a terminal, or nowhere.
"""

import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from perfkit import units
from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.plan import (
    Event,
    Finished,
    Prepared,
    Preparing,
    Progress,
    Ticked,
    TrialEnded,
    TrialStarted,
)
from perfkit.engine.statistics import Timing
from perfkit.findings.standing import microbenchmarks

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Drawing more often costs the training time and tells the reader nothing.
PERIOD_S = 0.25


class Meter:
    """The rate of a variant while it works, before statistics have a say.

    A trial's first tick traces and compiles; it is no rate.
    """

    def __init__(self) -> None:
        self._examples, self._seconds = 0, 0.0
        self._from: float | None = None
        self._first = True

    def begin(self) -> None:
        """Begin another trial."""
        self._from, self._first = None, True

    def read(self, ticks: Sequence[tuple[float, int]]) -> None:
        """Count ticks; the time before one of 0 examples is no work."""
        for at, examples in ticks:
            if examples and self._from is not None:
                if not self._first:
                    self._examples += examples
                    self._seconds += at - self._from
                self._first = False
            self._from = at

    @property
    def rate(self) -> float | None:
        """Of all that was read; None before there is one."""
        return self._examples / self._seconds if self._seconds else None


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
    _tick_unit: str = "examples"
    _has_benchmarks: bool = False

    def hear(self, event: Event) -> None:
        """Take in what the run told."""
        match event:
            case Preparing(message):
                self.doing = message
            case Prepared(notes):
                # Each counts something else, so none has the highest rate.
                self._has_benchmarks = bool(microbenchmarks(notes))
            case TrialStarted(variant, number, _):
                self._begin(variant, number)
            case Ticked(variant, ticks):
                if variant in self._meters:
                    self._meters[variant].read(ticks)
                if self._started and variant != self._started[-1]:
                    count = len(self._started)
                    self.doing = f"Round {self._round}: {count} variants take turns"
            case TrialEnded(trial, measurement):
                self._measurement, self._tick_unit = measurement, trial.unit
            case Progress(spent, expected):
                self.spent, self.expected = spent, expected
            case Finished(measurement, stopped):
                self._finish(len(measurement.trials), stopped=stopped)

    def _finish(self, trials: int, *, stopped: bool) -> None:
        """Leave one line: what was measured is shown better elsewhere."""
        end = "Stopped" if stopped else "Finished"
        plural = "trial" if trials == 1 else "trials"
        self.doing = f"{end}: {trials} {plural} in {units.seconds(round(self.spent))}"
        self.over = True
        self._measurement, self._meters = None, {}

    def _begin(self, variant: str, number: int) -> None:
        if number != self._round:
            self._round, self._started = number, []
        self._started.append(variant)
        if variant != CONTROL:
            self._meters[variant] = Meter()
        # What is tried after the rounds is of none.
        self.doing = f"Round {number}: {variant}" if number else f"Trying: {variant}"

    @property
    def share(self) -> float:
        """How much of the run is done, from 0 to 1."""
        if self.over:
            return 1.0
        return min(1.0, self.spent / self.expected) if self.expected > 0 else 0.0

    @property
    def time_left(self) -> str:
        """The time left, as ``"32 s left"``; "" while it is unknown."""
        if self.over or self.expected <= 0:
            return ""
        return f"{units.seconds(float(max(0, round(self.expected - self.spent))))} left"

    @property
    def best(self) -> str:
        """The highest rate so far, and whose; "" where rates are not compared."""
        timings = self._measurement.timings if self._measurement else ()
        live = {n: m.rate for n, m in self._meters.items() if m.rate}
        if self._has_benchmarks or not (timings or live):
            return ""
        if timings:
            first = max(timings, key=lambda timing: timing.rate)
            return f"Highest rate so far: {first.variant}, {self._write(first)}"
        name, rate = max(live.items(), key=lambda item: item[1])
        return f"Highest rate so far: {name}, {units.rate(rate, self._tick_unit)}"

    def _write(self, timing: Timing) -> str:
        """A rate with its interval; one that is hardly known yet stands alone."""
        rate, low, high = timing.rate, timing.low, timing.high
        if not units.is_known(low, high):
            return units.rate(rate, self._tick_unit)
        return units.rate_between(rate, low, high, self._tick_unit)


def in_text(board: Board) -> str:
    """Write a board as a line or two, for a reader without HTML."""
    first = ", ".join(part for part in (board.doing, board.time_left) if part)
    return "\n".join(filter(None, (first, board.best)))


def in_html(board: Board) -> str:
    """Write a board as HTML that follows the notebook's theme."""
    doing, time_left, best = map(
        html.escape, (board.doing, board.time_left, board.best)
    )
    if board.over:
        return f"<div>{doing}</div>"
    return (
        f"<div><progress max='1' value='{board.share:.3f}' "
        f"aria-label='Share of the run that is done'></progress> {time_left}<br>"
        f"{doing}<br>{best}</div>"
    )


class Display(AbstractContextManager["Display"]):
    """Draws a board at most every ``PERIOD_S``; this one draws nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._drawn = -PERIOD_S

    def show(self, board: Board, *, at_once: bool = False) -> None:
        """Draw the board unless it was drawn a moment ago."""
        if at_once or self._clock() - self._drawn >= PERIOD_S:
            self._drawn = self._clock()
            self._draw(board)

    def hear(self, event: Event, board: Board) -> None:
        """Take in what the run told, and draw the board that has heard it."""
        self.show(board)

    def _draw(self, board: Board) -> None:
        pass

    @contextmanager
    def showing(self, doing: str) -> Iterator[None]:
        """Show the one thing that is done, from its beginning to its end."""
        with self:
            self.show(Board(doing=doing), at_once=True)
            yield
            self.show(Board(doing=f"{doing}: done", over=True), at_once=True)

    def __exit__(self, *exception: object) -> None:
        """Leave the place as a reader wants it afterwards."""


class NotebookDisplay(Display):
    """One output of the running cell, updated in place; its last state stays."""

    _handle: Any = None

    def _draw(self, board: Board) -> None:
        from IPython.display import display

        bundle = {"text/plain": in_text(board), "text/html": in_html(board)}
        if self._handle is None:
            self._handle = display(  # type: ignore[no-untyped-call]
                bundle, raw=True, display_id=True
            )
        else:
            self._handle.update(bundle, raw=True)


class TerminalDisplay(Display):
    """A bar and the best rates so far, which disappear when the run is over."""

    def __init__(self, console: "Console") -> None:
        from rich.live import Live

        super().__init__()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        """Take the lines it draws on."""
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Clear the lines it drew on."""
        self._live.stop()

    def _draw(self, board: Board) -> None:
        self._live.update(_in_terminal(board), refresh=True)


class LogDisplay(Display):
    """Says in a log when a run waits for another one, and when it goes on."""

    _waits = False

    def hear(self, event: Event, board: Board) -> None:
        """Print a line where a wait begins or ends."""
        waits = isinstance(event, Preparing) and event.waiting
        if waits != self._waits:
            self._waits = waits
            text = board.doing if waits else "The other run is over, this one begins"
            print(f"{text}.", file=sys.stderr, flush=True)


def display_here() -> Display:
    """Choose by where the code runs: a notebook, a terminal, or neither."""
    if in_notebook():
        return NotebookDisplay()
    if sys.stderr.isatty():
        from rich.console import Console

        return TerminalDisplay(Console(stderr=True))
    return Display()


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel."""
    # IPython is not imported to learn that it is not there.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _in_terminal(board: Board) -> "RenderableType":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = Table.grid(padding=(0, 1), expand=False)
    bar.add_row(
        ProgressBar(total=1.0, completed=board.share, width=30), board.time_left
    )
    lines = [Text(board.doing, overflow="ellipsis", no_wrap=True)]
    if best := board.best:
        lines.append(Text(best, style="dim", overflow="ellipsis", no_wrap=True))
    return Group(bar, *lines)
