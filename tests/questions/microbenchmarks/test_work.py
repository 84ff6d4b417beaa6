import itertools
from unittest.mock import Mock

import pytest

import perfkit
from perfkit.engine.tick import READY, Tick
from perfkit.errors import RunError
from perfkit.questions.microbenchmarks import work
from perfkit.questions.shared import benchmark as shared_benchmark

OWN = (*work.INTERPRETER, *work.ARRAYS, *work.PIPELINE, *work.DISPATCH)
TENSORFLOW = (*shared_benchmark.PRODUCTS, *shared_benchmark.CONVOLUTIONS)
SHARED = (*shared_benchmark.NUMPY, *shared_benchmark.benchmarks())
BENCHMARKS = (*OWN, *SHARED, *TENSORFLOW)


def test_a_microbenchmark_is_ready_and_then_counts_its_work():
    def count(benchmark):
        trial = benchmark.work()
        assert next(trial) == READY
        told = [i for i in itertools.islice(trial, 4) if isinstance(i, int | Tick)]
        trial.close()
        return sum(getattr(item, "examples", item) for item in told)

    # Some keep their process to one core, which the others count on as well.
    done = perfkit.fresh(lambda tf: {one.name: count(one) for one in BENCHMARKS})
    assert len(done) == len(BENCHMARKS)
    assert min(done.values()) > 0


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setattr(work.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(work.ctypes, "CDLL", Mock(side_effect=OSError))
    with pytest.raises(RunError, match=r"pip install tensorflow\[and-cuda\]"):
        next(work.pinned(to_gpu=True))
