"""Who leads the answer of a diagnosis that holds an account."""

from dataclasses import replace

import pytest

from perfkit.findings.diagnosis import without_line
from perfkit.training.diagnose.verdict import open_tips, verdict_of
from tests.training.account.accounts import GROWTH, account, line, tip
from tests.training.diagnose.diagnosed import RATES, SLOW_MAP, cause, diagnosis

TIP = tip("python-between-steps", do="Do it for the whole batch at once")
INPUT = tip(group="without input", do="Make the input cheaper")
NOTHING = "Nothing is wrong"


def accounted(*tips, python=5.0, **fields):
    lines = (line(12, python=python, code="rows()"), line(20, computing=1.0))
    return account(*lines, tips=tips, **fields)


def said(*tips, rates=None, causes=(SLOW_MAP,), made=None, **fields):
    """The verdict of a diagnosis whose best change is 2.5 times as fast."""
    found = diagnosis(causes, rates, account=made or accounted(*tips), **fields)
    return verdict_of(found)


def compared(variant, ratio):
    """Rates by which leaving something out is so many times as fast."""
    return RATES | {variant: 1000.0 * ratio}


def without(number):
    return without_line("train.py:make_training", "train.py", number)


def test_without_an_account_nothing_changes():
    assert said(made=account()) == verdict_of(diagnosis((SLOW_MAP,)))


def test_a_change_that_was_measured_leads_where_a_tip_is_about_as_much():
    # Without half of the time it would be twice as fast, and the change makes it 2.5.
    found = said(TIP)
    assert found.headline == "Run the maps in parallel."
    assert found.next.splitlines()[-1] == (
        "Profiled, not tested: Do it for the whole batch at once (50 %)."
    )


def test_a_tip_about_much_more_leads_and_the_change_stands_behind_it():
    leading = replace(TIP, share=0.9, fix="f(rows)", mind="It sorts them.")
    found = said(leading, replace(TIP, do="Save less often", share=0.1))
    assert found.headline == "Do it for the whole batch at once."
    assert (found.sure, found.interval) == ("profiled", "30 s")
    assert found.warnings == ("It sorts them.",)
    first, tested, also = found.next.splitlines()
    assert first == "Try: f(rows)."
    assert tested.startswith("A/B tested: Run the maps in parallel")
    assert also == "Profiled, not tested: Save less often (10 %)."


def test_a_change_of_steps_counts_as_little_as_steps_do_of_the_script():
    # Steps are a fifth of the time: 2.5 times as fast there is 1.14 times in all.
    lines = (line(12, set_up=8.0), line(20, computing=2.0))
    made = account(*lines, tips=[replace(TIP, share=0.3)])
    assert said(made=made).headline == "Do it for the whole batch at once."
    lines = (line(12, python=8.0), line(20, computing=2.0))
    made = account(*lines, tips=[replace(TIP, share=0.3)])
    assert said(made=made).headline.startswith("Run the maps")


def test_a_ceiling_that_shows_nothing_refutes_a_tip_about_what_it_leaves_out():
    rates = compared("without input", 1.0)
    made = accounted(INPUT)
    found = diagnosis((), rates, account=made, healthy=True)
    assert open_tips(found, made) == []
    assert "Make the input cheaper" not in verdict_of(found).headline
    # What may be lost by it is said with it alone.
    minded = replace(INPUT, mind="It takes memory.")
    both = accounted(minded, replace(TIP, mind="It sorts them."))
    found = verdict_of(diagnosis((), rates, account=both, healthy=True))
    assert found.headline == "Do it for the whole batch at once."
    assert found.warnings == ("It sorts them.",)
    # One about something else stands.
    found = diagnosis((), rates, account=accounted(TIP), healthy=True)
    assert open_tips(found, accounted(TIP)) == [TIP]


def test_a_line_whose_work_was_left_out_in_vain_refutes_a_tip_about_it():
    made = accounted(TIP)
    for ratio, tips in ((1.0, []), (3.0, [TIP])):
        found = diagnosis((), compared(without(12), ratio), account=made)
        assert open_tips(found, made) == tips
    # A tip about several lines is not refuted by one of them.
    both = accounted(replace(TIP, lines=(0, 1)))
    found = diagnosis((), compared(without(12), 1.0), account=both)
    assert open_tips(found, both) == [*both.tips]


def test_a_ceiling_that_shows_a_gain_makes_its_tip_as_sure_as_it_is():
    found = said(INPUT, rates=compared("without input", 3.0), causes=())
    assert found.headline == "Make the input cheaper."
    assert "A/B tested: without all of it the training would run 3" in found.much
    assert found.sure == "sure"
    assert found.interval != "30 s"


@pytest.mark.parametrize("share", [0.09, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("causes", [(), (cause("xla", "XLA", 1.1, "opportunity"),)])
@pytest.mark.parametrize("group", ["", "without input"])
def test_nothing_is_wrong_is_never_said_beside_a_tip(share, causes, group):
    one = replace(TIP, share=share, group=group)
    found = said(one, causes=causes, healthy=True)
    assert NOTHING not in found.headline
    assert "healthy" not in found.headline
    assert one.do in f"{found.headline} {found.next}"
    # What would be said without it.
    assert one.do not in str(verdict_of(diagnosis(causes, healthy=True)))


@pytest.mark.parametrize("causes", [(), (SLOW_MAP,)])
def test_growing_memory_is_the_last_row_and_never_what_slows(causes):
    plain, grows = (
        diagnosis(causes, account=accounted(growth=growth), together=None)
        for growth in (None, replace(GROWTH, line=0))
    )
    assert verdict_of(grows) == verdict_of(plain)
    *rows, memory = grows.report.table.rows
    assert tuple(rows) == plain.report.table.rows
    assert "grows by 5 MB (4.6 MB to 5.4 MB) with each epoch" in memory[0]
    assert memory[1:] == ("train.py, line 12", "not tested", "likely")
    assert grows.report.table.strong == len(rows) - 1
