from types import SimpleNamespace

from perfkit import progress
from perfkit.engine import plan
from perfkit.progress import Board, LogDisplay, NotebookDisplay


def test_a_board_is_written_as_html_and_as_text():
    board = Board()
    board.hear(plan.TrialStarted("<b>", 1, 0.0))
    board.hear(plan.Progress(15.0, 60.0))
    page = progress.in_html(board)
    assert "&lt;b&gt;" in page
    assert "value='0.250'" in page
    assert "aria-label" in page
    assert progress.in_text(board) == "Round 1: <b>, 45 s left"


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
    # It goes when the run is over.
    assert [bool(bundle) for bundle in updated] == [True, True, False]
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
