from types import SimpleNamespace

from perfkit import progress
from perfkit.measure import plan
from perfkit.measure.statistics import Timing
from perfkit.progress import Board


def timing(variant, rate):
    return Timing(
        variant=variant,
        rate=rate,
        low=rate * 0.9,
        high=rate * 1.1,
        trials=2,
        setup_s=0.1,
        first_call_s=0.1,
        warm_up_s=0.1,
        drift=0.0,
        cv=0.02,
    )


def ended(*timings):
    return plan.TrialEnded(SimpleNamespace(), SimpleNamespace(timings=timings))


def board_after(*heard):
    board = Board()
    for event in heard:
        board.hear(event)
    return board


def test_a_board_says_what_is_being_prepared():
    assert board_after(plan.Preparing("Making 512 images")).doing == (
        "Making 512 images"
    )


def test_a_board_says_which_variant_of_which_round_runs():
    board = board_after(
        plan.TrialStarted("serial", 1, 0.0),
        plan.TrialStarted("parallel", 2, 8.0),
        plan.Ticked("parallel", ((8.1, 0),)),
    )
    assert board.doing == "Round 2: parallel"


def test_a_board_says_when_variants_take_turns():
    board = board_after(
        plan.TrialStarted("serial", 1, 0.0),
        plan.Ticked("serial", ((0.1, 0),)),
        plan.TrialStarted("parallel", 1, 0.5),
        plan.Ticked("serial", ((0.9, 8),)),
    )
    assert board.doing == "Round 1: 2 variants take turns"


def test_a_rate_is_shown_while_the_first_round_goes():
    board = board_after(
        plan.TrialStarted("serial", 1, 0.0),
        plan.Ticked("serial", ((0.5, 0), (1.0, 100))),
        plan.Ticked("serial", ((1.5, 200),)),
    )
    assert board.rates == [("serial", "300 examples/s")]


def test_no_rate_is_read_across_a_pause():
    board = board_after(
        plan.TrialStarted("serial", 1, 0.0),
        plan.Ticked("serial", ((0.2, 0), (0.7, 50), (9.0, 0), (9.5, 50))),
    )
    assert board.rates == [("serial", "100 examples/s")]


def test_no_rate_is_said_before_the_first_tick():
    board = board_after(
        plan.TrialStarted("serial", 1, 0.0), plan.Ticked("serial", ((0.2, 0),))
    )
    assert board.rates == []


def test_a_rate_with_an_interval_takes_the_place_of_one_without():
    board = board_after(
        plan.TrialStarted("serial", 1, 0.0),
        plan.Ticked("serial", ((0.0, 0), (1.0, 80))),
        plan.TrialStarted("parallel", 1, 0.0),
        plan.Ticked("parallel", ((0.0, 0), (1.0, 90))),
        ended(timing("serial", 100.0)),
    )
    assert board.rates == [
        ("serial", "100 examples/s (90 to 110)"),
        ("parallel", "90 examples/s"),
    ]


def test_one_line_is_left_when_the_run_is_over():
    measurement = SimpleNamespace(timings=(), trials=[1, 2, 3])
    going = (
        plan.TrialStarted("serial", 1, 0.0),
        plan.Ticked("serial", ((0.0, 0), (1.0, 80))),
        plan.Progress(43.7, 60.0),
    )
    for stopped, said in [(False, "Finished"), (True, "Stopped")]:
        board = board_after(*going, plan.Finished(measurement, stopped))
        assert progress.in_text(board) == f"{said}: 3 trials in 44 s"
        assert board.share == 1.0


def test_a_board_says_the_time_left():
    board = board_after(plan.Progress(15.0, 60.0))
    assert (board.share, board.left) == (0.25, "45 s left")


def test_a_run_that_takes_longer_than_expected_has_no_time_left():
    board = board_after(plan.Progress(61.0, 60.0))
    assert (board.share, board.left) == (1.0, "0 s left")


def test_the_time_left_is_unknown_at_first():
    assert (Board().share, Board().left) == (0.0, "")


def test_rates_so_far_are_listed_best_first():
    board = board_after(ended(timing("serial", 100.0), timing("parallel", 250.0)))
    assert board.rates == [
        ("parallel", "250 examples/s (225 to 275)"),
        ("serial", "100 examples/s (90 to 110)"),
    ]


def test_names_are_escaped_in_html():
    board = board_after(
        plan.TrialStarted("<b>", 1, 0.0), ended(timing("<script>", 1.0))
    )
    page = progress.in_html(board)
    assert "&lt;b&gt;" in page
    assert "<script" not in page


def test_the_bar_in_html_says_what_it_shows():
    page = progress.in_html(board_after(plan.Progress(15.0, 60.0)))
    assert "value='0.250'" in page
    assert "aria-label" in page


def test_text_has_one_line_for_now_and_one_per_rate():
    board = board_after(
        ended(timing("serial", 100.0)),
        plan.TrialStarted("parallel", 1, 0.0),
        plan.Progress(1.0, 5.0),
    )
    assert progress.in_text(board).splitlines() == [
        "Round 1: parallel, 4 s left",
        "serial: 100 examples/s (90 to 110)",
    ]


def test_a_microbenchmark_has_its_own_unit_and_none_is_the_fastest():
    notes = {"microbenchmarks": {"copy": {"unit": "B"}, "product": {"unit": "FLOP"}}}
    board = board_after(
        plan.Prepared(notes),
        plan.TrialStarted("copy", 1, 0.0),
        plan.Ticked("copy", ((1.0, 0), (2.0, 3_000_000_000))),
        plan.TrialStarted("product", 1, 3.0),
        plan.Ticked("product", ((4.0, 0), (5.0, 7_000_000_000))),
    )
    assert board.rates == [("copy", "3 GB/s"), ("product", "7 GFLOP/s")]
    assert board.best == ""
