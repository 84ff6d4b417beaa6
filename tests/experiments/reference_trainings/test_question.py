from dataclasses import replace

import pytest

import perfkit
from perfkit.experiments import experiment
from perfkit.experiments.reference_trainings import trainings, trainings_of, work
from perfkit.experiments.shared.precision import Hardware
from perfkit.experiments.shared.reference_jobs import (
    REFERENCES,
    RESIDENTS,
    not_eligible,
)
from perfkit.findings.training import PARTS
from perfkit.measure.measurement import Variant
from tests.experiments.references import ALONE, CALL, FED, measured
from tests.findings import made

NAME = "reference-trainings"
WHY = {
    "tiny dense": "",
    "wide dense": "Not tried here: it may not.",
    "small CNN from JPEG": "The run ended before it.",
    "small CNN from disk": "It raised ValueError: no.",
}


def named(trainings, name):
    return next(t for t in trainings if t.name == name and t.dtype == "float32")


def seconds(training):
    return {part.name: part.seconds for part in training.parts}


def test_nothing_of_a_job_is_chosen_by_the_machine_and_each_has_its_name():
    assert experiment(NAME).parameters == {}
    assert all(type(v) in (str, int) for one in REFERENCES for v in one.job.values())
    assert {one.job["recipe"] for one in REFERENCES} == {1}
    names = [one.variant for one in REFERENCES]
    assert len({*names, *RESIDENTS}) == len(names) + len(RESIDENTS)


MIXED = ("mixed_float16", "mixed_bfloat16")


@pytest.mark.parametrize(
    ("hardware", "tried"),
    [
        (Hardware(instructions=("avx2",)), {"float32"}),
        (Hardware(instructions=("amx_bf16",)), {"float32", "mixed_bfloat16"}),
        (Hardware(gpu="T4", capability=(7, 5)), {"float32", "mixed_float16"}),
        (Hardware(gpu="A100", capability=(8, 0)), {"float32", *MIXED}),
    ],
)
def test_a_mixed_precision_is_tried_where_the_hardware_has_it(hardware, tried):
    eligible = {one.dtype for one in REFERENCES if not not_eligible(one, hardware)}
    assert eligible == tried


@pytest.mark.parametrize("one", [r for r in REFERENCES if r.dtype == "float32"])
def test_parts_that_add_up_are_found_and_nothing_is_left(one):
    found = named(trainings(measured()), one.name)
    expected = {"input": FED[one.feed], "dispatch": CALL, "compute": ALONE}
    expected |= {"transfer": 0.0, "unexplained": 0.0}
    assert found.seconds == pytest.approx(ALONE + CALL + FED[one.feed])
    assert seconds(found) == pytest.approx(expected, abs=2e-6)
    assert found.rate == pytest.approx(one.batch / found.seconds)


def test_parts_add_up_to_the_step_whatever_the_noise_and_however_few_the_changes():
    run = measured()
    few = tuple(
        replace(t, pauses={label: spent[:1] for label, spent in t.pauses.items()})
        for t in run.trials
    )
    both = (trainings(one) for one in (replace(run, trials=few), run))
    for one, other in zip(*both, strict=True):
        assert seconds(one) == pytest.approx(seconds(other))
    for training in trainings(measured(noise=0.1, extra=0.003)):
        if training.seconds:
            assert sum(seconds(training).values()) == pytest.approx(training.seconds)


@pytest.mark.parametrize(
    ("run", "part", "took"),
    [
        ({"extra": 0.003}, "unexplained", 0.003),
        ({"copied": 0.004}, "transfer", 0.004),
        ({"copied": 0.004}, "input", FED["JPEG"]),
    ],
)
def test_a_copy_is_told_apart_and_what_no_change_saves_is_unexplained(run, part, took):
    found = named(trainings(measured(**run)), "small CNN from JPEG")
    assert seconds(found)[part] == pytest.approx(took, abs=2e-6)


def test_a_processor_copies_nothing_and_says_why():
    part = named(trainings(measured()), "tiny dense").part("transfer")
    assert (part.seconds, part.low, part.high) == (0.0, 0.0, 0.0)
    assert "processor" in part.how


def test_noise_widens_the_parts_and_leaves_the_truth_within():
    quiet = named(trainings(measured(noise=0.001)), "small CNN from JPEG")
    noisy = named(trainings(measured(noise=0.1)), "small CNN from JPEG")
    for name in ("input", "compute"):
        one, other = quiet.part(name), noisy.part(name)
        assert other.high - other.low > 2 * (one.high - one.low)
    share = FED["JPEG"] / (ALONE + CALL + FED["JPEG"]) * noisy.seconds
    assert noisy.part("input").low < share < noisy.part("input").high


@pytest.mark.parametrize("missing", [work.TOGETHER, work.ONE, work.ONE_TOGETHER])
def test_a_change_that_was_not_timed_is_said_and_leaves_the_rest_open(missing):
    found = named(trainings(measured(without=(missing,))), "wide dense")
    assert found.part("unexplained").seconds is None
    assert found.part("input").seconds is not None
    assert all(part.how for part in found.parts)
    assert tuple(part.name for part in found.parts) == PARTS


def test_without_a_resident_control_or_sound_notes_the_parts_alone_are_open():
    found = named(trainings(measured(names=["tiny dense"])), "tiny dense")
    assert found.seconds
    assert found.part("input").seconds is None
    run = measured()
    spoilt = tuple(
        replace(t, notes={work.STEPS: "8", work.TRAINED: 3}) for t in run.trials
    )
    found = named(trainings(replace(run, trials=spoilt)), "tiny dense")
    assert found.seconds
    assert found.part("compute").seconds is None
    assert found.weights is None


def test_what_was_not_measured_says_why():
    run = measured(names=["tiny dense"])
    variants = [a for a in run.variants if a.name != "wide dense"]
    variants.append(Variant("wide dense", iter, unavailable="it may not"))
    failed = made.failed("small CNN from disk", "crashed", "raised ValueError: no")
    run = replace(run, variants=tuple(variants), trials=(*run.trials, failed))
    trained = trainings(run)
    assert {name: named(trained, name).missing for name in WHY} == WHY


def test_the_verdict_names_what_a_training_mostly_is():
    said = experiment(NAME).verdict(measured(noise=0.01))
    mostly = "Mostly input: small CNN from JPEG; mostly compute: 4 trainings."
    assert said.headline == mostly
    assert said.much.startswith("A step of small CNN from JPEG takes 4")
    assert said.much.endswith(" of it input.")
    assert any(fact.startswith("small CNN from JPEG: 4") for fact in said.because)
    assert "data-pipeline" in said.next


@pytest.mark.parametrize("run", [measured(rounds=1), measured(rounds=3, noise=0.8)])
def test_one_round_and_noise_claim_nothing(run):
    found = experiment(NAME).verdict(run)
    assert "ostly input" not in found.headline
    assert found.sure == "not known yet"


def test_a_finding_gives_the_trainings_that_the_run_gave():
    run = measured(noise=0.02)
    gone = {"wide dense, mixed_float16": "it may not"}
    finding = made.of_run(run, experiment=NAME, unavailable=gone)
    again, before = trainings_of(finding), trainings(run)
    assert named(again, "tiny dense") == named(before, "tiny dense")
    assert any(t.missing == "Not tried here: it may not." for t in again)


def many_in_a_call_and_one_by_one(_):
    reference = REFERENCES[0]
    arrays = work.MODELS[reference.model].batch(reference.batch, work.SEED)
    batch = work._placed(*arrays)
    learnt = []
    for calls in (1, 6):
        step, steps, _ = work._work(reference)
        step(*batch)
        for _ in range(6 // calls):
            steps(calls, *batch)
        learnt.append(float(step(*batch)))
    return learnt


def test_several_steps_in_a_call_learn_what_single_steps_learn():
    single, together = perfkit.fresh(many_in_a_call_and_one_by_one)
    assert single == pytest.approx(together, rel=1e-5)


def yielded(_):
    told = []
    for kind, name in ((work.fed, "tiny dense"), (work.resident, "tiny dense")):
        made_ready = kind(next(one for one in REFERENCES if one.name == name))
        told.append([next(made_ready) for _ in range(9)])
        made_ready.close()
    return [[(type(y).__name__, getattr(y, "label", "")) for y in ys] for ys in told]


def test_a_resident_training_ticks_and_changes_in_turn():
    fed, resident = perfkit.fresh(yielded)
    assert {kind for kind, _ in fed[2:]} == {"Tick"}
    labels = [label for kind, label in resident if kind == "Pause"]
    assert labels[1:] == [work.TOGETHER, work.ONE, work.ONE_TOGETHER]
