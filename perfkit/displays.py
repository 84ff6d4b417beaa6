"""Where a run shows its progress: in a notebook, in a terminal, or nowhere."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from perfkit.progress import in_html, in_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from perfkit.progress import Board

# Drawing more often costs the training time and tells the reader nothing.
PERIOD_S = 0.25


class Display(AbstractContextManager["Display"]):
    """Draws a board, or what else it is made for, at most every ``PERIOD_S``.

    This one draws nothing.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._drawn = -PERIOD_S

    def show(self, shown: Any, *, at_once: bool = False) -> None:
        """Draw it unless it was drawn a moment ago."""
        if at_once or self._clock() - self._drawn >= PERIOD_S:
            self._drawn = self._clock()
            self._draw(shown)

    def _draw(self, shown: Any) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        """Leave the place as a reader wants it afterwards."""


class NotebookDisplay(Display):
    """One output of the running cell, updated in place; its last state stays.

    Args:
        text: Draws it where there is no HTML.
        html: Draws it.
    """

    _handle: Any = None

    def __init__(
        self,
        text: Callable[[Any], str] = in_text,
        html: Callable[[Any], str] = in_html,
    ) -> None:
        super().__init__()
        self._text, self._html = text, html

    def _draw(self, shown: Any) -> None:
        from IPython.display import display

        bundle = {"text/plain": self._text(shown), "text/html": self._html(shown)}
        if self._handle is None:
            self._handle = display(  # type: ignore[no-untyped-call]
                bundle, raw=True, display_id=True
            )
        else:
            self._handle.update(bundle, raw=True)


class TerminalDisplay(Display):
    """Lines that disappear when the run is over.

    Args:
        console: The terminal.
        lines: Draws them; None for those of a board, a bar and the best rate so far.
    """

    def __init__(
        self,
        console: Console,
        lines: Callable[[Any], RenderableType] | None = None,
    ) -> None:
        from rich.live import Live

        super().__init__()
        self._lines = lines or _in_terminal
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> TerminalDisplay:
        """Take the lines it draws on."""
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Clear the lines it drew on."""
        self._live.stop()

    def _draw(self, shown: Any) -> None:
        self._live.update(self._lines(shown), refresh=True)


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


def _in_terminal(board: Board) -> RenderableType:
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
