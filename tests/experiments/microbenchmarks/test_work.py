"""Every microbenchmark that needs no GPU, at work in a real process of its own."""

import pytest

from perfkit.experiments.microbenchmarks import work
from perfkit.experiments.shared import benchmark as shared_benchmark
from perfkit.measure.launcher import launcher
from perfkit.measure.tick import READY
from perfkit.measure.trial import Limits

BENCHMARKS = (
    *work.INTERPRETER,
    *work.ARRAYS,
    *shared_benchmark.NUMPY,
    *shared_benchmark.benchmarks(),
    *work.PIPELINE,
    *work.DISPATCH,
    *shared_benchmark.PRODUCTS,
    *shared_benchmark.CONVOLUTIONS,
)


@pytest.fixture(scope="module")
def _ready():
    while not launcher().wait(1):
        pass


def ticks_of(work, wanted=3):
    """What a microbenchmark counts in its first ticks."""
    running, found = launcher().start(work, 1, Limits()), []
    try:
        while len(found) < wanted:
            for message in running.poll(0.1):
                if message[0] == "ticks":
                    found += [(examples, label) for _, examples, _, label in message[1]]
            assert running.outcome is None, running.message
    finally:
        running.kill("stopped", "the test is over")
    return found


@pytest.mark.usefixtures("_ready")
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_microbenchmark_is_ready_and_then_counts_its_work(benchmark):
    (_, ready), *ticks = ticks_of(benchmark.work)
    assert ready == READY.label
    assert all(examples > 0 and not label for examples, label in ticks)


def test_what_is_copied_is_as_long_as_where_it_goes(monkeypatch):
    left = iter([6400, 3200])
    monkeypatch.setattr(shared_benchmark, "array_bytes", lambda: next(left))
    work = shared_benchmark.copy(one_core=False)
    assert next(work) is READY
    assert next(work) % (2 * 6400) == 0
    work.close()
