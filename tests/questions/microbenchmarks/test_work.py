import ctypes
import itertools
from unittest.mock import Mock

import pytest

from perfkit.engine.tick import READY
from perfkit.engine.trial import Limits
from perfkit.errors import RunError
from perfkit.questions.microbenchmarks import work
from perfkit.questions.shared import benchmark as shared_benchmark
from tests.engine.trials import launched, ticks_of, until_ticks

OWN = (*work.INTERPRETER, *work.ARRAYS, *work.PIPELINE, *work.DISPATCH)
TENSORFLOW = (*shared_benchmark.PRODUCTS, *shared_benchmark.CONVOLUTIONS)
SHARED = (*shared_benchmark.NUMPY, *shared_benchmark.benchmarks())
BENCHMARKS = (*OWN, *SHARED, *TENSORFLOW)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_microbenchmark_is_ready_and_then_counts_its_work(benchmark):
    running = launched().start(benchmark.work, 1, Limits())
    try:
        (*_, ready), *ticks = ticks_of(until_ticks(running, 3))
    finally:
        running.kill("stopped", "the test is over")
    assert ready == READY.label
    assert all(examples > 0 and not label for _, examples, _, label in ticks)


def test_what_is_copied_is_as_long_as_where_it_goes(monkeypatch):
    left = iter([6400, 3200])
    monkeypatch.setattr(shared_benchmark, "array_bytes", lambda: next(left))
    work = shared_benchmark.copy(one_core=False)
    assert next(work) is READY
    assert next(work) % (2 * 6400) == 0
    work.close()


class Cuda:
    """Answers like CUDA's runtime library, with ordinary memory as the GPU's."""

    def __init__(self):
        self.refuses, self.kept, self.copied = "", [], []

    def cudaMallocHost(self, pointer, size):
        block = ctypes.create_string_buffer(size.value)
        self.kept.append(block)
        pointer._obj.value = ctypes.addressof(block)
        return 2 if self.refuses == "memory" else 0

    cudaMalloc = cudaMallocHost

    def cudaMemcpy(self, target, source, size, kind):
        ctypes.memmove(target, source, size.value)
        self.copied.append((size.value, kind.value))
        return 0

    def cudaDeviceSynchronize(self):
        self.copied.append("sync")
        return 0


@pytest.fixture
def cuda(monkeypatch):
    library = Cuda()
    monkeypatch.setattr(work, "_cuda", lambda: library)
    monkeypatch.setattr(work, "_SIZE", 1 << 14)
    return library


@pytest.mark.parametrize(("to_gpu", "kind"), [(True, 1), (False, 2)])
def test_pinned_copies_count_their_bytes_and_are_waited_for(cuda, to_gpu, kind):
    ready, *ticks = itertools.islice(work.pinned(to_gpu=to_gpu), 3)
    assert ready is READY
    assert all(examples % (1 << 14) == 0 and examples > 0 for examples in ticks)
    assert {entry[1] for entry in cuda.copied if entry != "sync"} == {kind}
    assert cuda.copied[-1] == "sync"


def test_a_refusal_and_a_missing_library_are_one_sentence(cuda, monkeypatch):
    cuda.refuses = "memory"
    with pytest.raises(RunError, match="its error 2"):
        next(work.pinned(to_gpu=True))
    monkeypatch.undo()
    monkeypatch.setattr(work.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(work.ctypes, "CDLL", Mock(side_effect=OSError))
    with pytest.raises(RunError, match=r"pip install tensorflow\[and-cuda\]"):
        next(work.pinned(to_gpu=True))
