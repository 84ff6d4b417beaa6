"""What can be said of a run while it goes: what runs, and the time left.

And where that is shown: in a notebook, in a terminal, or nowhere.
"""

import html
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from perfkit import units
from perfkit.engine.plan import (
    Event,
    Finished,
    Preparing,
    Progress,
    Ticked,
    TrialStarted,
)

if TYPE_CHECKING:
    from rich.console import Console

# Drawing more often costs the training time and tells the reader nothing.
PERIOD_S = 0.25


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

    def hear(self, event: Event) -> None:
        """Take in what the run told."""
        match event:
            case Preparing(message):
                self.doing = message
            case TrialStarted(variant, number, _):
                if number != self._round:
                    self._round, self._started = number, []
                self._started.append(variant)
                # What is tried after the rounds is of none.
                part = f"Round {number}" if number else "Trying"
                self.doing = f"{part}: {variant}"
            case Ticked(variant, _):
                if self._started and variant != self._started[-1]:
                    count = len(self._started)
                    self.doing = f"Round {self._round}: {count} variants take turns"
            case Progress(spent, expected):
                self.spent, self.expected = spent, expected
            case Finished(measurement, stopped):
                # One line is left: what was measured is shown better elsewhere.
                end = "Stopped" if stopped else "Finished"
                trials = units.count(len(measurement.trials), "trial")
                self.doing = f"{end}: {trials} in {units.seconds(round(self.spent))}"
                self.over = True

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


def in_text(board: Board) -> str:
    """Write a board as a line, for a reader without HTML."""
    return ", ".join(part for part in (board.doing, board.time_left) if part)


def in_html(board: Board) -> str:
    """Write a board as HTML that follows the notebook's theme."""
    doing, time_left = html.escape(board.doing), html.escape(board.time_left)
    if board.over:
        return f"<div>{doing}</div>"
    return (
        f"<div><progress max='1' value='{board.share:.3f}' "
        f"aria-label='Share of the run that is done'></progress> {time_left}<br>"
        f"{doing}</div>"
    )


class Display(AbstractContextManager["Display"]):
    """Draws a board at most every ``PERIOD_S``; this one draws nothing."""

    _drawn = -PERIOD_S

    def show(self, board: Board, *, at_once: bool = False) -> None:
        """Draw the board unless it was drawn a moment ago."""
        if at_once or time.monotonic() - self._drawn >= PERIOD_S:
            self._drawn = time.monotonic()
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
    """One output of the running cell, updated in place, that goes when it is over."""

    _handle: Any = None

    def __exit__(self, *exception: object) -> None:
        """Take it away."""
        if self._handle is not None:
            self._handle.update({}, raw=True)

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
    """A bar and what runs, which disappear when the run is over."""

    def __init__(self, console: "Console") -> None:
        from rich.live import Live

        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        """Take the lines it draws on."""
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Clear the lines it drew on."""
        self._live.stop()

    def _draw(self, board: Board) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 1), expand=False)
        bar.add_row(
            ProgressBar(total=1.0, completed=board.share, width=30), board.time_left
        )
        text = Text(board.doing, overflow="ellipsis", no_wrap=True)
        self._live.update(Group(bar, text), refresh=True)


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
