"""What was tried outside the rounds is in the record, and in no table of variants."""

from perfkit.findings.report import in_text
from perfkit.findings.standing import standings
from perfkit.findings.tables import table
from perfkit.measure.plan import TrialStarted
from perfkit.measure.trial import Trial
from perfkit.progress import Board
from tests.findings.made import finding, trial

TRIES = (
    trial("fits 512?", 900.0, 0),
    Trial(variant="fits 1,024?", round=0, outcome="out-of-memory", message="ran out"),
)


def test_a_try_is_no_variant():
    made, without = finding(extra=TRIES), finding()
    assert standings(made) == standings(without)
    assert table(made).equals(table(without))
    assert "fits" not in repr(made)


def test_the_report_counts_tries_apart():
    said = in_text(finding(extra=TRIES).report, whole=True)
    assert "Variants: 3 variants" in said
    assert "in 3 rounds and 2 besides: " in said
    assert "1 out-of-memory" in said
    assert "besides" not in in_text(finding().report, whole=True)


def test_progress_says_what_is_tried():
    board = Board()
    board.hear(TrialStarted("naive", 1, 0.0))
    assert board.doing == "Round 1: naive"
    board.hear(TrialStarted("fits 512?", 0, 9.0))
    assert board.doing == "Trying: fits 512?"
