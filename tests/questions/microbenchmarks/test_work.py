import itertools

import perfkit
from perfkit.engine.trial import READY, Pause, Tick
from perfkit.questions.microbenchmarks import work
from perfkit.questions.shared import benchmark
from tests.machine.trees import grow

# The disk and the photographs are made first; another test reads files.
MADE = (work.DATA_DISK, *work.JPEGS)
BENCHMARKS = [one for one in work.benchmarks("") if one.name not in MADE]


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


def test_flop_are_multiplications_and_additions():
    assert work.flop(3) == 3 * 3 * (3 + 3)


def test_each_pass_counts_every_byte_and_forgets_before(tmp_path):
    files = {"inner/large": "x" * 3_000_000, "small": "y" * 5000, "tiny": "z"}
    reading = work.read(str(grow(tmp_path, files)))
    assert next(reading) is READY
    told = list(itertools.islice(reading, 40))
    ends = [n for n, item in enumerate(told) if item == Pause(benchmark.FORGETTING)]
    for start, end in itertools.pairwise(ends):
        ticks = [item.examples for item in told[start:end] if isinstance(item, Tick)]
        assert sum(ticks) == 3_005_000
