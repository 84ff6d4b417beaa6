from unittest.mock import create_autospec

import keras
import pytest

from perfkit.engine.measurement import CONTROL, Measurement
from perfkit.engine.trial import Tick
from perfkit.errors import BadParameterError
from perfkit.findings import store
from perfkit.questions import experiment, result_of
from perfkit.questions.batch_size import BatchSize
from perfkit.questions.runs import run
from perfkit.questions.shared.models import MODELS
from tests.questions.batches import by_cost, measured, tried
from tests.questions.races import sayings

MB = 10**6
# From 64 on the rate is 10,000 examples per second; below, a step costs 6.4 ms.
LEVEL = {size: max(size, 64) / 10_000 for size in (4, 16, 64, 256, 1024)}
SEARCH = (
    tried("fits 4,096?", batch=4096, memory={"resident": 90 * MB, "data": 190 * MB}),
    tried("fits 4,352?", "out-of-memory", "raised MemoryError.", batch=4352),
)
verdict = sayings("batch-size")


@pytest.mark.parametrize(
    ("smallest", "largest", "sizes"), [(1, 100, 2), (7, 100, 12), (64, 65_536, 3)]
)
def test_sizes_are_powers_of_two_between_the_given(smallest, largest, sizes):
    made = BatchSize(smallest=smallest, largest=largest, sizes=sizes).batches
    assert (made[0], made[-1]) == (smallest, largest)
    assert list(made) == sorted(set(made))
    assert 2 <= len(made) <= sizes
    assert all(size & (size - 1) == 0 for size in made[1:-1])
    with pytest.raises(BadParameterError, match="give a largest batch above the"):
        BatchSize(smallest=64, largest=64)


def test_the_search_begins_at_the_largest_size_and_ends_within_the_gpus_memory():
    first = next(BatchSize(memory=256).tries(measured(LEVEL)))
    assert (first.name, first.memory) == ("fits 4,096?", 256 * MB)
    gpu = measured(LEVEL, tried=SEARCH, notes={"gpus": 1})
    assert next(BatchSize().tries(gpu)).memory is None
    room = "the GPU's memory"
    warning = verdict(gpu).warnings[0]
    assert warning.endswith(f"4,096 fit into {room}, and 4,352 do not.")


@pytest.mark.parametrize("kind", ["batch-size", "mixed-precision"])
def test_what_is_timed_is_fit_as_compile_leaves_it(monkeypatch, kind):
    fit = create_autospec(keras.Model.fit, side_effect=keras.Model.fit)
    monkeypatch.setattr(keras.Model, "fit", fit)
    told = experiment(kind, model="tiny-dense").make_variants()
    steps = next(iter(told.values())).work()
    assert next(item for item in steps if isinstance(item, Tick)).examples
    steps.close()
    network = MODELS["tiny-dense"].build()
    network.compile("adam", "mse")
    (fitted, *_), _ = fit.call_args
    assert (fitted.jit_compile, fitted.steps_per_execution) == (network.jit_compile, 1)


def test_the_smallest_batch_that_is_as_fast_as_any_is_advised():
    found = verdict(measured(LEVEL, tried=SEARCH))
    assert found.headline == "Train with `batch_size=64`: larger is not faster."
    assert "16 times as fast as with 4: 10,000 instead" in found.much
    assert (found.sure, found.interval[:5]) == ("sure", "16 to")
    assert found.edits[0].new == "model.fit(x, y, batch_size=64)"
    assert "learns differently" in found.warnings[1]
    assert (found.winner, found.next) == ("", ""), "three sizes are equally fast"
    facts = {fact.label: fact.value for fact in found.facts}
    assert facts["How a batch of 4,352 ended"] == "raised MemoryError"


def test_a_rate_that_still_rises_asks_for_more_and_a_level_one_for_what_learns_best():
    found = verdict(measured(by_cost(0.1, 1e-7)))
    assert found.headline.startswith("Train with `batch_size=1024`: the rate still")
    assert "--largest 4096" in found.next
    assert found.winner == "batch 1,024"
    found = verdict(measured(by_cost(0.0, 1e-3)))
    assert found.headline.startswith("Choose the batch that learns best")
    assert (found.sure, found.edits, found.winner) == ("sure", (), "")


@pytest.mark.parametrize(("overhead", "noise"), [(0.0, 0.5), (0.02, 0.2)])
def test_noise_is_said_as_such_and_wins_nothing(overhead, noise):
    found = verdict(measured(by_cost(overhead, 1e-3), noise=noise))
    assert (found.sure, found.winner, found.edits) == ("not known yet", "", ())


def test_what_failed_is_told_by_what_was_missing():
    nothing = tried("fits 1?", "out-of-memory", batch=1)
    crash = tried("fits 4,352?", "crashed", "was ended by SIGSEGV", batch=4352)
    limit = "perfkit's limit of 256 MB"
    for trials, warning in (
        (SEARCH[:1], f"4,096 fit into {limit}; no larger one was tried."),
        ((nothing,), f"Not even a batch of 1 fits into {limit}."),
    ):
        assert warning in verdict(measured(LEVEL, tried=trials)).warnings[0]
    found = verdict(measured(LEVEL, tried=(SEARCH[0], crash)))
    assert not any("fit" in warning for warning in found.warnings)
    assert found.because == ("Memory may or may not have ended the batch of 4,352.",)


@pytest.mark.parametrize(
    "note", [None, 7, "x", {}, [["a", 1]], [[4, 0], [8, "x"], [True, 3.0]]]
)
def test_notes_that_make_no_sense_say_nothing(note):
    run = Measurement(variants=(), trials=(tried("fits 4?", batch=note, memory=note),))
    found = BatchSize().result(run)
    assert (found.memory, found.search) == ((), None)


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
    held = dict(result_of(found).memory)
    assert set(held) == {2, 64}
    assert found.result["memory"]
    assert all(0 < value < 128 * MB for value in held.values())
    assert store.load(found.path).verdict == found.verdict
    assert {timing.variant for timing in found.timings} <= timed
