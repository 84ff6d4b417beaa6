import itertools
from unittest.mock import create_autospec

import keras
import pytest

from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.tick import Tick
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.questions import experiment, result_of
from perfkit.questions.batch_size import BatchSize, numbers
from perfkit.questions.runs import run
from perfkit.questions.shared.models import MODELS
from tests.questions import batches
from tests.questions.batches import by_cost, learnt, measured, name, tried
from tests.questions.races import sayings

MB = 10**6
# From 64 on the rate is 10,000 examples per second; below, a step costs 6.4 ms.
LEVEL = {size: max(size, 64) / 10_000 for size in (4, 16, 64, 256, 1024)}
SEARCH = (
    tried("fits 4,096?", batch=4096, memory={"resident": 90 * MB, "data": 190 * MB}),
    tried("fits 4,352?", "out-of-memory", "raised MemoryError.", batch=4352),
)
verdict, _ = sayings("batch-size")


def test_the_default_run_trains_at_six_sizes_the_smallest_being_the_baseline():
    asked = BatchSize()
    variants = asked.make_variants()
    assert list(variants) == [name(size) for size in asked.batches]
    assert (len(variants), asked.batches[0], asked.batches[-1]) == (6, 4, 4096)
    assert {one.against for one in variants.values()} == {asked.baseline} == {"batch 4"}
    evenly = BatchSize(smallest=1, largest=4096, sizes=5).batches
    assert evenly == (1, 4, 64, 1024, 4096)
    with pytest.raises(BadParameterError, match="give a largest batch above the"):
        BatchSize(smallest=64, largest=64)


@pytest.mark.parametrize("smallest", [1, 7, 64])
@pytest.mark.parametrize("largest", [100, 65_536])
@pytest.mark.parametrize("sizes", [2, 3, 12])
def test_sizes_are_powers_of_two_between_the_given(smallest, largest, sizes):
    made = BatchSize(smallest=smallest, largest=largest, sizes=sizes).batches
    assert (made[0], made[-1]) == (smallest, largest)
    assert list(made) == sorted(set(made))
    assert 2 <= len(made) <= sizes
    assert all(size & (size - 1) == 0 for size in made[1:-1])


def test_the_search_begins_at_the_largest_size_and_ends_within_the_gpus_memory():
    first = next(BatchSize(memory=256).tries(measured(LEVEL)))
    assert (first.name, first.memory) == ("fits 4,096?", 256 * MB)
    gpu = measured(LEVEL, tried=SEARCH, notes={"gpus": 1})
    assert next(BatchSize().tries(gpu)).memory is None
    found = verdict(gpu)
    room = "the GPU's memory"
    assert found.warnings[0].endswith(f"4,096 fit into {room}, and 4,352 do not.")
    assert "perfkit" not in " ".join((*found.warnings, *map(str, found.facts)))


def test_after_the_search_come_the_usual_loop_and_real_trainings():
    asking = BatchSize(largest=1024, sizes=5).tries(measured(LEVEL))
    trials = batches.driven(asking, lambda wanted: tried(wanted.name, "out-of-memory"))
    rest = [t.variant for t in trials if not t.variant.startswith("fits")]
    learning = ["learning by 4", "learning by 64", "learning by 1,024"]
    assert rest == ["the usual loop", "the usual loop, backwards", *learning]


@pytest.mark.parametrize("kind", ["batch-size", "mixed-precision"])
def test_what_is_timed_is_fit_as_compile_leaves_it(monkeypatch, kind):
    fit = create_autospec(keras.Model.fit, side_effect=keras.Model.fit)
    monkeypatch.setattr(keras.Model, "fit", fit)
    told = experiment(kind, model="tiny-dense").make_variants()
    steps = next(iter(told.values())).work()
    kept = list(itertools.islice((i for i in steps if isinstance(i, Tick)), 2))
    steps.close()
    network = MODELS["tiny-dense"].build()
    network.compile("adam", "mse")
    assert all(tick.examples for tick in kept)
    (fitted, *_), _ = fit.call_args
    assert (fitted.jit_compile, fitted.steps_per_execution) == (network.jit_compile, 1)


def test_the_smallest_batch_that_is_as_fast_as_any_is_advised():
    found = verdict(measured(LEVEL, tried=SEARCH))
    assert found.headline == "Train with `batch_size=64`: larger is not faster."
    assert "16 times as fast as with 4: 9,990 instead" in found.much
    assert (found.sure, found.interval[:5]) == ("sure", "16 to")
    (edit,) = found.edits
    assert edit.old == "model.fit(x, y, batch_size=4)"
    assert edit.new == "model.fit(x, y, batch_size=64)"
    room = "perfkit's limit of 256 MB"
    assert found.warnings[0] == f"Batches of 4,096 fit into {room}, and 4,352 do not."
    assert "learns differently" in found.warnings[1]
    assert (found.winner, found.next) == ("", ""), "three sizes are equally fast"


def test_a_rate_that_still_rises_asks_for_more_and_a_level_one_for_what_learns_best():
    found = verdict(measured(by_cost(1.0, 1e-6)))
    assert found.headline.startswith("Train with `batch_size=1024`: the rate still")
    assert "--largest 4096" in found.next
    assert found.winner == "batch 1,024"
    found = verdict(measured(by_cost(0.0, 1e-3)))
    assert found.headline.startswith("Choose the batch that learns best")
    assert (found.sure, found.edits, found.winner) == ("sure", (), "")


@pytest.mark.parametrize(
    ("steps", "much"),
    [
        (by_cost(0.0, 1e-3), "times as fast as 4."),
        (by_cost(0.02, 1e-3), "Every size below 64 is slower; 1,024 may be up to"),
    ],
)
def test_noise_is_said_as_such_and_wins_nothing(steps, much):
    found = verdict(measured(steps, noise=0.5 if "Every" not in much else 0.2))
    assert (found.sure, found.winner, found.edits) == ("not known yet", "", ())
    assert much in found.much


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        (SEARCH[:1], "4,096 fit into {}; no larger one was tried."),
        (
            (tried("fits 1?", "out-of-memory", batch=1),),
            "Not even a batch of 1 fits into {}.",
        ),
    ],
    ids=["nothing failed", "nothing fits"],
)
def test_a_search_that_is_not_at_its_end_says_what_it_knows(trials, words):
    limit = "perfkit's limit of 256 MB"
    assert words.format(limit) in verdict(measured(LEVEL, tried=trials)).warnings[0]


def test_what_failed_is_told_by_what_was_missing():
    crash = tried("fits 4,352?", "crashed", "was ended by SIGSEGV", batch=4352)
    found = verdict(measured(LEVEL, tried=(SEARCH[0], crash)))
    assert not any("fit" in warning for warning in found.warnings)
    assert found.because == ("Memory may or may not have ended the batch of 4,352.",)
    found = verdict(measured(by_cost(0.002, 1e-4), tried=SEARCH))
    facts = {fact.label: fact.value for fact in found.facts}
    assert found.because == ()
    overhead, cost = (
        float(facts.pop(label).split()[0])
        for label in ("Overhead of a step", "Cost of an example")
    )
    assert (overhead, cost) == pytest.approx((2.0, 100.0), rel=0.1)
    assert facts == {
        "Memory requested by a batch of 4,096, which fits": "190 MB",
        "How a batch of 4,352 ended": "raised MemoryError",
    }


@pytest.mark.parametrize(
    "note", [None, 7, "x", [], {}, [[1]], [["a", 1]], [[4, 0], [8, "x"], [True, 3.0]]]
)
def test_a_curve_pairs_looks_with_work_and_notes_that_make_no_sense_say_nothing(note):
    trained = learnt(8, [3.0, 2.0, 1.0], step_s=0.5, samples=100)
    trials = (
        trained,
        tried("the usual loop", told=note),
        tried("learning by 4", batch=4, losses=note),
        tried("fits 4?", batch=note, memory=note),
    )
    found = BatchSize().result(
        Measurement(variants=(), trials=trials, notes={"forecast": note})
    )
    (curve,) = found.trainings
    assert (curve.samples, curve.losses) == ((0, 100, 200), (3.0, 2.0, 1.0))
    assert curve.seconds == pytest.approx((0.0, 0.5, 1.0))
    assert found.loops == {numbers.UPWARDS: (), numbers.DOWNWARDS: ()}
    assert (found.memory, found.forecast, found.search) == ((), None, None)


@pytest.mark.measures
def test_a_real_run_finds_the_largest_batch_and_never_crashes(tmp_path, monkeypatch):
    monkeypatch.setattr("perfkit.engine.plan._LEAST_S", 6.0)
    asked = {"model": "tiny-dense", "smallest": 2, "largest": 64, "sizes": 2}
    found = run("batch-size", **asked, memory=128, budget=4, folder=tmp_path)
    timed = {trial.variant for trial in found.trials if not trial.is_try}
    assert timed == {"batch 2", "batch 64", CONTROL}
    tries = [trial for trial in found.trials if trial.is_try]
    outcomes = {trial.outcome for trial in tries if trial.variant.startswith("fits")}
    assert "completed" in outcomes
    assert outcomes <= {"completed", "out-of-memory", "crashed", "stopped"}
    assert found.notes["forecast"].keys() == batches.FORECAST.keys()
    held = dict(result_of(found).memory)
    assert set(held) == {2, 64}
    assert found.result["memory"]
    assert all(0 < value < 128 * MB for value in held.values())
    assert store.load(found.path).verdict == found.verdict
    assert {timing.variant for timing in found.timings} <= timed
