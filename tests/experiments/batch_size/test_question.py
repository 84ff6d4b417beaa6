"""What is asked over batch sizes, and what is said of a run whose numbers are known."""

import itertools
import pickle
import re

import keras
import pytest

from perfkit.errors import BadParameterError
from perfkit.experiments import experiment
from perfkit.experiments.batch_size import BatchSize, numbers
from perfkit.experiments.shared.models import MODELS
from perfkit.findings import store
from perfkit.measure.measurement import TWIN
from perfkit.measure.tick import Tick
from perfkit.running import run
from tests.experiments.batches import by_cost, learnt, measured, name, tried

MB = 10**6
# From 64 on the rate is 10,000 examples per second; below, a step costs 6.4 ms.
LEVEL = {size: max(size, 64) / 10_000 for size in (4, 16, 64, 256, 1024)}
SEARCH = (
    tried("fits 4,096?", batch=4096, memory={"resident": 90 * MB, "data": 190 * MB}),
    tried("fits 4,352?", "out-of-memory", "ran out of memory: std::bad_alloc"),
)


def verdict(of, **parameters):
    return BatchSize(**parameters).verdict(of)


def because(of, **parameters):
    return " ".join(verdict(of, **parameters).because)


# What is asked.


def test_the_default_run_trains_at_six_sizes_the_smallest_being_the_baseline():
    asked = BatchSize()
    arms = asked.variants()
    assert list(arms) == [name(size) for size in asked.batches]
    assert len(arms) == 6
    assert asked.batches[0] == 4
    assert asked.batches[-1] == 4096
    assert {arm.against for arm in arms.values()} == {asked.baseline} == {"batch 4"}


@pytest.mark.parametrize("smallest", [1, 3, 7, 64])
@pytest.mark.parametrize("largest", [100, 1024, 65_536])
@pytest.mark.parametrize("sizes", [2, 3, 5, 12])
def test_sizes_are_powers_of_two_between_the_two_that_are_given(
    smallest, largest, sizes
):
    made = BatchSize(smallest=smallest, largest=largest, sizes=sizes).batches
    assert (made[0], made[-1]) == (smallest, largest)
    assert list(made) == sorted(set(made))
    assert 2 <= len(made) <= sizes
    assert all(size & (size - 1) == 0 for size in made[1:-1])


def test_sizes_lie_evenly():
    made = BatchSize(smallest=1, largest=4096, sizes=5).batches
    ratios = [later / earlier for earlier, later in itertools.pairwise(made)]
    assert max(ratios) / min(ratios) <= 4


@pytest.mark.parametrize(("smallest", "largest"), [(64, 64), (65, 64)])
def test_a_largest_size_that_is_not_larger_is_refused(smallest, largest):
    with pytest.raises(BadParameterError, match="give a largest batch above the"):
        BatchSize(smallest=smallest, largest=largest)


@pytest.mark.parametrize("model", list(MODELS))
def test_arms_travel_to_their_trials(model):
    for arm in BatchSize(model=model).variants().values():
        assert pickle.loads(pickle.dumps(arm)).name == arm.name


def test_the_search_begins_where_the_shapes_say_that_it_ends():
    notes = {"memory": {"resident": 15 * MB, "data": 56 * MB}}
    asking = BatchSize(memory=256).tries(measured(LEVEL, notes=None))
    assert next(asking).name == "fits 4,096?"
    run_with_memory = measured(LEVEL)
    for trial in run_with_memory.trials:
        trial.notes.update(notes)
    first = next(BatchSize(memory=256).tries(run_with_memory))
    # 200 MB are left, 8 kB each, and 0.8 of that for caution.
    assert 18_000 <= int(re.sub(r"\D", "", first.name)) <= 20_000
    assert first.memory == 256 * MB


def test_on_a_gpu_its_own_memory_is_the_limit():
    first = next(BatchSize().tries(measured(LEVEL, notes={"gpus": 1})))
    assert first.memory is None


def test_after_the_search_come_the_usual_loop_and_real_trainings():
    asking = BatchSize(largest=1024).tries(measured(LEVEL))
    wanted, names = next(asking), []
    while wanted is not None:
        names.append(wanted.name)
        try:
            wanted = asking.send(tried(wanted.name, "out-of-memory"))
        except StopIteration:
            break
    rest = [said for said in names if not said.startswith("fits")]
    assert rest == [
        "the usual loop",
        "the usual loop, backwards",
        "learning by 4",
        "learning by 64",
        "learning by 1,024",
    ]


@pytest.mark.parametrize("kind", ["batch-size", "mixed-precision"])
def test_what_is_timed_is_fit_as_compile_leaves_it(monkeypatch, kind):
    asked = {}

    def fit(self, *args, **options):
        asked.update(options, xla=self.jit_compile, at_once=self.steps_per_execution)
        return real(self, *args, **options)

    real = keras.Model.fit
    monkeypatch.setattr(keras.Model, "fit", fit)
    told = experiment(kind, model="tiny-dense").variants()
    steps = next(iter(told.values())).work()
    kept = list(itertools.islice((i for i in steps if isinstance(i, Tick)), 2))
    steps.close()
    network = MODELS["tiny-dense"].build()
    network.compile("adam", "mse")
    assert all(tick.examples for tick in kept)
    assert (asked["xla"], asked["at_once"]) == (network.jit_compile, 1)


def test_on_a_gpu_nothing_is_called_a_limit_of_perfkits():
    found = verdict(measured(LEVEL, tried=SEARCH, notes={"gpus": 1}))
    assert found.headline.endswith("fits into the GPU's memory is 4,096.")
    assert "perfkit" not in " ".join((found.headline, *found.because))


# What a run means.


def test_the_knee_the_overhead_and_the_largest_batch_are_one_sentence():
    found = verdict(measured(LEVEL, tried=SEARCH))
    assert found.headline.startswith("64 examples a batch are enough here (9,990")
    assert '16× "batch 4", 95 % interval 15.' in found.headline
    assert found.winner == "", "three sizes are as fast as each other"
    assert "no size that was tried is shown to be faster" in found.headline
    assert found.headline.endswith(
        "the largest batch that fits into perfkit's limit of 256 MB above the start "
        "is 4,096."
    )
    assert found.headline.count(".") < 12
    assert "batch_size=64" in found.next


def test_the_overhead_is_said_with_its_interval_where_the_line_holds():
    found = verdict(measured(by_cost(0.002, 1e-4)))
    said = re.search(
        r"before its first example each step costs ([\d.]+) ms", found.headline
    )
    assert float(said[1]) == pytest.approx(2, rel=0.05)
    assert re.search(r"\([\d.]+ ms to [\d.]+ ms\)", found.headline)


def test_where_the_line_does_not_hold_no_overhead_is_claimed():
    steps = by_cost(0.002, 1e-4)
    steps[1024] *= 3
    found = verdict(measured(steps))
    assert "each step costs" not in found.headline
    assert "The line does not hold" in " ".join(found.because)


def test_a_rate_that_still_rises_asks_for_larger_sizes():
    found = verdict(measured(by_cost(1.0, 1e-6)))
    assert found.headline.startswith("The rate still rises at the largest batch, 1,024")
    assert "above 1,024" in found.next
    assert found.winner == "batch 1,024"


def test_no_difference_is_said_as_such():
    found = verdict(measured(by_cost(0.0, 1e-3)))
    assert found.headline.startswith("No batch size is shown to be faster than 4 here")
    assert found.winner == ""


def test_noise_is_said_as_such_and_wins_nothing():
    found = verdict(measured(by_cost(0.0, 1e-3), noise=0.5))
    assert found.headline.startswith("Too noisy to say whether any size is faster")
    assert found.winner == ""
    assert "more seconds" in found.next


def test_nothing_timed_is_a_sentence():
    found = verdict(measured(LEVEL, rounds=0))
    assert found.headline == "No batch size could be timed."


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        (
            SEARCH[:1],
            "4,096 fit into perfkit's limit of 256 MB above the start, and no larger",
        ),
        (
            (SEARCH[0], tried("fits 8,192?", "out-of-memory", "ran out of memory")),
            "4,096 fit into perfkit's limit of 256 MB above the start and 8,192 do not",
        ),
        (
            (tried("fits 1?", "out-of-memory", "x"),),
            "not even 1 fit into perfkit's limit of 256 MB",
        ),
    ],
)
def test_a_search_that_is_not_at_its_end_says_what_it_knows(trials, words):
    assert words in verdict(measured(LEVEL, tried=trials)).headline


def test_a_crash_that_memory_did_not_cause_sets_no_limit():
    crash = tried("fits 4,352?", "crashed", "was ended by SIGSEGV")
    found = verdict(measured(LEVEL, tried=(SEARCH[0], crash)))
    assert "4,096" not in found.headline
    assert "Whether memory ended the batch of 4,352 is not known" in " ".join(
        found.because
    )


# What it rests on.


def test_the_post_mortem_says_what_was_missing():
    said = because(measured(LEVEL, tried=SEARCH))
    assert "a batch of 4,352 is too large: a library asked for memory" in said
    assert "The batch of 4,096 had asked for 190 MB." in said
    assert "2 batches were tried, each in a process of its own" in said


def test_the_forecast_stands_beside_what_was_measured():
    run_ = measured(LEVEL)
    for trial in run_.trials:
        size = numbers.size_of(trial.variant)
        trial.notes["memory"] = {"resident": 10 * MB + 8000 * size * 4}
    said = because(run_)
    assert "400 KB of weights" in said
    assert "4 KB of activations for each example" in said
    # 1.6 MB and 1024 times 4 kB.
    assert "a step of 1,024 holds 5.7 MB" in said
    assert "Measured, an example takes 32 KB, 8.00× what its activations would" in said


def test_the_usual_loop_stands_beside_the_fair_answer():
    loops = (
        tried("the usual loop", told=[[4, 10.0], [1024, 1000.0]]),
        tried("the usual loop, backwards", told=[[1024, 50.0], [4, 100.0]]),
    )
    said = because(measured(LEVEL, tried=loops))
    assert "1,024 reaches 100× run upwards and 0.50× run backwards" in said
    assert re.search(r"measured fairly it is 1[56]\.?\d?× \(1[56]\.?\d? to", said)


def test_speed_is_not_learning():
    curves = (
        learnt(4, [2.3, 1.0, 0.5], step_s=1.0, samples=512),
        learnt(4096, [2.3, 2.0, 1.5, 1.2], step_s=0.1, samples=4096),
    )
    said = because(measured(LEVEL, tried=curves))
    assert "After 1,024 examples the loss was 0.5 with 4, not known with 4,096" in said
    assert "after 300 ms of training not known with 4" in said
    assert "1.2 with 4,096" in said
    assert "changes the training itself" in said


def test_failed_sizes_are_told_once():
    run_ = measured(LEVEL, tried=SEARCH)
    crash = tried("x").__class__(
        variant="batch 4,096", round=1, outcome="crashed", message="raised ValueError."
    )
    failed = run_.__class__(arms=run_.arms, trials=(*run_.trials, crash, crash))
    assert because(failed).count('"batch 4,096" raised ValueError.') == 1


# Notes from anywhere.


@pytest.mark.parametrize(
    "note", [None, 7, "x", [], {}, [[1]], [["a", 1]], [[4, 0], [8, "x"], [True, 3.0]]]
)
def test_notes_that_make_no_sense_say_nothing(note):
    trials = (
        tried("the usual loop", told=note),
        tried("learning by 4", batch=4, losses=note),
        tried("fits 4?", batch=4, memory=note),
    )
    assert numbers.usual_loop(trials, "the usual loop") == {}
    assert numbers.curves(trials) == ()
    assert numbers.memory(trials) == {}
    assert numbers.forecast({"forecast": note}) is None


def test_a_curve_pairs_each_look_with_the_work_before_it():
    (curve,) = numbers.curves([learnt(8, [3.0, 2.0, 1.0], step_s=0.5, samples=100)])
    assert curve.samples == (0, 100, 200)
    assert curve.seconds == pytest.approx((0.0, 0.5, 1.0))
    assert curve.losses == (3.0, 2.0, 1.0)
    assert curve.after_samples(150) == 2.0
    assert curve.after_seconds(0.4) is None


# A whole run.


@pytest.mark.measures
def test_a_real_run_finds_the_largest_batch_and_never_crashes(tmp_path, monkeypatch):
    monkeypatch.setattr("perfkit.measure.plan._LEAST_S", 6.0)
    found = run(
        "batch-size",
        model="tiny-dense",
        smallest=2,
        largest=64,
        sizes=2,
        memory=128,
        budget=4,
        folder=tmp_path,
    )
    timed = {trial.variant for trial in found.trials if not trial.is_try}
    assert timed == {"batch 2", "batch 64", TWIN}
    tries = [trial for trial in found.trials if trial.is_try]
    outcomes = {trial.outcome for trial in tries if trial.variant.startswith("fits")}
    assert "completed" in outcomes
    assert outcomes <= {"completed", "out-of-memory", "crashed", "stopped"}
    assert set(found.notes["forecast"]) == {
        *("weights", "gradients", "slots", "activations"),
    }
    held = numbers.memory(found.trials)
    assert set(held) == {2, 64}
    assert all(0 < value < 128 * MB for value in held.values())
    assert store.load(found.path).verdict == found.verdict
    assert {timing.variant for timing in found.timings} <= timed
