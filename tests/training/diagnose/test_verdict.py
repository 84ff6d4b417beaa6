from dataclasses import replace

import pytest

from perfkit.findings.diagnosis import Gain, Seconds
from perfkit.findings.page import findings_page
from perfkit.training.diagnose import gains
from perfkit.training.diagnose.causes import KNOWN, applicable
from perfkit.training.diagnose.change import Change, KnownCause
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN
from perfkit.training.diagnose.verdict import verdict_of
from tests.findings.made import failed
from tests.training.account.accounts import account, line
from tests.training.diagnose.diagnosed import SLOW_MAP, cause, diagnosis, gain
from tests.training.diagnose.measurements import measured

XLA = cause("xla", "XLA", 1.4, "opportunity")
LIMIT = cause("input-bound", "without input", 3.6, subject="Without any input it")
WORKING = account(line(20, computing=8.0))
NOT_SHOWN = "This run does not show whether anything slows this training."
ENDS = "This training ends with an error after its first steps."
OPEN = {"verdict": "too noisy to say", "low": 0.6, "high": 1.9}


def with_xla(found, **changed):
    """The same, with another comparison of XLA."""
    every = (
        replace(c, **changed) if c.variant == "XLA" else c for c in found.comparisons
    )
    return replace(found, comparisons=tuple(every))


def test_the_change_that_brings_most_is_the_answer_with_its_gain():
    said = verdict_of(diagnosis())
    assert said.headline == "Run the maps in parallel."
    assert said.much == (
        "The training then runs 2.5 times as fast: a step takes 13 instead of 32 ms."
    )
    assert (said.sure, said.interval) == ("sure", "2.4 to 2.6")


def test_changes_that_are_in_each_other_s_way_are_not_all_to_be_made():
    found = diagnosis()
    at_once = replace(found.together, speedup=gain(0.55))
    (said,) = verdict_of(replace(found, together=at_once)).warnings
    assert said == (
        'Don\'t combine them: "parallel map" and "without CSVLogger" together run '
        "0.55 times as fast."
    )
    assert verdict_of(found).warnings == ()
    # What is in none of it may bring more than all of it.
    apart = cause("xla", "XLA", 6.0, "opportunity")
    assert verdict_of(replace(found, causes=(apart,))).warnings == ()


@pytest.mark.parametrize("causes", [(), (SLOW_MAP,)], ids=["nothing", "a cause"])
def test_time_that_is_in_no_rate_is_said_beside_it(causes):
    def warnings(between_s):
        known = {"steps": 100, "between_s": between_s}
        return verdict_of(diagnosis(causes=causes, facts=known)).warnings

    assert warnings(0.5) == ()
    (said,) = warnings(14.2)
    long = "Between epochs its own code took 14 s, beside 3.2 s of steps"
    assert said.startswith(long)


def test_what_shows_only_a_part_of_the_gain_says_at_least():
    parts = cause("eager", "model as a graph", 2.5, at_least=True)
    assert verdict_of(diagnosis(causes=(parts,))).much == (
        "The training then runs at least 2.5 times as fast: a step takes at most 13 "
        "instead of 32 ms."
    )


def test_eager_steps_that_only_their_author_can_change_are_not_called_healthy():
    untested = {"eager": "its steps compute in no function. Use one"}
    found = diagnosis(
        causes=(), healthy=True, untested=untested, unmeasured=("tf.function",)
    )
    said = verdict_of(found)
    assert said.headline == NOT_SHOWN
    assert '"tf.function"' in said.much
    assert said.next == "Its steps compute in no function. Use one."


def test_no_more_is_promised_than_is_shown():
    def said_of(one):
        said = verdict_of(diagnosis(causes=(one,)))
        return f"{said.headline} {said.much}"

    said = said_of(cause("retracing", "", 1.6, grade="inferred"))
    assert said.startswith("Stop retracing: trace each function once. The training ")
    assert "then would run 1.6 times as fast: a step would take" in said
    # No more than the ceiling.
    assert said_of(LIMIT).startswith(
        "Its input slows this training; which change helps is not known yet. "
        "Without any input it would run 3.6"
    )
    said = said_of(cause("new", "one", 2))
    assert said.startswith("Do something about new. The training then runs")


@pytest.mark.parametrize(
    ("changed", "more", "sure"),
    [
        ({}, {}, "sure"),
        ({"rounds": 1}, {}, "likely"),
        ({}, {"grade": "inferred"}, "likely"),
    ],
)
def test_how_sure_a_gain_is_comes_from_its_rounds_and_its_grade(changed, more, sure):
    found = with_xla(diagnosis(causes=(replace(XLA, **more),)), **changed)
    found = with_xla(found, verdict="faster", low=1.3, high=1.5)
    assert verdict_of(found).sure == sure


def test_what_can_be_done_comes_before_what_cannot_be_had():
    limit = replace(LIMIT, speedup=gain(11.0))
    said = verdict_of(diagnosis(causes=gains.rank((limit, SLOW_MAP))))
    assert said.headline.startswith("Run the maps")
    _, then = said.next.splitlines()
    assert then.startswith("Then make the input faster: 11 times as fast at most")


def test_a_healthy_training_is_called_that_where_nothing_is_left_open():
    little = replace(XLA, speedup=gain(1.2))
    for more in ({}, {"unmeasured": ("graph",)}):
        said = verdict_of(diagnosis(causes=(little,), ceiling=None, **more)).headline
        assert said.endswith("ompile the steps with XLA.")
        assert said.startswith("Nothing is wrong with this training.") == (not more)
    said = verdict_of(diagnosis(causes=(), ceiling=None, account=WORKING))
    assert said.headline == "Nothing is wrong with this training."
    assert said.sure == "sure"
    assert "no change is shown to bring 5.0 % or more" in said.much
    assert "less computing" in said.next
    unsure = diagnosis(causes=(), ceiling=None)
    unsure = with_xla(unsure, verdict="too noisy to say", high=1.2)
    assert verdict_of(unsure).sure == "likely"


SMALL = (1.06, 1.2)
LARGE = (1.3, 2.0, 5.3)


@pytest.mark.parametrize("kind", ["defect", "opportunity"])
@pytest.mark.parametrize("change", ["without input", "without observers"])
@pytest.mark.parametrize("size", [*SMALL, *LARGE])
def test_what_is_lost_to_no_known_reason_is_never_called_nothing(size, change, kind):
    name = "input-bound" if change == "without input" else "callback"
    limit = cause(name, change, size, kind, subject="Without any input it")
    known = limit.speedup if change == "without input" else None
    for others in ((), (replace(XLA, speedup=gain(1.2)),)):
        causes = gains.rank((limit, *others))
        said = verdict_of(diagnosis(causes=causes, ceiling=known, account=WORKING))
        if kind == "defect" or size in LARGE:
            assert "Nothing is wrong" not in said.headline
        elif not others:
            assert said.headline == "Nothing is wrong with this training."
        if size in LARGE and (kind == "defect" or not others):
            slows = (
                "Its input slows" if known else "Callbacks, metrics or validation slow"
            )
            assert said.headline.startswith(slows)
            assert said.headline.endswith("; which change helps is not known yet.")
    # Nor is a limit that no change explains.
    said = verdict_of(diagnosis(causes=(), ceiling=gain(size))).headline
    assert said.startswith("Nothing is wrong") == (size in SMALL)


def test_a_group_that_a_change_of_it_goes_beyond_is_not_cleared():
    limit, better = gain(1.1, 0.02), cause("serial-map", "parallel map", 1.31)
    for causes in ((), (better,)):
        found = diagnosis(causes=causes, ceiling=limit)
        first = replace(found.comparisons[0], variant="without input", high=limit.high)
        found = replace(found, comparisons=(first, *found.comparisons[1:]))
        assert bool([*found.in_order]) == (causes == ())


@pytest.mark.parametrize("more", [{}, {"unmeasured": ("graph",)}])
def test_nothing_is_called_healthy_while_much_is_open(more):
    found = with_xla(diagnosis(causes=(), **more), **{} if more else OPEN)
    said = verdict_of(found)
    assert said.headline == NOT_SHOWN
    assert said.sure == "not known yet"
    assert ('"graph"' if more else '"XLA"') in said.much
    assert said.next == "Run again with `--budget 240`."
    assert any(line.startswith("Not known yet: ") for line in found.report.besides)
    nothing = {"comparisons": (), "ceiling": None, "healthy": False}
    said = verdict_of(diagnosis(causes=(), **nothing))
    assert said.headline == NOT_SHOWN
    assert "perfkit can change nothing in it" in said.much
    assert "`perfkit lines`" in said.next


NOISY = {"verdict": "too noisy to say"}


@pytest.mark.parametrize(
    ("changed", "is_open"),
    [
        (NOISY | {"high": 1.2}, False),
        ({"verdict": "no difference shown", "high": 1.09}, False),
        (NOISY | {"rounds": 1, "ratio": 0.5}, False),
        (NOISY | {"rounds": 1, "ratio": 1.1, "high": 1.5}, True),
        (NOISY | {"rounds": 1, "ratio": 1.1, "high": 1.2}, False),
    ],
)
def test_open_is_what_may_bring_much_for_all_that_was_measured(changed, is_open):
    assert (with_xla(diagnosis(), **changed).left_open == ("XLA",)) == is_open


@pytest.mark.parametrize(
    ("outcome", "message", "remedy", "seen_at_work"),
    [
        ("out-of-memory", "ran out of memory: 8 GB", "Make the batch", NOT_SHOWN),
        ("timed-out", "gave no sign of life for 60 s", "does its first", NOT_SHOWN),
        ("crashed", "was ended by SIGSEGV", "fix the error that", NOT_SHOWN),
        ("crashed", "raised TypeError: no (line 32)", "fix the error that", ENDS),
    ],
)
def test_what_cannot_run_is_told_with_its_remedy(
    outcome, message, remedy, seen_at_work
):
    ended = {"trials": (failed(AS_GIVEN, outcome, message),), "outcome": outcome}
    said = verdict_of(diagnosis((), step=None, **ended))
    assert said.headline == "This training could not be run."
    assert said.much == f"It {message}."
    assert remedy in said.next
    assert said.because == ()
    # What the first look has seen at work can be run.
    said = verdict_of(diagnosis((), step=None, facts={"step_s": 83.0}, **ended))
    assert said.headline == seen_at_work
    assert said.sure == ("not known yet" if seen_at_work == NOT_SHOWN else "")
    assert said.much == f"A step takes about 83 s. It then {message}."
    assert remedy in said.next


@pytest.mark.parametrize(
    ("made", "is_bound"),
    [
        (WORKING, True),
        (None, False),
        (account(line(20, computing=4.9)), False),
        (account(line(20, computing=8.0, starting_s=3.1)), False),
        (replace(WORKING, untraced="Another profiler runs."), False),
    ],
    ids=["computing", "no account", "less", "starting", "untraced"],
)
def test_a_training_is_called_compute_bound_as_far_as_its_account_shows(made, is_bound):
    found = diagnosis(causes=(), ceiling=None, account=made)
    assert ("less computing" in verdict_of(found).next) == is_bound


def test_a_gain_that_is_hardly_known_is_told_without_a_number():
    wide = replace(SLOW_MAP, speedup=Gain(estimate=3.0, low=1.2, high=7.4))
    said = verdict_of(diagnosis(causes=(wide,)))
    assert said.much == "The training then runs faster; by how much is not known yet."
    assert (said.sure, said.interval) == ("not known yet", "")
    unsure = diagnosis(step=Seconds(median_s=0.03, low=0.01, high=0.09))
    assert verdict_of(unsure).facts == ()
    assert verdict_of(unsure).much == "The training then runs 2.5 times as fast."
    # A step that the next run may find half as long again is told as that.
    wide = Seconds(median_s=0.043, low=0.024, high=0.077)
    assert verdict_of(replace(unsure, step=wide)).much.endswith("2.5 times as fast.")
    calm = diagnosis(causes=(), ceiling=None, step=wide)
    assert verdict_of(calm).much.startswith("A step takes 24 ms to 77 ms; no change")


def test_a_cause_is_added_by_one_record_and_told_in_report_and_page(monkeypatch):
    def awake(facts):
        yield Change(name="awake", changes="It never sleeps.", fix="Delete sleep().")

    napping = KnownCause(
        id="napping",
        kind="defect",
        do="Let it sleep less",
        means="it sleeps while it trains",
        mind="Whoever waits for it is served sooner.",
        offer=awake,
    )
    monkeypatch.setitem(KNOWN, napping.id, napping)
    changes, _ = applicable(Facts(policy="mixed_float16"))
    run = measured(awake=3.0)
    (found,) = gains.causes([c for c in changes if c.name == "awake"], run)
    diagnosed = diagnosis(causes=(found,))
    diagnosed = replace(diagnosed, verdict=verdict_of(diagnosed))
    assert diagnosed.verdict.headline == "Let it sleep less."
    assert napping.do in {row[0] for row in diagnosed.report.table.rows}
    html = findings_page([diagnosed])
    means = "It sleeps while it trains. It never sleeps."
    for words in (napping.do, means, napping.mind):
        assert words in html
