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


def test_a_board_is_drawn_at_most_four_times_a_second_and_the_last_at_once():
    now = iter(tenth / 10 for tenth in range(1000))
    display = Counting(lambda: next(now))
    for _ in range(100):
        display.show(Board())
    seconds = next(now)
    assert 1 < display.drawn <= 4 * seconds + 1
    display = Counting(lambda: 0.0)
    for at_once in (False, False, True):
        display.show(Board(), at_once=at_once)
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


def terminal(screen, width):
    return TerminalDisplay(
        Console(file=screen, force_terminal=True, width=width, color_system=None)
    )


def test_a_terminal_is_left_without_the_bar():
    screen, board = io.StringIO(), Board(doing="Round 1, serial")
    board.hear(plan.Progress(15.0, 60.0))
    with terminal(screen, 60) as shown:
        shown.show(board, at_once=True)
        before = screen.getvalue()
    assert "45 s left" in before
    assert "Round 1, serial" in before
    # The last thing written erases the lines and leaves the cursor on the first.
    assert screen.getvalue().endswith("\x1b[1A\x1b[2K")


@pytest.mark.parametrize("width", [30, 60, 200])
def test_a_long_name_does_not_break_the_line(width):
    with terminal(screen := io.StringIO(), width) as shown:
        shown.show(Board(doing="x" * 300), at_once=True)
        assert screen.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("shell", "kind"),
    [
        (None, Display),
        (SimpleNamespace(kernel=1), NotebookDisplay),
        # IPython in a terminal is no notebook.
        (SimpleNamespace(), Display),
    ],
    ids=["neither", "kernel", "IPython"],
)
def test_where_it_runs_decides_how_it_is_shown(monkeypatch, shell, kind):
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert type(displays.display_here()) is kind
