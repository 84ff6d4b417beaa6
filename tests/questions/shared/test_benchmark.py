import pytest

from perfkit.engine.trial import READY
from perfkit.questions.shared import benchmark
from tests.machine.trees import grow


# A tick is 25 ms.
@pytest.mark.parametrize(("seconds", "count"), [(0.001, 25), (3.0, 1)])
def test_as_many_calls_make_a_tick_as_take_long_enough(monkeypatch, seconds, count):
    now, calls = [0.0], []

    def call():
        calls.append(1)
        now[0] += seconds

    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: now[0])
    ticks = benchmark.repeated(call, 7, lambda: calls.append("sync"))
    assert next(ticks) is READY
    before = len(calls)
    done = next(ticks)
    spent = [c for c in calls[before:] if c == 1]
    assert calls[-1] == "sync"
    assert done == 7 * len(spent)
    assert len(spent) == count


def test_arrays_are_far_larger_than_the_caches(tmp_path):
    cache = "sys/devices/system/cpu/cpu0/cache"
    sizes = {"index0": "32K\n", "index3": "98304K\n", "index4": "x\n"}
    grow(tmp_path, {f"{cache}/{name}/size": size for name, size in sizes.items()})
    expected = min(4 * 98304 * 1024, benchmark.free_bytes() // 16)
    assert benchmark.array_bytes(tmp_path) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(
    ("fetched", "forgets"),
    [((0, 3_000_000), True), ((0, 2_000_000), False), ((None, None), False)],
    ids=["all from the disk", "a part", "nobody can say"],
)
def test_files_are_forgotten_if_all_comes_from_disk(
    tmp_path, monkeypatch, fetched, forgets
):
    (tmp_path / "large").write_text("x" * 3_000_000)
    told = iter(fetched)
    monkeypatch.setattr(benchmark, "bytes_fetched", lambda: next(told))
    assert benchmark.forgets([str(tmp_path / "large")]) is forgets
