from dataclasses import replace

import pytest

from perfkit.findings.diagnosis import Gain, Part, Seconds
from perfkit.findings.page.page import findings_page
from perfkit.findings.record import Edit
from perfkit.training.diagnose import gains, rounds
from perfkit.training.diagnose.cause import KnownCause
from perfkit.training.diagnose.causes import KNOWN, applicable
from perfkit.training.diagnose.change import Change
from perfkit.training.diagnose.facts import Facts
from perfkit.training.diagnose.rounds import AS_GIVEN
from perfkit.training.diagnose.verdict import recovered, verdict_of
from tests.findings.made import failed
from tests.training.diagnose.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis, gain
from tests.training.diagnose.measurements import measured

XLA = cause("xla", "XLA", 1.4, "opportunity")
EAGER = cause("eager", "graph", 3.3)
LIMIT = cause("input-bound", "without input", 3.6, subject="Without any input it")
COMPUTE = {"compute": Part(seconds=0.03, low=0.02, high=0.031, grade="inferred")}
OPEN = {"verdict": "too noisy to say", "low": 0.6, "high": 1.9}


def line(old="    model.run_eagerly = True", new="", **where):
    return Edit(**{"file": "train.py", "line": 41} | where, old=old, new=new)


def with_xla(found, **changed):
    """The same, with another comparison of XLA."""
    every = (
        replace(c, **changed) if c.variant == "XLA" else c for c in found.comparisons
    )
    return replace(found, comparisons=tuple(every))


def facts(found):
    return {fact.label: (fact.value, fact.interval) for fact in verdict_of(found).facts}


def because(found, words):
    return [reason for reason in verdict_of(found).because if words in reason]


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


def test_what_a_loop_does_for_long_between_epochs_is_said_beside_its_steps():
    found = diagnosis(causes=())
    quick = replace(found, facts=found.facts | {"between_s": 0.5, "steps": 100})
    slow = replace(found, facts=found.facts | {"between_s": 14.2, "steps": 100})
    assert verdict_of(quick).warnings == ()
    (said,) = verdict_of(slow).warnings
    assert said.startswith("Between epochs its own code took 14 s, beside 3.2 s of")
    helped = replace(slow, causes=(SLOW_MAP,))
    assert said in verdict_of(helped).warnings


def test_what_a_call_of_fit_costs_is_said_to_be_in_no_rate_where_it_comes_again():
    found = diagnosis(causes=())
    again = replace(found, facts=found.facts | {"again": True})
    (said,) = verdict_of(again).warnings
    assert said.startswith("The script calls fit again and again")


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
    assert (
        said.headline == "This run does not show whether anything slows this training."
    )
    assert '"tf.function"' in said.much
    assert said.next == "Its steps compute in no function. Use one."


@pytest.mark.parametrize(
    ("edits", "headline"),
    [
        ((line(),), "Delete line 41, `model.run_eagerly = True`."),
        ((line(old="a\nb"),), "Delete lines 41-42."),
        ((line(cell=3, line=2),), "Delete line 2 of code cell 3, `model.run_eagerly"),
        ((line(old=f"f({'x' * 60})"),), "Delete line 41."),
        ((line(new="    pass"),), "Run the steps as a graph."),
        ((line(), line(line=43)), "Run the steps as a graph."),
        ((line(new=None),), "Run the steps as a graph."),
    ],
)
def test_one_line_that_goes_is_named(edits, headline):
    said = verdict_of(diagnosis(causes=(replace(EAGER, edits=edits),)))
    assert said.headline.startswith(headline)
    assert said.edits == edits


def test_the_line_to_change_is_told_where_no_place_of_it_is_certain():
    assert verdict_of(diagnosis()).next.startswith(SLOW_MAP.fix)
    placed = replace(EAGER, edits=(line(new=None),))
    assert verdict_of(diagnosis(causes=(placed,))).next == EAGER.fix
    placed = replace(EAGER, edits=(line(),))
    assert verdict_of(diagnosis(causes=(placed,))).next == ""


@pytest.mark.parametrize(
    ("one", "headline", "much"),
    [
        (
            cause(
                *("contention", "", 1.6),
                grade="inferred",
                subject="Without that the training",
            ),
            "Train while no other program uses the cores.",
            "Without that the training would run 1.6 times as fast: a step would take",
        ),
        (LOGGER, "Leave `CSVLogger` out, or let it do less.", "Without it the"),
        (LIMIT, "Its input slows this training; which", "Without any input it would"),
        (cause("new", "one", 2), "Do something about new.", "The training then"),
    ],
)
def test_every_cause_is_told_as_what_to_do(one, headline, much):
    said = verdict_of(diagnosis(causes=(one,)))
    assert said.headline.startswith(headline)
    assert said.much.startswith(much)
    # No more is promised than the ceiling.
    assert said.headline.endswith("which change helps is not known yet.") == (
        one is LIMIT
    )


def test_a_larger_batch_is_held_against_as_many_examples_and_warned_of():
    larger = cause("small-batch", "batch ×4", 2.0, "opportunity")
    said = verdict_of(diagnosis(causes=(larger,), facts={"batch": 64}))
    assert "64 examples take 16 instead of 32 ms" in said.much
    assert any("learns differently" in warning for warning in said.warnings)


def test_a_warning_tells_of_memory_and_of_who_else_computed():
    found = diagnosis(
        causes=(cause("no-cache", "cache", 2.0),),
        facts={"pipeline": {"bytes": 144_000_000}},
        samples={"t": (0.0, 1.0), "cpu_other": (1.0, 1.5)},
    )
    assert verdict_of(found).warnings == (
        "The cache takes 144 MB of memory.",
        "Other programs kept 1.2 of 8 cores busy meanwhile: end them to be surer.",
    )
    others = cause("contention", "", 1.6)
    assert verdict_of(replace(found, causes=(others,))).warnings == ()


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


def test_no_more_than_three_things_are_to_be_done():
    wrong = [cause(f"cause {n}", f"change {n}", 2.0) for n in range(5)]
    more = XLA, cause("precision", "float16", 1.3, "opportunity")
    for some in (wrong[:1], wrong[:3], wrong):
        found = diagnosis(causes=(*some, *more))
        assert len(verdict_of(found).next.splitlines()) == 3
        assert len(found.report.table.rows) == 4


def test_what_may_bring_as_much_is_named_after_the_first():
    alike = replace(LOGGER, speedup=gain(2.4))
    _, then = verdict_of(diagnosis(causes=(SLOW_MAP, alike))).next.splitlines()
    assert then == (
        "Then leave `CSVLogger` out, or let it do less: 2.4 times as fast by itself, "
        "perhaps as much as the first."
    )
    assert "as much" not in verdict_of(diagnosis()).next


def test_what_can_be_done_comes_before_what_cannot_be_had():
    limit = replace(LIMIT, speedup=gain(11.0))
    said = verdict_of(diagnosis(causes=gains.rank((limit, SLOW_MAP))))
    assert said.headline.startswith("Run the maps")
    _, then = said.next.splitlines()
    assert then.startswith("Then make the input faster: 11 times as fast at most")
    # A change that brings little leaves the input first.
    little = cause("no-prefetch", "prefetch", 1.08)
    ranked = gains.rank((little, LOGGER, limit))
    assert [one.cause for one in ranked] == ["input-bound", "callback", "no-prefetch"]


def test_a_healthy_training_is_called_that_where_nothing_is_left_open():
    little = replace(XLA, speedup=gain(1.2))
    for more in ({}, {"unmeasured": ("graph",)}):
        said = verdict_of(diagnosis(causes=(little,), ceiling=None, **more)).headline
        assert said.endswith("ompile the steps with XLA.")
        assert said.startswith("Nothing is wrong with this training.") == (not more)
    said = verdict_of(diagnosis(causes=(), ceiling=None, split=COMPUTE))
    assert said.headline == "Nothing is wrong with this training."
    assert said.sure == "sure"
    assert "no change is shown to bring 5.0 % or more" in said.much
    assert "less computing" in said.next
    unsure = diagnosis(causes=(), ceiling=None)
    unsure = with_xla(unsure, verdict="too noisy to say", high=1.2)
    assert verdict_of(unsure).sure == "likely"


def test_a_little_input_is_no_defect_and_is_told_for_what_it_is():
    little = replace(LIMIT, kind="opportunity", speedup=gain(1.2))
    said = verdict_of(diagnosis(causes=(little,), ceiling=little.speedup))
    assert said.headline == "Nothing is wrong with this training."
    assert said.much.startswith("Without any input it would run 1.2 times")
    both = verdict_of(diagnosis(causes=(little, XLA), ceiling=little.speedup))
    assert both.headline == "For more speed, compile the steps with XLA."


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
        found = diagnosis(causes=causes, ceiling=known, split=COMPUTE)
        said = verdict_of(found)
        if kind == "defect" or size in LARGE:
            assert "Nothing is wrong" not in said.headline
            assert not because(found, "compute-bound")
        if size in LARGE and (kind == "defect" or not others):
            slows = (
                "Its input slows" if known else "Callbacks, metrics or validation slow"
            )
            assert said.headline.startswith(slows)
            assert said.headline.endswith("; which change helps is not known yet.")
    # Nor is a limit that no change explains.
    said = verdict_of(diagnosis(causes=(), ceiling=gain(size))).headline
    assert said.startswith("Nothing is wrong") == (size in SMALL)


def test_the_slowest_stage_is_named_and_not_pointed_at():
    plan = {"limits": "map", "stages": [{"name": "map", "share": 0.9}]}
    bound = replace(LIMIT, fix="Make the input faster.")
    found = diagnosis(causes=(bound,), anatomy=plan)
    assert verdict_of(found).next == ('Look at "map" first.')
    # Where no stage is known there is none to point at.
    for nothing in ({}, {"limits": "map"}, plan | {"limits": "batch"}):
        assert verdict_of(replace(found, anatomy=nothing)).next == ""


def test_a_group_that_a_change_of_it_goes_beyond_is_not_cleared():
    limit, better = gain(1.1, 0.02), cause("serial-map", "parallel map", 1.31)
    for causes in ((), (better,)):
        found = diagnosis(causes=causes, ceiling=limit)
        first = replace(found.comparisons[0], variant="without input", high=limit.high)
        found = replace(found, comparisons=(first, *found.comparisons[1:]))
        assert bool([*found.in_order]) == (causes == ())


@pytest.mark.parametrize(
    ("training", "given"),
    [
        ("train.py", "--budget 240"),
        ("train.py:make_training", "--budget 240"),
        ("make_training", "budget=240"),
    ],
)
def test_more_time_is_given_as_the_report_repeats_itself(training, given):
    open_yet = diagnosis(causes=(), training=training, unmeasured=("graph",))
    assert verdict_of(open_yet).next == f"Run again with `{given}`."
    short = diagnosis((), step=None, trials=(), training=training)
    assert verdict_of(short).next == f"Run again with `{given}`."
    assert ("--budget" in short.report.repeat) == ("--" in given)
    # So does the plan, which the next one is told instead.
    known = Facts(step_s=1.5, ready_s=20.0)
    plan = rounds.planned(known, 20.0, 60.0)
    for words in (
        rounds.in_words(known, plan, training),
        rounds.without_turns_in_words(known, 60.0, training),
    ):
        assert given.split("240")[0] in words
        told = replace(short, facts=short.facts | {rounds.PLAN: words})
        assert verdict_of(told).next == words


@pytest.mark.parametrize("more", [{}, {"unmeasured": ("graph",)}])
def test_nothing_is_called_healthy_while_much_is_open(more):
    found = with_xla(diagnosis(causes=(), **more), **{} if more else OPEN)
    said = verdict_of(found)
    assert (
        said.headline == "This run does not show whether anything slows this training."
    )
    assert said.sure == "not known yet"
    assert ('"graph"' if more else '"XLA"') in said.much
    assert said.next == "Run again with `--budget 240`."
    assert any(line.startswith("Not known yet: ") for line in found.report.besides)
    nothing = {"comparisons": (), "ceiling": None, "healthy": False}
    said = verdict_of(diagnosis(causes=(), **nothing))
    assert said.headline.startswith("This run does not show")
    assert "perfkit can change nothing in it" in said.much
    assert "`perfkit lines`" in said.next


@pytest.mark.parametrize(
    ("changed", "is_open"),
    [
        ({"verdict": "too noisy to say", "high": 1.2}, False),
        ({"verdict": "no difference shown", "high": 1.09}, False),
        ({"rounds": 1, "ratio": 0.5, "verdict": "too noisy to say"}, False),
        ({"rounds": 1, "ratio": 1.1, "high": 1.5, "verdict": "too noisy to say"}, True),
        (
            {"rounds": 1, "ratio": 1.1, "high": 1.2, "verdict": "too noisy to say"},
            False,
        ),
    ],
)
def test_open_is_what_may_bring_much_for_all_that_was_measured(changed, is_open):
    assert (with_xla(diagnosis(), **changed).left_open == ("XLA",)) == is_open


@pytest.mark.parametrize(
    ("name", "high", "said"),
    [
        (
            "without observers",
            1.04,
            "Nothing is wrong with its callbacks and its validation: no change of them "
            "brings more than 4.0 %.",
        ),
        (
            "without input",
            1.04,
            "Nothing is wrong with its input: no change of it brings more than 4.0 %.",
        ),
        ("without input", 0.99, "Nothing is wrong with its input: no change of it "),
        ("without input", 1.2, "No change of its input brings more than 20 %."),
        ("without input", 1.3, ""),
    ],
)
def test_what_a_whole_group_cannot_bring_is_told(name, high, said):
    first, *others = diagnosis().comparisons
    group = replace(first, variant=name, ratio=1.01, low=0.97, high=high)
    watched = {"callbacks": ["CSVLogger"], "validation": True}
    found = diagnosis(causes=(), facts=watched, comparisons=(group, *others))
    told = " ".join(found.report.besides)
    assert told.startswith(said) if said else "brings" not in told


@pytest.mark.parametrize(
    ("outcome", "message", "remedy"),
    [
        ("out-of-memory", "ran out of memory: 8 GB", "Make the batch smaller"),
        ("timed-out", "gave no sign of life for 60 s", "does its first step"),
        ("crashed", "was ended by SIGSEGV", "fix the error that"),
    ],
)
def test_what_cannot_run_is_told_with_its_remedy(outcome, message, remedy):
    trial = failed(AS_GIVEN, outcome, message)
    said = verdict_of(diagnosis((), step=None, trials=(trial,), outcome=outcome))
    assert said.headline == "This training could not be run."
    assert said.much == f"It {message}."
    assert remedy in said.next
    assert said.because == ()
    # What the first look has seen at work can be run.
    seen = diagnosis(
        (), step=None, trials=(trial,), outcome=outcome, facts={"step_s": 83.0}
    )
    said = verdict_of(seen)
    assert (
        said.headline == "This run does not show whether anything slows this training."
    )
    assert said.much == f"A step takes about 83 s. It then {message}."
    assert remedy in said.next
    raised = failed(AS_GIVEN, "crashed", "raised TypeError: no (line 32 of train.py).")
    said = verdict_of(replace(seen, trials=(raised,), outcome="crashed"))
    assert said.headline == "This training ends with an error after its first steps."
    assert said.much.endswith("It then raised TypeError: no (line 32 of train.py).")
    assert said.next == "Run it without perfkit, and fix the error that you see."
    assert said.sure == ""


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, "."),
        (
            {"retraced": {"step": {"traces": 4, "seconds": 6.2}}},
            ". `step` was retraced 3 times, 6.2 s in all.",
        ),
        (
            {"retraced": {"D": {"traces": 4, "seconds": 6.2, "library": "its input"}}},
            ". Its input was retraced 3 times, 6.2 s in all.",
        ),
    ],
)
def test_where_nothing_was_changed_it_tells_what_the_first_look_has_seen(seen, words):
    facts = {"step_s": 2.5} | seen
    said = verdict_of(diagnosis((), step=None, trials=(), facts=facts))
    begins = f"A step takes about 2.5 s{words} The training made too few"
    assert said.much.startswith(begins)
    assert said.sure == "not known yet"


def test_a_change_that_fails_is_told_and_the_rest_stands():
    found = diagnosis()
    crash = failed("mixed precision", "crashed", "raised TypeError: no.")
    said = verdict_of(replace(found, trials=(*found.trials, crash)))
    assert said.headline == verdict_of(found).headline


@pytest.mark.parametrize(
    ("verdict", "rates", "headline", "much"),
    [
        ("faster", (2.0, 1.9, 2.1), 'Keep "XLA"', "runs 2.0 times as fast: a step"),
        ("slower", (0.5, 0.4, 0.6), 'Drop "XLA"', "takes 2.0 times as long"),
        ("no difference shown", (1.0, 0.98, 1.02), "No difference shown", "runs 1"),
        ("too noisy to say", (1.0, 0.2, 4.0), "This run does not show", ""),
    ],
)
def test_what_was_applied_alone_is_told_for_what_it_brought(
    verdict, rates, headline, much
):
    named = ("ratio", "low", "high")
    changed = dict(zip(named, rates, strict=True), verdict=verdict)
    found = with_xla(diagnosis(causes=(), ceiling=None, together=None), **changed)
    found = replace(found, comparisons=(found.compared("XLA"),))
    alone = replace(found, facts=found.facts | {rounds.ONLY: ["XLA"]})
    assert verdict_of(alone).headline.startswith(headline)
    assert much in verdict_of(alone).much
    # A diagnosis that found no more than that to compare asks for the change.
    only = verdict_of(replace(found, causes=(XLA,))).headline
    assert only.endswith("ompile the steps with XLA.")


def test_the_numbers_that_it_rests_on_are_rows():
    rows = facts(diagnosis())
    assert rows["A step, unchanged"][0] == "32 ms"
    # Of a step of 1 s input costs 1 - 1/3.6, and the map gets back 1 - 1/2.5 of it.
    share = rows['Share of the input time that "parallel map" saves']
    assert share == ("83 %", "")
    # No more is got back than was lost.
    found = [recovered(gain(of), gain(2.0)) for of in (4.0, 2.0, 0.9)]
    assert found == pytest.approx([1.0, 1.0, 0.0])


def test_what_is_set_aside_is_said_and_not_left_open():
    found = with_xla(diagnosis(aside=("XLA",)), verdict="too noisy to say", high=1.4)
    assert "changes what the model learns" in str(found.report.folds)
    assert found.left_open == ()
    assert "changes what the model learns" not in str(diagnosis().report.folds)


def test_that_a_training_could_write_where_it_wants_is_said():
    found = diagnosis(facts={"uncontained": "Guarded: it may write in /dev."})
    assert because(found, "Guarded: it may write in /dev.")
    assert not because(diagnosis(), "Guarded")


def test_a_training_is_called_compute_bound_as_far_as_that_is_shown():
    little = replace(COMPUTE["compute"], seconds=0.012, low=0.01, high=0.014)
    for split, said in ((COMPUTE, True), ({}, False), ({"compute": little}, False)):
        found = diagnosis(causes=(), ceiling=None, split=split)
        assert ("less computing" in verdict_of(found).next) == said
        assert bool(because(found, "compute-bound")) == said


def test_a_gain_that_is_hardly_known_is_told_without_a_number():
    wide = replace(SLOW_MAP, speedup=Gain(estimate=3.0, low=1.2, high=7.4))
    said = verdict_of(diagnosis(causes=(wide,)))
    assert said.much == "The training then runs faster; by how much is not known yet."
    assert (said.sure, said.interval) == ("not known yet", "")
    unsure = diagnosis(step=Seconds(median_s=0.03, low=0.01, high=0.09))
    assert "A step as given" not in facts(unsure)
    assert verdict_of(unsure).much == "The training then runs 2.5 times as fast."
    # A step that the next run may find half as long again is told as that.
    wide = Seconds(median_s=0.043, low=0.024, high=0.077)
    assert verdict_of(replace(unsure, step=wide)).much.endswith("2.5 times as fast.")
    calm = diagnosis(causes=(), ceiling=None, step=wide)
    assert verdict_of(calm).much.startswith("A step takes 24 ms to 77 ms; no change")


@pytest.mark.parametrize(("longest", "said"), [(1.3, True), (0.04, False)])
def test_ends_of_epochs_that_differ_by_much_are_said_to_hide_gains(longest, said):
    found = diagnosis(facts={"batch": 64})
    given = replace(
        next(t for t in found.trials if t.variant == AS_GIVEN),
        pauses={"epoch end": (0.03, longest)},
        recurring={"epoch end": (12_800, 64)},
    )
    ends = because(replace(found, trials=(given,)), "Ends of epochs took 30 ms to")
    assert bool(ends) == said


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
