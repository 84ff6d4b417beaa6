import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from perfkit import displays
from perfkit.displays import Display, NotebookDisplay, TerminalDisplay
from perfkit.measure import plan
from perfkit.progress import Board


class Counting(Display):
    def __init__(self, clock):
        super().__init__(clock)
        self.drawn = 0

    def _draw(self, board):
        self.drawn += 1


def test_a_board_is_drawn_at_most_four_times_a_second():
    now = iter(tenth / 10 for tenth in range(1000))
    display = Counting(lambda: next(now))
    for _ in range(100):
        display.show(Board())
    seconds = next(now)
    assert 1 < display.drawn <= 4 * seconds + 1


def test_the_last_state_is_drawn_at_once():
    display = Counting(lambda: 0.0)
    display.show(Board())
    display.show(Board())
    display.show(Board(), at_once=True)
    assert display.drawn == 2


def test_a_notebook_gets_one_output_that_is_updated(monkeypatch):
    shown, updated = [], []

    def display(bundle, *, raw, display_id):
        assert raw
        assert display_id
        shown.append(bundle)
        return SimpleNamespace(update=lambda bundle, raw: updated.append(bundle))

    monkeypatch.setattr("IPython.display.display", display)
    with NotebookDisplay() as notebook:
        for _ in range(3):
            notebook.show(Board(doing="Round 1, serial"), at_once=True)
    assert len(shown) == 1
    assert len(updated) == 2
    assert shown[0]["text/plain"] == "Round 1, serial"
    assert "<progress" in shown[0]["text/html"]


def test_a_terminal_is_left_without_the_bar():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, color_system=None)
    with TerminalDisplay(console) as terminal:
        board = Board(doing="Round 1, serial")
        board.hear(plan.Progress(15.0, 60.0))
        terminal.show(board, at_once=True)
        before = screen.getvalue()
    assert "45 s left" in before
    assert "Round 1, serial" in before
    # The last thing written erases the lines and leaves the cursor on the first.
    assert screen.getvalue().endswith("\x1b[1A\x1b[2K")


@pytest.mark.parametrize("width", [30, 60, 200])
def test_a_long_name_does_not_break_the_line(width):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, color_system=None)
    with TerminalDisplay(console) as terminal:
        terminal.show(Board(doing="x" * 300), at_once=True)
        assert screen.getvalue().count("\n") == 1


def test_nothing_is_shown_where_there_is_neither(monkeypatch):
    monkeypatch.setattr(displays, "in_notebook", lambda: False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert type(displays.display_here()) is Display


def test_a_kernel_is_a_notebook(monkeypatch):
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=1))
    assert type(displays.display_here()) is NotebookDisplay


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch):
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace())
    assert not displays.in_notebook()
