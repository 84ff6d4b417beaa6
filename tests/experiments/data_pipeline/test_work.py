import itertools
import os

import numpy as np
import psutil
import pytest
import tensorflow as tf

from perfkit.errors import BadFileError, MissingPartError
from perfkit.experiments.data_pipeline import work
from perfkit.experiments.data_pipeline.variants import VARIANTS
from perfkit.experiments.shared import cache
from perfkit.measure.tick import READY, Note, Pause, Tick


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


def read(images, form):
    records = tf.data.TFRecordDataset(work.made_files(images, form))
    parsed = [work.parse(record) for record in records]
    return [{name: value.numpy() for name, value in one.items()} for one in parsed]


def test_records_hold_the_files_in_their_order_and_are_written_once(run, images):
    run(work.make(images, "jpeg"))
    found = read(images, "jpeg")
    assert [one["label"] for one in found] == list(images.labels)
    for one, path in zip(found, images.paths, strict=True):
        with open(path, "rb") as file:
            assert one["image"] == file.read()
    assert run(work.make(images, "jpeg"))[0] == []


def test_records_of_pixels_hold_what_files_decode_to_and_shards_share_them(run, images):
    run(work.make(images, "raw"))
    for one, path in zip(read(images, "raw"), images.paths, strict=True):
        pixels = np.frombuffer(one["image"], "uint8")
        shape = (one["height"], one["width"], 3)
        wanted = tf.io.decode_jpeg(tf.io.read_file(path)).numpy()
        np.testing.assert_array_equal(pixels.reshape(shape), wanted)
    run(work.make(images, "shards"))
    names = work.made_files(images, "shards")
    sizes = [sum(1 for _ in tf.data.TFRecordDataset(name)) for name in names]
    assert sizes == [2, 2, 2, 2, 1, 1, 1, 1]


def test_lost_files_are_said_in_a_sentence(images, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    with pytest.raises(BadFileError, match="run again to remake them"):
        work.made_files(images, "jpeg")


def test_a_disk_full_for_tensorflow_is_said_to_be(run, images, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))

    class Full(tf.io.TFRecordWriter):
        def write(self, record):
            raise tf.errors.ResourceExhaustedError(
                None, None, f"{tmp_path}/x; No space left on device"
            )

    monkeypatch.setattr(tf.io, "TFRecordWriter", Full)
    with pytest.raises(MissingPartError, match="No room for the TFRecord files"):
        run(work.make(images, "jpeg"))
    assert os.listdir(tmp_path) == []
