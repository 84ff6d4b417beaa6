"""The largest batch that fits: on paper, and with real processes and a real limit."""

import time

import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.live import LiveTrial
from perfkit.engine.plan import Try
from perfkit.engine.tick import READY, Note
from perfkit.engine.trial import Limits
from perfkit.questions.batch_size import numbers
from perfkit.questions.batch_size.numbers import read_search, search, step
from perfkit.questions.batch_size.verdict import explain_end
from perfkit.questions.shared import batches as shared_batches
from tests.engine.scripted import Clock
from tests.engine.trials import launched
from tests.questions.batches import driven, tried

MB = 10**6


def answered(asking, outcome):
    """Answer each try by its size; gives the trials."""

    def answer(wanted):
        return tried(wanted.name, outcome(numbers.size_of(wanted.name, "fits")))

    return driven(asking, answer)


def asked(size):
    return Try(name=f"fits {size:,}?", work=iter)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 1023, 1024, 1025, 77_777])
@pytest.mark.parametrize("first", [1, 5, 2**20])
def test_the_largest_is_found_to_a_step_from_wherever_it_begins(most, first):
    def outcome(size):
        return "completed" if size <= most else "out-of-memory"

    trials = answered(search(first, asked), outcome)
    result = read_search(trials)
    assert result.fits <= most < result.fails
    assert result.fails - result.fits <= step(result.fits)
    assert result.closed
    assert len({trial.variant for trial in trials}) == len(trials) <= 32


def test_a_search_ends_where_nothing_fits_where_all_does_and_where_it_is_stopped():
    trials = answered(search(600, asked), lambda size: "out-of-memory")
    assert (read_search(trials).fits, read_search(trials).fails) == (0, 1)
    trials = answered(search(600, asked), lambda size: "completed")
    assert read_search(trials).fails is None
    assert read_search(trials).fits <= 2**24
    outcomes = iter(["completed", "completed", "stopped"])
    trials = answered(search(16, asked), lambda size: next(outcomes))
    result = read_search(trials)
    assert (result.fits, result.fails, result.closed) == (32, None, False)
    assert read_search([]) is None
    crash = tried("fits 68?", "crashed", "was ended by SIGSEGV")
    assert not read_search([crash]).by_limit
    first = next(numbers.tries("dense", 64, 300 * MB))
    assert (first.name, first.memory) == ("fits 64?", 300 * MB)


def ended(wanted):
    """Run a try as the engine does."""
    running = launched().start(wanted.work, 1, Limits(memory=wanted.memory))
    clock = time.perf_counter_ns
    live = LiveTrial(wanted.name, 0, running, zero_ns=clock(), clock=clock, seed=1)
    while not live.over:
        live.listen(0.1)
    return live.record()


def test_under_a_real_limit_it_finds_what_brute_force_finds():
    each, limit = MB, 60 * MB

    def ask(size):
        def holds():
            yield READY
            kept = np.ones(each * size, np.uint8)
            yield int(kept[-1]) * size

        return Try(name=f"fits {size:,}?", work=holds, memory=limit)

    trials = driven(search(8, ask), ended)
    result = read_search(trials)
    outcomes = {trial.outcome for trial in trials}
    assert outcomes == {"completed", "out-of-memory"}
    brute = {size: ended(ask(size)).outcome for size in range(48, 64, 2)}
    largest = max(size for size, outcome in brute.items() if outcome == "completed")
    assert abs(result.fits - largest) <= step(largest)


WHY = {
    "its last words: what():  std::bad_alloc": "asked for memory and was given",
    "ResourceExhausted: OOM when allocating tensor with shape[64,32,32,32] and": (
        "a tensor of 64 by 32 by 32 by 32 numbers (8.39 MB in float32)"
    ),
    "ran out of memory: Unable to allocate 1.2 GiB for an": "array of 1.2 GiB",
    "ran out of memory: it waited for more than its limit leaves": "it waited",
    "was ended by SIGSEGV.": "it was ended by SIGSEGV",
}


@pytest.mark.parametrize("message", WHY)
def test_why_a_batch_is_too_large_is_said_in_words(message):
    assert WHY[message] in explain_end(message)


def test_the_first_size_of_the_usual_loop_pays_for_tracing():
    trace, overhead, cost, count = 0.8, 0.002, 1e-5, 1024

    def rates(*sizes):
        """What it says of a fit that traces at its first call, whatever the size."""
        clock, traces = Clock(), iter([trace])

        def fit(size):
            clock.forward(next(traces, 0) + count / size * overhead + count * cost)

        return dict(numbers.circulated(sizes, fit, count, lambda: clock() / 1e9))

    fair = {size: size / (overhead + cost * size) for size in (4, 64, 1024)}
    upwards, backwards = rates(4, 64, 1024), rates(1024, 64, 4)
    spoilt = {size: count / (count / rate + trace) for size, rate in fair.items()}
    assert upwards == pytest.approx(fair | {4: spoilt[4]})
    assert backwards == pytest.approx(fair | {1024: spoilt[1024]})
    assert backwards[1024] < backwards[64] < fair[1024]


def test_what_a_gpu_tries_in_its_first_step_is_no_memory_of_the_training(monkeypatch):
    forgotten = []
    memory = tf.config.experimental
    monkeypatch.setattr(shared_batches, "_first_gpu", lambda: ["GPU:0"])
    monkeypatch.setattr(memory, "reset_memory_stats", forgotten.append)
    monkeypatch.setattr(
        memory, "get_memory_info", lambda _: {"peak": 10 if forgotten else 1000}
    )
    told = [one for one in shared_batches.fitting("tiny-dense", 8) if type(one) is Note]
    assert forgotten == ["GPU:0"]
    assert told[-1].value["gpu_peak"] == 10
