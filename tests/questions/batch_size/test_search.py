"""The largest batch that fits: on paper, and with real processes and a real limit."""

import time

import numpy as np
import pytest

from perfkit.engine.live import LiveTrial
from perfkit.engine.plan import Try
from perfkit.engine.trial import READY, Limits, Note
from perfkit.questions.batch_size import (
    fit_sizes,
    name_of_try,
    read_search,
    search_sizes,
    step_around,
)
from tests.engine.trials import launched
from tests.questions.batches import driven, tried

MB = 10**6


def answered(first, outcome):
    """Answer each try by its size; gives the trials."""

    def answer(wanted):
        _, size = wanted.work.args
        return tried(wanted.name, outcome(size), batch=size)

    return driven(fit_sizes("dense", first, None), answer)


@pytest.mark.parametrize("most", [1, 2, 7, 1023, 1024, 77_777])
@pytest.mark.parametrize("first", [1, 5, 2**20])
def test_the_largest_is_found_to_a_step_from_wherever_it_begins(most, first):
    def outcome(size):
        return "completed" if size <= most else "out-of-memory"

    trials = answered(first, outcome)
    result = read_search(trials)
    assert result.fits <= most < result.fails
    assert result.fails - result.fits <= step_around(result.fits)
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

    trials = driven(search_sizes(8, ask), ended)
    result = read_search(trials)
    assert {trial.outcome for trial in trials} == {"completed", "out-of-memory"}
    brute = {size: ended(ask(size)).outcome for size in range(48, 64, 3)}
    largest = max(size for size, outcome in brute.items() if outcome == "completed")
    assert abs(result.fits - largest) <= step_around(largest)
