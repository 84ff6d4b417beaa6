import itertools
import math
import pickle
import random

import pytest

from perfkit.errors import BadParameterError
from perfkit.experiments import experiment
from perfkit.experiments.data_pipeline import DataPipeline, claims
from perfkit.experiments.data_pipeline.feeding import DROPPED, RESTARTED
from perfkit.experiments.data_pipeline.numbers import waiting
from perfkit.experiments.data_pipeline.ways import WAYS
from perfkit.experiments.shared import images as shared_images
from perfkit.findings.record import Finding, Verdict
from perfkit.machine.record import Machine
from perfkit.measure.measurement import TWIN, Arm, Measurement
from perfkit.measure.trial import Trial
from perfkit.running import run

IMAGES = {
    "count": 256,
    "found": 256,
    "bytes": 26_000_000,
    "bytes_each": 101_000,
    "width": 500,
    "height": 375,
    "decoded_bytes": 144_000_000,
    "skipped": 0,
    "skipped_because": {},
    "skipped_names": [],
}
PLAN = {
    "stages": [
        {"name": "list in memory", "share": 0.02, "parallelism": None},
        {"name": "map, parallel", "share": 0.93, "parallelism": 2},
        {"name": "prefetch", "share": 0.05, "parallelism": None},
    ]
}


# How much faster than usual the rounds are, in standard deviations; zero on average.
ROUNDS = (-1.2, 1.2, -0.4, 0.4)


def trial(variant, rate, round=1, *, wait=None, noise=0.01, **more):
    """Forty ticks of 50 ms, of which ``wait`` is the share that waits for data."""
    draw = random.Random(f"{variant} {noise}")
    usual = rate * math.exp(noise * draw.sample(ROUNDS, 4)[round % 4])
    lengths = [0.05 * draw.uniform(0.98, 1.02) for _ in range(40)]
    stamps = list(itertools.accumulate(lengths, initial=0.3))
    done = [int(usual * (at - stamps[0])) for at in stamps]
    counts = [0, *(after - before for before, after in itertools.pairwise(done))]
    waits = () if wait is None else tuple(wait * length for length in lengths)
    return Trial(
        variant=variant,
        round=round,
        outcome="completed",
        setup_s=0.3,
        ticks=tuple(zip(stamps, counts, strict=True)),
        parts={"input": waits} if waits else {},
        **more,
    )


def measured(
    rates, *, rounds=4, noise=0.01, waits=None, notes=None, told=None, extra=(), **more
):
    """A run in which each variant has the rate that is asked for.

    Args:
        rates: Examples per second by variant.
        rounds: How many trials each.
        noise: By how much trials differ from round to round.
        waits: The share of each variant's steps that waits for data.
        notes: What preparing told.
        told: What each trial told.
        extra: Trials besides.
        more: What each trial has besides.
    """
    names = rates | {TWIN: rates["naive map"]}
    trials = [
        trial(
            name,
            rate,
            round,
            wait=(waits or {}).get(name),
            noise=noise,
            notes=told or {},
            **more,
        )
        for round in range(1, rounds + 1)
        for name, rate in names.items()
    ]
    return Measurement(
        arms=tuple(Arm(name, list, against="naive map") for name in rates),
        trials=(*trials, *extra),
        notes={"images": IMAGES, "memory": 16_000_000_000} | (notes or {}),
        baseline="naive map",
    )


def verdict(run, **parameters):
    return DataPipeline(**parameters).verdict(run)


def because(run, **parameters):
    return " ".join(verdict(run, **parameters).because)


# What is asked.


def test_the_default_run_has_six_ways_to_train_and_the_decode_limit():
    arms = DataPipeline().variants()
    assert list(arms) == [
        "naive map",
        "parallel map",
        "prefetch",
        "cache",
        "crop while decoding",
        "synthetic",
        "decode limit",
    ]
    assert all(arm.changes for arm in arms.values())


def test_a_way_stands_against_the_one_it_changes_if_that_is_in_the_run():
    arms = DataPipeline(arms="parallel map,prefetch,cache").variants()
    assert list(arms) == ["naive map", "parallel map", "prefetch", "cache"]
    against = {name: arm.against for name, arm in arms.items()}
    assert against == {
        "naive map": "naive map",
        "parallel map": "naive map",
        "prefetch": "parallel map",
        "cache": "prefetch",
    }
    assert not any("On top of" in arm.changes for arm in arms.values())


def test_a_way_that_changes_more_than_one_thing_says_so():
    alone = DataPipeline(arms="cache").variants()["cache"]
    assert alone.against == "naive map"
    assert alone.changes.endswith('On top of "prefetch".')


def test_feeding_both_measures_every_way_twice():
    arms = DataPipeline(
        arms="prefetch,synthetic,decode limit", feeding="both"
    ).variants()
    assert list(arms) == [
        "naive map",
        "prefetch",
        "naive map, alone",
        "prefetch, alone",
        "synthetic",
        "decode limit",
    ]
    assert arms["prefetch, alone"].against == "naive map, alone"


def test_alone_there_is_no_training_to_have_a_ceiling():
    arms = DataPipeline(feeding="alone").variants()
    assert "synthetic" not in arms
    assert "naive map" in arms


@pytest.mark.parametrize("arms", ["all", "formats,threads", "numpy by element"])
def test_arms_travel_to_their_trials(arms):
    for arm in DataPipeline(arms=arms).variants().values():
        assert pickle.loads(pickle.dumps(arm)).name == arm.name


def test_an_unknown_arm_is_refused_with_the_known_ones():
    with pytest.raises(BadParameterError, match="arms is 'fastest'; choose from"):
        experiment("data-pipeline", arms="essential,fastest")


def test_a_square_larger_than_the_images_is_refused_before_they_are_made(tmp_path):
    with pytest.raises(
        BadParameterError, match="photographs are 375 px high; choose 37"
    ):
        DataPipeline(image_side=376)
    with pytest.raises(BadParameterError, match="cifar10 are 32 px high; choose 32 or"):
        DataPipeline(source="cifar10")
    DataPipeline(image_side=1024, images=str(tmp_path))


# What a run means.


def test_the_winner_is_named_with_its_gain_its_interval_and_its_line_of_code():
    found = verdict(measured({"naive map": 400, "prefetch": 800, "cache": 1200}))
    assert found.winner == "cache"
    assert found.headline.startswith(
        '"cache" feeds this training fastest here: 1,200 images/s, 3.00'
    )
    assert '"naive map" (95 % interval 2.9' in found.headline
    assert found.headline.endswith(", 4 rounds).")
    assert found.next == f"Change this line: `{WAYS['cache'].advice}`."


def test_ties_are_said_as_ties():
    found = verdict(measured({"naive map": 400, "prefetch": 800, "uint8": 801}))
    assert found.winner in ("prefetch", "uint8")
    assert 'here, and is not shown to differ from "' in found.headline
    assert '"prefetch"' in found.headline
    assert '"uint8"' in found.headline


def test_no_difference_is_said_as_such_and_nothing_is_won():
    found = verdict(measured({"naive map": 400, "prefetch": 402}))
    assert found.winner == ""
    assert found.headline.startswith('No way is shown to be faster than "naive map": ')
    assert "Keep the simplest way" in found.next


def test_noise_is_said_as_such_and_nothing_is_won():
    found = verdict(measured({"naive map": 400, "prefetch": 470}, noise=0.5, rounds=3))
    assert found.winner == ""
    assert found.headline.startswith("Too noisy to say whether any way is faster than")
    assert "End what else runs" in found.next


def test_the_baseline_may_be_the_fastest():
    found = verdict(measured({"naive map": 400, "numpy": 300}))
    assert found.headline == '"naive map" is the fastest way here: 400 images/s.'
    assert found.winner == ""


def test_a_baseline_that_beats_nobody_for_sure_is_not_called_the_fastest():
    found = verdict(measured({"naive map": 401, "numpy": 400}))
    assert found.headline == (
        'No way is shown to be faster than "naive map", which reaches 401 images/s.'
    )
    assert found.winner == ""


@pytest.mark.parametrize("loud", ["frozen cache", "synthetic", "decode limit", TWIN])
def test_what_is_no_way_to_feed_never_wins(loud):
    rates = {"naive map": 400, "prefetch": 800, loud: 9000}
    assert verdict(measured(rates)).winner == "prefetch"


def test_the_trap_is_named_as_a_trap():
    text = because(measured({"naive map": 400, "frozen cache": 9000}))
    assert '"frozen cache" (9,000 images/s) does not count: each image is' in text
    assert "every epoch sees the same" in text


def test_a_cache_that_cannot_hold_all_images_does_not_win():
    rates = {"naive map": 400, "prefetch": 800, "cache": 1200}
    many = measured(rates, notes={"images": IMAGES | {"found": 1_000_000}})
    assert verdict(many).winner == "prefetch"
    assert (
        '"cache" (1,200 images/s) does not count: all 1,000,000 images decoded take '
        "562 GB, and this machine has 16 GB."
    ) in because(many)


def test_what_tensorflow_rewrites_by_itself_is_told_and_never_advised():
    run = measured({"naive map": 600, "naive as written": 400})
    text = because(run)
    assert 'rewrites "naive map" by itself before it runs; with that' in text
    assert "switched off it reaches 67 % (6" in text
    faster = measured({"naive map": 400, "naive as written": 900})
    assert verdict(faster).winner == ""
    assert "own rewrites are switched off in it" in because(faster)


def test_the_wait_for_data_is_told_before_and_after():
    run = measured(
        {"naive map": 400, "prefetch": 800}, waits={"naive map": 0.62, "prefetch": 0.08}
    )
    assert (
        'Of a training step, the wait for data is 62 % with "naive map" and 8.0 % with '
        '"prefetch".'
    ) in because(run)


def test_the_share_of_the_wait_leaves_out_the_first_call_and_failed_trials():
    slow = trial("naive map", 400, wait=0.5)
    stamps = list(slow.ticks)
    # The first tick lasts ten seconds, all of them in the step.
    late = tuple((at + 10, n) for at, n in stamps[1:])
    first = Trial(
        variant="naive map",
        round=1,
        outcome="completed",
        ticks=(stamps[0], *late),
        parts={"input": (0.0, *slow.parts["input"][1:])},
    )
    crashed = Trial(
        variant="naive map", round=2, outcome="crashed", ticks=stamps, parts=slow.parts
    )
    run = Measurement(arms=(), trials=(first, crashed))
    assert waiting(run, "naive map") == pytest.approx(0.5, abs=0.001)
    assert waiting(run, "prefetch") is None


def test_a_short_wait_is_no_free_input_where_the_processor_computes_the_model():
    rates, waits = {"naive map": 400, "prefetch": 800}, {"prefetch": 0.02}
    said = "a short wait is no sign that the input is free"
    assert said in because(measured(rates, waits=waits, told={"where": CPU}))
    assert said not in because(measured(rates, waits=waits, told={"where": IDLE_GPU}))


@pytest.mark.parametrize(
    ("rates", "next"),
    [
        ({"prefetch": 400, "synthetic": 403}, "without any input this training gains"),
        ({"prefetch": 400, "synthetic": 600}, "Keep the simplest way"),
        ({"prefetch": 400}, "Keep the simplest way"),
        ({"prefetch": 800, "synthetic": 805}, "what takes the time is the step itself"),
        ({"prefetch": 750, "synthetic": 1000}, "the input still costs 25 %"),
    ],
)
def test_what_the_input_costs_is_said_by_the_rate_without_any(rates, next):
    quiet = dict.fromkeys(("naive map", *rates), 0.01)
    run = measured({"naive map": 400} | rates, waits=quiet)
    assert next in verdict(run).next


def test_what_is_left_in_the_input_is_not_told_where_it_is_unknown():
    found = verdict(measured({"naive map": 400, "prefetch": 800}))
    assert "After that" not in found.next


def test_the_ceiling_is_told():
    run = measured({"naive map": 400, "prefetch": 800, "synthetic": 1000})
    text = because(run)
    assert "one batch that stays in memory reaches 1,000 images/s" in text
    assert '"prefetch" reaches 80 % (7' in text


def test_the_decode_limit_is_held_against_the_pipeline_alone():
    run = measured(
        {
            "naive map": 400,
            "prefetch": 800,
            "naive map, alone": 500,
            "prefetch, alone": 900,
            "crop while decoding, alone": 1200,
            "cache, alone": 5000,
            "decode limit": 1000,
        }
    )
    text = because(run, feeding="both")
    assert "Cores that decode whole images and do nothing else reach 1,000" in text
    assert '"crop while decoding, alone", which decodes only the square it' in text
    assert "needs, reaches 120 % (" in text
    assert '"prefetch, alone", which decodes them all, reaches 90 % (' in text
    assert "cache, alone" not in text


def test_alone_the_limit_is_held_against_the_ways_themselves():
    run = measured({"naive map": 500, "prefetch": 900, "decode limit": 1000})
    found = verdict(run, feeding="alone")
    assert '"prefetch" delivers images fastest here: 900 images/s' in found.headline
    text = " ".join(found.because)
    assert '"prefetch", which decodes them all, reaches 90 % (' in text
    assert "training" not in text


def test_in_training_the_limit_is_told_for_what_it_is():
    rates = {"naive map": 400, "prefetch": 800, "cache": 3000, "decode limit": 1000}
    text = because(measured(rates, waits={"prefetch": 0.5}))
    assert '1,000 images/s; "prefetch", which decodes them all, trains on 80 %' in text
    assert '"cache", which' not in text


def test_the_end_of_an_epoch_is_told_apart_and_blamed_on_no_rate():
    pauses = {DROPPED: (0.3,), RESTARTED: (0.1,)}
    text = because(measured({"naive map": 400, "prefetch": 800}, pauses=pauses))
    assert (
        'An end of epoch costs "prefetch" 400 ms, which is in no rate here: 300 ms to '
        "drop the iterator, 100 ms until the next one's first batch is done."
    ) in text
    assert "with `options.autotune.enabled = False` it takes no time" in text


def test_an_end_of_epoch_that_costs_nothing_is_not_worth_a_sentence():
    pauses = {DROPPED: (0.001,), RESTARTED: (0.03,)}
    run = measured({"naive map": 400, "prefetch": 800}, pauses=pauses)
    assert "epoch" not in because(run)


def test_the_busiest_stage_is_told():
    rates = {"naive map": 400, "prefetch": 800}
    assert (
        'By TensorFlow\'s own clock 93 % of the work of "prefetch" is in its stage '
        '"map, parallel", 2 at a time.'
    ) in because(measured(rates, told={"plan": PLAN}))
    missing = {"plan": {"missing": "AUTOTUNE is off."}}
    assert "own clock" not in because(measured(rates, told=missing))


def test_images_left_out_are_counted_and_named():
    images = IMAGES | {
        "skipped": 4,
        "skipped_because": {"empty": 1, "broken or cut short": 3},
        "skipped_names": ["a.jpg", "b.jpg", "c.jpg", "d.jpg"],
    }
    text = because(measured({"naive map": 400}, notes={"images": images}))
    assert (
        "4 images were left out: 1 empty, 3 broken or cut short "
        "(a.jpg, b.jpg, c.jpg, …)."
    ) in text


def test_what_was_fed_is_told():
    assert (
        "Fed were 256 images of about 500 by 375 px, 101 KB each. They had been read "
        "before, so they came from the system's memory and not from a disk."
    ) in because(measured({"naive map": 400}))


def test_what_the_winner_takes_of_memory_or_disk_is_told():
    cache = because(measured({"naive map": 400, "cache": 800}))
    assert '"cache" keeps 144 MB in memory.' in cache
    raw = because(measured({"naive map": 400, "tfrecord raw": 800}))
    assert (
        '"tfrecord raw" reads 144 MB from its file, where the images themselves take '
        "26 MB."
    ) in raw


def test_work_left_to_a_model_that_was_not_run_is_told():
    run = measured({"naive map": 400, "uint8": 800})
    text = because(run, feeding="alone")
    assert '"uint8" leaves scaling and brightening to the model, which was not' in text
    trained = measured({"naive map": 400, "uint8": 800}, waits={"uint8": 0.1})
    assert "leaves" not in because(trained)


def test_how_trials_failed_is_told():
    failed = Trial(
        variant="cache", round=1, outcome="out-of-memory", message="ran out of memory"
    )
    text = because(measured({"naive map": 400, "prefetch": 800}, extra=(failed,)))
    assert '"cache" ran out of memory.' in text


def test_nothing_timed_is_no_verdict():
    failed = Trial(variant="naive map", round=1, outcome="crashed", message="raised X")
    run = Measurement(
        arms=(Arm("naive map", list),), trials=(failed,), baseline="naive map"
    )
    found = verdict(run)
    assert found.headline == "No way of feeding images could be timed."
    assert found.because == ('"naive map" raised X.',)


def test_a_verdict_needs_no_notes():
    run = measured({"naive map": 400, "cache": 800, "synthetic": 900})
    bare = Measurement(arms=run.arms, trials=run.trials, baseline="naive map")
    assert verdict(bare).winner == "cache"


# Claims in circulation.


def finding(run):
    return Finding(
        experiment="data-pipeline",
        question="?",
        parameters={},
        recorded="2025-01-01T00:00:00+00:00",
        perfkit="0",
        machine=Machine(
            cpu="x", cores=2, cores_granted=2, memory=1, system="Linux", python="3.11"
        ),
        trials=run.trials,
        timings=run.timings,
        comparisons=run.comparisons,
        noise_floor=run.noise_floor,
        verdict=Verdict(headline=""),
        notes=run.notes,
        budget_s=60.0,
    )


def answers(rates, where=None, **more):
    run = measured(rates, told={"where": where} if where else {}, **more)
    arms = tuple(
        Arm(name, list, against=WAYS[name].against if name in WAYS else "naive map")
        for name in rates
    )
    run = Measurement(
        arms=arms, trials=run.trials, notes=run.notes, baseline="naive map"
    )
    return {claim.says: claim for claim in claims(finding(run))}


CPU = {"batch": "CPU:0", "gpus": 0, "gpu_bytes": 0}
IDLE_GPU = {"batch": "CPU:0", "gpus": 1, "gpu_bytes": 0}
BUSY_GPU = {"batch": "GPU:0", "gpus": 1, "gpu_bytes": 4_000_000}


@pytest.mark.parametrize(
    ("where", "answer", "reason"),
    [
        (
            CPU,
            "cannot be tested here",
            "No GPU was there, and the same pipeline ran: it needs none.",
        ),
        (IDLE_GPU, "not so", "Making a batch took 0 B of the GPU's memory."),
        (BUSY_GPU, "so here", "Making a batch took 4 MB of the GPU's memory."),
    ],
)
def test_where_map_runs_is_answered_by_where_its_batches_lie(where, answer, reason):
    claim = answers({"naive map": 400, "parallel map": 700}, where)[
        "Augmentation in map runs on the GPU."
    ]
    assert claim.answer == answer
    assert reason in claim.because
    assert any('"parallel map" runs at 1.7' in fact for fact in claim.because)


def test_vectorised_numpy_is_answered_by_device_and_timing():
    rates = {"naive map": 400, "prefetch": 800, "numpy": 700, "numpy by element": 70}
    claim = answers(rates, IDLE_GPU)["Vectorised preprocessing uses the GPU."]
    assert claim.answer == "not so"
    assert any('"numpy by element" runs at 0.10' in fact for fact in claim.because)


@pytest.mark.parametrize(
    ("jpeg", "raw", "answer"),
    [(800, 790, "not so here"), (1000, 1600, "so here"), (800, 1600, "mixed")],
)
def test_whether_records_are_faster_is_answered_by_the_timing(jpeg, raw, answer):
    rates = {"naive map": 400, "prefetch": 800, "tfrecord jpeg": jpeg}
    claim = answers(rates | {"tfrecord raw": raw})[
        "TFRecord is faster than a folder of files."
    ]
    assert claim.answer == answer
    assert len(claim.because) == 3


def test_records_that_the_noise_hides_are_no_answer():
    says = "TFRecord is faster than a folder of files."
    rates = {"naive map": 400, "prefetch": 800, "tfrecord jpeg": 860}
    assert answers(rates, noise=0.3)[says].answer == "too noisy to say"


def test_a_claim_whose_arms_were_not_run_says_what_to_run():
    found = answers({"naive map": 400})
    assert {claim.answer for claim in found.values()} == {"not measured"}
    for claim in found.values():
        arms = claim.because[0].split("'")[1]
        DataPipeline(arms=arms)


# A whole run.


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A short run on a folder of one's own, of which one image is broken."""
    folder = tmp_path_factory.mktemp("own")
    for seed in range(6):
        path = folder / f"class-{seed % 2}" / f"{seed}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(shared_images.jpeg(seed, seed % 2))
    (folder / "class-1" / "broken.jpg").write_bytes(path.read_bytes()[:9000])
    asked = DataPipeline(
        images=str(folder),
        image_side=64,
        batch=4,
        arms="prefetch,cache,tfrecord shards,synthetic,decode limit",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return run(asked, budget=12, folder=tmp_path_factory.mktemp("findings"))


def test_every_arm_of_a_run_completes(small_run):
    ended = [(trial.variant, trial.outcome) for trial in small_run.trials]
    # A busy machine may leave no time for the end of the last round.
    assert {outcome for _, outcome in ended} <= {"completed", "stopped"}
    assert {variant for variant, outcome in ended if outcome == "completed"} == {
        "naive map",
        "prefetch",
        "cache",
        "tfrecord shards",
        "synthetic",
        "decode limit",
        TWIN,
    }


def test_a_run_on_ones_own_images_tells_what_was_left_out(small_run):
    images = small_run.notes["images"]
    assert (images["count"], images["found"], images["classes"]) == (6, 7, 2)
    assert images["skipped_names"] == ["class-1/broken.jpg"]
    assert any(
        "1 image was left out: 1 broken or cut short" in fact
        for fact in small_run.verdict.because
    )


def test_an_end_of_epoch_is_measured_in_a_run(small_run):
    # One that falls between two turns is lost; not all of them do.
    for label in (DROPPED, RESTARTED):
        assert any(trial.pauses.get(label) for trial in small_run.trials)


def test_a_trial_in_a_run_tells_its_waits_and_its_plan(small_run):
    trial = next(trial for trial in small_run.trials if trial.variant == "prefetch")
    lengths = [b - a for (a, _), (b, n) in itertools.pairwise(trial.ticks) if n]
    waits = trial.parts["input"]
    assert len(waits) == len(lengths)
    assert all(0 <= wait <= length for wait, length in zip(waits, lengths, strict=True))
    assert sum(waits) > 0
    assert trial.notes["plan"]["stages"]
    assert trial.notes["where"]["batch"] == "CPU:0"
