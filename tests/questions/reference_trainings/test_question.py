from dataclasses import replace

import pytest

import perfkit
from perfkit.findings.standing import measurement
from perfkit.findings.training import PARTS
from perfkit.questions import experiment
from perfkit.questions import reference_trainings as work
from perfkit.questions.reference_trainings import REFERENCES, trainings
from tests.findings import made
from tests.questions.references import ALONE, CALL, FED, measured

NAME = "reference-trainings"


def training(run, name, refused=None):
    """A reference training in float32, and the parts of its step by name."""
    every = trainings(run, refused)
    (one,) = (t for t in every if t.name == name and t.dtype == "float32")
    return one, {part.name: part for part in one.parts}


def seconds(parts):
    return {part.name: part.seconds for part in parts}


@pytest.mark.parametrize("one", [r for r in REFERENCES if r.dtype == "float32"])
def test_parts_that_add_up_are_found_and_nothing_is_left(one):
    timed, parts = training(measured(), one.name)
    expected = {"input": FED[one.feed], "dispatch": CALL, "compute": ALONE}
    expected |= {"transfer": 0.0, "unexplained": 0.0}
    assert timed.seconds == pytest.approx(ALONE + CALL + FED[one.feed])
    assert seconds(timed.parts) == pytest.approx(expected, abs=2e-6)
    assert timed.rate == pytest.approx(one.batch / timed.seconds)
    # A processor copies nothing and says why.
    assert parts["transfer"].low == parts["transfer"].high == 0.0
    assert "processor" in parts["transfer"].how


def test_parts_add_up_to_the_step_whatever_the_noise_and_however_few_the_changes():
    run = measured()
    few = tuple(
        replace(t, pauses={label: spent[:1] for label, spent in t.pauses.items()})
        for t in run.trials
    )
    both = (trainings(one) for one in (replace(run, trials=few), run))
    for one, other in zip(*both, strict=True):
        assert seconds(one.parts) == pytest.approx(seconds(other.parts))
    for one in trainings(measured(noise=0.1, extra=0.003)):
        if one.seconds:
            assert sum(seconds(one.parts).values()) == pytest.approx(one.seconds)


@pytest.mark.parametrize(
    ("run", "part", "took"),
    [
        ({"extra": 0.003}, "unexplained", 0.003),
        ({"copied": 0.004}, "transfer", 0.004),
        ({"copied": 0.004}, "input", FED["JPEG"]),
    ],
)
def test_a_copy_is_told_apart_and_what_no_change_saves_is_unexplained(run, part, took):
    _, parts = training(measured(**run), "small CNN from JPEG")
    assert parts[part].seconds == pytest.approx(took, abs=2e-6)


def test_noise_widens_the_parts_and_leaves_the_truth_within():
    _, quiet = training(measured(noise=0.001), "small CNN from JPEG")
    timed, noisy = training(measured(noise=0.1), "small CNN from JPEG")
    for name in ("input", "compute"):
        wide, narrow = (p[name].high - p[name].low for p in (noisy, quiet))
        assert wide > 2 * narrow
    share = FED["JPEG"] / (ALONE + CALL + FED["JPEG"]) * timed.seconds
    assert noisy["input"].low < share < noisy["input"].high


@pytest.mark.parametrize("missing", [work.TOGETHER, work.ONE])
def test_a_change_that_was_not_timed_is_said_and_leaves_the_rest_open(missing):
    _, parts = training(measured(without=(missing,)), "wide dense")
    assert parts["unexplained"].seconds is None
    assert parts["input"].seconds is not None
    assert all(part.how for part in parts.values())
    assert tuple(parts) == PARTS


def test_without_a_resident_control_or_sound_notes_the_parts_alone_are_open():
    timed, parts = training(measured(names=["tiny dense"]), "tiny dense")
    assert timed.seconds
    assert parts["input"].seconds is None
    run = measured()
    spoilt = tuple(
        replace(t, notes={work.STEPS: "8", work.TRAINED: 3}) for t in run.trials
    )
    timed, parts = training(replace(run, trials=spoilt), "tiny dense")
    assert timed.seconds
    assert parts["compute"].seconds is None
    assert timed.weights is None


def test_what_was_not_measured_says_why():
    run = measured(names=["tiny dense"])
    failed = made.failed("small CNN from disk", "crashed", "raised ValueError: no")
    run = replace(run, trials=(*run.trials, failed))
    for name, why in (
        ("tiny dense", ""),
        ("wide dense", "It may not."),
        ("small CNN from JPEG", "The run ended too early."),
        ("small CNN from disk", "It raised ValueError: no."),
    ):
        assert training(run, name, {"wide dense": "it may not"})[0].missing == why


def test_a_finding_gives_the_trainings_that_the_run_gave():
    run = measured(noise=0.01)
    again = measurement(made.of_run(run, experiment=NAME))
    assert training(again, "tiny dense") == training(run, "tiny dense")
    facts = {fact.label: fact for fact in experiment(NAME).verdict(run).facts}
    assert facts["small CNN from JPEG: a step"].value.startswith("4")
    assert " ms to " in facts["small CNN from JPEG: input"].interval


def many_in_a_call_and_one_by_one(_):
    reference = REFERENCES[0]
    batch = work.placed(*work.MODELS[reference.model].batch(reference.batch, work.SEED))
    learnt = []
    for calls in (1, 6):
        step, steps, _ = work.build(reference)
        step(*batch)
        for _ in range(6 // calls):
            steps(calls, *batch)
        learnt.append(float(step(*batch)))
    events = []
    for work_of in (work.fed, work.resident):
        trial = work_of(reference)
        events.append([next(trial) for _ in range(9)])
        trial.close()
    return learnt, [
        [(type(y).__name__, getattr(y, "label", "")) for y in ys] for ys in events
    ]


def test_steps_in_a_call_learn_as_single_ones_and_a_resident_training_takes_turns():
    (single, together), (fed, resident) = perfkit.fresh(many_in_a_call_and_one_by_one)
    assert single == pytest.approx(together, rel=1e-5)
    assert {kind for kind, _ in fed[2:]} == {"Tick"}
    labels = [label for kind, label in resident if kind == "Pause"]
    assert labels[1:] == [work.TOGETHER, work.ONE, work.ONE_TOGETHER]
