import dataclasses
import itertools

import numpy as np
import psutil
import pytest

from perfkit.engine.trial import READY, Note, Pause, Tick
from perfkit.questions.data_pipeline import variants, work
from perfkit.questions.data_pipeline.variants import VARIANTS
from perfkit.questions.data_pipeline.work import PARTS, Again, schedule


def batches(method, task, count):
    taken = itertools.islice(iter(VARIANTS[method].build(task)), count)
    return [(np.asarray(images), np.asarray(labels)) for images, labels in taken]


def test_a_cache_augments_anew(task):
    count = len(task.images.paths) // task.batch
    first, *_, again = batches("cache", task, count + 1)
    assert list(first[1]) == list(again[1])
    assert (first[0] != again[0]).mean() > 0.9


def test_a_way_that_gives_something_else_is_found_out(task):
    def darker():
        for images, labels in VARIANTS["python generator"].build(task):
            yield images * 0.97, labels

    def late():
        return itertools.islice(VARIANTS["python generator"].build(task), 1, None)

    def smaller():
        return VARIANTS["naive map"].build(dataclasses.replace(task, side=48))

    for name, function, why in (
        ("python generator", lambda: Again(darker), "pixels differ by 0."),
        ("python generator", lambda: Again(late), "pixels differ by 0."),
        ("naive map", smaller, "shape (48, 48, 3) instead of (64, 64, 3)"),
    ):
        guilty = dataclasses.replace(VARIANTS[name], function=function)
        found = variants.differences([guilty, VARIANTS["parallel map"]], task)
        assert list(found) == [name]
        assert why in found[name]


def test_every_image_comes_once_each_time_round_with_its_label_in_another_order(task):
    paths, labels, drawn = schedule(task)
    rounds = paths.reshape(-1, len(task.images.paths))
    assert [path.decode() for path in rounds[0]] == list(task.images.paths)
    assert len(paths) == len(drawn) >= 4096
    assert all(set(one) == set(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds[:10]}) == 10
    label_of = dict(zip(task.images.paths, task.images.labels, strict=True))
    assert [label_of[path.decode()] for path in paths[:200]] == list(labels[:200])
    endless = PARTS["files"](task, "").skip(len(paths) - 2).take(4)
    files, _, numbers = zip(*endless.as_numpy_iterator(), strict=True)
    assert list(files) == [*paths[-2:], *paths[:2]]
    np.testing.assert_array_equal(numbers[2], drawn[0])


@pytest.mark.parametrize("training", [False, True])
def test_a_trial_is_ready_works_and_tells_what_a_step_waited(training, task):
    trial = work.feed(VARIANTS["cache"], task, training=training)
    taken = list(itertools.islice(trial, 12))
    trial.close()
    assert [item.label for item in taken if isinstance(item, Pause)] == [READY.label]
    ticks = [item for item in taken if isinstance(item, Tick)]
    assert all(tick.examples % task.batch == 0 for tick in ticks)
    assert all(bool(tick.parts) is training for tick in ticks)
    assert all(tick.parts.get("input", 1) > 0 for tick in ticks[1:])
    assert [item.name for item in taken if isinstance(item, Note)] == ["where"]


def test_a_cache_that_does_not_fit_is_refused_with_the_numbers(task, monkeypatch):
    free = psutil.virtual_memory()._replace(available=6_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    with pytest.raises(MemoryError, match=r"decoded take 6\.75 MB, and 6 MB are free"):
        next(work.feed(VARIANTS["cache"], task, training=False))
