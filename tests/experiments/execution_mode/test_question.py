import itertools
import math
import pickle
import random

import pytest

from perfkit.errors import BadParameterError
from perfkit.experiments import experiment
from perfkit.experiments.execution_mode import ExecutionMode
from perfkit.experiments.execution_mode import ways as modes
from perfkit.experiments.execution_mode.ways import BY_DEFAULT, GROUPS, WAYS
from perfkit.experiments.shared.loops import NOTE
from perfkit.measure.measurement import TWIN, Arm, Measurement
from perfkit.measure.tick import REFUSED, Note
from perfkit.measure.trial import Trial
from perfkit.running import run

BATCH = 32
# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)


def trial(variant, step, round, *, first=0.1, noise=0.01, notes=()):
    """Forty ticks of 50 ms with steps of ``step`` seconds after a first call."""
    draw = random.Random(f"{variant} {noise}")
    usual = BATCH / step * math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    stamps = list(itertools.accumulate([0.3, first, *[0.05] * 40]))
    done = [0, BATCH, *(round_(usual * 0.05 * n) + BATCH for n in range(1, 41))]
    counts = [0, *(after - before for before, after in itertools.pairwise(done))]
    return Trial(
        variant=variant,
        round=round,
        outcome="completed",
        setup_s=0.3,
        ticks=tuple(zip(stamps, counts, strict=True)),
        notes=dict(notes),
    )


def round_(value):
    return int(value + 0.5)


def measured(steps, *, firsts=None, notes=None, noise=0.01, rounds=4, extra=(), **more):
    """A run in which a step of each variant takes the seconds that are given.

    Args:
        steps: Seconds of a step by variant; the first is the baseline.
        firsts: Seconds of the first call, by variant.
        notes: What each variant's trials told.
        noise: By how much trials differ from round to round.
        rounds: How many trials each.
        extra: Trials besides.
        **more: Fields of the measurement.
    """
    baseline = next(iter(steps))
    trials = [
        trial(
            name,
            step,
            number,
            first=(firsts or {}).get(name, 0.1),
            notes=(notes or {}).get(name, {}),
            noise=noise,
        )
        for number in range(1, rounds + 1)
        for name, step in (steps | {TWIN: steps[baseline]}).items()
    ]
    arms = [Arm(name, list, against=WAYS[name].against) for name in steps]
    return Measurement(
        arms=(*arms, *more.pop("arms", ())),
        trials=(*trials, *extra),
        baseline=baseline,
        **more,
    )


def verdict(run, **parameters):
    return ExecutionMode(**parameters).verdict(run)


def because(run, **parameters):
    return " ".join(verdict(run, **parameters).because)


# What is asked.


def test_the_default_run_has_its_modes_held_against_the_eager_loop():
    asked = ExecutionMode()
    assert tuple(asked.variants()) == GROUPS["modes"]
    assert asked.baseline == "eager loop"
    assert all(arm.changes for arm in asked.variants().values())


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_a_baseline_of_its_own_and_leads_with_it(group):
    asked = ExecutionMode(arms=group)
    assert asked.baseline == GROUPS[group][0] == next(iter(asked.variants()))
    assert all(arm.against in asked.variants() for arm in asked.variants().values())


@pytest.mark.parametrize(
    ("name", "baseline"),
    [
        ("fit XLA", "eager loop"),
        ("Python number", "tf.function"),
        ("validation", "fit unwatched"),
    ],
)
def test_a_single_way_brings_what_it_is_held_against(name, baseline):
    asked = ExecutionMode(arms=name)
    assert list(asked.variants()) == [baseline, name]
    assert asked.variants()[name].against == asked.baseline == baseline


def test_a_remedy_stands_against_what_it_mends():
    arms = ExecutionMode(arms="retracing").variants()
    assert arms["number as tensor"].against == "Python number"
    assert arms["shapes left open"].against == "changing shapes"


def test_groups_can_be_asked_together():
    arms = ExecutionMode(arms="observers,steps per execution").variants()
    assert {"fit 64 steps", "validation"} <= set(arms)
    assert ExecutionMode(arms="observers,modes").baseline == "fit unwatched"


def test_no_name_holds_a_comma_which_parts_the_names():
    assert not any("," in name for name in (*GROUPS, *WAYS))


def test_arms_travel_to_their_trials():
    for group in GROUPS:
        for arm in ExecutionMode(arms=group).variants().values():
            assert pickle.loads(pickle.dumps(arm)).name == arm.name


def test_what_is_not_there_is_not_run_and_says_why(monkeypatch):
    from perfkit.experiments.execution_mode import ways as modes

    monkeypatch.setattr(modes.importlib.util, "find_spec", lambda name: None)
    arm = ExecutionMode(arms="observers").variants()["histograms"]
    assert arm.unavailable.endswith("not installed: `pip install tensorboard`")


def test_a_bad_arm_is_refused_with_the_known_ones():
    with pytest.raises(BadParameterError, match="arms is 'turbo'; choose from modes"):
        experiment("execution-mode", arms="turbo")


def test_a_way_that_learns_something_else_is_not_timed(monkeypatch):
    found = {"fit": "does not learn what the others learn"}
    monkeypatch.setattr(modes, "differences", lambda ways, job: found)
    told = [note for note in ExecutionMode().prepare() if isinstance(note, Note)]
    assert told[-1].name == REFUSED
    assert found.items() <= told[-1].value.items()


@pytest.mark.parametrize(
    ("xla", "twin"), [(True, "fit XLA"), (False, "fit without XLA")]
)
def test_what_fit_does_anyway_is_named_and_not_timed_again(monkeypatch, xla, twin):
    monkeypatch.setattr(modes, "differences", lambda ways, job: {})
    monkeypatch.setattr(modes, "uses_xla", lambda network: xla)
    *_, told = ExecutionMode().prepare()
    assert list(told.value) == [twin]
    assert told.value[twin].startswith('is what "fit" does here, where Keras')
    # Asked alone it is held against the loop, and is no second of anything.
    *_, told = ExecutionMode(arms=twin).prepare()
    assert told.value == {}


# What a run of modes means.

MODES = {"eager loop": 0.010, "tf.function": 0.002, "fit XLA": 0.001}
FIRSTS = {"eager loop": 0.11, "tf.function": 0.27, "fit XLA": 2.0}


def test_the_fastest_mode_is_named_with_its_gain_and_when_it_pays_back():
    found = verdict(measured(MODES, firsts=FIRSTS))
    assert found.winner == "fit XLA"
    assert found.headline.startswith('"fit XLA" trains fastest here: 1 ms a step, 10')
    assert '"eager loop" (95 % interval 9' in found.headline
    assert ", 4 rounds); it has paid back after 210 steps (2" in found.headline
    assert found.next == "Change this line: `model.compile(..., jit_compile=True)`."


def test_who_calls_fit_already_is_told_what_is_left_to_gain():
    found = verdict(measured(MODES | {"fit": 0.0011}, firsts=FIRSTS))
    assert found.next.startswith("Change this line: `model.compile(..., jit_compile=Tr")
    assert 'Against "fit" it reaches 1.1' in found.next
    assert "4 rounds): faster." in found.next


def test_ties_are_said_as_ties():
    found = verdict(measured({"eager loop": 0.01, "fit": 0.002, "fit XLA": 0.002}))
    assert "trains fastest here, and is not shown to differ from" in found.headline


def test_every_mode_has_its_first_call_its_step_and_its_pay_back():
    steps = MODES | {"fit eagerly": 0.02}
    said = because(measured(steps, firsts=FIRSTS))
    assert '"eager loop" 110 ms, 10 ms; "fit eagerly" 100 ms, 20 ms' in said
    assert '"tf.function" has paid back after 21 steps' in said
    assert '"fit eagerly" never pays back, because its steps are slower' in said


def test_no_gain_is_claimed_where_none_is_shown():
    found = verdict(measured({"eager loop": 0.01, "fit": 0.0099, "fit XLA": 0.0101}))
    assert found.winner == ""
    assert found.headline.startswith("No mode is shown to be faster")
    assert found.next == f"Keep `{WAYS['eager loop'].advice}`."


def test_noise_is_said_to_be_noise():
    found = verdict(measured({"eager loop": 0.010, "fit": 0.0085}, noise=0.4))
    assert found.winner == ""
    assert "Too noisy to say whether any mode is faster" in found.headline
    assert found.next.startswith("End what else runs on this machine")


def test_a_baseline_that_wins_is_named_without_a_change():
    found = verdict(measured({"fit": 0.001, "fit 8 steps": 0.002}))
    assert found.headline == '"fit" is the fastest mode here: 1 ms a step.'
    assert found.next == "Keep `model.fit(batches, verbose=0)`."


def test_a_tie_that_noise_leaves_open_is_no_reason_to_keep_the_baseline():
    run = measured({"fit": 0.001, "fit 8 steps": 0.00102}, noise=0.3)
    found = verdict(run)
    assert found.winner == ""
    assert "too noisy to say" in found.headline.lower()
    assert found.next.startswith("End what else runs on this machine")


@pytest.mark.parametrize(
    ("xla", "does"), [(True, "compiles with XLA"), (False, "uses no XLA")]
)
def test_what_keras_does_by_default_is_said_as_it_was_seen(xla, does):
    notes = {"fit": {BY_DEFAULT: xla}}
    said = because(measured({"eager loop": 0.01, "fit": 0.001}, notes=notes))
    assert '"fit" is what `compile` gives by default, `jit_compile="auto"`' in said
    assert f"here Keras {does} then" in said


def test_a_way_that_was_not_run_and_one_that_failed_are_told():
    crash = Trial(variant="fit", round=1, outcome="crashed", message="raised X: y")
    gone = Arm("histograms", list, unavailable="needs TensorBoard")
    said = because(measured(MODES, extra=(crash,), arms=(gone,)))
    assert '"fit" raised X: y.' in said
    assert '"histograms" needs TensorBoard.' in said


# What a run of retracing means.

NUMBERS = {"tf.function": 0.001, "Python number": 0.1, "number as tensor": 0.001}
TOLD = {
    "Python number": {
        NOTE: {"steps": 20, "traces": 20, "because": ["number: int 0, then int 1"]}
    },
    "number as tensor": {NOTE: {"steps": 900, "traces": 1, "because": []}},
}


def test_the_dearest_retracing_is_named_with_its_count_and_its_remedy():
    found = verdict(measured(NUMBERS, notes=TOLD))
    assert found.headline.startswith(
        '"Python number" costs most: 80 traces in 80 steps, and a step takes 100 times '
        "(95 % interval 9"
    )
    assert found.headline.endswith(', 4 rounds) as long as with "tf.function".')
    assert found.next == (
        "Change this line: `step(features, labels, tf.constant(number))`."
    )
    assert found.winner == ""


def test_retracing_of_which_noise_hides_the_price_is_not_called_free():
    found = verdict(measured(NUMBERS, notes=TOLD, noise=3.0, rounds=2))
    assert found.headline.endswith('; of "Python number" it is too noisy to say.')
    assert found.next.startswith("End what else runs on this machine")


def test_what_costs_as_much_as_the_dearest_is_named_beside_it():
    made = {NOTE: {"steps": 20, "traces": 20, "because": ["x"]}}
    run = measured(
        NUMBERS | {"made anew": 0.0998, "changing shapes": 0.02},
        notes=TOLD | {"made anew": made, "changing shapes": made},
    )
    assert verdict(run).headline.startswith(
        '"Python number" costs most, and is not shown to differ from "made anew": '
    )


def test_every_trace_is_told_with_the_argument_that_caused_it():
    said = because(measured(NUMBERS, notes=TOLD))
    assert (
        '"Python number" was traced 80 times in 80 steps in 4 trials '
        "(number: int 0, then int 1)." in said
    )
    assert '"number as tensor" was traced 4 times in 3,600 steps in 4 trials.' in said
    assert '"number as tensor" runs at 100' in said


def test_retracing_that_costs_nothing_in_the_steady_state_is_not_blamed():
    notes = {"ragged last batch": {NOTE: {"steps": 99, "traces": 2, "because": ["x"]}}}
    run = measured({"tf.function": 0.001, "ragged last batch": 0.001}, notes=notes)
    assert verdict(run).headline.startswith("No way of having a step traced again")
    assert "traced 8 times in 396 steps" in because(run)


# What a run of observers means.

WATCHED = {"fit unwatched": 0.001, "metrics": 0.001, "validation": 0.0015}


def test_the_dearest_observer_is_named_with_its_price_as_time():
    found = verdict(measured(WATCHED))
    assert found.headline.startswith(
        '"validation" is the most expensive observer here: with it the same training '
        "takes 1.50 times as long (95 % interval 1.4"
    )
    assert "validation_freq=5" in found.next
    assert "Only leaving it out was timed" in found.next


def test_an_observer_that_can_be_left_out_is_left_out_as_it_was_timed():
    found = verdict(measured({"fit unwatched": 0.001, "progress bar": 0.0015}))
    assert found.next == "Change this line: `model.fit(..., verbose=0)`."


def test_prices_stand_with_the_epoch_that_they_hold_for():
    said = because(measured(WATCHED), epoch=50)
    assert 'With "metrics" the same training takes 1.00 times as long' in said
    assert "no difference shown" in said
    assert "An epoch had 50 steps here" in said
    assert "Validation looked at 10 batches" in said


def test_observers_that_cost_nothing_are_left_alone():
    found = verdict(measured({"fit unwatched": 0.001, "metrics": 0.001}))
    assert found.headline == "No observer is shown to slow this training down."
    assert found.next.startswith("Keep those that you read")


def test_an_observer_whose_price_is_unknown_is_not_called_free():
    found = verdict(measured({"fit unwatched": 0.001, "metrics": 0.00115}, noise=0.3))
    assert 'of "metrics" it is too noisy to say' in found.headline
    assert "Keep those" not in found.next


def test_nothing_is_claimed_before_anything_is_measured():
    asked = experiment("execution-mode")
    arms = tuple(asked.variants().values())
    assert (
        asked.verdict(Measurement(arms=arms)).headline == "Nothing could be compared."
    )


# A real run.


@pytest.mark.measures
def test_a_run_times_a_loop_and_fit_and_keeps_their_traces(tmp_path):
    found = run("execution-mode", arms="fit", budget=4, folder=tmp_path)
    timed = {timing.variant for timing in found.timings}
    assert timed == {"eager loop", "fit"}
    told = next(t.notes for t in found.trials if t.variant == "fit")
    assert told[NOTE]["traces"] == 1
    assert told[NOTE]["steps"] > 1
    assert found.baseline == "eager loop"
