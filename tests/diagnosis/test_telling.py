from dataclasses import replace

import pytest

from perfkit.diagnosis import judging, telling
from perfkit.diagnosis.choosing import AS_GIVEN
from perfkit.diagnosis.swaps import observers, resident
from perfkit.diagnosis.telling import left_open, recovered, told
from perfkit.findings.diagnosis import Gain, Part, Seconds
from tests.diagnosis.diagnosed import LOGGER, SLOW_MAP, cause, diagnosis, gain
from tests.findings.made import failed

XLA = cause("xla", "XLA", 1.4, "opportunity")
COMPUTE = {"compute": Part(seconds=0.03, low=0.02, high=0.031, grade="inferred")}
GRADES = ("measured here", "inferred", "not tested", "read from the driver")


def comparisons(found, **changed):
    return tuple(
        replace(c, **changed) if c.variant == "XLA" else c for c in found.comparisons
    )


def test_the_worst_defect_comes_first_with_its_gain_and_interval():
    assert told(diagnosis()).headline == (
        "serial-map slows this training most (its map works on one element at a "
        'time): with "parallel map" it runs 2.50× as fast (95 % interval 2.38 to 2.62).'
    )


def test_what_no_swap_takes_away_is_told_without_one():
    said = told(diagnosis(causes=(cause("contention", "", 1.6),))).headline
    assert said == (
        "contention slows this training most (other programs take the processor): "
        "without that it would run 1.60× as fast (95 % interval 1.52 to 1.68)."
    )


def test_no_more_than_three_things_are_to_be_done():
    wrong = [cause(f"cause {n}", f"swap {n}", 2.0) for n in range(5)]
    chances = [cause("xla", f"XLA {n}", 1.4, "opportunity") for n in range(4)]
    for some in (wrong[:1], wrong[:3], wrong):
        said = told(diagnosis(causes=(*some, *chances))).next.splitlines()
        assert len(said) == 3


def test_what_may_be_as_bad_is_named_with_the_worst():
    alike = cause("callback", "without CSVLogger", 2.4)
    said = told(diagnosis(causes=(SLOW_MAP, alike))).headline
    assert said.endswith("; callback (2.40×) may bring as much.")
    assert "may bring as much" not in told(diagnosis()).headline


def test_what_can_be_done_comes_before_what_cannot_be_had():
    limit = cause("input-bound", "without input", 11.0)
    found = diagnosis(causes=judging.ranked((limit, SLOW_MAP)))
    said = told(found).headline
    assert said.startswith("serial-map slows this training (")
    assert "Even then its input holds it up: without any it would run 11" in said


def test_a_change_that_brings_little_leaves_the_input_first():
    limit = cause("input-bound", "without input", 11.0)
    little = cause("no-prefetch", "prefetch", 1.08)
    elsewhere = cause("callback", "without CSVLogger", 2.0)
    ranked = judging.ranked((little, elsewhere, limit))
    assert [one.cause for one in ranked] == ["input-bound", "callback", "no-prefetch"]


def test_a_defect_is_told_before_a_larger_chance_that_is_done_first():
    large = cause("precision", "bfloat16", 3.4, "opportunity")
    said = told(diagnosis(causes=(large, LOGGER)))
    assert said.headline.startswith("callback slows this training most")
    assert said.next.splitlines() == [large.fix, f"Then, for callback: {LOGGER.fix}"]
    assert any(
        "precision, an opportunity, nothing is wrong there" in reason
        for reason in said.because
    )


def test_waiting_for_input_promises_no_more_than_the_ceiling():
    said = told(diagnosis(causes=(cause("input-bound", "without input", 3.6),)))
    assert said.headline.startswith("Its input takes time from its steps: ")
    assert "no change that was measured is shown to explain that" in said.headline


def test_a_healthy_training_gets_its_chances_and_no_defect():
    said = told(diagnosis(causes=(XLA,), split=COMPUTE))
    assert said.headline == (
        "Nothing wrong is shown in this training: no swap shows a defect. It is "
        "compute-bound: most of its time is the work of its steps. The machine "
        "could do more: with xla it runs 1.40× as fast (95 % interval 1.33 to 1.47)."
    )
    assert said.next == f"Nothing has to be mended. For more speed, xla: {XLA.fix}"


def test_a_healthy_training_without_a_chance_is_called_healthy():
    assert told(diagnosis(causes=())).headline.startswith("Nothing wrong is")


def test_nothing_is_called_healthy_while_much_is_open():
    found = diagnosis(causes=())
    wide = comparisons(found, verdict="too noisy to say", low=0.6, high=1.9)
    found = replace(found, comparisons=wide)
    said = told(found)
    assert said.headline.startswith("No defect is shown in this training so far. Not")
    assert 'Not known yet: "' in said.headline
    assert '"XLA"' in said.headline
    assert said.next == "Diagnose again with a budget of 4 min 00 s."


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
    found = diagnosis()
    found = replace(found, comparisons=comparisons(found, **changed))
    assert (left_open(found) == ["XLA"]) == is_open


def test_what_a_whole_group_cannot_bring_is_told():
    found = diagnosis(causes=())
    one = found.comparisons[0]
    group = replace(one, variant="without input", ratio=1.01, low=0.97, high=1.04)
    noisy = replace(one, variant="XLA", verdict="too noisy to say", low=0.6, high=1.9)
    said = told(replace(found, comparisons=(group, noisy), causes=())).headline
    assert "no change of the input brings more than 4.0 %" in said
    assert '"XLA"' in said


def test_where_nothing_was_swapped_the_length_of_a_step_is_told():
    found = diagnosis((), step=None, trials=(), facts={"step_s": 2.5})
    assert told(found).headline.startswith("A step takes about 2.5 s; more could not")


@pytest.mark.parametrize(
    ("outcome", "message", "remedy"),
    [
        ("out-of-memory", "ran out of memory: 8 GB", "Make the batch smaller"),
        ("timed-out", "gave no sign of life for 60 s", "whether its first step"),
        ("crashed", "was ended by SIGSEGV", "mend what that says"),
    ],
)
def test_what_cannot_run_is_told_with_its_remedy(outcome, message, remedy):
    trial = failed(AS_GIVEN, outcome, message)
    found = diagnosis((), step=None, trials=(trial,), outcome=outcome)
    said = told(found)
    assert said.headline == f"Nothing could be measured: the training {message}."
    assert remedy in said.next
    assert said.because == ()


def test_a_swap_that_fails_is_told_and_the_rest_stands():
    found = diagnosis()
    crash = failed("mixed precision", "crashed", "raised TypeError: no.")
    said = told(replace(found, trials=(*found.trials, crash)))
    assert '"mixed precision" raised TypeError: no.' in said.because
    assert said.headline == told(found).headline


def test_the_ceiling_is_told_with_what_of_it_was_got_back():
    (said,) = [r for r in told(diagnosis()).because if "no pipeline brings" in r]
    # Of a step of 1 s input costs 1 - 1/3.6, and the map gets back 1 - 1/2.5 of it.
    assert '"parallel map" gets back 83 % of the time that input costs' in said


def test_input_is_not_cleared_by_a_wide_interval():
    unsure = Gain(estimate=1.0, low=0.7, high=1.3)
    sure = Gain(estimate=1.0, low=0.98, high=1.02)
    assert any("is open: without any" in r for r in told(_with(unsure)).because)
    assert any("does not hold it up" in r for r in told(_with(sure)).because)


def _with(ceiling):
    return diagnosis(causes=(), ceiling=ceiling)


def test_no_more_is_got_back_than_was_lost():
    assert recovered(gain(4.0), gain(2.0)) == 1.0
    assert recovered(gain(0.9), gain(2.0)) == 0.0
    assert recovered(gain(2.0), gain(2.0)) == pytest.approx(1.0)


def test_measured_statements_say_how_they_are_known():
    said = [reason for reason in told(diagnosis()).because if "failed" not in reason]
    assert [r for r in said if not any(grade in r for grade in GRADES)] == []


def test_the_noise_floor_is_said_or_said_to_be_unknown():
    floor = told(diagnosis(noise_floor=1.03)).because
    assert any(r.startswith("The noise floor is 3.0 %") for r in floor)
    none = told(diagnosis(noise_floor=None)).because
    assert any("noise floor is unknown" in r for r in none)


def test_a_stopped_run_says_so():
    said = told(diagnosis(stopped=True)).because
    assert "The run was stopped before its budget was spent." in said


def test_what_is_set_aside_is_said_and_not_left_open():
    found = diagnosis(aside=("XLA",))
    said = [
        reason for reason in told(found).because if "changes what is learnt" in reason
    ]
    assert len(said) == 1
    assert said[0].startswith('"XLA" runs at 1.')
    assert not any("what is learnt" in reason for reason in told(diagnosis()).because)


def test_a_swap_that_was_never_measured_is_left_open():
    found = diagnosis(causes=(), unmeasured=("graph",))
    assert "graph" in left_open(found)
    assert '"graph"' in told(found).headline


def test_a_healthy_training_gets_its_share_of_the_peak():
    found = diagnosis(causes=(), facts={"share_of_peak": 0.43}, split=COMPUTE)
    said = told(found).headline
    assert "It is compute-bound" in said
    assert "It reaches 43 % of what a large matrix product reaches here" in said


def test_what_was_not_shown_to_compute_is_not_called_compute_bound():
    assert "compute-bound" not in told(diagnosis(causes=())).headline
    little = replace(COMPUTE["compute"], seconds=0.012, low=0.01, high=0.014)
    found = diagnosis(causes=(), split={"compute": little})
    assert "compute-bound" not in told(found).headline


def test_a_gain_that_is_hardly_known_is_told_without_a_number():
    wide = replace(SLOW_MAP, speedup=Gain(estimate=3.0, low=1.2, high=7.4))
    headline = told(diagnosis(causes=(wide,))).headline
    assert headline.endswith(
        'with "parallel map" it runs faster; by how much is not known yet.'
    )
    unsure = told(diagnosis(step=Seconds(median_s=0.03, low=0.01, high=0.09)))
    assert "How long a step takes as given is not known yet (measured here)." in (
        unsure.because
    )


@pytest.mark.parametrize("reached", ["0.4", -1.0, 1e9, None, float("nan"), [1]])
def test_a_share_of_the_peak_that_cannot_be_is_not_told(reached):
    said = told(diagnosis(facts={"share_of_peak": reached}))
    assert not any("It reaches" in reason for reason in said.because)


def test_a_little_input_is_no_defect_and_is_told_for_what_it_is():
    little = cause("input-bound", "without input", 1.15, "opportunity")
    said = told(diagnosis(causes=(little,))).headline
    assert said.startswith("Nothing wrong is shown in this training")
    assert "without any input it would run 1.15× as fast (95 % interval" in said
    assert "could do more" not in said
    both = told(diagnosis(causes=(little, cause("xla", "XLA", 1.1, "opportunity"))))
    assert "could do more: with xla it runs 1.10× as fast" in both.headline


@pytest.mark.parametrize(("longest", "said"), [(1.3, True), (0.04, False)])
def test_ends_of_epochs_that_differ_by_much_are_said_to_hide_gains(longest, said):
    found = diagnosis(facts={"batch": 64})
    given = replace(
        next(t for t in found.trials if t.variant == AS_GIVEN),
        pauses={"epoch end": (0.03, longest)},
        recurring={"epoch end": (12_800, 64)},
    )
    reasons = told(replace(found, trials=(given,))).because
    told_so = [r for r in reasons if r.startswith("An end of an epoch took 30 ms to")]
    assert bool(told_so) == said


def test_the_groups_that_are_told_are_those_that_are_left_out():
    assert set(telling._GROUPS) == {resident.NAME, observers.GROUP}
