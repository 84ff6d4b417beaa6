import itertools

import psutil
import pytest

from perfkit.engine.tick import READY, Note, Pause, Tick
from perfkit.questions.data_pipeline import work
from perfkit.questions.data_pipeline.variants import VARIANTS


@pytest.fixture(autouse=True)
def _early_plans(monkeypatch):
    monkeypatch.setattr(work, "PLAN_S", 0.0)


def first(yielded, count):
    taken = list(itertools.islice(yielded, count))
    yielded.close()
    return taken


def labels(taken):
    return [item.label for item in taken if isinstance(item, Pause)]


def notes(taken):
    return {item.name: item.value for item in taken if isinstance(item, Note)}


@pytest.mark.parametrize("training", [False, True])
def test_a_trial_is_ready_works_reads_its_plan_and_tells_what_a_step_waited(
    training, task
):
    taken = first(work.feed(VARIANTS["prefetch"], task, training=training), 12)
    assert taken[0] is READY
    assert labels(taken) == [READY.label, "reading the plan"]
    assert isinstance(taken[-1], Tick)
    ticks = [item for item in taken if isinstance(item, Tick)]
    assert all(tick.examples % task.batch == 0 for tick in ticks)
    assert all(bool(tick.parts) is training for tick in ticks)
    assert all(tick.parts.get("input", 1) > 0 for tick in ticks[1:])


def test_a_cache_is_full_before_the_first_step(task):
    taken = first(work.feed(VARIANTS["cache"], task, training=False), 8)
    stages = {stage["name"] for stage in notes(taken)["plan"]["stages"]}
    assert "map and batch, fused" in stages
    assert not stages & {"fill the cache"}


def test_a_cache_that_does_not_fit_is_refused_with_the_numbers(task, monkeypatch):
    free = psutil.virtual_memory()._replace(available=6_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    with pytest.raises(MemoryError, match=r"decoded take 6\.75 MB, and 6 MB are free"):
        next(work.feed(VARIANTS["cache"], task, training=False))
