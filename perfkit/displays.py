"""Where a run shows its progress: in a notebook, in a terminal, or nowhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from perfkit.progress import Board, in_html, in_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Drawing more often costs the training time and tells the reader nothing.
PERIOD_S = 0.25


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

    def _draw(self, board: Board) -> None:
        pass

    @contextmanager
    def showing(self, doing: str) -> Iterator[None]:
        """Show the one thing that is done, from its beginning to its end."""
        with self:
            self.show(Board(doing=doing), at_once=True)
            yield
            self.show(Board(doing=doing, over=True), at_once=True)

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
    bar.add_row(ProgressBar(total=1.0, completed=board.share, width=30), board.left)
    lines = [Text(board.doing, overflow="ellipsis", no_wrap=True)]
    if board.best:
        best = f"Highest rate so far: {board.best}"
        lines.append(Text(best, style="dim", overflow="ellipsis", no_wrap=True))
    return Group(bar, *lines)
