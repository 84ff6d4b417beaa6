import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from perfkit import progress
from perfkit.engine import plan
from perfkit.engine.measurement import CONTROL
from perfkit.engine.statistics import Timing
from perfkit.progress import Board, Display, NotebookDisplay, TerminalDisplay


def timing(variant, rate):
    least = dict.fromkeys(("setup_s", "first_call_s", "warm_up_s", "drift", "cv"), 0.1)
    interval = {"low": rate * 0.9, "high": rate * 1.1}
    return Timing(variant=variant, rate=rate, trials=2, **interval, **least)


def ended(*timings):
    trial = SimpleNamespace(unit="examples")
    return plan.TrialEnded(trial, SimpleNamespace(timings=timings))


def board_after(*heard):
    board = Board()
    for event in heard:
        board.hear(event)
    return board


def started(variant, number=1, at=0.0):
    return plan.TrialStarted(variant, number, at)


def ticked(variant, *ticks):
    return plan.Ticked(variant, ticks)


@pytest.mark.parametrize(
    ("heard", "doing"),
    [
        ([plan.Preparing("Making 512 images")], "Making 512 images"),
        ([started("serial"), started("parallel", 2, 8.0), ticked("parallel", (8.1, 0))],
         "Round 2: parallel"),
        ([started("naive"), started("fits 512?", 0, 9.0)], "Trying: fits 512?"),
        ([started("serial"), ticked("serial", (0.1, 0)), started("parallel", 1, 0.5),
          ticked("serial", (0.9, 8))], "Round 1: 2 variants take turns"),
    ],
)  # fmt: skip
def test_a_board_says_what_is_done(heard, doing):
    assert board_after(*heard).doing == doing


@pytest.mark.parametrize(
    ("heard", "rates"),
    [
        # A rate is shown while the first round goes, and not across a pause.
        # The first tick traces.
        ([started("a"), ticked("a", (0.5, 0), (1.0, 100)), ticked("a", (1.5, 200))],
         ["a: 400 examples/s"]),
        ([started("a"), ticked("a", (0.2, 0), (0.7, 50), (9.0, 0), (9.5, 50))],
         ["a: 100 examples/s"]),
        ([started("a"), ticked("a", (0.2, 0))], []),
        ([started("a"), ticked("a", (0.2, 0), (9.0, 80))], []),
        # One with an interval takes the place of one without.
        ([started("a"), ticked("a", (0.0, 0), (1.0, 80), (2.0, 80)), started("b"),
          ticked("b", (0.0, 0), (1.0, 9), (2.0, 90)), ended(timing("a", 100.0))],
         ["a: 100 examples/s (90 to 110)", "b: 90 examples/s"]),
        # The control's is no rate to choose.
        ([started("a"), ticked("a", (0.0, 0), (1.0, 8), (2.0, 8)), started(CONTROL),
          ticked(CONTROL, (0.0, 0), (1.0, 8), (2.0, 9)), started("b"),
          ticked("b", (0.0, 0), (1.0, 8), (2.0, 90))],
         ["b: 90 examples/s", "a: 8 examples/s"]),
        # They are listed best first.
        ([ended(timing("a", 100.0), timing("b", 250.0))],
         ["b: 250 examples/s (225 to 275)", "a: 100 examples/s (90 to 110)"]),
    ],
    ids=["first round", "pause", "set-up", "tracing", "interval", "control", "order"],
)  # fmt: skip
def test_rates_so_far_are_told(heard, rates):
    assert [f"{name}: {rate}" for name, rate in board_after(*heard).rates] == rates


@pytest.mark.parametrize(
    ("heard", "share", "left"),
    [
        ([plan.Progress(15.0, 60.0)], 0.25, "45 s left"),
        # One that takes longer than expected has no time left.
        ([plan.Progress(61.0, 60.0)], 1.0, "0 s left"),
        ([], 0.0, ""),
    ],
)
def test_a_board_says_the_time_left(heard, share, left):
    board = board_after(*heard)
    assert (board.share, board.time_left) == (share, left)


@pytest.mark.parametrize(("stopped", "said"), [(False, "Finished"), (True, "Stopped")])
def test_one_line_is_left_when_the_run_is_over(stopped, said):
    measurement = SimpleNamespace(timings=(), trials=[1, 2, 3])
    going = started("serial"), ticked("serial", (0.0, 0), (1.0, 80))
    finished = plan.Finished(measurement, stopped)
    board = board_after(*going, plan.Progress(43.7, 60.0), finished)
    assert progress.in_text(board) == f"{said}: 3 trials in 44 s"
    assert board.share == 1.0


def test_a_board_is_written_as_html_and_as_text():
    bar = plan.Progress(15.0, 60.0)
    board = board_after(started("<b>"), ended(timing("<script>", 100.0)), bar)
    page = progress.in_html(board)
    assert "&lt;b&gt;" in page
    assert "<script" not in page
    assert "value='0.250'" in page
    assert "aria-label" in page
    # One line for now, and one per rate.
    assert progress.in_text(board).splitlines() == [
        "Round 1: <b>, 45 s left",
        "<script>: 100 examples/s (90 to 110)",
    ]


def test_a_microbenchmark_has_its_own_unit_and_none_is_the_fastest():
    notes = {"microbenchmarks": {"copy": {"unit": "B"}, "product": {"unit": "FLOP"}}}
    board = board_after(
        plan.Prepared(notes),
        *(started("copy"), ticked("copy", (1.0, 0), (2.0, 1), (3.0, 3_000_000_000))),
        *(started("product"), ticked("product", (4.0, 0), (5.0, 1), (6.0, 7 * 10**9))),
    )
    assert board.rates == [("copy", "3 GB/s"), ("product", "7 GFLOP/s")]
    assert board.best == ""


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
    assert type(progress.display_here()) is kind
