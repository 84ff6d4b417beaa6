"""The largest batch that fits: on paper, and with real processes and a real limit."""

import time

import numpy as np
import pytest
import tensorflow as tf

from perfkit.engine.live import LiveTrial
from perfkit.engine.plan import Try
from perfkit.engine.tick import READY, Note
from perfkit.engine.trial import Limits
from perfkit.questions.batch_size.numbers import (
    name_of_try,
    read_search,
    search,
    step,
    tries,
)
from perfkit.questions.shared import batches as shared_batches
from tests.engine.trials import launched
from tests.questions.batches import driven, tried

MB = 10**6


def answered(first, outcome):
    """Answer each try by its size; gives the trials."""

    def answer(wanted):
        _, size = wanted.work.args
        return tried(wanted.name, outcome(size), batch=size)

    return driven(tries("dense", first, None), answer)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 1023, 1024, 1025, 77_777])
@pytest.mark.parametrize("first", [1, 5, 2**20])
def test_the_largest_is_found_to_a_step_from_wherever_it_begins(most, first):
    def outcome(size):
        return "completed" if size <= most else "out-of-memory"

    trials = answered(first, outcome)
    result = read_search(trials)
    assert result.fits <= most < result.fails
    assert result.fails - result.fits <= step(result.fits)
    assert len({trial.variant for trial in trials}) == len(trials) <= 32


def test_a_search_ends_where_nothing_fits_where_all_does_and_where_it_is_stopped():
    trials = answered(600, lambda size: "out-of-memory")
    assert (read_search(trials).fits, read_search(trials).fails) == (0, 1)
    trials = answered(600, lambda size: "completed")
    assert read_search(trials).fails is None
    assert read_search(trials).fits <= 2**24
    outcomes = iter(["completed", "completed", "stopped"])
    trials = answered(16, lambda size: next(outcomes))
    result = read_search(trials)
    assert (result.fits, result.fails) == (32, None)
    assert read_search([]) is None
    crash = tried("fits 68?", "crashed", "was ended by SIGSEGV", batch=68)
    assert not read_search([crash]).by_limit
    first = next(tries("dense", 64, 300 * MB))
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
            yield Note("batch", size)
            yield READY
            kept = np.ones(each * size, np.uint8)
            yield int(kept[-1]) * size

        return Try(name=name_of_try(size), work=holds, memory=limit)

    trials = driven(search(8, ask), ended)
    result = read_search(trials)
    outcomes = {trial.outcome for trial in trials}
    assert outcomes == {"completed", "out-of-memory"}
    brute = {size: ended(ask(size)).outcome for size in range(48, 64, 2)}
    largest = max(size for size, outcome in brute.items() if outcome == "completed")
    assert abs(result.fits - largest) <= step(largest)


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
