from types import SimpleNamespace

import pytest

from perfkit import progress
from perfkit.engine import plan
from perfkit.engine.measurement import CONTROL
from perfkit.engine.statistics import Timing
from perfkit.progress import Board, LogDisplay, NotebookDisplay


def timing(variant, rate):
    least = dict.fromkeys(("setup_s", "first_call_s"), 0.1)
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
    ("heard", "best"),
    [
        # A rate is shown while the first round goes, and not across a pause.
        # The first tick traces.
        ([started("a"), ticked("a", (0.5, 0), (1.0, 100)), ticked("a", (1.5, 200))],
         "a, 400 examples/s"),
        ([started("a"), ticked("a", (0.2, 0), (0.7, 50), (9.0, 0), (9.5, 50))],
         "a, 100 examples/s"),
        ([started("a"), ticked("a", (0.2, 0), (9.0, 80))], ""),
        # One with an interval takes the place of one without.
        ([started("a"), ticked("a", (0.0, 0), (1.0, 80), (2.0, 80)), started("b"),
          ticked("b", (0.0, 0), (1.0, 9), (2.0, 900)), ended(timing("a", 100.0))],
         "a, 100 examples/s (90 to 110)"),
        # The control's is no rate to choose.
        ([started("a"), ticked("a", (0.0, 0), (1.0, 8), (2.0, 8)), started(CONTROL),
          ticked(CONTROL, (0.0, 0), (1.0, 8), (2.0, 900)), started("b"),
          ticked("b", (0.0, 0), (1.0, 8), (2.0, 90))],
         "b, 90 examples/s"),
        # Microbenchmarks are not compared.
        ([plan.Prepared({"microbenchmarks": {"a": {"unit": "B"}}}), started("a"),
          ticked("a", (0.0, 0), (1.0, 8), (2.0, 8))], ""),
    ],
    ids=["first round", "pause", "tracing", "interval", "control", "microbenchmarks"],
)  # fmt: skip
def test_the_highest_rate_so_far_is_told(heard, best):
    assert board_after(*heard).best.removeprefix("Highest rate so far: ") == best


def test_a_board_is_written_as_html_and_as_text():
    bar = plan.Progress(15.0, 60.0)
    board = board_after(started("<b>"), ended(timing("<script>", 100.0)), bar)
    page = progress.in_html(board)
    assert "&lt;b&gt;" in page
    assert "<script" not in page
    assert "value='0.250'" in page
    assert "aria-label" in page
    assert progress.in_text(board).splitlines() == [
        "Round 1: <b>, 45 s left",
        "Highest rate so far: <script>, 100 examples/s (90 to 110)",
    ]


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


def test_a_log_says_once_that_a_run_waits_and_that_it_goes_on(capsys):
    display, board = LogDisplay(), Board()
    waiting = plan.Preparing("Waiting for a diagnosis, about 40 s", waiting=True)
    for event in (plan.Preparing("Loading"), waiting, waiting, plan.Progress(1, 2)):
        board.hear(event)
        display.hear(event, board)
    assert capsys.readouterr().err.splitlines() == [
        "Waiting for a diagnosis, about 40 s.",
        "The other run is over, this one begins.",
    ]
